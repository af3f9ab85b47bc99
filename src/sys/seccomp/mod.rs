//! The seccomp filter of the floor: it gives the same answer as an engine's profile for every system call, so
//! that the floor and a container of the engine do not differ in it.
//!
//! - `profile` and `table`: the calls as data, read from `linux.seccomp` of a bundle ([`Profile::from_oci`]),
//!   and Docker's newest profile for machines without an engine ([`built_in`]);
//! - `compile`: a profile as classic BPF.
//!
//! What runtimes make of the profile of docker 20.10.24, read back from the kernel with libseccomp 2.5.4:
//!
//! - Under runc 1.1.5 and crun 1.8.1 the container has one filter, and from libseccomp's first instruction
//!   both are the same program (960 instructions).
//! - runc puts 14 of its own instructions in front: a number above the highest that the profile names in that
//!   ABI (x86_64 and i386: 449, `futex_waitv`; x32: 547, `pwritev2`) gives ENOSYS, as on an old kernel. crun
//!   1.8.1 does not; there the same numbers get the default, EPERM. That is the only difference between the
//!   two. **dunnage follows runc**, docker's default runtime.
//! - runc generates these instructions while it iterates over two hash maps: there are four orders of them,
//!   and a call costs one instruction more or less from one start of the same container to the next.
//! - runc loads without flags, crun with SECCOMP_FILTER_FLAG_SPEC_ALLOW; docker sets no_new_privs for
//!   neither.
//! - `set_mempolicy_home_node` (450) counts as newer than the profile, though libseccomp knows it.
//! - An unlisted architecture kills the thread (libseccomp's default, not in the profile).
//! - On i386 and x32 libseccomp compares only the lower word of an argument.
//!
//! Since Linux 5.11 the kernel determines at load time which calls a filter allows with any arguments, and
//! answers those from a bitmap: `read` costs the same under every filter. The length and shape of a filter
//! still affect loading it, because the kernel walks it once for each number (on one Linux 6.18, 0.1 ms for
//! dunnage's and 0.9 ms for libseccomp's, which is a list), and every call that is denied or whose arguments
//! are checked. So the answers are docker's, but the price is that of the mechanism, not of libseccomp's
//! code; that difference belongs to the runtime.
//!
//! Deliberately absent: setting no_new_privs, which the caller does (not needed with CAP_SYS_ADMIN), and
//! choosing between profiles (`subject::filter`).

mod compile;
mod profile;
mod table;

pub use compile::compile;
pub use profile::{
    ARCH_I386, ARCH_X86_64, Abi, BUILT_IN, Condition, Profile, Rule, Strange, Test, X32_BIT, built_in,
};
