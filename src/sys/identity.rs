//! Starts a program as another user, without an intermediate program that changes the user: between the stamp
//! and the program there are only the system calls of a login.
//!
//! `posix_spawn` cannot change the user. So the child is cloned in the same way, sharing dunnage's memory
//! while dunnage is suspended, and makes a list of calls that was prepared before the stamp: limits, groups,
//! user, working directory, streams, signals, program. If the kernel refuses one, the error names its step.
//! The child leaves the session keyring of dunnage's caller, so that the user does not get its keys.
//! Deliberately absent: the user's ids and the limits of a login (the caller finds them), a session, a
//! cgroup, a terminal; other descriptors than the streams, which `descriptors` closes in every child.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::raw;
use super::steps::{Argument, Step, number, text};

/// For steps without a path.
const NOTHING: &str = "";

/// The user that a program runs as, and their environment in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub user: u32,
    /// The user's primary group.
    pub group: u32,
    /// All groups, including the primary one.
    pub groups: Vec<u32>,
    /// The limits to set; others are inherited from dunnage.
    pub limits: Vec<Limit>,
    /// The working directory, which the user must be able to enter.
    pub directory: PathBuf,
    /// The file mode creation mask.
    pub mask: u32,
}

/// A resource limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The resource's number in the kernel.
    pub resource: u32,
    /// The soft limit, which is in force.
    pub soft: u64,
    /// The hard limit, up to which the process itself may raise the soft one.
    pub hard: u64,
}

/// The resources, as `/proc/PID/limits` names them.
const RESOURCES: [(&str, libc::__rlimit_resource_t); 16] = [
    ("Max cpu time", libc::RLIMIT_CPU),
    ("Max file size", libc::RLIMIT_FSIZE),
    ("Max data size", libc::RLIMIT_DATA),
    ("Max stack size", libc::RLIMIT_STACK),
    ("Max core file size", libc::RLIMIT_CORE),
    ("Max resident set", libc::RLIMIT_RSS),
    ("Max processes", libc::RLIMIT_NPROC),
    ("Max open files", libc::RLIMIT_NOFILE),
    ("Max locked memory", libc::RLIMIT_MEMLOCK),
    ("Max address space", libc::RLIMIT_AS),
    ("Max file locks", libc::RLIMIT_LOCKS),
    ("Max pending signals", libc::RLIMIT_SIGPENDING),
    ("Max msgqueue size", libc::RLIMIT_MSGQUEUE),
    ("Max nice priority", libc::RLIMIT_NICE),
    ("Max realtime priority", libc::RLIMIT_RTPRIO),
    ("Max realtime timeout", libc::RLIMIT_RTTIME),
];

/// The limits in the text of a `/proc/PID/limits`; `None` unless it has every known resource.
pub fn limits_in(text: &str) -> Option<Vec<Limit>> {
    let value = |word: &str| if word == "unlimited" { Some(libc::RLIM_INFINITY) } else { word.parse().ok() };
    let limit = |(name, resource): (&str, u32)| {
        let mut words = text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
        Some(Limit { resource, soft: value(words.next()?)?, hard: value(words.next()?)? })
    };
    RESOURCES.into_iter().map(limit).collect()
}

impl Identity {
    /// The calls after the clone; those that only root may make come first. The directory has no zero byte.
    pub(in crate::sys) fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = self.limits.iter().map(set_limit).collect();
        let user = || number(self.user);
        let group = || number(self.group);
        let groups = [number(self.groups.len()), Argument::Words(packed(&self.groups))];
        // As root, since a user may have only so many keys.
        let keyring = [number(libc::KEYCTL_JOIN_SESSION_KEYRING), number(0)];
        if has_keyrings() {
            steps.push(Step::call("leave the keyring", NOTHING, libc::SYS_keyctl, keyring));
        }
        steps.extend([
            Step::call("set groups", NOTHING, libc::SYS_setgroups, groups),
            Step::call("change group", NOTHING, libc::SYS_setresgid, [group(), group(), group()]),
            Step::call("change user", NOTHING, libc::SYS_setresuid, [user(), user(), user()]),
            Step::call("enter", &self.directory, libc::SYS_chdir, [text(&self.directory)]),
            Step::call("set umask", NOTHING, libc::SYS_umask, [number(self.mask)]),
        ]);
        steps
    }
}

