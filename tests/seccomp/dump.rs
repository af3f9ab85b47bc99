//! Reads the seccomp filters of a running process back from the kernel.
//!
//! The process is stopped through ptrace, its filters are copied, and it continues, also after an error. This
//! needs CAP_SYS_ADMIN, a kernel with CONFIG_CHECKPOINT_RESTORE, and a caller without a filter. Deliberately
//! absent: filters written in eBPF, which the kernel does not return.

use libc::{c_int, c_long, c_void, pid_t, sock_filter};
use std::io;
use thiserror::Error;

/// Why the filters of a process could not be read.
#[derive(Debug, Error)]
pub enum DumpError {
    /// There is no such process.
    #[error("process {0} does not exist")]
    NoProcess(pid_t),
    /// This process may not trace the other one, or may not read filters.
    #[error(
        "not permitted to {operation} process {pid}\n\nhint: this needs CAP_SYS_PTRACE, \
         CAP_SYS_ADMIN, no other tracer, and no seccomp filter on the caller"
    )]
    NotPermitted {
        /// The process.
        pid: pid_t,
        /// The refused operation.
        operation: &'static str,
    },
    /// The process has no seccomp filter.
    #[error("process {0} has no seccomp filter")]
    NoFilter(pid_t),
    /// The kernel cannot return filters.
    #[error("the kernel cannot give filters back (CONFIG_CHECKPOINT_RESTORE is missing)")]
    KernelLacks,
    /// The process ended meanwhile.
    #[error("process {0} ended while its filters were read")]
    Ended(pid_t),
    /// Any other refusal of the kernel.
    #[error("cannot {operation} process {pid}")]
    System {
        /// The process.
        pid: pid_t,
        /// The refused operation.
        operation: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// `PTRACE_SECCOMP_GET_FILTER` of `linux/ptrace.h`, which the libc crate lacks on some targets.
const SECCOMP_GET_FILTER: Request = 0x420c;

const ATTACH: &str = "attach to";
const STOP: &str = "stop";
const READ_FILTER: &str = "read a seccomp filter of";

fn refused(pid: pid_t, operation: &'static str, error: io::Error) -> DumpError {
    match error.raw_os_error() {
        Some(libc::ESRCH) if operation == ATTACH => DumpError::NoProcess(pid),
        Some(libc::ESRCH | libc::ECHILD) => DumpError::Ended(pid),
        Some(libc::EPERM | libc::EACCES) => DumpError::NotPermitted { pid, operation },
        _ => DumpError::System { pid, operation, source: error },
    }
}

/// The filters of a process (of its main thread), oldest first; at least one.
pub fn filters(pid: pid_t) -> Result<Vec<Vec<sock_filter>>, DumpError> {
    let stopped = Stopped::attach(pid)?;
    let mut filters = Vec::new();
    while let Some(filter) = stopped.filter(filters.len())? {
        filters.push(filter);
    }
    if filters.is_empty() { Err(DumpError::NoFilter(pid)) } else { Ok(filters) }
}

/// A process that is traced and stopped. It continues when this is dropped.
struct Stopped {
    pid: pid_t,
    /// A signal that was pending for the process and must still be delivered.
    signal: c_int,
}

impl Stopped {
    fn attach(pid: pid_t) -> Result<Self, DumpError> {
        request(libc::PTRACE_SEIZE, pid, 0, std::ptr::null_mut())
            .map_err(|error| refused(pid, ATTACH, error))?;
        // From here on dropping detaches.
        let mut stopped = Stopped { pid, signal: 0 };
        request(libc::PTRACE_INTERRUPT, pid, 0, std::ptr::null_mut())
            .map_err(|error| refused(pid, STOP, error))?;
        let status = stopped.wait().map_err(|error| refused(pid, STOP, error))?;
        if !libc::WIFSTOPPED(status) {
            return Err(DumpError::Ended(pid));
        }
        if status >> 16 != libc::PTRACE_EVENT_STOP {
            stopped.signal = libc::WSTOPSIG(status);
        }
        Ok(stopped)
    }

    fn wait(&self) -> io::Result<c_int> {
        loop {
            let mut status = 0;
            // SAFETY: `status` is valid for writing; waiting for one pid touches nothing else.
            if unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) } >= 0 {
                return Ok(status);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// The filter with this index, 0 being the oldest; `None` after the newest.
    fn filter(&self, index: usize) -> Result<Option<Vec<sock_filter>>, DumpError> {
        let read = |buffer| request(SECCOMP_GET_FILTER, self.pid, index, buffer);
        let length = match read(std::ptr::null_mut()) {
            Ok(length) => length as usize,
            Err(error) => return self.end_of_filters(error),
        };
        let mut filter = vec![sock_filter { code: 0, jt: 0, jf: 0, k: 0 }; length];
        read(filter.as_mut_ptr().cast()).map_err(|e| refused(self.pid, READ_FILTER, e))?;
        Ok(Some(filter))
    }

    /// The kernel returns ENOENT after the last filter, and EINVAL both for a process without filters and if
    /// it was built without this request.
    fn end_of_filters(&self, error: io::Error) -> Result<Option<Vec<sock_filter>>, DumpError> {
        match error.raw_os_error() {
            Some(libc::ENOENT) => Ok(None),
            Some(libc::EINVAL | libc::EIO) if has_filter(self.pid) => Err(DumpError::KernelLacks),
            Some(libc::EINVAL) => Err(DumpError::NoFilter(self.pid)),
            _ => Err(refused(self.pid, READ_FILTER, error)),
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let signal = self.signal as usize as *mut c_void;
        // Detaching only works on a stopped process. If stopping it failed the process is gone, and there is
        // nothing to detach from.
        let _ = request(libc::PTRACE_DETACH, self.pid, 0, signal);
    }
}

fn has_filter(pid: pid_t) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| {
        status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
    })
}

#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;
#[cfg(target_env = "musl")]
type Request = c_int;

fn request(request: Request, pid: pid_t, address: usize, data: *mut c_void) -> io::Result<c_long> {
    // SAFETY: of the requests made here only PTRACE_SECCOMP_GET_FILTER writes to this process's memory, to
    // `data`, and it writes as many instructions as it reported for the filter; the caller reserved that much
    // memory, and a filter does not change once it is loaded.
    let result = unsafe { libc::ptrace(request, pid, address as *mut c_void, data) };
    if result >= 0 { Ok(result) } else { Err(io::Error::last_os_error()) }
}
