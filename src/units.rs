//! Units that numbers carry. A duration or a moment never travels as a bare integer or float.
//!
//! Deliberately absent: parsing and printing.

/// A moment on `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u64);

/// A signed duration in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub i64);
