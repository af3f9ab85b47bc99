//! System calls made again and again, with nothing between one and the next, so that what one of them
//! takes can be told from how long many take. The probe's own: no allocation, and of libc only the clock.
//!
//! Deliberately absent: stamps, and how often is often enough.

#[cfg(target_arch = "x86_64")]
use core::arch::asm;
use core::ffi::CStr;

use super::raw;

/// Something that programs ask of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `getpid`: hardly more than the way into the kernel and back.
    GetPid,
    /// `getppid`: the same, and a number that a PID namespace translates.
    GetPpid,
    /// libc's `clock_gettime`, which the vDSO answers where it can read the clock.
    ClockVdso,
    /// `clock_gettime` by a system call.
    Clock,
    /// One byte from `/dev/zero`.
    ReadZero,
    /// One byte into `/dev/null`.
    WriteNull,
    /// `openat` of a file in memory, from an open `/proc/self/fd`, and `close`.
    OpenClose,
    /// `newfstatat` of a file in memory, from an open `/proc/self/fd`.
    Stat,
    /// `FUTEX_WAKE` of a word for which nobody waits.
    FutexWake,
    /// `mmap` of one anonymous page, a write to it, `munmap`.
    MapUnmap,
    /// One byte to another process and back.
    PipeRoundTrip,
    /// A process that executes a program, and its end.
    ForkExecWait,
}

/// Every call, in the order in which they are measured: what makes processes comes last.
pub static ALL: [Call; 12] = [
    Call::GetPid,
    Call::GetPpid,
    Call::ClockVdso,
    Call::Clock,
    Call::ReadZero,
    Call::WriteNull,
    Call::OpenClose,
    Call::Stat,
    Call::FutexWake,
    Call::MapUnmap,
    Call::PipeRoundTrip,
    Call::ForkExecWait,
];

impl Call {
    /// Its name in messages, tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Call::GetPid => "getpid",
            Call::GetPpid => "getppid",
            Call::ClockVdso => "clock_vdso",
            Call::Clock => "clock_gettime",
            Call::ReadZero => "read_zero",
            Call::WriteNull => "write_null",
            Call::OpenClose => "open_close",
            Call::Stat => "stat",
            Call::FutexWake => "futex_wake",
            Call::MapUnmap => "mmap_munmap",
            Call::PipeRoundTrip => "pipe_round_trip",
            Call::ForkExecWait => "fork_exec_wait",
        }
    }
}

/// Where a file is opened and looked up while something is timed: from this directory, and a file of
/// `memfd_create`, which lies on the kernel's own filesystem. A path from the root would hold the permission check
/// of the root's filesystem, which is an overlay here and none there; and a device of the host's `/dev`, where
/// others may watch it, takes a tenth longer to open than the same device in a container's.
const DESCRIPTORS: &CStr = c"/proc/self/fd";
const NULL: &CStr = c"/dev/null";
const ZERO: &CStr = c"/dev/zero";
const PAGE: usize = 4096;
/// The child's way to say that it could not execute the program.
const NOT_EXECUTED: usize = 127;

/// A program to execute, all of whose pointers live as long as this process.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Its path.
    pub path: &'a CStr,
    /// Its arguments, its own name first; three at most.
    pub arguments: [Option<&'a CStr>; 3],
}

/// What the calls work on: descriptors that are open before anything is timed.
#[derive(Debug)]
pub struct Bench<'a> {
    descriptors: i32,
    file: File,
    zero: i32,
    null: i32,
    own: usize,
    parent: usize,
    program: Program<'a>,
    partner: Option<Partner>,
}

/// An empty file in memory.
#[derive(Debug)]
struct File {
    descriptor: i32,
    /// Its name among the descriptors: the number, and a null byte behind it.
    name: [u8; 12],
}

/// Another process that sends back every byte that it is sent.
#[derive(Debug)]
struct Partner {
    pid: usize,
    to: i32,
    from: i32,
}

