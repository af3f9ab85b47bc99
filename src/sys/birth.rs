//! The clone that becomes a container, or another user's process. The child shares dunnage's memory
//! (`CLONE_VM`), so nothing is copied, and dunnage is suspended until the child executes its program or ends
//! (`CLONE_VFORK`), so it can read what the child reported from its own memory. The child runs on its own
//! stack with all signals blocked, makes a prepared list of system calls, and never returns.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::mm::{self, MapFlags, MprotectFlags, ProtFlags};
use rustix::process::{Pid, Signal, kill_process};
use thiserror::Error;

use super::cgroup::Birth;
use super::raw;
use super::steps::{Descriptor, Step, StepError};
use super::unborn::Watched;

/// From `linux/sched.h`; the type of the libc crate's constant is too narrow.
const CLONE_INTO_CGROUP: u64 = 1 << 33;
/// The same: no handler of dunnage's can run in the child, which shares its memory.
const CLONE_CLEAR_SIGHAND: u64 = 1 << 32;
const STACK: usize = 32 * 1024;
const GUARD: usize = 4096;

/// A stack for the child, with an unmapped page below it.
#[derive(Debug)]
pub struct Stack {
    base: *mut libc::c_void,
    /// Whether the child is killed if it does not begin its program.
    is_watched: bool,
}

// SAFETY: a mapping of this process, valid in every thread, and changed only by the child of a launch, for
// which the launching thread waits with the stack borrowed exclusively.
unsafe impl Send for Stack {}

// SAFETY: only its address is shared; running on it needs an exclusive borrow.
unsafe impl Sync for Stack {}

impl Stack {
    /// For a child that another user may stop before it begins its program.
    pub fn watched() -> io::Result<Stack> {
        let mut stack = Stack::new()?;
        stack.is_watched = true;
        Ok(stack)
    }

    /// Maps it.
    pub fn new() -> io::Result<Stack> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::STACK | MapFlags::POPULATE;
        // SAFETY: a new private mapping that overlaps nothing; its lowest page is then closed.
        unsafe {
            let base = mm::mmap_anonymous(ptr::null_mut(), STACK + GUARD, access, flags)?;
            let stack = Stack { base, is_watched: false };
            mm::mprotect(base, GUARD, MprotectFlags::empty())?;
            Ok(stack)
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no child runs on it any more.
        let _ = unsafe { mm::munmap(self.base, STACK + GUARD) };
    }
}

/// What the child is to do, and its report if it could not.
#[repr(C)]
struct Task {
    steps: *const Step,
    count: usize,
    failed: usize,
    errno: i32,
    /// The task of the child's child, which is cloned once all steps have succeeded and becomes dunnage's
    /// child when the first one ends; null if there is none.
    grandchild: *mut Task,
    /// The top of the grandchild's stack, and what its clone returned.
    grandchild_stack: usize,
    grandchild_pid: isize,
    /// Where the kernel writes the grandchild's id before it runs: the child may be killed before its clone returns.
    grandchild_id: *mut i32,
}

