//! pidfds, and waiting for the first of several descriptors. Deliberately absent: the probe, and a child that
//! shares dunnage's memory, which make their own system calls.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicI64, Ordering};

use rustix::event::PollFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::Timespec;

use super::clock;
use crate::units::Nanos;

/// Opens a pidfd, which becomes readable when the process ends.
pub fn open(pid: i32) -> io::Result<OwnedFd> {
    Ok(pidfd_open(Pid::from_raw(pid).ok_or(Errno::INVAL)?, PidfdFlags::empty())?)
}

/// Sends a signal to the process of the pidfd, even if its id has been reused.
pub fn signal(process: &OwnedFd, signal: i32) -> io::Result<()> {
    Ok(pidfd_send_signal(process, Signal::from_named_raw(signal).ok_or(Errno::INVAL)?)?)
}

/// The longest single wait, so that a longer one shows that dunnage did not run.
const PIECE: Nanos = Nanos(100_000_000);

/// The largest delay of a wake-up since it was last read.
static LATENESS: AtomicI64 = AtomicI64::new(0);

/// The largest delay in nanoseconds of a wake-up of this process since the last call, in any thread and any
/// wait: how long it was stopped, or the machine was suspended or paused.
pub fn take_lateness() -> Nanos {
    Nanos(LATENESS.swap(0, Ordering::Relaxed))
}

/// Waits for events; returns whether one came in time. Also returns early, without an event, after a signal.
pub(super) fn poll(fds: &mut [PollFd<'_>], time: Nanos) -> bool {
    let mut left = time;
    loop {
        let piece = left.min(PIECE);
        let began = clock::with_suspensions();
        let time = Timespec { tv_sec: piece.0 / 1_000_000_000, tv_nsec: piece.0 % 1_000_000_000 };
        let ready = rustix::event::poll(fds, Some(&time));
        let took = clock::with_suspensions().since(began);
        LATENESS.fetch_max(took.0 - piece.0, Ordering::Relaxed);
        left = Nanos(left.0 - took.0.max(piece.0));
        if ready != Ok(0) || left.0 <= 0 {
            return ready.is_ok_and(|ready| ready > 0);
        }
    }
}
