//! Raw system calls and kernel interfaces: the only room with `unsafe` outside the probe.

pub mod accounting;
pub mod clock;
pub mod remains;
