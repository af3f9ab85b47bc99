//! Common to all children, however they were started: report how one ended, and reap it.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;

use super::command;

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
pub(in crate::sys) fn reap(pid: i32) -> io::Result<Status> {
    let ended =
        command::reap(pid, 0).map_err(io::Error::from_raw_os_error)?.ok_or(io::ErrorKind::NotFound)?;
    Ok(match libc::WIFEXITED(ended.status) {
        true => Status::Exited(libc::WEXITSTATUS(ended.status)),
        false => Status::Killed(libc::WTERMSIG(ended.status)),
    })
}

/// A C string of a text without zero bytes.
pub(in crate::sys) fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("`{}` contains a zero byte", text.display()))
    })
}