impl<'a> Bench<'a> {
    /// Opens what the calls work on; an error number otherwise.
    pub fn new(program: Program<'a>) -> Result<Bench<'a>, i32> {
        let from_here = libc::AT_FDCWD;
        let descriptors = open(from_here, DESCRIPTORS, libc::O_RDONLY | libc::O_DIRECTORY)?;
        let file = File::new()?;
        let (zero, null) = (open(from_here, ZERO, libc::O_RDONLY)?, open(from_here, NULL, libc::O_WRONLY)?);
        // SAFETY: neither call takes arguments.
        let (own, parent) =
            unsafe { (again(libc::SYS_getpid, [0; 4], 1), again(libc::SYS_getppid, [0; 4], 1)) };
        Ok(Bench { descriptors, file, zero, null, own, parent, program, partner: None })
    }

    /// Makes a call this often. An error number for any call that did not do what it should.
    pub fn repeat(&mut self, call: Call, times: usize) -> Result<(), i32> {
        let byte = [0u8; 1];
        let at = byte.as_ptr() as usize;
        let mut time = [0u64; 2];
        let mut status = [0u64; 18];
        let word = 0u32;
        let [descriptors, name] = [self.descriptors as usize, self.file.name.as_ptr() as usize];
        let numbered = |number, arguments, each: usize| {
            // SAFETY: every call below gets pointers to locals of the size that it writes or reads: a byte,
            // a `struct timespec` of two words, a `struct stat` of 18, a futex of 32 bits, a C string.
            let sum = unsafe { again(number, arguments, times) };
            if sum == each * times { Ok(()) } else { Err(libc::EIO) }
        };
        match call {
            Call::GetPid => numbered(libc::SYS_getpid, [0; 4], self.own),
            Call::GetPpid => numbered(libc::SYS_getppid, [0; 4], self.parent),
            Call::ClockVdso => by_libc(times),
            Call::Clock => {
                let arguments = [libc::CLOCK_MONOTONIC as usize, time.as_mut_ptr() as usize, 0, 0];
                numbered(libc::SYS_clock_gettime, arguments, 0)
            }
            Call::ReadZero => numbered(libc::SYS_read, [self.zero as usize, at, 1, 0], 1),
            Call::WriteNull => numbered(libc::SYS_write, [self.null as usize, at, 1, 0], 1),
            Call::OpenClose => {
                let (descriptors, name) = (self.descriptors, self.file.name()?);
                repeated(times, || open(descriptors, name, libc::O_RDONLY).map(raw::close))
            }
            Call::Stat => {
                let arguments = [descriptors, name, status.as_mut_ptr() as usize, 0];
                numbered(libc::SYS_newfstatat, arguments, 0)
            }
            Call::FutexWake => {
                let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
                numbered(libc::SYS_futex, [&raw const word as usize, wake, 1, 0], 0)
            }
            Call::MapUnmap => repeated(times, map_and_unmap),
            Call::PipeRoundTrip => self.round_trips(times),
            Call::ForkExecWait => {
                let program = self.program;
                repeated(times, || execute(program))
            }
        }
    }

    /// Starts the partner if there is none yet: outside whatever is timed by whoever calls this with zero.
    fn round_trips(&mut self, times: usize) -> Result<(), i32> {
        if self.partner.is_none() {
            self.partner = Some(Partner::start()?);
        }
        let Some(partner) = &self.partner else { return Err(libc::ECHILD) };
        let mut byte = [1u8; 1];
        repeated(times, || {
            raw::write_all(partner.to, &byte)?;
            match raw::read(partner.from, &mut byte)? {
                1 => Ok(()),
                _ => Err(libc::EPIPE),
            }
        })
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        raw::close(self.descriptors);
        raw::close(self.file.descriptor);
        raw::close(self.zero);
        raw::close(self.null);
        if let Some(partner) = self.partner.take() {
            partner.end();
        }
    }
}

/// The same system call this many times, and the sum of what was returned. Between two calls lie a move,
/// an addition, a decrement and a branch: less than a nanosecond, and hidden behind the kernel's own work.
///
/// # Safety
/// As for [`raw::syscall`].
#[cfg(target_arch = "x86_64")]
unsafe fn again(number: libc::c_long, arguments: [usize; 4], times: usize) -> usize {
    let [a, b, c, d] = arguments;
    let mut sum = 0usize;
    if times == 0 {
        return sum;
    }
    // SAFETY: the x86_64 system call convention, in which every register but rax, rcx and r11 is kept; the
    // caller vouches for the arguments.
    unsafe {
        asm!(
            "2:",
            "mov rax, {number}",
            "syscall",
            "add {sum}, rax",
            "dec {left}",
            "jnz 2b",
            number = in(reg) number,
            sum = inout(reg) sum,
            left = inout(reg) times => _,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") 0, in("r9") 0,
            out("rax") _, out("rcx") _, out("r11") _,
            options(nostack),
        );
    }
    sum
}

/// Does something this often, until it fails. A plain loop, cheap without optimisation too.
fn repeated(times: usize, mut once: impl FnMut() -> Result<(), i32>) -> Result<(), i32> {
    let mut left = times;
    while left > 0 {
        once()?;
        left -= 1;
    }
    Ok(())
}

fn by_libc(times: usize) -> Result<(), i32> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut failed = 0;
    let mut left = times;
    while left > 0 {
        // SAFETY: libc writes one timespec. It knows the vDSO since its own start.
        failed |= unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        left -= 1;
    }
    if failed == 0 { Ok(()) } else { Err(libc::EIO) }
}

