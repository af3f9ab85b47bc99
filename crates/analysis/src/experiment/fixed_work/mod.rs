//! A fixed amount of work as its user sees it: how long it takes in all, and why. Fast batches and calm
//! passes show what a CPU or a call can do, but not what a limit does to it; this does.
//!
//! The extra time compared with the baseline is CPU time, throttling, or waiting for others. The kernel
//! counts the first two between exactly the same two moments, and the third is the rest.

pub(super) mod reason;

use super::question::{Metric, nanos};
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::units::Unit;

/// The time of the whole work, which the probe reports by this name.
pub(super) const fn elapsed(name: &'static str, of: &'static str) -> Metric {
    Metric::named(name, nanos, of).of(Unit::Seconds, Margin::fixed(0.0, 0.01))
}

/// The CPU time of each thread.
pub(super) const fn cpu_time(name: &'static str, of: &'static str) -> Metric {
    Metric::named(name, |sample, of| of_each(sample, of, "_cpu"), of)
        .of(Unit::Seconds, Margin::fixed(0.0, 0.01))
        .context()
}

/// How long the limit held each thread back.
pub(super) const fn throttled_time(name: &'static str, of: &'static str) -> Metric {
    Metric::named(name, |sample, of| of_each(sample, of, "_throttled_time"), of)
        .of(Unit::Seconds, Margin::fixed(0.0, 0.01))
        .context()
}

/// In how many periods it held a thread back.
pub(super) const fn throttled_periods(name: &'static str, of: &'static str) -> Metric {
    Metric::named(name, |sample, of| Some(sample.counter(&format!("{of}_throttled"))? as f64), of)
        .of(Unit::Count, Margin::fixed(0.0, 0.01))
        .context()
}

/// The kernel adds up the queues of all CPUs; each thread has one.
fn of_each(sample: &Sample, of: &str, what: &str) -> Option<f64> {
    let threads = if of.ends_with("_all") { sample.counter("threads")?.max(1) } else { 1 };
    Some(nanos(sample, &format!("{of}{what}"))? / threads as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_all_threads_were_held_back_is_told_of_one() {
        let counters = [("threads", 2), ("fixed_one_throttled_time", 300), ("fixed_all_throttled_time", 400)];
        let counters = counters.iter().map(|(name, value)| ((*name).into(), *value)).collect();
        let sample = Sample { counters, ..Sample::default() };
        assert_eq!(
            ["fixed_one", "fixed_all"].map(|of| of_each(&sample, of, "_throttled_time")),
            [Some(3e-7), Some(2e-7)]
        );
        assert_eq!(of_each(&sample, "fixed", "_cpu"), None);
    }
}