/// Why the program does not run. Children made for it have been reaped.
#[derive(Debug, Error)]
pub enum NotBorn {
    /// The kernel refused the clone.
    #[error("cannot clone")]
    Clone(#[source] io::Error),
    /// The kernel refused a step.
    #[error(transparent)]
    Step(#[from] StepError),
    /// It was killed before its program began.
    #[error("it stood still before its program began, so it was ended: another user may have stopped it")]
    Stuck,
}

/// Keeps the error's kind, by which callers tell missing from forbidden.
impl From<NotBorn> for io::Error {
    fn from(error: NotBorn) -> io::Error {
        match error {
            NotBorn::Clone(error) => error,
            NotBorn::Stuck => io::Error::other(error),
            NotBorn::Step(error) => io::Error::new(io::Error::from_raw_os_error(error.errno).kind(), error),
        }
    }
}

/// For a child on this stack that shares dunnage's memory while dunnage is suspended.
fn sharing_memory(
    stack: &Stack,
    namespaces: u64,
    cgroup: Option<&OwnedFd>,
    watched: Option<&Watched>,
) -> libc::clone_args {
    let shared = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;
    libc::clone_args {
        parent_tid: watched.map_or(0, |watched| watched.place(0) as u64),
        flags: namespaces
            | shared
            | if watched.is_some() { libc::CLONE_PARENT_SETTID as u64 } else { 0 }
            | if cgroup.is_some() { CLONE_INTO_CGROUP | CLONE_CLEAR_SIGHAND } else { 0 },
        exit_signal: libc::SIGCHLD as u64,
        stack: stack.base as u64 + GUARD as u64,
        stack_size: STACK as u64,
        cgroup: cgroup.map_or(0, |fd| fd.as_raw_fd() as u64),
        // SAFETY: plain numbers, for which zero is valid.
        ..unsafe { std::mem::zeroed() }
    }
}

/// `clone` where it is enough; it is allowed in more places than `clone3`.
fn call(arguments: &libc::clone_args) -> Call {
    if arguments.flags & CLONE_INTO_CGROUP != 0 {
        let own = [&raw const *arguments as usize, size_of::<libc::clone_args>(), 0];
        return Call { number: libc::SYS_clone3, arguments: own };
    }
    let flags = arguments.flags | arguments.exit_signal;
    let top = arguments.stack + arguments.stack_size;
    let own = [flags, top, arguments.parent_tid].map(|one| one as usize);
    Call { number: libc::SYS_clone, arguments: own }
}

/// A clone with its first three arguments.
struct Call {
    number: libc::c_long,
    arguments: [usize; 3],
}

/// Whether a child can be born in a cgroup: `clone3` is permitted (seccomp filters of container engines
/// forbid it), and knows the flag.
pub fn possible_birth() -> Birth {
    // SAFETY: a size of zero is refused before anything is read or done.
    let known = unsafe { raw::syscall(libc::SYS_clone3, [0; 6]) } == Err(libc::EINVAL);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if known && version >= (5, 7) { Birth::Inside } else { Birth::Outside }
}

/// Clones a child into new namespaces (flags of clone) and, if given, a version 2 cgroup; it makes all
/// `steps`, the last of which executes a program. Returns its process id.
pub fn give_birth(
    stack: &mut Stack,
    namespaces: u64,
    cgroup: Option<&OwnedFd>,
    steps: &[Step],
) -> Result<i32, NotBorn> {
    let mut task = Task::of(steps);
    let watched = stack.is_watched.then(Watched::begin).transpose().map_err(NotBorn::Clone)?;
    let pid = task.clone_for(stack, namespaces, cgroup, watched.as_ref())?;
    if watched.is_some_and(|watched| watched.end().0) {
        super::child::reap(pid).ok();
        return Err(NotBorn::Stuck);
    }
    task.outcome(pid, steps)
}

/// Clones a child, into a version 2 cgroup if one is given, that makes the steps `joining` and, if they
/// succeed, clones another child. That one is dunnage's child, makes the steps `executing`, the last of which
/// executes a program, and is in the namespaces that the first one joined, including the PID namespace. The
/// first child has ended and been reaped when this returns.
pub fn give_birth_within(
    stack: &mut Stack,
    cgroup: Option<&OwnedFd>,
    joining: &[Step],
    second_stack: &mut Stack,
    executing: &[Step],
) -> Result<i32, NotBorn> {
    let mut second = Task::of(executing);
    let grandchild_stack = second_stack.base as usize + GUARD + STACK;
    // What is in the container may stop it.
    let watched = Watched::begin().map_err(NotBorn::Clone)?;
    let grandchild_id = watched.place(1);
    let mut first =
        Task { grandchild: &raw mut second, grandchild_stack, grandchild_id, ..Task::of(joining) };
    let pid = first.clone_for(stack, 0, cgroup, Some(&watched))?;
    let (was_killed, grandchild) = watched.end();
    let pid = first.outcome(pid, joining)?;
    let ended = super::child::reap(pid);
    if first.grandchild_pid == 0 || was_killed {
        // Without the child's answer nothing says that the grandchild no longer uses this memory.
        if let Some(orphan) = Pid::from_raw(grandchild) {
            let _ = kill_process(orphan, Signal::KILL);
            super::child::reap(grandchild).ok();
        }
        if was_killed {
            return Err(NotBorn::Stuck);
        }
        let how = ended.map_or_else(|error| error.to_string(), |ended| ended.to_string());
        let reason = format!("the process that enters a container ended too early: {how}");
        return Err(NotBorn::Clone(io::Error::other(reason)));
    }
    let pid = cloned(first.grandchild_pid)?;
    second.outcome(pid, executing)
}

/// The process id, or the error, that a clone returned.
fn cloned(returned: isize) -> Result<i32, NotBorn> {
    match returned as i32 {
        pid @ 1.. => Ok(pid),
        refused => Err(NotBorn::Clone(io::Error::from_raw_os_error(-refused))),
    }
}

impl Task {
    fn of(steps: &[Step]) -> Task {
        Task {
            steps: steps.as_ptr(),
            count: steps.len(),
            failed: usize::MAX,
            errno: 0,
            grandchild: ptr::null_mut(),
            grandchild_stack: 0,
            grandchild_pid: 0,
            grandchild_id: ptr::null_mut(),
        }
    }

    /// Clones a child for this task, and waits until it executes its program or ends.
    fn clone_for(
        &mut self,
        stack: &mut Stack,
        namespaces: u64,
        cgroup: Option<&OwnedFd>,
        watched: Option<&Watched>,
    ) -> Result<i32, NotBorn> {
        let arguments = sharing_memory(stack, namespaces, cgroup, watched);
        // All signals, including those that libc reserves.
        let blocked = raw::signal_mask(libc::SIG_SETMASK, u64::MAX);
        // SAFETY: all stacks are mapped, borrowed exclusively and not in use; tasks and steps outlive the
        // children's use of this memory: this thread continues only after the child's exec or end, and a child
        // ends only after its own child's exec or end, or because it was killed, after which that is killed too.
        let returned = unsafe { clone_onto(call(&arguments), self) };
        raw::signal_mask(libc::SIG_SETMASK, blocked);
        cloned(returned)
    }

    /// The child, if all its steps succeeded; otherwise it is reaped.
    fn outcome(&self, pid: i32, steps: &[Step]) -> Result<i32, NotBorn> {
        match steps.get(self.failed) {
            None => Ok(pid),
            Some(step) => {
                super::child::reap(pid).ok();
                Err(step.failed(self.errno).into())
            }
        }
    }
}

/// Makes the call; the child continues in `live` on its own stack, the parent returns the child's id or a
/// negative error number.
///
/// # Safety
/// The call is a clone with a free stack, `CLONE_VM` and `CLONE_VFORK`, and its third argument is zero or a place for an id;
/// `task` is valid until then.
#[cfg(target_arch = "x86_64")]
unsafe fn clone_onto(Call { number, arguments: [first, second, third] }: Call, task: *mut Task) -> isize {
    let returned: isize;
    // SAFETY: the system call convention of x86_64. The child, whose stack pointer is the top of its stack (a
    // multiple of 16), uses only r12 and r13, and never returns from `live`.
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
            in("rdi") first, in("rsi") second, in("rdx") third, in("r10") 0, in("r8") 0,
            in("r12") task, in("r13") live as *const (),
            lateout("rcx") _, lateout("r11") _,
        );
    }
    returned
}