/// Whether the kernel gave this process a vDSO.
pub fn has_vdso() -> bool {
    // SAFETY: reads what the kernel put above the stack of the process.
    unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) != 0 }
}

/// The path by which this process was executed, as it was given to the kernel.
pub fn own_path() -> Option<&'static CStr> {
    // SAFETY: reads what the kernel put above the stack of the process.
    let path = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const core::ffi::c_char;
    // SAFETY: the kernel's string lies above the stack as long as the process lives.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
}

impl File {
    fn new() -> Result<File, i32> {
        let arguments = [c"dunnage".as_ptr() as usize, libc::MFD_CLOEXEC as usize, 0, 0, 0, 0];
        // SAFETY: the name is a valid C string.
        let descriptor = unsafe { raw::syscall(libc::SYS_memfd_create, arguments) }?;
        let mut name = [0u8; 12];
        let digits = name.len() - 1;
        let mut begin = digits;
        let mut rest = descriptor;
        while begin == digits || rest > 0 {
            begin -= 1;
            name[begin] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        name.rotate_left(begin);
        Ok(File { descriptor: descriptor as i32, name })
    }

    fn name(&self) -> Result<&CStr, i32> {
        CStr::from_bytes_until_nul(&self.name).map_err(|_| libc::EINVAL)
    }
}

fn open(from: i32, path: &CStr, flags: i32) -> Result<i32, i32> {
    let flags = (flags | libc::O_CLOEXEC) as usize;
    // SAFETY: the path is a valid C string; the other arguments are plain numbers.
    let opened =
        unsafe { raw::syscall(libc::SYS_openat, [from as usize, path.as_ptr() as usize, flags, 0, 0, 0]) };
    opened.map(|fd| fd as i32)
}

fn map_and_unmap() -> Result<(), i32> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let arguments = [0, PAGE, protection as usize, flags as usize, usize::MAX, 0];
    // SAFETY: a new mapping, wherever the kernel likes, that nobody else knows; it is as large as is said and
    // writable, and nothing refers to it when it goes.
    unsafe {
        let page = raw::syscall(libc::SYS_mmap, arguments)?;
        core::ptr::write_volatile(page as *mut u8, 1);
        raw::syscall(libc::SYS_munmap, [page, PAGE, 0, 0, 0, 0])?;
    }
    Ok(())
}

/// What `fork` returns: in the child zero.
fn fork() -> Result<usize, i32> {
    // SAFETY: a child with a copy of everything, which goes on from here; it must make raw system calls
    // only, since other threads of the parent may hold whatever locks there are.
    unsafe { raw::syscall(libc::SYS_clone, [libc::SIGCHLD as usize, 0, 0, 0, 0, 0]) }
}

