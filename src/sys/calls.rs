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
    /// `openat` of `null`, from an open `/dev`, and `close`.
    OpenClose,
    /// `newfstatat` of `null`, from an open `/dev`.
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

/// A directory that every container has, on a filesystem in memory. What is looked up in it while something is
/// timed is looked up from there: a path from the root would hold the permission check of the root's own
/// filesystem, which is an overlay here and none there.
const DEVICES: &CStr = c"/dev";
const NULL: &CStr = c"null";
const ZERO: &CStr = c"zero";
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
    devices: i32,
    zero: i32,
    null: i32,
    own: usize,
    parent: usize,
    program: Program<'a>,
    partner: Option<Partner>,
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
        let devices = open(libc::AT_FDCWD, DEVICES, libc::O_RDONLY | libc::O_DIRECTORY)?;
        let (zero, null) = (open(devices, ZERO, libc::O_RDONLY)?, open(devices, NULL, libc::O_WRONLY)?);
        // SAFETY: neither call takes arguments.
        let (own, parent) =
            unsafe { (again(libc::SYS_getpid, [0; 4], 1), again(libc::SYS_getppid, [0; 4], 1)) };
        Ok(Bench { devices, zero, null, own, parent, program, partner: None })
    }

    /// Makes a call this often. An error number for any call that did not do what it should.
    pub fn repeat(&mut self, call: Call, times: usize) -> Result<(), i32> {
        let byte = [0u8; 1];
        let at = byte.as_ptr() as usize;
        let mut time = [0u64; 2];
        let mut status = [0u64; 18];
        let word = 0u32;
        let [devices, null_path] = [self.devices as usize, NULL.as_ptr() as usize];
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
                let devices = self.devices;
                repeated(times, || open(devices, NULL, libc::O_RDONLY).map(raw::close))
            }
            Call::Stat => {
                let arguments = [devices, null_path, status.as_mut_ptr() as usize, 0];
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
        raw::close(self.devices);
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