/// Everything that the child does before its program.
///
/// # Safety
/// Called only by `clone_onto`, with a task that stays valid while the parent waits.
unsafe extern "C" fn live(task: *mut Task) -> ! {
    let mut descriptor = Descriptor::none();
    // SAFETY: the parent built the task from a slice and waits, so it is valid and not used elsewhere.
    // Nothing here allocates, panics or touches thread-local state.
    unsafe {
        let task = &mut *task;
        let steps = std::slice::from_raw_parts(task.steps, task.count);
        for (index, step) in steps.iter().enumerate() {
            if let Err(errno) = step.run(&mut descriptor) {
                (task.failed, task.errno) = (index, errno);
                raw::exit(127);
            }
        }
        if !task.grandchild.is_null() {
            let shared = libc::CLONE_VM | libc::CLONE_VFORK;
            let flags = shared | libc::CLONE_PARENT | libc::CLONE_PARENT_SETTID | libc::SIGCHLD;
            let own = [flags as usize, task.grandchild_stack, task.grandchild_id as usize];
            let call = Call { number: libc::SYS_clone, arguments: own };
            task.grandchild_pid = clone_onto(call, task.grandchild);
        }
    }
    raw::exit(127)
}

/// Takes ownership of a descriptor that a step opened.
pub fn owned(descriptor: Descriptor) -> OwnedFd {
    // SAFETY: the caller has just opened it in a step and passes it on once.
    unsafe { OwnedFd::from_raw_fd(descriptor.0 as RawFd) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sys::process;
    use crate::sys::steps::{Argument, number};

    /// What stops or waits for ever before its program holds dunnage up no longer than that.
    #[test]
    fn a_child_that_does_not_begin_its_program_is_killed() {
        let sleeping = |seconds: u64| {
            let sleep = [Argument::Words(Box::new([seconds, 0])), number(0)];
            let sleep = Step::call("sleep", "", libc::SYS_nanosleep, sleep);
            [sleep, Step::execute(Path::new("/bin/true"), &[c"true".into()], &[])]
        };
        let alone = |seconds| give_birth(&mut Stack::watched().unwrap(), 0, None, &sleeping(seconds));
        let within = |seconds| {
            let [mut first, mut second] = [Stack::new().unwrap(), Stack::new().unwrap()];
            give_birth_within(&mut first, None, &[], &mut second, &sleeping(seconds))
        };
        let began = Instant::now();
        for stuck in [alone(100), within(100)] {
            assert!(matches!(stuck, Err(NotBorn::Stuck)), "{stuck:?}");
        }
        assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
        for born in [alone(1), within(1)] {
            super::super::child::reap(born.unwrap()).unwrap();
        }
    }

    /// The name of the thread and its children.
    const NAME: &str = "births-a-child";

    fn children() -> Vec<i32> {
        let own = std::process::id() as i32;
        let mut all: Vec<_> = process::named(&[NAME]).into_iter().filter(|one| one.parent == own).collect();
        all.sort_by_key(|one| (one.started(), one.pid));
        all.into_iter().map(|one| one.pid).collect()
    }

    /// The grandchild sleeps before its program, and its parent is killed meanwhile.
    #[test]
    fn a_grandchild_whose_parent_was_killed_does_not_outlive_the_memory_it_uses() {
        let within = |nanos: u64| {
            move || {
                let sleep = [Argument::Words(Box::new([0, nanos])), number(0)];
                let executing = [
                    Step::call("sleep", "", libc::SYS_nanosleep, sleep),
                    Step::execute(Path::new("/bin/true"), &[c"true".into()], &[]),
                ];
                let [mut first, mut second] = [Stack::new().unwrap(), Stack::new().unwrap()];
                give_birth_within(&mut first, None, &[], &mut second, &executing)
            }
        };
        let start = |nanos| thread::Builder::new().name(NAME.to_owned()).spawn(within(nanos)).unwrap();
        let born = start(1000).join().unwrap().unwrap();
        super::super::child::reap(born).unwrap();
        let birth = start(900_000_000);
        let began = Instant::now();
        let parent = loop {
            match children()[..] {
                [parent, _] => break parent,
                _ if began.elapsed() > Duration::from_millis(800) => panic!("{:?}", children()),
                _ => thread::yield_now(),
            }
        };
        kill_process(Pid::from_raw(parent).unwrap(), Signal::KILL).unwrap();
        let error = birth.join().unwrap().unwrap_err();
        assert_eq!(children(), [0i32; 0]);
        let NotBorn::Clone(error) = error else { panic!("{error}") };
        assert!(error.to_string().contains("ended too early: signal 9"), "{error}");
    }
}
