//! What the probe needs to start somebody's command and to wait for it, without libc and without
//! allocation: a root of its own by mounts that only it sees, a fork, an exec, the end of a child with what
//! it used.

use core::ffi::{CStr, c_char};
use core::marker::PhantomData;

use super::raw::{self, syscall};

/// What the kernel returned: nothing, or an error number.
type Done = core::result::Result<(), i32>;

fn done(result: raw::Result) -> Done {
    result.map(drop)
}

/// Mounts of this process are its own from now on, and reach nobody else.
pub fn own_mounts() -> Done {
    // SAFETY: takes flags only.
    done(unsafe { syscall(libc::SYS_unshare, [libc::CLONE_NEWNS as usize, 0, 0, 0, 0, 0]) })?;
    mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)
}

/// Mounts without a filesystem of their own: binds, and changes of what is mounted.
pub fn mount(source: &CStr, target: &CStr, flags: libc::c_ulong) -> Done {
    let pointers = [source.as_ptr() as usize, target.as_ptr() as usize];
    // SAFETY: two valid C strings; a bind reads neither type nor options.
    done(unsafe { syscall(libc::SYS_mount, [pointers[0], pointers[1], 0, flags as usize, 0, 0]) })
}

/// This directory is the root from now on, and where we are.
pub fn change_root(root: &CStr) -> Done {
    // SAFETY: a valid C string.
    done(unsafe { syscall(libc::SYS_chroot, [root.as_ptr() as usize, 0, 0, 0, 0, 0]) })?;
    change_directory(c"/")
}

/// This directory is where we are from now on.
pub fn change_directory(path: &CStr) -> Done {
    // SAFETY: a valid C string.
    done(unsafe { syscall(libc::SYS_chdir, [path.as_ptr() as usize, 0, 0, 0, 0, 0]) })
}

/// Whether a file may be executed by us.
pub fn may_be_executed(path: &CStr) -> Done {
    let mut about = [0u64; 18];
    let here = libc::AT_FDCWD as usize;
    // SAFETY: a valid C string, and room for a `struct stat`, which is 144 bytes here.
    done(unsafe {
        syscall(libc::SYS_stat, [path.as_ptr() as usize, about.as_mut_ptr() as usize, 0, 0, 0, 0])
    })?;
    // SAFETY: a valid C string; the call only asks.
    done(unsafe {
        syscall(libc::SYS_faccessat, [here, path.as_ptr() as usize, libc::X_OK as usize, 0, 0, 0])
    })?;
    // The mode is the low half of the fourth word.
    let kind = about[3] as u32 & libc::S_IFMT;
    if kind == libc::S_IFREG { Ok(()) } else { Err(libc::EACCES) }
}

/// A list of C strings that ends with a null pointer.
#[derive(Debug, Clone, Copy)]
pub struct Strings<'a>(*const *const c_char, PhantomData<&'a c_char>);

impl<'a> Strings<'a> {
    /// Takes such a list over.
    ///
    /// # Safety
    /// It ends with a null pointer; the list lives as long as `'a`, its strings as long as the process.
    pub unsafe fn new(first: *const *const c_char) -> Strings<'a> {
        Strings(first, PhantomData)
    }

    /// The environment of this process.
    pub fn environment() -> Strings<'static> {
        unsafe extern "C" {
            static environ: *const *const c_char;
        }
        // SAFETY: libc's start has set it before `main`, and the probe never changes it.
        unsafe { Strings::new(environ) }
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = &'static CStr> {
        let mut at = self.0;
        core::iter::from_fn(move || {
            // SAFETY: not beyond the null pointer, where this iterator stays.
            let pointer = unsafe { *at };
            if pointer.is_null() {
                return None;
            }
            // SAFETY: the null pointer is still to come; and what is not null is one of the strings.
            unsafe {
                at = at.add(1);
                Some(CStr::from_ptr(pointer))
            }
        })
    }
}

/// Room for a list of strings, without allocation.
#[derive(Debug)]
pub struct List<'a, const ROOM: usize> {
    pointers: [*const c_char; ROOM],
    count: usize,
    strings: PhantomData<&'a CStr>,
}

impl<const ROOM: usize> Default for List<'_, ROOM> {
    fn default() -> Self {
        List { pointers: [core::ptr::null(); ROOM], count: 0, strings: PhantomData }
    }
}

