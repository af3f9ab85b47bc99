//! System calls without libc's wrappers, for code that must not touch libc. No allocation, no `errno`:
//! results are the kernel's own.

#[cfg(target_arch = "x86_64")]
use core::arch::asm;
use core::ffi::CStr;
use core::mem::MaybeUninit;

/// The kernel's result: a value, or an error number.
pub type Result = core::result::Result<usize, i32>;

/// Makes a system call with up to six arguments.
///
/// # Safety
/// The call's own contract holds: pointers are valid for what the kernel does with them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub unsafe fn syscall(number: libc::c_long, arguments: [usize; 6]) -> Result {
    let [a, b, c, d, e, f] = arguments;
    let returned: isize;
    // SAFETY: the x86_64 system call convention; the caller vouches for the arguments.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => returned,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    if (-4095..0).contains(&returned) { Err(-returned as i32) } else { Ok(returned as usize) }
}

#[cfg(not(target_arch = "x86_64"))]
compile_error!("dunnage has an entry stub and a system call path for x86_64 only");

/// Opens a file for reading, by a path that ends with a zero byte.
pub fn open(path: &CStr) -> core::result::Result<i32, i32> {
    open_at(libc::AT_FDCWD, path, libc::O_RDONLY)
}

/// The same from a directory and with flags.
pub fn open_at(directory: i32, path: &CStr, flags: i32) -> core::result::Result<i32, i32> {
    let flags = (flags | libc::O_CLOEXEC) as usize;
    // SAFETY: the path is a valid C string; the other arguments are plain numbers.
    let opened =
        unsafe { syscall(libc::SYS_openat, [directory as usize, path.as_ptr() as usize, flags, 0, 0, 0]) };
    opened.map(|fd| fd as i32)
}

/// The same by a path in a text whose last byte is replaced by the zero byte that the kernel needs.
pub fn open_within(directory: i32, path: &mut [u8], flags: i32) -> core::result::Result<i32, i32> {
    let Some(end) = path.last_mut() else { return Err(libc::ENOENT) };
    *end = 0;
    // SAFETY: the last byte is zero; the kernel would stop at an earlier zero byte.
    open_at(directory, unsafe { CStr::from_bytes_with_nul_unchecked(path) }, flags)
}

/// Reads into `buffer` and returns the number of bytes.
pub fn read(fd: i32, buffer: &mut [u8]) -> Result {
    // SAFETY: the buffer is writable for its whole length.
    unsafe { syscall(libc::SYS_read, [fd as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]) }
}

/// Reads the target of a symbolic link in a directory, and returns the number of bytes.
pub fn read_link_at(directory: i32, path: &CStr, buffer: &mut [u8]) -> Result {
    let (path, to) = (path.as_ptr() as usize, buffer.as_mut_ptr() as usize);
    // SAFETY: the path is a valid C string, and the buffer writable for its whole length.
    unsafe { syscall(libc::SYS_readlinkat, [directory as usize, path, to, buffer.len(), 0, 0]) }
}

