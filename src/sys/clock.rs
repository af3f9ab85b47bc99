//! The clocks: the current time, CPU time of a process or thread in nanoseconds, and the resolution of the
//! timer.
//!
//! Deliberately absent: `times`, `/proc/PID/stat` and everything else that counts in ticks of 10 ms.

use std::io;

use super::raw;
use crate::units::{Nanos, Stamp};

/// Reads a clock in nanoseconds; `clock` must exist.
fn read(clock: libc::clockid_t) -> io::Result<u64> {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `at` is a valid, writable timespec during the call.
    if unsafe { libc::clock_gettime(clock, &mut at) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
}

/// The current time of `CLOCK_MONOTONIC`, read through the vDSO: no system call if the kernel's clock source
/// is the TSC, and nothing from libc, so that a child that shares dunnage's memory can read it too.
#[inline(always)]
pub fn now() -> Stamp {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Stamp(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// The current time of `CLOCK_BOOTTIME`, which continues while the machine is suspended.
pub fn with_suspensions() -> Stamp {
    Stamp(read(libc::CLOCK_BOOTTIME).expect("every Linux since 2.6.39 has CLOCK_BOOTTIME"))
}

/// The period of the kernel's tick, 1/`CONFIG_HZ`, which is the resolution of its coarse clock.
pub fn tick() -> Nanos {
    let step = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    Nanos(step.tv_sec * 1_000_000_000 + step.tv_nsec)
}

/// CPU time that the calling thread has used, in nanoseconds.
pub fn thread_cpu() -> Nanos {
    Nanos(raw::thread_cpu() as i64)
}

/// CPU time that all threads of process `pid` have used, including exited ones, in nanoseconds (the
/// scheduler's `sum_exec_runtime`). Children are not included, whether waited for or not.
///
/// For a thread that is running on another CPU the kernel reports its time at the last tick or switch: up to
/// one tick (1 to 10 ms) too little. For a sleeping process it is exact.
///
/// # Errors
/// `ESRCH` or `EINVAL` if the process does not exist.
pub fn process_cpu(pid: i32) -> io::Result<Nanos> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is valid and writable during the call.
    let error = unsafe { libc::clock_getcpuclockid(pid, &mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok(Nanos(read(clock)? as i64))
}

/// The resolution of `CLOCK_MONOTONIC` on this machine, as a program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerFloor {
    /// The smallest nonzero step between two consecutive readings.
    pub step: Nanos,
    /// The mean cost of one reading.
    pub cost: Nanos,
}

/// Estimates the timer's floor from 20,000 consecutive readings (0.5 to 10 ms).
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
