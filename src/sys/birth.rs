//! The clone that becomes a container, or another user's process: it shares our memory (`CLONE_VM`), so nothing is copied, and
//! we stand still until it executes its program or ends (`CLONE_VFORK`), so what it reports lies in
//! our memory when we go on. It runs on a stack of its own with all signals blocked, makes the
//! system calls that were written down for it, and never returns.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use super::cgroup::Birth;
use super::raw;
use super::steps::{Descriptor, Step};

/// From `linux/sched.h`; the constant of the libc crate is too narrow for it.
const CLONE_INTO_CGROUP: u64 = 1 << 33;
const STACK: usize = 64 * 1024;
const GUARD: usize = 4096;

/// Memory for the child to run on, with an unmapped page below it.
#[derive(Debug)]
pub struct Stack {
    base: *mut libc::c_void,
}

// SAFETY: a mapping of this process, valid in every thread, and changed only by the child of a
// launch, for which the launching thread waits with the stack borrowed exclusively.
unsafe impl Send for Stack {}

// SAFETY: what is shared is only its address; to run on it takes it exclusively.
unsafe impl Sync for Stack {}

impl Stack {
    /// Maps it.
    pub fn new() -> io::Result<Stack> {
        // SAFETY: a fresh private mapping that overlaps nothing; its lowest page is then closed.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_POPULATE;
            let base =
                libc::mmap(ptr::null_mut(), STACK + GUARD, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            libc::mprotect(base, GUARD, libc::PROT_NONE);
            Ok(Stack { base })
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no child runs on it any more.
        unsafe { libc::munmap(self.base, STACK + GUARD) };
    }
}

/// What the child is to do, and what it says when it could not.
#[repr(C)]
struct Task {
    steps: *const Step,
    count: usize,
    failed: usize,
    errno: i32,
    /// The child of this child, born when all steps are made; null where there is none.
    grandchild: *mut Grandchild,
}

/// A child of the child, which becomes ours when its maker ends.
#[repr(C)]
struct Grandchild {
    task: *mut Task,
    stack_top: usize,
    /// What its clone returned; zero before.
    pid: isize,
}

/// How the child got on before its program was executed.
#[derive(Debug)]
pub enum Born {
    /// The program runs.
    Alive(i32),
    /// The step with this index was refused with this error number; the child has to be reaped.
    Failed { pid: i32, step: usize, errno: i32 },
}

/// The argument of clone3, as of Linux 5.7.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

impl CloneArguments {
    /// For a child on this stack that shares our memory, and for which we stand still.
    fn sharing_memory(stack: &Stack, namespaces: u64, cgroup: Option<&OwnedFd>) -> CloneArguments {
        let shared = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;
        CloneArguments {
            flags: namespaces | shared | if cgroup.is_some() { CLONE_INTO_CGROUP } else { 0 },
            exit_signal: libc::SIGCHLD as u64,
            stack: stack.base as u64 + GUARD as u64,
            stack_size: STACK as u64,
            cgroup: cgroup.map_or(0, |fd| fd.as_raw_fd() as u64),
            ..CloneArguments::default()
        }
    }

