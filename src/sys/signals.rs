//! Ctrl-C as an event that can be waited for together with a child. The signals are blocked, so they do not
//! interrupt a measurement at an arbitrary instruction; children start with an empty mask.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags};

use super::{pidfd, raw};
use crate::units::Nanos;

/// Whether the user has ever interrupted. It is shared by the whole process: any of the descriptors can
/// receive the signal, and the others must learn of it.
static ASKED: AtomicBool = AtomicBool::new(false);

/// A pollable descriptor that becomes readable when the user interrupts.
#[derive(Debug)]
pub struct Interrupts {
    fd: OwnedFd,
}

/// The result of waiting for the end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// It has ended.
    Ended,
    /// The user interrupted.
    Interrupted,
    /// The time allowed ran out.
    TimedOut,
}

impl Interrupts {
    /// Blocks SIGINT, SIGTERM and SIGHUP in this thread and in threads started later, and receives them here.
    pub fn install() -> io::Result<Interrupts> {
        let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].map(raw::mask_of);
        let signals = signals.into_iter().fold(0, |all, one| all | one);
        let fd = raw::signal_descriptor(signals, libc::SFD_NONBLOCK).map_err(io::Error::from_raw_os_error)?;
        // SAFETY: it was just made, and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Interrupts { fd })
    }

    /// Whether the user has ever interrupted. The descriptor becomes readable again at the next interrupt.
    pub fn asked(&self) -> bool {
        let mut record = [0u8; size_of::<libc::signalfd_siginfo>()];
        while rustix::io::read(&self.fd, &mut record).is_ok_and(|count| count > 0) {
            ASKED.store(true, Ordering::Relaxed);
        }
        ASKED.load(Ordering::Relaxed)
    }

    /// Whether there is an interrupt that has not been received.
    pub fn pending(&self) -> bool {
        self.sleep(0)
    }

    /// Sleeps for `nanos`, or until an interrupt; returns whether there was one.
    pub fn sleep(&self, nanos: u64) -> bool {
        self.await_end(None, Nanos(nanos.cast_signed())) == Awaited::Interrupted
    }

    /// Waits until a process ends that is not dunnage's child and so cannot be reaped; without one, until the
    /// time is over.
    pub fn await_end(&self, process: Option<&OwnedFd>, allowed: Nanos) -> Awaited {
        if self.asked() {
            return Awaited::Interrupted;
        }
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut polled = vec![readable(self.as_fd())];
        polled.extend(process.map(|process| readable(process.as_fd())));
        if !pidfd::poll(&mut polled, allowed) {
            return Awaited::TimedOut;
        }
        match polled.get(1).is_some_and(|process| !process.revents().is_empty()) {
            true => Awaited::Ended,
            false => Awaited::Interrupted,
        }
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Makes this signal end the process at once with success, also during work.
pub(crate) fn end_at(signal: i32) {
    extern "C" fn end(_: i32) {
        raw::exit(0)
    }
    // SAFETY: the handler only ends the process, by one system call.
    unsafe { libc::signal(signal, end as *const () as libc::sighandler_t) };
    raw::signal_mask(libc::SIG_UNBLOCK, raw::mask_of(signal));
}

/// Turns writes to a closed pipe, and beyond the file size limit, into errors instead of deaths, so that a
/// run whose reader has gone or whose file cannot grow still cleans up. Children start with the default
/// actions.
pub fn fail_instead_of_dying() {
    extern "C" fn go_on(_: i32) {}
    // SAFETY: sets the action to ignore, without a handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    // SAFETY: the handler does nothing. Unlike the action to ignore it ends with exec, so children need no
    // reset.
    unsafe { libc::signal(libc::SIGXFSZ, go_on as *const () as libc::sighandler_t) };
}
