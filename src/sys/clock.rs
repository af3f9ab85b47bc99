//! The clocks: the moment now, CPU time of a process or thread in nanoseconds, and what the timer
//! itself can resolve.
//!
//! Deliberately absent: `times`, `/proc/PID/stat` and everything else that counts in 10 ms ticks.

use std::io;

use super::raw;
use crate::units::{Nanos, Stamp};

/// Reads a clock as nanoseconds; `clock` must name a clock that exists.
fn read(clock: libc::clockid_t) -> io::Result<u64> {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `at` is a valid, writable timespec for the whole call.
    if unsafe { libc::clock_gettime(clock, &mut at) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
}

/// The moment now on `CLOCK_MONOTONIC`, read through the vDSO: no system call where the kernel's clock source is the TSC,
/// and nothing of libc, so that a child that shares our memory may do it too.
#[inline(always)]
pub fn now() -> Stamp {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Stamp(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// The moment now on `CLOCK_BOOTTIME`, which goes on while the machine is suspended.
pub fn with_suspensions() -> Stamp {
    Stamp(read(libc::CLOCK_BOOTTIME).expect("every Linux since 2.6.39 has CLOCK_BOOTTIME"))
}

/// How often the kernel looks at what runs: one by its `CONFIG_HZ`, which is the step of its coarse clock.
pub fn tick() -> Nanos {
    let step = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    Nanos(step.tv_sec * 1_000_000_000 + step.tv_nsec)
}

/// CPU time that the calling thread has used, in nanoseconds.
pub fn thread_cpu() -> Nanos {
    Nanos(raw::thread_cpu() as i64)
}

/// CPU time that all threads of process `pid` have used, those that exited included, in nanoseconds
/// (the scheduler's `sum_exec_runtime`). Children do not count, waited for or not.
///
/// For a thread that is running on another CPU at this moment the kernel gives its time as of the
/// last tick or switch: up to one tick (1 to 10 ms) short. For a process that sleeps it is exact.
///
/// # Errors
/// `ESRCH` or `EINVAL` when there is no such process.
pub fn process_cpu(pid: i32) -> io::Result<Nanos> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is valid and writable for the whole call.
    let error = unsafe { libc::clock_getcpuclockid(pid, &mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok(Nanos(read(clock)? as i64))
}

/// What `CLOCK_MONOTONIC` can resolve on this machine, as seen from a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerFloor {
    /// The smallest step other than zero between two readings in a row.
    pub step: Nanos,
    /// The mean cost of one reading.
    pub cost: Nanos,
}

/// Estimates the timer's floor from 20,000 readings in a row (0.5 to 10 ms).
pub fn timer_floor() -> TimerFloor {
    const READINGS: u64 = 20_000;
    let first = now();
    let mut previous = first;
    let mut step = u64::MAX;
    for _ in 0..READINGS {
        let current = now();
        let passed = current.0 - previous.0;
        if passed > 0 {
            step = step.min(passed);
        }
        previous = current;
    }
    let cost = (previous.0 - first.0) / READINGS;
    TimerFloor { step: Nanos(step.min(i64::MAX as u64) as i64), cost: Nanos(cost as i64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_and_the_floor_is_small() {
        let before = now();
        let floor = timer_floor();
        assert!(now() > before);
        assert!(floor.step > Nanos(0) && floor.step < Nanos(10_000_000), "{floor:?}");
        assert!(floor.cost > Nanos(0) && floor.cost <= Nanos(100_000), "{floor:?}");
    }

    #[test]
    fn the_tick_is_one_that_kernels_are_built_with() {
        assert!((1_000_000..=10_000_000).contains(&tick().0), "{:?}", tick());
    }

    #[test]
    fn work_shows_on_the_thread_clock_and_on_the_process_clock() {
        let pid = std::process::id() as i32;
        let (process, thread) = (process_cpu(pid).unwrap(), thread_cpu());
        while thread_cpu().0 - thread.0 < 3_000_000 {}
        assert!(process_cpu(pid).unwrap().0 - process.0 >= 3_000_000);
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        assert!(process_cpu(i32::MAX - 7).is_err());
    }
}
