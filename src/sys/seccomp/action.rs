//! What a seccomp filter can answer, as a type instead of a number.
//!
//! The numbers are the kernel's (`SECCOMP_RET_*` in `linux/seccomp.h`); an answer is an action in
//! the upper half of a word and its datum, an errno say, in the lower half.

use std::fmt;

/// The answer of a filter to one system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The call goes on.
    Allow,
    /// The call goes on and is noted in the audit log.
    Log,
    /// A tracer decides; it is handed the datum.
    Trace(u16),
    /// A supervisor in user space decides.
    Notify,
    /// The call is not made and fails with this errno.
    Errno(u16),
    /// The call is not made and the thread gets SIGSYS with this datum.
    Trap(u16),
    /// The calling thread dies.
    KillThread,
    /// The calling process dies. The kernel treats an unknown action like this one.
    KillProcess,
    /// A number that is none of the above.
    Unknown(u32),
}

const ACTION: u32 = 0xffff_0000;

impl Action {
    /// The word that a filter returns for this action.
    pub const fn word(self) -> u32 {
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
            Self::Log => libc::SECCOMP_RET_LOG,
            Self::Trace(datum) => libc::SECCOMP_RET_TRACE | datum as u32,
            Self::Notify => libc::SECCOMP_RET_USER_NOTIF,
            Self::Errno(errno) => libc::SECCOMP_RET_ERRNO | errno as u32,
            Self::Trap(datum) => libc::SECCOMP_RET_TRAP | datum as u32,
            Self::KillThread => libc::SECCOMP_RET_KILL_THREAD,
            Self::KillProcess => libc::SECCOMP_RET_KILL_PROCESS,
            Self::Unknown(word) => word,
        }
    }

    /// The action that a word returned by a filter means.
    pub const fn from_word(word: u32) -> Self {
        let datum = (word & libc::SECCOMP_RET_DATA) as u16;
        match word & ACTION {
            libc::SECCOMP_RET_ALLOW => Self::Allow,
            libc::SECCOMP_RET_LOG => Self::Log,
            libc::SECCOMP_RET_TRACE => Self::Trace(datum),
            libc::SECCOMP_RET_USER_NOTIF => Self::Notify,
            libc::SECCOMP_RET_ERRNO => Self::Errno(datum),
            libc::SECCOMP_RET_TRAP => Self::Trap(datum),
            libc::SECCOMP_RET_KILL_THREAD => Self::KillThread,
            libc::SECCOMP_RET_KILL_PROCESS => Self::KillProcess,
            _ => Self::Unknown(word),
        }
    }

    /// The rank by which the kernel chooses among stacked filters: the lowest wins. It compares
    /// the action as a signed number, which makes killing the process the strictest of all.
    pub(super) const fn rank(self) -> i32 {
        (self.word() & ACTION).cast_signed()
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Allow => f.write_str("allow"),
            Self::Log => f.write_str("log"),
            Self::Trace(datum) => write!(f, "trace({datum})"),
            Self::Notify => f.write_str("notify"),
            Self::Errno(errno) => match i32::from(errno) {
                libc::EPERM => f.write_str("EPERM"),
                libc::ENOSYS => f.write_str("ENOSYS"),
                errno => write!(f, "errno {errno}"),
            },
            Self::Trap(datum) => write!(f, "trap({datum})"),
            Self::KillThread => f.write_str("kill the thread"),
            Self::KillProcess => f.write_str("kill the process"),
            Self::Unknown(word) => write!(f, "unknown action {word:#010x}"),
        }
    }
}