    /// The older call where it is enough; it is allowed in more places.
    fn call(&self) -> (libc::c_long, usize, usize) {
        if self.flags & CLONE_INTO_CGROUP != 0 {
            return (libc::SYS_clone3, &raw const *self as usize, size_of::<CloneArguments>());
        }
        let flags = self.flags | self.exit_signal;
        (libc::SYS_clone, flags as usize, (self.stack + self.stack_size) as usize)
    }
}

/// Whether a child can be born inside a cgroup: clone3 is not forbidden to us (container engines'
/// seccomp filters do forbid it), and knows the flag.
pub fn possible_birth() -> Birth {
    // SAFETY: an argument of size zero is refused before anything is read or done.
    let known = unsafe { raw::syscall(libc::SYS_clone3, [0; 6]) } == Err(libc::EINVAL);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if known && version >= (5, 7) { Birth::Inside } else { Birth::Outside }
}

/// Clones a child into new namespaces (flags of clone) and, where given, a version 2 cgroup, and
/// lets it make all `steps`, the last of which executes a program.
pub fn give_birth(
    stack: &mut Stack,
    namespaces: u64,
    cgroup: Option<&OwnedFd>,
    steps: &[Step],
) -> Result<Born, i32> {
    let mut task = Task::of(steps);
    let arguments = CloneArguments::sharing_memory(stack, namespaces, cgroup);
    let call = arguments.call();
    let blocked = block_all_signals();
    // SAFETY: the stack is mapped, borrowed exclusively and not in use; `task` and the steps outlive
    // the child's use of our memory, since this thread goes on only after the child's exec or end.
    let pid = unsafe { clone_onto(call, &raw mut task) };
    restore_signals(blocked);
    if pid < 0 {
        return Err(-pid as i32);
    }
    // SAFETY: `task` is ours; the read is volatile because another process wrote it.
    let (failed, errno) =
        unsafe { (ptr::read_volatile(&raw const task.failed), ptr::read_volatile(&raw const task.errno)) };
    let pid = pid as i32;
    Ok(if failed == usize::MAX { Born::Alive(pid) } else { Born::Failed { pid, step: failed, errno } })
}

/// Clones a child, into a version 2 cgroup where one is given, that makes the steps `joining` and then, if all were made, clones another one, which
/// is a child of ours, makes the steps `executing`, the last of which executes a program, and is in the
/// namespaces that the first has joined, its PID namespace too. The first has ended and been reaped when
/// this returns. A step that was refused is counted over both lists.
pub fn give_birth_within(
    stack: &mut Stack,
    cgroup: Option<&OwnedFd>,
    joining: &[Step],
    second_stack: &mut Stack,
    executing: &[Step],
) -> Result<Born, i32> {
    let mut second = Task::of(executing);
    let stack_top = second_stack.base as usize + GUARD + STACK;
    let mut grandchild = Grandchild { task: &raw mut second, stack_top, pid: 0 };
    let mut first = Task { grandchild: &raw mut grandchild, ..Task::of(joining) };
    let arguments = CloneArguments::sharing_memory(stack, 0, cgroup);
    let call = arguments.call();
    let blocked = block_all_signals();
    // SAFETY: both stacks are mapped, borrowed exclusively and not in use; tasks, grandchild and steps outlive
    // the children's use of our memory: the first ends only after the second's exec or end, and this
    // thread goes on only after the end of the first.
    let pid = unsafe { clone_onto(call, &raw mut first) };
    restore_signals(blocked);
    if pid < 0 {
        return Err(-pid as i32);
    }
    // SAFETY: all of it is ours; the reads are volatile because other processes wrote it.
    let (failed, errno, grandchild_pid, grandchild_failed, grandchild_errno) = unsafe {
        (
            ptr::read_volatile(&raw const first.failed),
            ptr::read_volatile(&raw const first.errno),
            ptr::read_volatile(&raw const grandchild.pid),
            ptr::read_volatile(&raw const second.failed),
            ptr::read_volatile(&raw const second.errno),
        )
    };
    let pid = pid as i32;
    if failed != usize::MAX {
        return Ok(Born::Failed { pid, step: failed, errno });
    }
    super::child::reap(pid).map_err(|error| error.raw_os_error().unwrap_or(libc::ECHILD))?;
    Ok(match grandchild_pid as i32 {
        refused @ ..=0 => return Err(-refused),
        pid if grandchild_failed == usize::MAX => Born::Alive(pid),
        pid => Born::Failed { pid, step: joining.len() + grandchild_failed, errno: grandchild_errno },
    })
}

impl Task {
    fn of(steps: &[Step]) -> Task {
        let (steps, count) = (steps.as_ptr(), steps.len());
        Task { steps, count, failed: usize::MAX, errno: 0, grandchild: ptr::null_mut() }
    }
}

/// Makes the call; the child goes to `live` on its own stack, the parent returns the child's id or
/// a negative error number.
///
/// # Safety
/// The call is a clone with a free stack, `CLONE_VM` and `CLONE_VFORK`; `task` is valid until then.
#[cfg(target_arch = "x86_64")]
unsafe fn clone_onto((number, first, second): (libc::c_long, usize, usize), task: *mut Task) -> isize {
    let returned: isize;
    // SAFETY: the system call convention of x86_64. In the child, whose stack pointer is the top of
    // its stack (a multiple of 16), only r12 and r13 are used; it never comes back from `live`.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") number as isize => returned,
            in("rdi") first, in("rsi") second, in("rdx") 0, in("r10") 0, in("r8") 0,
            in("r12") task, in("r13") live as *const (),
            lateout("rcx") _, lateout("r11") _,
        );
    }
    returned
}

/// The child's whole life before its program.
///
/// # Safety
/// Called only by `clone_onto`, with a task that stays valid while the parent waits.
unsafe extern "C" fn live(task: *mut Task) -> ! {
    let mut descriptor = Descriptor::none();
    // SAFETY: the parent built the task from a slice and waits, so it is valid and nobody else
    // writes it. Nothing here allocates, panics or touches thread-local state.
    unsafe {
        let steps = std::slice::from_raw_parts((*task).steps, (*task).count);
        for (index, step) in steps.iter().enumerate() {
            if let Err(errno) = step.run(&mut descriptor) {
                ptr::write_volatile(&raw mut (*task).errno, errno);
                ptr::write_volatile(&raw mut (*task).failed, index);
                raw::exit(127);
            }
        }
        let grandchild = (*task).grandchild;
        if !grandchild.is_null() {
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PARENT | libc::SIGCHLD;
            let pid =
                clone_onto((libc::SYS_clone, flags as usize, (*grandchild).stack_top), (*grandchild).task);
            ptr::write_volatile(&raw mut (*grandchild).pid, pid);
        }
    }
    raw::exit(127)
}

/// Blocks every signal, those too that libc keeps for itself, and returns the mask before.
fn block_all_signals() -> u64 {
    let all = u64::MAX;
    let mut before = 0u64;
    let arguments =
        [libc::SIG_BLOCK as usize, &raw const all as usize, &raw mut before as usize, size_of::<u64>(), 0, 0];
    // SAFETY: both masks have the size that is given, the kernel's own.
    let _ = unsafe { raw::syscall(libc::SYS_rt_sigprocmask, arguments) };
    before
}

fn restore_signals(before: u64) {
    let arguments = [libc::SIG_SETMASK as usize, &raw const before as usize, 0, size_of::<u64>(), 0, 0];
    // SAFETY: the mask has the size that is given; no old one is asked for.
    let _ = unsafe { raw::syscall(libc::SYS_rt_sigprocmask, arguments) };
}

/// Takes over a descriptor that a step opened.
pub fn owned(descriptor: Descriptor) -> OwnedFd {
    // SAFETY: the caller has just opened it by a step and passes it on once.
    unsafe { OwnedFd::from_raw_fd(descriptor.0 as RawFd) }
}
