//! System calls repeated with nothing in between, so that the time of one can be derived from the time of
//! many. From libc it uses only the clock.
//!
//! Deliberately absent: stamps, and the number of repetitions.

#[cfg(target_arch = "x86_64")]
use core::arch::asm;
use core::ffi::CStr;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};

use super::raw;

/// A system call, or a short sequence of them.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Its name in messages, tables and files.
    pub name: &'static str,
    /// Makes it this many times; returns an error number if one fails.
    repeat: fn(&mut Bench<'_>, usize) -> Result<(), i32>,
}

const fn call(name: &'static str, repeat: fn(&mut Bench<'_>, usize) -> Result<(), i32>) -> Call {
    Call { name, repeat }
}

/// Every call, in the order of measurement: those that make processes come last.
pub static ALL: [Call; 12] = [
    // Hardly more than the way into the kernel and back.
    call("getpid", |bench, times| numbered(libc::SYS_getpid, [0; 4], bench.own, times)),
    // The same, with an id that the kernel translates for a PID namespace.
    call("getppid", |bench, times| numbered(libc::SYS_getppid, [0; 4], bench.parent, times)),
    // libc's function, which uses the vDSO where that can read the clock.
    call("clock_vdso", |_, times| by_libc(times)),
    call("clock_gettime", |_, times| {
        let mut time = [0u64; 2];
        let arguments = [libc::CLOCK_MONOTONIC as usize, time.as_mut_ptr() as usize, 0, 0];
        numbered(libc::SYS_clock_gettime, arguments, 0, times)
    }),
    call("read_zero", |bench, times| {
        let mut byte = [0u8; 1];
        let arguments = [number(&bench.zero), byte.as_mut_ptr() as usize, 1, 0];
        numbered(libc::SYS_read, arguments, 1, times)
    }),
    call("write_null", |bench, times| {
        let byte = [0u8; 1];
        numbered(libc::SYS_write, [number(&bench.null), byte.as_ptr() as usize, 1, 0], 1, times)
    }),
    // `openat` of a file in memory, through an open `/proc/self/fd`, and `close`.
    call("open_close", |bench, times| {
        let (directory, name) = (bench.descriptors.as_raw_fd(), &bench.file_name);
        repeated(times, || raw::open_at(directory, name, libc::O_RDONLY).map(raw::close))
    }),
    call("stat", |bench, times| {
        let mut status = [0u64; 18];
        let name = bench.file_name.as_ptr() as usize;
        let arguments = [number(&bench.descriptors), name, status.as_mut_ptr() as usize, 0];
        numbered(libc::SYS_newfstatat, arguments, 0, times)
    }),
    // On a word without waiters.
    call("futex_wake", |_, times| {
        let word = 0u32;
        let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
        numbered(libc::SYS_futex, [&raw const word as usize, wake, 1, 0], 0, times)
    }),
    // One anonymous page, and a write to it.
    call("mmap_munmap", |_, times| repeated(times, map_and_unmap)),
    // One byte to another process and back.
    call("pipe_round_trip", |bench, times| bench.round_trips(times)),
    // A process that executes a program, until it has ended.
    call("fork_exec_wait", |bench, times| repeated(times, || execute(bench.program))),
];

/// The directory through which a file is opened and looked up while timed; the file is one of `memfd_create`,
/// which is on a kernel-internal filesystem. A path from the root would include the permission check of the
/// root's filesystem, which is an overlay in some subjects and not in others; and a device in the host's
/// `/dev`, which others may watch, takes a tenth longer to open than the same device in a container.
const DESCRIPTORS: &CStr = c"/proc/self/fd";
const PAGE: usize = 4096;
/// The child's exit code if it could not execute the program.
const NOT_EXECUTED: i32 = 127;

/// A program to execute; all its pointers live as long as this process.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Its path.
    pub path: &'a CStr,
    /// Its arguments, its own name first.
    pub arguments: [&'a CStr; 3],
}

/// The descriptors that the calls use, all open before anything is timed.
#[derive(Debug)]
pub struct Bench<'a> {
    descriptors: OwnedFd,
    /// An empty file in memory, and its name in the directory of descriptors.
    _file: OwnedFd,
    file_name: CString,
    zero: OwnedFd,
    null: OwnedFd,
    own: usize,
    parent: usize,
    program: Program<'a>,
    partner: Option<Partner>,
}

/// Another process that echoes every byte.
#[derive(Debug)]
struct Partner {
    pid: usize,
    to: Option<OwnedFd>,
    from: OwnedFd,
}

