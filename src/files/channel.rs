//! The system calls through which bytes go: `pread` and `pwrite`, or io_uring; and why the latter is refused.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use dunnage_orders::files::Io;

use super::unsupported;
use crate::outcome::Failure;
use crate::sys::ring::Ring;

/// Ready to be used.
pub enum Channel {
    Plain,
    Ring(Box<Ring>),
}

impl Channel {
    /// Sets it up for so many operations in flight.
    ///
    /// # Errors
    /// If io_uring is refused: unsupported, with the reason.
    pub fn new(io: Io, depth: u32) -> Result<Channel, Failure> {
        match io {
            Io::Plain if depth == 1 => Ok(Channel::Plain),
            Io::Plain => Err(unsupported(format!("a depth of {depth} needs io_uring"))),
            Io::Uring => {
                Ring::new(depth).map(|ring| Channel::Ring(Box::new(ring))).map_err(|error| refused(&error))
            }
        }
    }

    /// Writes at an offset, once.
    pub fn write_at(&mut self, file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
        again(|| match self {
            Channel::Plain => file.write_at(bytes, at),
            Channel::Ring(ring) => ring.write_at(file.as_fd(), bytes, at),
        })
    }

    /// Reads at an offset, once.
    pub fn read_at(&mut self, file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        again(|| match self {
            Channel::Plain => file.read_at(bytes, at),
            Channel::Ring(ring) => ring.read_at(file.as_fd(), bytes, at),
        })
    }
}

/// Repeats a call that a signal interrupted.
fn again<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// The failure of a ring that could not be set up.
fn refused(error: &io::Error) -> Failure {
    let Some(errno @ (libc::ENOSYS | libc::EPERM | libc::EACCES)) = error.raw_os_error() else {
        return Failure::environment(format!("cannot set up io_uring: {error}"));
    };
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let filter = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    unsupported(why_refused(errno, disabled.as_deref().map(str::trim), filter.map(str::trim)))
}

/// Who refuses io_uring, from the error, the host's switch and the mode of seccomp.
fn why_refused(errno: i32, disabled: Option<&str>, filter: Option<&str>) -> String {
    let name = match errno {
        libc::ENOSYS => "ENOSYS",
        libc::EPERM => "EPERM",
        _ => "EACCES",
    };
    let is_filtered = filter == Some("2");
    let who = match disabled {
        Some("2") => "`kernel.io_uring_disabled` is 2, which forbids it on this host",
        Some("1") if errno == libc::EPERM && !is_filtered => {
            "`kernel.io_uring_disabled` is 1, which forbids it to programs without CAP_SYS_ADMIN"
        }
        _ if is_filtered => "the seccomp filter of this container",
        _ if errno == libc::ENOSYS => "the kernel, which does not have it",
        _ => "a security module or the kernel",
    };
    let switch = disabled.map_or("is not there".to_owned(), |value| format!("is {value}"));
    let seccomp = if is_filtered { "a seccomp filter is in force" } else { "no seccomp filter is in force" };
    format!("io_uring is refused ({name}) by: {who}; `kernel.io_uring_disabled` {switch}, {seccomp}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_who_refuses() {
        for (errno, disabled, filter, who) in [
            (libc::EPERM, Some("0"), Some("2"), "the seccomp filter"),
            (libc::ENOSYS, None, Some("2"), "the seccomp filter"),
            (libc::EPERM, Some("2"), Some("2"), "`kernel.io_uring_disabled` is 2"),
            (libc::EPERM, Some("1"), Some("0"), "`kernel.io_uring_disabled` is 1"),
            (libc::ENOSYS, None, Some("0"), "the kernel, which"),
            (libc::EACCES, Some("0"), None, "a security module"),
        ] {
            let words = why_refused(errno, disabled, filter);
            let by = words.split_once("by: ").expect("who").1;
            assert!(by.starts_with(who), "{words}");
        }
        assert_eq!(
            why_refused(libc::EPERM, Some("0"), Some("2")),
            "io_uring is refused (EPERM) by: the seccomp filter of this container; `kernel.io_uring_disabled` is 0, \
             a seccomp filter is in force"
        );
    }
}
