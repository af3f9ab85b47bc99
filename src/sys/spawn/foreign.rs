//! Waits for the end of a process that is not a child of ours.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys::pidfd;
use crate::sys::signals::Interrupts;
use crate::units::Nanos;

/// What waiting for a process came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// It has ended.
    Ended,
    /// The person asked to stop.
    Interrupted,
    /// The time allowed ran out.
    TimedOut,
}

/// Waits until a process ends that is not a child of ours, and so is not ours to reap or to kill.
pub fn await_end(process: &OwnedFd, allowed: Nanos, interrupts: &Interrupts) -> Awaited {
    if interrupts.asked() {
        return Awaited::Interrupted;
    }
    let watched = [process.as_raw_fd(), interrupts.as_raw_fd()].map(|fd| (fd, libc::POLLIN));
    match pidfd::ready(watched, allowed) {
        [true, _] => Awaited::Ended,
        [_, true] => Awaited::Interrupted,
        _ => Awaited::TimedOut,
    }
}
