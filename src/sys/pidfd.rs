//! Processes as descriptors, and waiting for the first of several descriptors. Deliberately absent: what a child that
//! shares our memory does, and the probe, which make their own system calls.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::units::Nanos;

/// Opens a descriptor that becomes readable when the process ends.
pub fn open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes a process id and flags; the result is a new descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: pidfd_open just made this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Sends a signal to the process that the descriptor holds, whatever its number stands for by now.
pub fn signal(process: &OwnedFd, signal: i32) -> io::Result<()> {
    let record = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: signals exactly the process behind the descriptor; no record is given with the signal.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, record, 0) };
    if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waits for events; whether there was one in time.
pub(super) fn poll(fds: &mut [libc::pollfd], time: Nanos) -> io::Result<bool> {
    let time = libc::timespec { tv_sec: time.0 / 1_000_000_000, tv_nsec: time.0 % 1_000_000_000 };
    // SAFETY: the descriptors and the time are valid for the whole call; no signal mask is given.
    match unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &time, std::ptr::null()) } {
        ready @ 0.. => Ok(ready > 0),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Which of the descriptors have one of their events; none when the time is over, or a signal came. A negative
/// descriptor is passed over.
pub(super) fn ready<const N: usize>(fds: [(RawFd, i16); N], time: Nanos) -> [bool; N] {
    let mut polled = fds.map(|(fd, events)| libc::pollfd { fd, events, revents: 0 });
    let any = poll(&mut polled, time).is_ok_and(|any| any);
    polled.map(|one| any && one.revents != 0)
}
