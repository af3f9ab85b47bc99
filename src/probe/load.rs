//! A load with a known schedule, for testing `advise`. Work arrives on schedule whether or not earlier work
//! is done, is measured in CPU time, and repeats every ten seconds, so that the watched work and the
//! predicted work are the same. Exits with 0 at SIGTERM.
//!
//! Deliberately absent: a message, since nothing waits for the end of a load.

use crate::sys::{own_time, raw};

/// The length of the schedule in microseconds, after which it repeats.
const CYCLE: u64 = 10_000_000;

/// The next work: the time until it arrives, and its CPU time, both in microseconds.
type Next = fn(u64, &mut Chance) -> (u64, u64);

/// The loads, by name.
const LOADS: [(&[u8], Next); 3] = [(b"steady", steady), (b"bursty", bursty), (b"two-peaked", two_peaked)];

/// Runs this load until SIGTERM. The exit code is 2 if the name is unknown.
pub(super) fn be(name: Option<&[u8]>) -> ! {
    let Some((_, next)) = LOADS.iter().find(|(known, _)| Some(*known) == name) else {
        let _ = raw::write_all(2, b"dunnage probe: unknown load\n");
        raw::exit(2)
    };
    raw::signal_mask(libc::SIG_BLOCK, raw::mask_of(libc::SIGTERM));
    let began = raw::monotonic();
    let mut cycle = 0;
    loop {
        let (mut at, mut chance) = (0, Chance(0x9e37_79b9));
        while at < CYCLE {
            let (after, work) = next(at, &mut chance);
            at += after;
            let due = began + (cycle * CYCLE + at.min(CYCLE)) * 1000;
            if own_time::signal_within(libc::SIGTERM, due.saturating_sub(raw::monotonic())) {
                raw::exit(0)
            }
            if at < CYCLE {
                burn(work);
            }
        }
        cycle += 1;
    }
}

fn burn(micros: u64) {
    let end = raw::thread_cpu() + micros * 1000;
    while raw::thread_cpu() < end {}
}

/// Requests at even intervals with exponentially distributed lengths: 0.3 CPUs.
fn steady(_: u64, chance: &mut Chance) -> (u64, u64) {
    /// Sixteen quantiles of the exponential distribution with the mean 3 ms.
    const LENGTHS: [u64; 16] =
        [95, 296, 510, 742, 991, 1263, 1560, 1889, 2256, 2672, 3151, 3715, 4404, 5288, 6528, 10397];
    (10_000, LENGTHS[chance.below(16) as usize])
}

/// Rare large bursts: 20 to 100 ms every 100 to 300 ms, 0.3 CPUs.
fn bursty(_: u64, chance: &mut Chance) -> (u64, u64) {
    (100_000 + chance.below(200_000), 20_000 + chance.below(80_000))
}

/// One second of little work and one of much, in turn: 0.1 and 0.8 CPUs.
fn two_peaked(at: u64, chance: &mut Chance) -> (u64, u64) {
    match at / 1_000_000 % 2 {
        0 => (100_000, 5_000 + chance.below(10_000)),
        _ => (10_000, 5_000 + chance.below(6_000)),
    }
}

/// Pseudo-random numbers that are the same each time (Marsaglia's xorshift).
struct Chance(u32);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        (u64::from(self.0) * limit) >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean share of a CPU that a load needs, over its whole cycle.
    fn wanted(next: Next) -> f64 {
        let (mut at, mut work, mut chance) = (0, 0, Chance(0x9e37_79b9));
        while at < CYCLE {
            let (after, more) = next(at, &mut chance);
            (at, work) = (at + after, work + more);
        }
        work as f64 / CYCLE as f64
    }

    #[test]
    fn each_load_wants_what_it_says() {
        for ((name, next), expected) in LOADS.into_iter().zip([0.3, 0.3, 0.45]) {
            let found = wanted(next);
            assert!((found - expected).abs() < 0.06, "{} {found}", String::from_utf8_lossy(name));
        }
    }
}
