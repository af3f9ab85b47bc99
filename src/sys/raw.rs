//! System calls without libc's wrappers, for code that must not touch libc: the probe before its message is
//! sent, and the child that becomes a container while it still shares its parent's memory. No allocation, no
//! `errno`: results are the kernel's own. The probe of a launch is a separate crate with its own system
//! calls.

pub use dunnage_launch::calls::*;

/// The fourteen capabilities of Docker's default as the kernel's bit set: chown, dac_override, fowner,
/// fsetid, kill, setgid, setuid, setpcap, net_bind_service, net_raw, sys_chroot, mknod, audit_write, setfcap.
pub const DOCKER_CAPABILITIES: u64 = 0xa804_25fb;

/// CPU time of the calling thread in nanoseconds, from the scheduler. The kernel charges the time up to this
/// call to the thread's cgroup too.
pub fn thread_cpu() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Like `fork`, returns zero in the child. The child has a copy of everything and continues from here; it
/// must make only raw system calls, since other threads of the parent may hold locks.
pub fn fork() -> Result {
    // SAFETY: a clone without flags and stack is a fork: parent and child continue with separate memory.
    unsafe { syscall(libc::SYS_clone, [libc::SIGCHLD as usize, 0, 0, 0, 0, 0]) }
}

/// Waits for a child, or any child with -1: returns its process id, or zero if it has not ended and the call
/// does not wait, and its status.
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
