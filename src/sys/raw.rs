//! System calls without libc's wrappers, for code that runs where libc must not be touched: the
//! probe before its message is out, and the child that becomes a container while it still shares
//! its parent's memory. No allocation, no `errno`: results are the kernel's own. Those that the probe of a launch makes
//! are of the crate that it is.

pub use dunnage_launch::calls::*;

/// The fourteen capabilities of Docker's default, as the bit set that the kernel shows: chown, dac_override, fowner,
/// fsetid, kill, setgid, setuid, setpcap, net_bind_service, net_raw, sys_chroot, mknod, audit_write, setfcap.
pub const DOCKER_CAPABILITIES: u64 = 0xa804_25fb;

/// CPU time of the calling thread in nanoseconds, by the scheduler's own count. The kernel charges the time up
/// to this call to the thread's cgroup too.
pub fn thread_cpu() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// What `fork` returns: in the child zero. It has a copy of everything and goes on from here; it must make raw
/// system calls only, since other threads of the parent may hold whatever locks there are.
pub fn fork() -> Result {
    // SAFETY: a clone without flags and stack is a fork: parent and child go on with memory of their own.
    unsafe { syscall(libc::SYS_clone, [libc::SIGCHLD as usize, 0, 0, 0, 0, 0]) }
}

/// Waits for a child, or any with -1: its process id, zero where it has not ended yet and is not waited for, and
/// its status.
pub fn wait(
    pid: usize,
    options: i32,
    usage: Option<&mut libc::rusage>,
) -> core::result::Result<(usize, i32), i32> {
    let mut status = 0i32;
    let usage = usage.map_or(0, |usage| &raw mut *usage as usize);
    loop {
        // SAFETY: the out-pointers are writable; that of the usage may be null.
        let waited = unsafe {
            syscall(libc::SYS_wait4, [pid, &raw mut status as usize, options as usize, usage, 0, 0])
        };
        match waited {
            Err(libc::EINTR) => {}
            waited => return waited.map(|pid| (pid, status)),
        }
    }
}
