//! CPU time and the wait for a moment or a signal, by raw system calls: for the probe where it works by a timetable.

use super::raw::syscall;

/// CPU time of the calling thread, in nanoseconds.
pub fn thread_cpu() -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes one timespec, which is two 64-bit words here.
    let _ = unsafe {
        syscall(
            libc::SYS_clock_gettime,
            [libc::CLOCK_THREAD_CPUTIME_ID as usize, time.as_mut_ptr() as usize, 0, 0, 0, 0],
        )
    };
    time[0] * 1_000_000_000 + time[1]
}

/// Blocks a signal in this thread, so that it waits until it is asked for.
pub fn block(signal: i32) {
    let set: u64 = 1 << (signal - 1);
    // SAFETY: the set has the size that is given with it; no old set is asked for.
    let _ = unsafe {
        let pointer = &raw const set as usize;
        syscall(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as usize, pointer, 0, size_of::<u64>(), 0, 0])
    };
}

/// Waits for a blocked signal, for so many nanoseconds at most; says whether it came.
pub fn signal_within(signal: i32, nanos: u64) -> bool {
    let set: u64 = 1 << (signal - 1);
    let time = [nanos / 1_000_000_000, nanos % 1_000_000_000];
    let (set, time) = (&raw const set as usize, time.as_ptr() as usize);
    // SAFETY: the set has the size that is given with it, the time is a timespec, and no record is asked for.
    unsafe { syscall(libc::SYS_rt_sigtimedwait, [set, 0, time, size_of::<u64>(), 0, 0]) }.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_does_not_come_is_waited_for_without_using_the_cpu() {
        let (cpu, began) = (thread_cpu(), super::super::raw::monotonic());
        assert!(!signal_within(libc::SIGUSR2, 20_000_000));
        let (used, passed) = (thread_cpu() - cpu, super::super::raw::monotonic() - began);
        assert!(passed >= 20_000_000 && used < passed, "{used} {passed}");
    }
}
