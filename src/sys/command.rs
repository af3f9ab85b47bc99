//! What the probe needs to start a user's command and wait for it, without libc: fork, exec, and the end of a
//! child with its resource usage.

use core::ffi::{CStr, c_char};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::raw::{self, syscall};

/// Redirects standard output to this file; returns the previous one.
pub fn exchange_output(file: &OwnedFd) -> Result<OwnedFd, i32> {
    let closes = libc::F_DUPFD_CLOEXEC as usize;
    // SAFETY: duplicates an open descriptor to an unused number.
    let before = unsafe { syscall(libc::SYS_fcntl, [1, closes, 3, 0, 0, 0]) }?;
    // SAFETY: it was just made, and nothing else owns it.
    let before = unsafe { OwnedFd::from_raw_fd(before as i32) };
    // SAFETY: no object owns standard output, which stays open.
    unsafe { syscall(libc::SYS_dup2, [file.as_raw_fd() as usize, 1, 0, 0, 0, 0]) }?;
    Ok(before)
}

/// Receives the ends of children through a descriptor instead of a handler; orphaned descendants become
/// children of this process.
pub fn collect_children() -> Result<OwnedFd, i32> {
    let _ = raw::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    let fd = raw::signal_descriptor(raw::mask_of(libc::SIGCHLD), libc::SFD_NONBLOCK)?;
    // SAFETY: it was just opened, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A program to execute.
#[derive(Debug)]
pub struct Program<'a> {
    path: &'a CStr,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    streams: [i32; 3],
    complaint: i32,
}

impl<'a> Program<'a> {
    /// The file, its arguments (its own name first), its environment, its standard input, output and error,
    /// and where the error number goes if it cannot be executed.
    pub fn new(
        path: &'a CStr,
        [arguments, environment]: [&[&'a CStr]; 2],
        streams: [i32; 3],
        complaint: i32,
    ) -> Program<'a> {
        let list =
            |words: &[&CStr]| words.iter().map(|word| word.as_ptr()).chain([core::ptr::null()]).collect();
        Program { path, arguments: list(arguments), environment: list(environment), streams, complaint }
    }
}

/// Forks a child that executes a program, or ends at once without one. Returns the child's process id.
///
/// The child does not share memory with the probe, so before it executes it has few pages of its own: only
/// those that the probe has written to.
pub fn fork(program: Option<&Program<'_>>) -> Result<i32, i32> {
    let born = raw::fork()?;
    if born != 0 {
        return Ok(born as i32);
    }
    let Some(program) = program else { raw::exit(0) };
    let _ = raw::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as usize);
    for (target, fd) in program.streams.into_iter().enumerate() {
        // SAFETY: duplicates an open descriptor.
        let _ = unsafe { syscall(libc::SYS_dup2, [fd as usize, target, 0, 0, 0, 0]) };
    }
    raw::signal_mask(libc::SIG_SETMASK, 0);
    let lists = [program.arguments.as_ptr() as usize, program.environment.as_ptr() as usize];
    // SAFETY: a valid C string and two lists of C strings that end with a null pointer.
    let refused =
        unsafe { syscall(libc::SYS_execve, [program.path.as_ptr() as usize, lists[0], lists[1], 0, 0, 0]) };
    let errno = refused.err().unwrap_or(0);
    let _ = raw::write_all(program.complaint, &errno.to_ne_bytes());
    raw::exit(127)
}

/// Forks a child that does this instead of continuing, and dies with this process. Returns its process id.
///
/// The child has a copy of this process and may use all of it: only for a process that has one thread.
pub fn fork_to(work: impl FnOnce()) -> Result<i32, i32> {
    let parent = std::process::id();
    // SAFETY: the child has the only thread there is, so no lock is held by another.
    match unsafe { libc::fork() } {
        0 => {
            let _ = raw::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as usize);
            if std::os::unix::process::parent_id() == parent {
                work();
            }
            raw::exit(1)
        }
        -1 => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN)),
        born => Ok(born),
    }
}

/// The end of a reaped child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reaped {
    /// As returned by `wait4`.
    pub status: i32,
    /// CPU time in user mode, in microseconds.
    pub user: i64,
    /// CPU time in the kernel, in microseconds.
    pub system: i64,
    /// The largest resident set of it and of any child that it waited for, in bytes.
    pub most_memory: i64,
}

/// Reaps a child, or any child with -1; `None` if it has not ended yet and `options` (`WNOHANG`) says not to
/// wait.
pub fn reap(pid: i32, options: i32) -> Result<Option<Reaped>, i32> {
    // SAFETY: plain numbers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    let (found, status) = raw::wait(pid as usize, options, Some(&mut usage))?;
    let micros = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    Ok((found != 0).then(|| Reaped {
        status,
        user: micros(usage.ru_utime),
        system: micros(usage.ru_stime),
        most_memory: usage.ru_maxrss * 1024,
    }))
}
