//! CPU time of the calling process, and waiting for a time or a signal, for work of the probe on a schedule.
//! Deliberately absent: the CPU time of a single thread, which is a clock of `raw`.

use rustix::io::Errno;
use rustix::thread::{ClockId, Timespec};

use super::raw::{self, Result};

/// CPU time of all threads of a process as reported by `getrusage`, in nanoseconds with microsecond
/// resolution.
///
/// The sum is the scheduler's count. Its division into user and system time is what the kernel saw at its
/// clock ticks, unless it is built to account at every entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// In user mode.
    pub user: u64,
    /// In the kernel.
    pub system: u64,
}

/// CPU time used by this process, including threads that have ended.
pub fn used() -> Used {
    // SAFETY: an all-zero rusage is valid, and writable during the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let nanos = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Used { user: nanos(usage.ru_utime), system: nanos(usage.ru_stime) }
}

/// CPU time of all threads of this process in nanoseconds, from the scheduler.
pub fn process_cpu() -> u64 {
    raw::clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Sleeps until `CLOCK_MONOTONIC` reaches this many nanoseconds; returns at once if it has.
pub fn sleep_until(then: u64) {
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &timespec(then)) == Err(Errno::INTR) {}
}

fn timespec(nanos: u64) -> Timespec {
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
}

/// Makes the calling thread wake up as exactly as timers can; by default they may be 50 µs late.
pub fn wake_exactly() -> Result {
    raw::prctl(libc::PR_SET_TIMERSLACK, 1)
}

/// Waits for a blocked signal for at most this many nanoseconds; returns whether it came.
pub fn signal_within(signal: i32, nanos: u64) -> bool {
    let (set, time) = (raw::mask_of(signal), timespec(nanos));
    let pointers = [&raw const set as usize, &raw const time as usize];
    let arguments = [pointers[0], 0, pointers[1], size_of::<u64>(), 0, 0];
    // SAFETY: the set has the size that is passed with it, the time is a timespec, and no record is
    // requested.
    unsafe { raw::syscall(libc::SYS_rt_sigtimedwait, arguments) }.is_ok()
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
        // Both numbers are truncated to microseconds at both ends, and other tests use the process too.
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

    #[test]
    fn a_signal_that_does_not_come_is_waited_for_without_using_the_cpu() {
        let (cpu, began) = (raw::thread_cpu(), raw::monotonic());
        assert!(!signal_within(libc::SIGUSR2, 20_000_000));
        let (used, passed) = (raw::thread_cpu() - cpu, raw::monotonic() - began);
        assert!(passed >= 20_000_000 && used < passed, "{used} {passed}");
    }
}
