//! System calls without libc's wrappers, for code that runs where libc must not be touched: the
//! probe before its message is out, and the child that becomes a container while it still shares
//! its parent's memory. No allocation, no `errno`: results are the kernel's own.

#[cfg(target_arch = "x86_64")]
use core::arch::asm;

/// The fourteen capabilities of Docker's default, as the bit set that the kernel shows.
pub const DOCKER_CAPABILITIES: u64 = 0xa804_25fb;

/// What the kernel returned: a value, or an error number.
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
pub fn open(path: &core::ffi::CStr) -> core::result::Result<i32, i32> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a valid C string; the other arguments are plain numbers.
    let opened = unsafe {
        syscall(libc::SYS_openat, [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0, 0, 0])
    };
    opened.map(|fd| fd as i32)
}

/// Reads into `buffer` and returns the number of bytes.
pub fn read(fd: i32, buffer: &mut [u8]) -> Result {
    // SAFETY: the buffer is writable for its whole length.
    unsafe { syscall(libc::SYS_read, [fd as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]) }
}

/// Writes all of `bytes`, however many calls it takes.
pub fn write_all(fd: i32, mut bytes: &[u8]) -> core::result::Result<(), i32> {
    while !bytes.is_empty() {
        // SAFETY: the slice is readable for its whole length.
        let written =
            unsafe { syscall(libc::SYS_write, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) };
        match written {
            Ok(count) => bytes = &bytes[count..],
            Err(libc::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Closes a descriptor; an error cannot be acted upon.
pub fn close(fd: i32) {
    // SAFETY: closing a descriptor has no memory effects.
    let _ = unsafe { syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// Reads the target of a symbolic link into `buffer` and returns its length.
pub fn readlink(path: &core::ffi::CStr, buffer: &mut [u8]) -> Result {
    // SAFETY: a valid C string and a buffer writable for its whole length.
    unsafe {
        syscall(
            libc::SYS_readlink,
            [path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0],
        )
    }
}

/// `f_type` of a cgroup hierarchy of version 1.
pub const CGROUP_FILESYSTEM: u64 = 0x0027_e0eb;
/// The same for version 2.
pub const CGROUP2_FILESYSTEM: u64 = 0x6367_7270;

/// The inode number of a path, if it lies on a filesystem of this type.
pub fn inode_on(path: &core::ffi::CStr, filesystem: u64) -> Option<u64> {
    let (mut about, mut status) = ([0u64; 15], [0u64; 18]);
    let pointer = path.as_ptr() as usize;
    // SAFETY: a valid C string, and room for a `struct statfs`, which is 120 bytes here; its first word
    // is the type.
    unsafe { syscall(libc::SYS_statfs, [pointer, about.as_mut_ptr() as usize, 0, 0, 0, 0]) }.ok()?;
    // SAFETY: a valid C string, and room for a `struct stat`, which is 144 bytes here; its second word is
    // the inode number.
    unsafe { syscall(libc::SYS_stat, [pointer, status.as_mut_ptr() as usize, 0, 0, 0, 0]) }.ok()?;
    (about[0] == filesystem).then_some(status[1])
}

/// Now on `CLOCK_MONOTONIC`, in nanoseconds, by a real system call.
pub fn monotonic() -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes one timespec, which is two 64-bit words here.
    let _ = unsafe {
        syscall(
            libc::SYS_clock_gettime,
            [libc::CLOCK_MONOTONIC as usize, time.as_mut_ptr() as usize, 0, 0, 0, 0],
        )
    };
    time[0] * 1_000_000_000 + time[1]
}

/// `prctl` with one argument, for the calls that only read or set a flag.
pub fn prctl(option: i32, argument: usize) -> Result {
    // SAFETY: used with options that take no pointers.
    unsafe { syscall(libc::SYS_prctl, [option as usize, argument, 0, 0, 0, 0]) }
}

/// The user and group that the process acts as.
pub fn user_and_group() -> (usize, usize) {
    // SAFETY: neither call takes arguments or can fail.
    unsafe {
        (syscall(libc::SYS_geteuid, [0; 6]).unwrap_or(0), syscall(libc::SYS_getegid, [0; 6]).unwrap_or(0))
    }
}

/// The effective capabilities of the calling process as a bit set.
pub fn effective_capabilities() -> Option<u64> {
    const VERSION_3: u32 = 0x2008_0522;
    let mut header = [VERSION_3, 0];
    let mut data = [0u32; 6];
    // SAFETY: header and data have the sizes that version 3 of capget prescribes.
    let read = unsafe {
        syscall(libc::SYS_capget, [header.as_mut_ptr() as usize, data.as_mut_ptr() as usize, 0, 0, 0, 0])
    };
    read.ok().map(|_| u64::from(data[0]) | u64::from(data[3]) << 32)
}

/// Blocks a signal in this thread and waits until it comes. It stays visible as blocked meanwhile, as it
/// would not in `sigtimedwait`.
pub fn wait_for_signal(signal: i32) -> Result {
    let set: u64 = 1 << (signal - 1);
    let pointer = &raw const set as usize;
    let size = size_of::<u64>();
    let mut record = [0u8; 128];
    // SAFETY: the set has the size that is given with it; the buffer has the size of signalfd's record.
    unsafe {
        syscall(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as usize, pointer, 0, size, 0, 0])?;
        let fd = syscall(libc::SYS_signalfd4, [usize::MAX, pointer, size, libc::SFD_CLOEXEC as usize, 0, 0])?;
        loop {
            let read = read(fd as i32, &mut record);
            if read != Err(libc::EINTR) {
                return read;
            }
        }
    }
}

/// Ends the whole process at once, running nothing.
pub fn exit(status: i32) -> ! {
    loop {
        // SAFETY: does not return.
        let _ = unsafe { syscall(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    }
}
