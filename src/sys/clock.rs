//! Reads the kernel's clocks. Deliberately absent: the wall clock, which jumps.

use crate::units::{Nanos, Stamp};

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, writable timespec for the whole call.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    (result == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Now, on `CLOCK_MONOTONIC`.
pub fn now() -> Stamp {
    Stamp(read(libc::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC exists on every Linux"))
}

/// CPU time that the calling thread has used so far.
pub fn own_thread_cpu() -> Nanos {
    let spent = read(libc::CLOCK_THREAD_CPUTIME_ID).expect("every thread has a CPU clock");
    Nanos(spent as i64)
}

/// The shortest interval that two readings of the clock can show, over 1000 pairs: a difference
/// of this size is the clock's, not the subject's.
pub fn floor() -> Nanos {
    (0..1000)
        .map(|_| {
            let first = now();
            now().since(first)
        })
        .filter(|step| step.0 > 0)
        .min()
        .unwrap_or(Nanos(1))
}
