//! What any parent does with a child, however it was started: say how it ended, and reap it.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;

use crate::units::Nanos;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It returned this exit code.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

impl std::fmt::Display for Status {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Status::Exited(code) => write!(out, "exit code {code}"),
            Status::Killed(signal) => write!(out, "signal {signal}"),
        }
    }
}

/// Waits for the end of a child.
pub(in crate::sys) fn reap(pid: i32) -> io::Result<(Status, Nanos)> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is valid; both out-pointers are writable.
    let (result, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid, &mut status, 0, &mut usage), usage)
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let micros = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    let cpu = Nanos((micros(usage.ru_utime) + micros(usage.ru_stime)) * 1000);
    let status = if libc::WIFEXITED(status) {
        Status::Exited(libc::WEXITSTATUS(status))
    } else {
        Status::Killed(libc::WTERMSIG(status))
    };
    Ok((status, cpu))
}

/// A C string of any text without zero bytes.
pub(in crate::sys) fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("`{}` contains a zero byte", text.display()))
    })
}