/// Writes all of `bytes`, however many calls it takes.
pub fn write_all(fd: i32, mut bytes: &[u8]) -> core::result::Result<(), i32> {
    while !bytes.is_empty() {
        // SAFETY: the slice is readable for its whole length.
        let written =
            unsafe { syscall(libc::SYS_write, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) };
        match written {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(libc::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Closes a descriptor; nothing can be done about an error.
pub fn close(fd: i32) {
    // SAFETY: closing a descriptor has no memory effects.
    let _ = unsafe { syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// `f_type` of a cgroup hierarchy of version 1.
pub const CGROUP_FILESYSTEM: u64 = 0x0027_e0eb;
/// The same for version 2.
pub const CGROUP2_FILESYSTEM: u64 = 0x6367_7270;

/// The inode number of a path, if it is on a filesystem of this type.
pub fn inode_on(path: &CStr, filesystem: u64) -> Option<u64> {
    let (mut about, mut status) =
        (MaybeUninit::<libc::statfs>::uninit(), MaybeUninit::<libc::stat>::uninit());
    let path = path.as_ptr() as usize;
    // SAFETY: a valid C string, and structures that the kernel fills unless it refuses.
    unsafe {
        syscall(libc::SYS_statfs, [path, about.as_mut_ptr() as usize, 0, 0, 0, 0]).ok()?;
        let arguments = [libc::AT_FDCWD as usize, path, status.as_mut_ptr() as usize, 0, 0, 0];
        syscall(libc::SYS_newfstatat, arguments).ok()?;
        (about.assume_init_ref().f_type as u64 == filesystem).then_some(status.assume_init_ref().st_ino)
    }
}

/// The time on `CLOCK_MONOTONIC`, in nanoseconds, by a real system call.
#[inline(always)]
pub fn monotonic() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// A clock in nanoseconds, by a real system call.
#[inline(always)]
pub fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = [0u64; 2];
    let pointer = time.as_mut_ptr() as usize;
    // SAFETY: the kernel writes one timespec, which is two 64-bit words here.
    let _ = unsafe { syscall(libc::SYS_clock_gettime, [clock as usize, pointer, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

/// `prctl` with one argument, for the calls that only read or set a flag.
pub fn prctl(option: i32, argument: usize) -> Result {
    // SAFETY: used with options that take no pointers.
    unsafe { syscall(libc::SYS_prctl, [option as usize, argument, 0, 0, 0, 0]) }
}

/// The soft and the hard limit of a resource; the highest number means none.
pub fn limit(resource: usize) -> Option<[u64; 2]> {
    let mut limits = [0u64; 2];
    let pointer = limits.as_mut_ptr() as usize;
    // SAFETY: the kernel writes one `struct rlimit64`, which is two 64-bit words.
    unsafe { syscall(libc::SYS_prlimit64, [0, resource, 0, pointer, 0, 0]) }.ok()?;
    Some(limits)
}

/// Writes the CPUs that the calling thread may use into a buffer, a bit each, and returns the number of bytes.
pub fn allowed_cpus(buffer: &mut [u8]) -> Result {
    // The kernel takes whole words only.
    let (room, pointer) = (buffer.len() & !7, buffer.as_mut_ptr() as usize);
    // SAFETY: the buffer is writable for its whole length.
    unsafe { syscall(libc::SYS_sched_getaffinity, [0, room, pointer, 0, 0, 0]) }
}

/// The file mode creation mask, which can only be read by setting it.
pub fn mask() -> u64 {
    // SAFETY: a plain number; nothing else in the process makes files meanwhile.
    let set = |mask: usize| unsafe { syscall(libc::SYS_umask, [mask, 0, 0, 0, 0, 0]) }.unwrap_or(0);
    let own = set(0o077);
    set(own);
    own as u64
}

/// The niceness of the process as the kernel gives it: 20 less it.
pub fn niceness() -> Option<u64> {
    // SAFETY: plain numbers.
    unsafe { syscall(libc::SYS_getpriority, [libc::PRIO_PROCESS as usize, 0, 0, 0, 0, 0]) }
        .ok()
        .map(|nice| nice as u64)
}

/// The size of each name of the system, including the zero byte at its end.
pub const NAME: usize = 65;

/// Writes the six names of the system into a buffer with room for them: the system's own, the host's, others.
pub fn names(buffer: &mut [u8]) {
    if buffer.len() >= 6 * NAME {
        // SAFETY: the kernel writes a `struct new_utsname`, for which there is room.
        let _ = unsafe { syscall(libc::SYS_uname, [buffer.as_mut_ptr() as usize, 0, 0, 0, 0, 0]) };
    }
}

/// The effective user and group of the process.
pub fn user_and_group() -> (usize, usize) {
    // SAFETY: neither has arguments, and neither can fail.
    let id = |number| unsafe { syscall(number, [0; 6]) }.unwrap_or(usize::MAX);
    (id(libc::SYS_geteuid), id(libc::SYS_getegid))
}

/// The effective capabilities of the calling process as a bit set.
pub fn effective_capabilities() -> Option<u64> {
    // `_LINUX_CAPABILITY_VERSION_3`, and this process.
    let own = [0x2008_0522u32, 0];
    // Effective, permitted, inheritable; the lower halves first.
    let mut sets = [[0u32; 3]; 2];
    let pointers = [&raw const own as usize, &raw mut sets as usize];
    // SAFETY: a header of this version, which the kernel only reads, requires two such structures.
    unsafe { syscall(libc::SYS_capget, [pointers[0], pointers[1], 0, 0, 0, 0]) }.ok()?;
    let [[low, ..], [high, ..]] = sets;
    Some(u64::from(high) << 32 | u64::from(low))
}

/// Changes which signals this thread blocks, as `sigprocmask` does; returns those blocked before.
pub fn signal_mask(how: i32, signals: u64) -> u64 {
    let mut before = 0u64;
    let pointers = [&raw const signals as usize, &raw mut before as usize];
    // SAFETY: both masks have the given size, which is the kernel's.
    let _ = unsafe {
        syscall(libc::SYS_rt_sigprocmask, [how as usize, pointers[0], pointers[1], size_of::<u64>(), 0, 0])
    };
    before
}

/// The mask of only this signal.
pub fn mask_of(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Blocks these signals in this thread, and opens a descriptor from which they can be read.
pub fn signal_descriptor(set: u64, flags: i32) -> core::result::Result<i32, i32> {
    signal_mask(libc::SIG_BLOCK, set);
    let arguments = [usize::MAX, &raw const set as usize, size_of::<u64>()];
    let flags = (flags | libc::SFD_CLOEXEC) as usize;
    // SAFETY: the set has the size that is given with it.
    let opened =
        unsafe { syscall(libc::SYS_signalfd4, [arguments[0], arguments[1], arguments[2], flags, 0, 0]) };
    opened.map(|fd| fd as i32)
}

/// Blocks a signal in this thread and waits for it. The signal is visible as blocked meanwhile, which it
/// would not be with `sigtimedwait`.
pub fn wait_for_signal(signal: i32) -> Result {
    let fd = signal_descriptor(mask_of(signal), 0)?;
    let mut record = [0u8; size_of::<libc::signalfd_siginfo>()];
    loop {
        let read = read(fd, &mut record);
        if read != Err(libc::EINTR) {
            return read;
        }
    }
}

/// Ends the whole process at once, without running anything else.
pub fn exit(status: i32) -> ! {
    loop {
        // SAFETY: does not return.
        let _ = unsafe { syscall(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    }
}
