//! The seccomp filter of the floor: the same verdict as docker's default profile for every system
//! call, so that the floor and a docker container differ in everything but this.
//!
//! - `profile` and `table`: which calls, as data ([`DOCKER_DEFAULT`]), and [`oci_profile`], the same
//!   profile for bundles that runc and crun start without docker;
//! - `compile`: from the profile to classic BPF;
//! - `interpret`: runs and checks such programs without loading them;
//! - `dump`: reads the filters of a running process back from the kernel.
//!
//! What docker 20.10.24 really gives, read back from the kernel with libseccomp 2.5.4:
//!
//! - Under runc 1.1.5 and crun 1.8.1 the container has one filter, and from the instruction that
//!   libseccomp begins with on, both are the same program (960 instructions).
//! - runc puts 14 instructions of its own in front: a number above the highest that the profile
//!   names in that ABI (x86_64 and i386: 449, `futex_waitv`; x32: 547, `pwritev2`) answers ENOSYS,
//!   as an old kernel would. crun 1.8.1 does not; there the same numbers get the default, EPERM.
//!   That is the only difference between the two. **We follow runc**, docker's default runtime.
//! - runc builds these instructions while walking two hash maps: there are four orders of them, and
//!   a call costs one instruction more or less from one start of the same container to the next.
//! - runc loads without flags, crun with SECCOMP_FILTER_FLAG_SPEC_ALLOW (see [`load`]); docker sets
//!   no_new_privs for neither.
//! - `set_mempolicy_home_node` (450) counts as newer than the profile, though libseccomp knows it.
//! - An unlisted architecture kills the thread (libseccomp's default, not in the profile).
//! - On i386 and x32 libseccomp compares only the lower word of an argument.
//!
//! Since Linux 5.11 the kernel works out at load time which calls a filter allows whatever their
//! arguments, and answers those from a bitmap: `read` costs the same under every filter. What a
//! filter's length and shape still cost there is loading it, because the kernel walks it once for
//! each number (on one Linux 6.18, 0.1 ms for ours and 0.9 ms for the one from libseccomp, a list),
//! and every call that is denied or looked at by its arguments. So the verdicts are docker's, but
//! the price is that of the mechanism, not of libseccomp's way to use it; that difference belongs
//! to the runtime.
//!
//! What is deliberately absent: setting no_new_privs, which is the caller's business (not needed
//! with CAP_SYS_ADMIN), and choosing between profiles: there is one.

mod action;
mod compile;
pub mod dump;
pub mod interpret;
mod profile;
mod table;

pub use action::Action;
pub use compile::compile;
pub use profile::{
    ARCH_I386, ARCH_X86_64, Abi, Condition, DOCKER_DEFAULT, Meaning, Profile, Rule, Test, X32_BIT,
};

use super::raw;
use libc::{sock_filter, sock_fprog};

/// A compiled filter, ready to be loaded.
#[derive(Clone, Debug)]
pub struct Filter {
    program: Vec<sock_filter>,
}

/// There is no filter for this architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the seccomp profile is known for x86_64 only, not for {}", std::env::consts::ARCH)]
pub struct Unsupported;

/// Compiles docker's default profile for this machine. Takes milliseconds: do it before the
/// measured interval.
pub fn docker_default() -> Result<Filter, Unsupported> {
    if cfg!(target_arch = "x86_64") {
        Ok(Filter { program: compile(&DOCKER_DEFAULT) })
    } else {
        Err(Unsupported)
    }
}

/// Docker's default profile as `linux.seccomp` of an OCI bundle: what docker itself hands to its
/// runtimes on x86_64.
pub fn oci_profile() -> serde_json::Value {
    DOCKER_DEFAULT.to_oci()
}

impl Filter {
    /// The instructions, in order.
    pub fn instructions(&self) -> &[sock_filter] {
        &self.program
    }

    /// The filter as the kernel wants it. The pointer in it holds as long as the filter lives.
    pub fn as_fprog(&self) -> sock_fprog {
        sock_fprog {
            len: u16::try_from(self.program.len()).expect("the kernel's limit is 4096"),
            filter: self.program.as_ptr().cast_mut(),
        }
    }
}

/// Puts a filter on the calling thread with `seccomp(SECCOMP_SET_MODE_FILTER)`, and nothing else:
/// no allocation, no lock, no `errno`, so that a child that shares its parent's memory may call it
/// between `clone` and `execve`. The error is the kernel's number.
///
/// `flags` are `SECCOMP_FILTER_FLAG_*`. runc gives docker's profile none, crun SPEC_ALLOW. The
/// difference shows on kernels before 5.16 only, where a filter without SPEC_ALLOW also switches
/// speculative store bypass off, which slows down all that the process does.
///
/// The thread must have no_new_privs set or hold CAP_SYS_ADMIN, else EACCES.
///
/// # Safety
/// A filter cannot be taken off again. The calling thread, and what it becomes by `fork` and
/// `execve`, must be able to live with every system call being answered by it.
///
/// `program` must come from [`Filter::as_fprog`] of a filter that still lives, or point to `len`
/// instructions all the same.
pub unsafe fn load(program: &sock_fprog, flags: libc::c_ulong) -> Result<(), i32> {
    let mode = libc::SECCOMP_SET_MODE_FILTER as usize;
    let program = std::ptr::from_ref(program) as usize;
    // SAFETY: the caller vouches that `program` points to valid instructions; the kernel only
    // reads them and keeps a copy.
    unsafe { raw::syscall(libc::SYS_seccomp, [mode, flags as usize, program, 0, 0, 0]) }.map(drop)
}