/// The kernel's array of 32-bit numbers, in 64-bit words.
fn packed(groups: &[u32]) -> Box<[u64]> {
    let word = |pair: &[u32]| u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32;
    groups.chunks(2).map(word).collect()
}

/// The call of a child that sets a limit for itself.
pub(in crate::sys) fn set_limit(limit: &Limit) -> Step {
    let values = Argument::Words(Box::new([limit.soft, limit.hard]));
    let name = RESOURCES.iter().find(|(_, resource)| *resource == limit.resource);
    let name = name.map_or("resource", |(name, _)| name);
    Step::call("set the limit", name, libc::SYS_prlimit64, [number(0), number(limit.resource), values])
}

/// Whether there are keyrings: the kernel has them, and no filter forbids them, which the child would have too.
fn has_keyrings() -> bool {
    const SESSION: usize = libc::KEY_SPEC_SESSION_KEYRING as usize;
    let ask = [libc::KEYCTL_GET_KEYRING_ID as usize, SESSION, 0, 0, 0, 0];
    // SAFETY: a system call without memory.
    !matches!(unsafe { raw::syscall(libc::SYS_keyctl, ask) }, Err(libc::ENOSYS | libc::EPERM))
}

/// How many children on their way to another user share dunnage's memory, and whether it was dumpable before them.
static HIDDEN: Mutex<(usize, bool)> = Mutex::new((0, false));

/// While it exists, a child may become another user's with dunnage's memory. The kernel makes a process undumpable when it, or one
/// that shares its memory, changes its user: its files in `/proc` are root's, and only root can trace it, which would be to
/// write to dunnage's memory. So it must stay so until the last such child has executed its program; then it is as before.
pub(in crate::sys) struct Hidden;

impl Hidden {
    /// Before the clone.
    pub fn begin() -> Hidden {
        let mut hidden = HIDDEN.lock().unwrap_or_else(PoisonError::into_inner);
        if hidden.0 == 0 {
            hidden.1 = raw::prctl(libc::PR_GET_DUMPABLE, 0) == Ok(1);
        }
        hidden.0 += 1;
        Hidden
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let mut hidden = HIDDEN.lock().unwrap_or_else(PoisonError::into_inner);
        hidden.0 -= 1;
        if *hidden == (0, true) {
            let _ = raw::prctl(libc::PR_SET_DUMPABLE, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_limits_are_read_as_the_kernel_has_them() {
        let all = limits_in(&std::fs::read_to_string("/proc/self/limits").unwrap()).unwrap();
        assert_eq!(all.len(), RESOURCES.len());
        let files = all.iter().find(|limit| limit.resource == libc::RLIMIT_NOFILE).unwrap();
        assert_eq!(files.hard, crate::sys::limits::open_files());
        assert_eq!(limits_in("Max open files 1 2 files\n"), None);
    }

    #[test]
    fn dunnage_is_dumpable_again_only_after_the_last_child_of_another_user() {
        let dumpable = || raw::prctl(libc::PR_GET_DUMPABLE, 0);
        let before = dumpable();
        raw::prctl(libc::PR_SET_DUMPABLE, 1).unwrap();
        let [first, second] = [Hidden::begin(), Hidden::begin()];
        // As the kernel does.
        raw::prctl(libc::PR_SET_DUMPABLE, 0).unwrap();
        drop(first);
        assert_eq!(dumpable(), Ok(0));
        drop(second);
        assert_eq!(dumpable(), Ok(1));
        raw::prctl(libc::PR_SET_DUMPABLE, 0).unwrap();
        drop(Hidden::begin());
        assert_eq!(dumpable(), Ok(0), "it was not before");
        raw::prctl(libc::PR_SET_DUMPABLE, before.unwrap()).unwrap();
    }

    #[test]
    fn groups_are_laid_down_as_the_kernel_reads_them() {
        assert_eq!(*packed(&[1, 2, 3]), [1 | 2 << 32, 3]);
        assert_eq!(*packed(&[]), [0u64; 0]);
    }
}
