//! Resource limits of this process, and whether it can raise them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::raw;

const CAP_SYS_RESOURCE: u64 = 1 << 24;

/// Whether hard limits can be raised: with CAP_SYS_RESOURCE only.
pub fn may_be_raised() -> bool {
    raw::effective_capabilities().is_some_and(|own| own & CAP_SYS_RESOURCE != 0)
}

/// The hard limit of open files.
pub fn open_files() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// How many files this process may have open now.
pub fn open_files_now() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the limit of open files to this many if it is lower, as far as that is permitted; returns the limit
/// that holds then.
pub fn raise_open_files(wanted: u64) -> u64 {
    let current = open_files_now;
    for hard in [open_files(), wanted.max(open_files())] {
        if current() < wanted {
            let limit = Rlimit { current: Some(wanted.min(hard)), maximum: Some(hard) };
            let _ = setrlimit(Resource::Nofile, limit);
        }
    }
    current()
}

/// The hard limit of processes of this user.
pub fn processes() -> u64 {
    getrlimit(Resource::Nproc).maximum.unwrap_or(u64::MAX)
}

/// The same, at most the number of process ids: podman lowers its limit to that number before it calls the
/// runtime, which then cannot raise it again.
pub fn processes_within_ids() -> u64 {
    match processes() {
        u64::MAX => u64::MAX,
        limited => limited.min(process_ids()),
    }
}

/// The kernel's number of process ids; unlimited if it cannot be read.
pub fn process_ids() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    text.trim().parse().unwrap_or(u64::MAX)
}
