//! A fixed amount of work as its user sees it: how long it takes in all, and why. Fast batches and calm
//! passes show what a CPU or a call can do, but not what a limit does to it; this does.
//!
//! The extra time compared with the baseline is CPU time, throttling, or waiting for others. The kernel
//! counts the first two between exactly the same two moments, and the third is the rest.

pub(super) mod reason;

use super::question::{Metric, nanos};
use crate::names::{Counter, Name, names};
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::units::Unit;
pub use names::THREADS;

/// The names of the counters of a fixed work.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// Wall time.
    pub took: Counter,
    /// CPU time of all threads.
    pub cpu: Counter,
    /// Periods of the limit.
    pub periods: Counter,
    /// Of these, those in which it held a thread back.
    pub throttled: Counter,
    /// How long it did, added up over the queues of all CPUs.
    pub throttled_time: Counter,
}

macro_rules! fixed_works {
    ($($(#[$about:meta])* $name:ident = $text:literal,)*) => {
        $(
            $(#[$about])*
            pub const $name: Names = Names {
                took: Name::declared($text),
                cpu: Name::declared(concat!($text, "_cpu")),
                periods: Name::declared(concat!($text, "_periods")),
                throttled: Name::declared(concat!($text, "_throttled")),
                throttled_time: Name::declared(concat!($text, "_throttled_time")),
            };
        )*

        /// All of them as they are recorded.
        pub(super) fn recorded() -> Vec<&'static str> {
            let of = |own: Names| [own.took, own.cpu, own.periods, own.throttled, own.throttled_time];
            [$($name),*].into_iter().flat_map(of).map(Name::text).collect()
        }
    };
}

fixed_works! {
    /// Of calls by one thread.
    FIXED = "fixed",
    /// Of computing by one thread.
    FIXED_ONE = "fixed_one",
    /// Of computing by a thread on each CPU.
    FIXED_ALL = "fixed_all",
}

names! {
    // How many threads work at once.
    Counter { THREADS = "threads", }
    Fact { FIXED_WORK = "fixed_work", COUNTERS = "counters", }
}

/// The time of the whole work.
pub(super) const fn elapsed(name: &'static str, of: Names) -> Metric {
    Metric::nanos(name, of.took).of(Unit::Seconds, Margin::fixed(0.0, 0.01))
}

/// A metric that explains it.
pub(super) const fn part(metric: Metric, unit: Unit) -> Metric {
    metric.of(unit, Margin::fixed(0.0, 0.01)).context()
}

/// A time of each of all threads: the kernel adds up the queues of all CPUs, and each thread has one.
pub(super) fn of_each(sample: &Sample, time: Counter) -> Option<f64> {
    Some(nanos(sample, time)? / sample.counter(THREADS)?.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_all_threads_were_held_back_is_told_of_one() {
        let sample = Sample::default().with([(THREADS, 2), (FIXED_ALL.throttled_time, 400)]);
        assert_eq!(of_each(&sample, FIXED_ALL.throttled_time), Some(2e-7));
        assert_eq!(of_each(&sample, FIXED.cpu), None);
    }
}