/// Waits for a child; its status.
fn wait(pid: usize) -> Result<i32, i32> {
    let mut status = 0i32;
    loop {
        // SAFETY: the kernel writes one number; no usage is asked for.
        let waited = unsafe { raw::syscall(libc::SYS_wait4, [pid, &raw mut status as usize, 0, 0, 0, 0]) };
        match waited {
            Ok(_) => return Ok(status),
            Err(libc::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

fn execute(program: Program<'_>) -> Result<(), i32> {
    let pointer = |argument: Option<&CStr>| argument.map_or(0, |argument| argument.as_ptr() as usize);
    let [first, second, third] = program.arguments;
    let arguments = [pointer(first), pointer(second), pointer(third), 0];
    let environment = [0usize];
    let path = program.path.as_ptr() as usize;
    let pid = fork()?;
    if pid == 0 {
        let words = [path, arguments.as_ptr() as usize, environment.as_ptr() as usize, 0, 0, 0];
        // SAFETY: C strings, and lists of such that end with a null pointer.
        let _ = unsafe { raw::syscall(libc::SYS_execve, words) };
        raw::exit(NOT_EXECUTED as i32);
    }
    match wait(pid)? {
        0 => Ok(()),
        _ => Err(libc::ENOEXEC),
    }
}

impl Partner {
    fn start() -> Result<Partner, i32> {
        let ([there, to], [from, back]) = (pipe()?, pipe()?);
        let pid = fork()?;
        if pid == 0 {
            // Its own ends of ours must not keep it alive when we are gone.
            raw::close(to);
            raw::close(from);
            let mut byte = [0u8; 1];
            while raw::read(there, &mut byte) == Ok(1) && raw::write_all(back, &byte).is_ok() {}
            raw::exit(0);
        }
        raw::close(there);
        raw::close(back);
        Ok(Partner { pid, to, from })
    }

    /// It ends when nobody can write to it any more.
    fn end(self) {
        raw::close(self.to);
        raw::close(self.from);
        let _ = wait(self.pid);
    }
}

fn pipe() -> Result<[i32; 2], i32> {
    let mut ends = [0i32; 2];
    let flags = libc::O_CLOEXEC as usize;
    // SAFETY: the kernel writes two descriptors.
    unsafe { raw::syscall(libc::SYS_pipe2, [ends.as_mut_ptr() as usize, flags, 0, 0, 0, 0]) }?;
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUE: Program<'_> = Program {
        path: c"/proc/self/exe",
        arguments: [Some(c"test"), Some(c"--list"), Some(c"nothing-at-all")],
    };

    #[test]
    fn every_call_does_what_it_should_however_often() {
        let mut bench = Bench::new(TRUE).unwrap();
        for call in ALL {
            let most = if call == Call::ForkExecWait { 1 } else { 100 };
            for times in [0, 1, most] {
                assert_eq!(bench.repeat(call, times), Ok(()), "{} {times} times", call.name());
            }
        }
    }

    #[test]
    fn what_is_opened_is_the_file_in_memory() {
        let bench = Bench::new(TRUE).unwrap();
        let opened = open(bench.descriptors, bench.file.name().unwrap(), libc::O_RDONLY).unwrap();
        let target = std::fs::read_link(format!("/proc/self/fd/{opened}")).unwrap();
        assert_eq!(target.to_str(), Some("/memfd:dunnage (deleted)"));
        assert_eq!(bench.file.name().unwrap().to_str(), Ok(bench.file.descriptor.to_string().as_str()));
        raw::close(opened);
    }

    #[test]
    fn a_call_that_fails_is_no_number() {
        let missing = Program { path: c"/nonexistent", arguments: [Some(c"x"), None, None] };
        let mut bench = Bench::new(missing).unwrap();
        assert_eq!(bench.repeat(Call::ForkExecWait, 3), Err(libc::ENOEXEC));
        raw::close(bench.zero);
        bench.zero = -1;
        assert_eq!(bench.repeat(Call::ReadZero, 3), Err(libc::EIO));
    }

    #[test]
    fn results_are_added_up() {
        let own = std::process::id() as usize;
        // SAFETY: takes no arguments.
        assert_eq!(unsafe { again(libc::SYS_getpid, [0; 4], 7) }, 7 * own);
        // SAFETY: the same.
        assert_eq!(unsafe { again(libc::SYS_getpid, [0; 4], 0) }, 0);
    }

    #[test]
    fn names_are_distinct() {
        let mut names = ALL.map(Call::name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn this_process_knows_its_path_and_its_vdso() {
        assert!(own_path().is_some_and(|path| !path.is_empty()));
        assert!(has_vdso());
    }
}