impl<'a, const ROOM: usize> List<'a, ROOM> {
    /// Adds a string; false where there is no room, the last place being that of the null pointer.
    #[must_use]
    pub fn push(&mut self, string: &'a CStr) -> bool {
        let fits = self.count + 1 < ROOM;
        if fits {
            self.pointers[self.count] = string.as_ptr();
            self.count += 1;
        }
        fits
    }

    /// The strings.
    pub fn strings(&self) -> Strings<'_> {
        Strings(self.pointers.as_ptr(), PhantomData)
    }
}

/// A pipe whose ends close on exec; the reading end never blocks.
pub fn pipe() -> core::result::Result<[i32; 2], i32> {
    let mut ends = [0i32; 2];
    // SAFETY: room for two descriptors.
    unsafe { syscall(libc::SYS_pipe2, [ends.as_mut_ptr() as usize, libc::O_CLOEXEC as usize, 0, 0, 0, 0]) }?;
    let flags = (libc::O_NONBLOCK | libc::O_CLOEXEC) as usize;
    // SAFETY: sets a flag of a descriptor of ours.
    unsafe { syscall(libc::SYS_fcntl, [ends[0] as usize, libc::F_SETFL as usize, flags, 0, 0, 0]) }?;
    Ok(ends)
}

/// Opens a file for writing, by a path that ends with a zero byte.
pub fn open_for_writing(path: &CStr) -> core::result::Result<i32, i32> {
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize];
    let flags = (libc::O_WRONLY | libc::O_CLOEXEC) as usize;
    // SAFETY: a valid C string and plain numbers.
    let opened = unsafe { syscall(libc::SYS_openat, [arguments[0], arguments[1], flags, 0, 0, 0]) };
    opened.map(|fd| fd as i32)
}

/// Collects ends of children from a descriptor instead of a handler; who has no parent any more becomes
/// our child.
pub fn collect_children() -> core::result::Result<i32, i32> {
    let set: u64 = 1 << (libc::SIGCHLD - 1);
    let pointer = &raw const set as usize;
    let size = size_of::<u64>();
    let _ = raw::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    let flags = (libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) as usize;
    // SAFETY: the set has the size that is given with it.
    unsafe {
        syscall(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as usize, pointer, 0, size, 0, 0])?;
        syscall(libc::SYS_signalfd4, [usize::MAX, pointer, size, flags, 0, 0]).map(|fd| fd as i32)
    }
}

/// What is to be executed.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// The file.
    pub path: &'a CStr,
    /// Its arguments, its own name the first.
    pub arguments: Strings<'a>,
    /// Its environment.
    pub environment: Strings<'a>,
    /// What become its standard input, output and error.
    pub streams: [i32; 3],
    /// Where the error number goes if it cannot be executed.
    pub complaint: i32,
}

/// Forks a child that executes a program, or ends at once without one. Gives the child's process id.
///
/// The child shares no memory with us, so that the pages it has before it executes are few: only what we
/// wrote to ourselves.
pub fn fork(program: Option<&Program<'_>>) -> core::result::Result<i32, i32> {
    // SAFETY: a clone without flags is a fork: parent and child go on with memory of their own. The child
    // makes system calls only, and does not return.
    let born = unsafe { syscall(libc::SYS_clone, [libc::SIGCHLD as usize, 0, 0, 0, 0, 0]) }?;
    if born != 0 {
        return Ok(born as i32);
    }
    let Some(program) = program else { raw::exit(0) };
    let _ = raw::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as usize);
    for (target, fd) in program.streams.into_iter().enumerate() {
        // SAFETY: duplicates a descriptor of ours.
        let _ = unsafe { syscall(libc::SYS_dup2, [fd as usize, target, 0, 0, 0, 0]) };
    }
    let none = 0u64;
    let pointer = &raw const none as usize;
    // SAFETY: the set has the size that is given with it.
    let _ = unsafe {
        syscall(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, pointer, 0, size_of::<u64>(), 0, 0])
    };
    let lists = [program.arguments.0 as usize, program.environment.0 as usize];
    // SAFETY: a valid C string and two lists that end with a null pointer.
    let refused =
        unsafe { syscall(libc::SYS_execve, [program.path.as_ptr() as usize, lists[0], lists[1], 0, 0, 0]) };
    let errno = refused.err().unwrap_or(0);
    let _ = raw::write_all(program.complaint, &errno.to_ne_bytes());
    raw::exit(127)
}

