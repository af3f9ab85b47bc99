//! Ctrl-C, as something that can be waited for together with a child. The signals are blocked, so
//! they interrupt no measurement at an arbitrary instruction; children start with a clean mask.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use super::pidfd;
use crate::units::Nanos;

/// Whether a stop was ever asked for. One for the whole process: the signal can be taken from any of
/// the descriptors, and whoever takes it must not keep it from the others.
static ASKED: AtomicBool = AtomicBool::new(false);

/// A pollable descriptor that becomes readable when the person wants to stop.
#[derive(Debug)]
pub struct Interrupts {
    fd: OwnedFd,
}

fn watched() -> libc::sigset_t {
    // SAFETY: an all-zero sigset_t is valid storage; sigemptyset and sigaddset initialise it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

impl Interrupts {
    /// Blocks SIGINT, SIGTERM and SIGHUP in this thread and those it starts later, and collects
    /// them here.
    pub fn install() -> io::Result<Interrupts> {
        let set = watched();
        // SAFETY: `set` is initialised; no old mask is asked for.
        if unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `set` is initialised; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: signalfd just made this descriptor and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Interrupts { fd })
    }

    /// Whether a stop was ever asked for. The descriptor is readable again when it is asked for
    /// once more.
    pub fn asked(&self) -> bool {
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: the buffer has the size of the record that signalfd writes.
        while unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), info.len()) } > 0 {
            ASKED.store(true, Ordering::Relaxed);
        }
        ASKED.load(Ordering::Relaxed)
    }

    /// Whether a stop has been asked for and not been taken.
    pub fn pending(&self) -> bool {
        self.sleep(0)
    }

    /// Sleeps for `nanos`, or until a stop is asked for; says whether it was.
    pub fn sleep(&self, nanos: u64) -> bool {
        if self.asked() {
            return true;
        }
        pidfd::ready([(self.fd.as_raw_fd(), libc::POLLIN)], Nanos(nanos.cast_signed()))[0]
    }
}

impl AsRawFd for Interrupts {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Has this signal end the process at once and well, also while it works.
pub(crate) fn end_at(signal: i32) {
    extern "C" fn end(_: i32) {
        super::raw::exit(0)
    }
    // SAFETY: the handler does nothing but to end the process, by one system call; the set is initialised.
    unsafe {
        libc::signal(signal, end as *const () as libc::sighandler_t);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
    }
}

/// Turns writing into a closed pipe from a death into an error, so that a run whose reader went
/// away still cleans up after itself. Children start with the default action again.
pub fn ignore_broken_pipe() {
    // SAFETY: installs the ignoring action, no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}
