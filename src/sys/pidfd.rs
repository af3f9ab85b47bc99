//! Processes as descriptors, and waiting for the first of several descriptors. Deliberately absent: what a child that
//! shares our memory does, and the probe, which make their own system calls.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::PollFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::Timespec;

use crate::units::Nanos;

/// Opens a descriptor that becomes readable when the process ends.
pub fn open(pid: i32) -> io::Result<OwnedFd> {
    Ok(pidfd_open(Pid::from_raw(pid).ok_or(Errno::INVAL)?, PidfdFlags::empty())?)
}

/// Sends a signal to the process that the descriptor holds, whatever its number stands for by now.
pub fn signal(process: &OwnedFd, signal: i32) -> io::Result<()> {
    Ok(pidfd_send_signal(process, Signal::from_named_raw(signal).ok_or(Errno::INVAL)?)?)
}

/// Waits for events; whether there was one in time. None where a signal came.
pub(super) fn poll(fds: &mut [PollFd<'_>], time: Nanos) -> bool {
    let time = Timespec { tv_sec: time.0 / 1_000_000_000, tv_nsec: time.0 % 1_000_000_000 };
    rustix::event::poll(fds, Some(&time)).is_ok_and(|ready| ready > 0)
}
