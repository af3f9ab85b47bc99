//! What a seccomp filter can answer, as a type instead of a number.
//!
//! The numbers are the kernel's (`SECCOMP_RET_*` in `linux/seccomp.h`); an answer is an action in
//! the upper half of a word and its datum, an errno say, in the lower half.

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
}
