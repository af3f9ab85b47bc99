//! What the calling process has used of CPUs, and a sleep until a moment: by raw system calls, for the
//! probe. Deliberately absent: what a single thread has used, which stands beside threads.

use super::raw::{self, Result};

/// CPU time of all threads of a process, as `getrusage` tells it, in nanoseconds; it counts microseconds.
///
/// The sum is what the scheduler counted. How it is divided is what the kernel saw at its clock ticks,
/// except where it was built to look at every entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// In user mode.
    pub user: u64,
    /// In the kernel.
    pub system: u64,
}

/// What this process has used, threads that have ended included.
pub fn used() -> Used {
    // A `struct rusage` is 144 bytes here and begins with two timevals, each of two 64-bit words.
    let mut words = [0u64; 18];
    let arguments = [libc::RUSAGE_SELF as usize, words.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: the buffer has the size of the structure that the kernel writes.
    let _ = unsafe { raw::syscall(libc::SYS_getrusage, arguments) };
    let nanos = |at: usize| words[at] * 1_000_000_000 + words[at + 1] * 1000;
    Used { user: nanos(0), system: nanos(2) }
}

/// CPU time of all threads of this process in nanoseconds, by the scheduler's own count.
pub fn process_cpu() -> u64 {
    let mut time = [0u64; 2];
    let arguments = [libc::CLOCK_PROCESS_CPUTIME_ID as usize, time.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes one timespec, which is two 64-bit words here.
    let _ = unsafe { raw::syscall(libc::SYS_clock_gettime, arguments) };
    time[0] * 1_000_000_000 + time[1]
}

/// Sleeps until `CLOCK_MONOTONIC` shows this many nanoseconds; not at all when it already does.
pub fn sleep_until(then: u64) {
    let at = [then / 1_000_000_000, then % 1_000_000_000];
    let pointer = at.as_ptr() as usize;
    let arguments = [libc::CLOCK_MONOTONIC as usize, libc::TIMER_ABSTIME as usize, pointer, 0, 0, 0];
    // SAFETY: a valid timespec, and no room for a rest, which an absolute sleep does not have.
    while unsafe { raw::syscall(libc::SYS_clock_nanosleep, arguments) } == Err(libc::EINTR) {}
}

/// Lets the calling thread wake up as exactly as timers can; by default they may be 50 µs late.
pub fn wake_exactly() -> Result {
    raw::prctl(libc::PR_SET_TIMERSLACK, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_counts_of_a_busy_process_grow_alike() {
        let (before, first) = (used(), process_cpu());
        while process_cpu() - first < 20_000_000 {}
        let (after, second) = (used(), process_cpu());
        let counted = (after.user + after.system) - (before.user + before.system);
        // Microseconds are cut off at both ends of two numbers, and other tests use the process too.
        assert!(counted + 4_000 >= 20_000_000 && counted <= second - first + 1_000_000_000, "{counted}");
    }

    #[test]
    fn nobody_wakes_too_early() {
        wake_exactly().unwrap();
        let then = raw::monotonic() + 3_000_000;
        sleep_until(then);
        assert!(raw::monotonic() >= then);
        sleep_until(then);
    }
}
