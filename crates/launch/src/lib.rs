//! The probe for timed starts: it stamps, reads back, reports and ends, from the ELF entry and with raw
//! system calls. libc never starts, since its start would be measured too: in a virtual machine that takes
//! longer than the kernel needs to execute a program, because each of its dozens of `cpuid` instructions is
//! trapped.
//!
//! So nothing that is reachable from `entry` may call out of this crate, not even to copy bytes: libc's
//! functions for that are reached through a table that only libc's start fills. A test follows every branch
//! of the executable from its entry. The crate is always optimised (`Cargo.toml`), and `no_builtins` keeps
//! the compiler from turning loops into calls. All other tasks of the probe continue to libc's start, and
//! share the message and the system calls.
//!
//! Deliberately absent: allocation, panics, comparisons of slices with `==`, and kinds of work.
#![cfg_attr(not(test), no_std)]
#![no_builtins]

pub mod calls;
pub mod entry;
pub mod inherited;
pub mod inside;
pub mod message;
pub mod words;