impl<'a> Bench<'a> {
    /// Opens the descriptors.
    pub fn new(program: Program<'a>) -> io::Result<Bench<'a>> {
        let open = |path: &CStr, flags| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
        let file = memfd_create(c"dunnage", MemfdFlags::CLOEXEC)?;
        // SAFETY: neither call takes arguments.
        let (own, parent) =
            unsafe { (again(libc::SYS_getpid, [0; 4], 1), again(libc::SYS_getppid, [0; 4], 1)) };
        Ok(Bench {
            descriptors: open(DESCRIPTORS, OFlags::DIRECTORY)?,
            file_name: CString::new(file.as_raw_fd().to_string())?,
            _file: file,
            zero: open(c"/dev/zero", OFlags::RDONLY)?,
            null: open(c"/dev/null", OFlags::WRONLY)?,
            own,
            parent,
            program,
            partner: None,
        })
    }

    /// Makes a call this often; returns an error number if one fails.
    pub fn repeat(&mut self, call: Call, times: usize) -> Result<(), i32> {
        (call.repeat)(self, times)
    }

    /// Starts the partner if there is none; call it with zero first, so that the start is not timed.
    fn round_trips(&mut self, times: usize) -> Result<(), i32> {
        if self.partner.is_none() {
            self.partner = Some(Partner::start()?);
        }
        let Some(Partner { to: Some(to), from, .. }) = &self.partner else { return Err(libc::ECHILD) };
        let (to, from) = (to.as_raw_fd(), from.as_raw_fd());
        let mut byte = [1u8; 1];
        repeated(times, || {
            raw::write_all(to, &byte)?;
            match raw::read(from, &mut byte)? {
                1 => Ok(()),
                _ => Err(libc::EPIPE),
            }
        })
    }
}

fn number(descriptor: &OwnedFd) -> usize {
    descriptor.as_raw_fd() as usize
}

/// A system call made this many times, each of which must return `each`.
fn numbered(number: libc::c_long, arguments: [usize; 4], each: usize, times: usize) -> Result<(), i32> {
    // SAFETY: every call above gets pointers to locals of the size that it writes or reads: a byte, a `struct
    // timespec` of two words, a `struct stat` of 18, a futex of 32 bits, a C string.
    let sum = unsafe { again(number, arguments, times) };
    if sum == each * times { Ok(()) } else { Err(libc::EIO) }
}

/// The same system call this many times, and the sum of the return values. Between two calls there is a move,
/// an addition, a decrement and a branch: less than a nanosecond, hidden behind the kernel's own work.
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
    // SAFETY: the x86_64 system call convention, which preserves every register except rax, rcx and r11; the
    // caller guarantees the arguments.
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

/// Repeats something until it fails. A plain loop, which is cheap without optimisation too.
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
        // SAFETY: libc writes one timespec. It found the vDSO when it started.
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

fn map_and_unmap() -> Result<(), i32> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let arguments = [0, PAGE, protection as usize, flags as usize, usize::MAX, 0];
    // SAFETY: a new mapping at an address that the kernel chooses, as large as stated and writable; nothing
    // refers to it when it is unmapped.
    unsafe {
        let page = raw::syscall(libc::SYS_mmap, arguments)?;
        core::ptr::write_volatile(page as *mut u8, 1);
        raw::syscall(libc::SYS_munmap, [page, PAGE, 0, 0, 0, 0])?;
    }
    Ok(())
}

fn execute(program: Program<'_>) -> Result<(), i32> {
    let [first, second, third] = program.arguments.map(|argument| argument.as_ptr() as usize);
    let arguments = [first, second, third, 0];
    let environment = [0usize];
    let path = program.path.as_ptr() as usize;
    let pid = raw::fork()?;
    if pid == 0 {
        let words = [path, arguments.as_ptr() as usize, environment.as_ptr() as usize, 0, 0, 0];
        // SAFETY: C strings, and lists of C strings that end with a null pointer.
        let _ = unsafe { raw::syscall(libc::SYS_execve, words) };
        raw::exit(NOT_EXECUTED);
    }
    match raw::wait(pid, 0, None)? {
        (_, 0) => Ok(()),
        _ => Err(libc::ENOEXEC),
    }
}

impl Partner {
    fn start() -> Result<Partner, i32> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|error| error.raw_os_error());
        let ((there, to), (from, back)) = (pipe()?, pipe()?);
        let pid = raw::fork()?;
        if pid == 0 {
            // Inherited copies of dunnage's ends must not keep it alive when dunnage ends.
            raw::close(to.as_raw_fd());
            raw::close(from.as_raw_fd());
            let mut byte = [0u8; 1];
            while raw::read(there.as_raw_fd(), &mut byte) == Ok(1)
                && raw::write_all(back.as_raw_fd(), &byte).is_ok()
            {}
            raw::exit(0);
        }
        Ok(Partner { pid, to: Some(to), from })
    }
}

/// The partner ends at the end of its input.
impl Drop for Partner {
    fn drop(&mut self) {
        self.to = None;
        let _ = raw::wait(self.pid, 0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUE: Program<'_> =
        Program { path: c"/proc/self/exe", arguments: [c"test", c"--list", c"nothing-at-all"] };

    #[test]
    fn every_call_does_what_it_should_however_often() {
        let mut bench = Bench::new(TRUE).unwrap();
        for call in ALL {
            let most = if call.name == "fork_exec_wait" { 1 } else { 100 };
            for times in [0, 1, most] {
                assert_eq!(bench.repeat(call, times), Ok(()), "{} {times} times", call.name);
            }
        }
    }

    #[test]
    fn what_is_opened_is_the_file_in_memory() {
        let bench = Bench::new(TRUE).unwrap();
        let opened = raw::open_at(bench.descriptors.as_raw_fd(), &bench.file_name, libc::O_RDONLY).unwrap();
        let target = std::fs::read_link(format!("/proc/self/fd/{opened}")).unwrap();
        assert_eq!(target.to_str(), Some("/memfd:dunnage (deleted)"));
        raw::close(opened);
    }

    #[test]
    fn a_call_that_fails_is_no_number() {
        let missing = Program { path: c"/nonexistent", arguments: [c"x", c"y", c"z"] };
        let mut bench = Bench::new(missing).unwrap();
        assert_eq!(bench.repeat(ALL[11], 3), Err(libc::ENOEXEC));
        bench.zero = std::fs::File::open("/").unwrap().into();
        assert_eq!(bench.repeat(ALL[4], 3), Err(libc::EIO));
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
        let mut names = ALL.map(|call| call.name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn this_process_knows_its_path_and_its_vdso() {
        assert!(!rustix::param::linux_execfn().is_empty());
        assert!(has_vdso());
    }
}