/// What became of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reaped {
    /// Its process id.
    pub pid: i32,
    /// As `wait4` gives it.
    pub status: i32,
    /// CPU time in user mode, in microseconds.
    pub user: i64,
    /// CPU time in the kernel, in microseconds.
    pub system: i64,
    /// The largest resident set of it and of any child that it waited for, in bytes.
    pub most_memory: i64,
}

/// Whether to wait for an end that has not come yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Until it comes.
    Waits,
    /// Not at all.
    Looks,
}

/// Reaps a child, or any with -1; none where it has not ended yet.
pub fn reap(pid: i32, patience: Patience) -> core::result::Result<Option<Reaped>, i32> {
    let mut status = 0i32;
    // Two times of two words each, and fourteen counters.
    let mut usage = [0i64; 18];
    let options = if patience == Patience::Looks { libc::WNOHANG } else { 0 } as usize;
    let pointers = [&raw mut status as usize, usage.as_mut_ptr() as usize];
    loop {
        // SAFETY: both out-pointers are writable; the second has room for a `struct rusage`.
        let reaped =
            unsafe { syscall(libc::SYS_wait4, [pid as usize, pointers[0], options, pointers[1], 0, 0]) };
        match reaped {
            Err(libc::EINTR) => {}
            Err(errno) => return Err(errno),
            Ok(0) => return Ok(None),
            Ok(found) => {
                return Ok(Some(Reaped {
                    pid: found as i32,
                    status,
                    user: usage[0] * 1_000_000 + usage[1],
                    system: usage[2] * 1_000_000 + usage[3],
                    most_memory: usage[4] * 1024,
                }));
            }
        }
    }
}

/// Waits until one of two descriptors can be read; a negative one is passed over.
pub fn wait_for_either(descriptors: [i32; 2]) -> [bool; 2] {
    let mut watched = descriptors.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // SAFETY: two valid records; without a time it waits for as long as it takes.
    let _ = unsafe { syscall(libc::SYS_ppoll, [watched.as_mut_ptr() as usize, 2, 0, 0, 8, 0]) };
    watched.map(|one| one.revents != 0)
}

/// Ends a process at once.
pub fn kill(pid: i32) {
    // SAFETY: a positive process id names one process.
    let _ = unsafe { syscall(libc::SYS_kill, [pid.max(1) as usize, libc::SIGKILL as usize, 0, 0, 0, 0]) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a shell script with what the probe uses.
    fn run(script: &'static CStr) -> Reaped {
        let null = raw::open(c"/dev/null").unwrap();
        let ends = pipe().unwrap();
        let mut arguments = List::<8>::default();
        assert!([c"sh", c"-c", script].into_iter().all(|word| arguments.push(word)));
        let program = Program {
            path: c"/bin/sh",
            arguments: arguments.strings(),
            environment: Strings::environment(),
            streams: [null, 1, 2],
            complaint: ends[1],
        };
        let pid = fork(Some(&program)).unwrap();
        let reaped = reap(pid, Patience::Waits).unwrap().unwrap();
        [null, ends[0], ends[1]].into_iter().for_each(raw::close);
        reaped
    }

    #[test]
    fn a_command_ends_with_its_own_status() {
        assert_eq!(run(c"exit 3").status >> 8, 3);
        assert_eq!(run(c"kill -9 $$").status & 0x7f, 9);
    }

    #[test]
    fn a_busy_command_uses_the_time_and_memory_that_it_uses() {
        let idle = run(c"exit 0");
        let busy = run(
            c"x=a; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23; do x=$x$x; done",
        );
        assert!(busy.user + busy.system > idle.user + idle.system);
        // The shell's variable alone is that large. What an idle one shows is what the test's own child had.
        assert!(busy.most_memory > 8 << 20, "{busy:?} {idle:?}");
    }

    #[test]
    fn what_may_be_executed_is_a_file_with_the_right() {
        assert_eq!(may_be_executed(c"/bin/sh"), Ok(()));
        assert_eq!(may_be_executed(c"/nonexistent"), Err(libc::ENOENT));
        assert_eq!(may_be_executed(c"/bin"), Err(libc::EACCES));
        assert_eq!(may_be_executed(c"/etc/passwd"), Err(libc::EACCES));
    }

    #[test]
    fn our_own_environment_is_found() {
        let ours = Strings::environment().iter().count();
        assert_eq!(ours, std::env::vars_os().count());
    }
}
