//! The demand of a group of processes, by millisecond and thread, from what it used without a limit.
//!
//! The kernel updates a counter of CPU time when a task leaves its CPU and at each tick. So a reading lacks
//! up to one tick of every running task, and the next reading has too much. Usage that exceeds what the
//! threads can have used between two readings is therefore moved to before the first of them.
//!
//! Which thread used how much is unknown. The usage is split among as few threads as can have used it: usage
//! below one CPU belongs to one thread. Deliberately absent: demand that a limit held back, which cannot be
//! seen.

use super::usage::Usage;
use crate::units::Nanos;

/// The step of a replay.
pub const STEP: Nanos = Nanos::from_millis(1);
/// The number of consecutive readings over which threads are counted. Over that many, one tick weighs little.
const LOOK: usize = 10;
/// Share of a CPU that clock differences between CPUs and rounding can add to one thread's usage.
const TOLERANCE: f64 = 0.02;

/// The demand in each step, by thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    threads: usize,
    /// Nanoseconds of CPU time in each step, for all threads together; at most `threads` steps.
    steps: Vec<f64>,
}

impl Demand {
    /// The demand behind this usage, on a kernel with this tick.
    pub fn of(usage: &Usage, tick: Nanos) -> Demand {
        let threads = threads_in(usage, tick);
        let even = evened(usage, threads);
        let count = (usage.duration().0 / STEP.0) as u64;
        let used = even.at_each((0..=count).map(|step| step * STEP.0 as u64));
        Demand { threads, steps: used.windows(2).map(|pair| pair[1] - pair[0]).collect() }
    }

    /// The minimum number of threads that ran at the same time.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// This thread's demand in a step: what those before it leave, at most one CPU. The last thread gets all
    /// the rest.
    pub fn of_thread(&self, step: usize, thread: usize) -> f64 {
        let left = (self.steps[step] - (thread as f64) * STEP.0 as f64).max(0.0);
        if thread + 1 == self.threads { left } else { left.min(STEP.0 as f64) }
    }

    /// All of it.
    #[cfg(test)]
    pub(super) fn total(&self) -> f64 {
        self.steps.iter().sum()
    }

    /// The maximum demand within any stretch of this length.
    pub fn most_within(&self, length: Nanos) -> Nanos {
        let window = ((length.0 / STEP.0) as usize).max(1);
        let mut sum: f64 = self.steps.iter().take(window).sum();
        let mut most = sum;
        for (new, old) in self.steps.iter().skip(window).zip(&self.steps) {
            sum += new - old;
            most = most.max(sum);
        }
        Nanos(most.ceil() as i64)
    }
}

/// The smallest number of threads that can have used the CPU time between any two readings, if each was one
/// tick ahead of its counter at the first reading.
fn threads_in(usage: &Usage, tick: Nanos) -> usize {
    let all = usage.readings();
    let needed = |from: usize, to: usize| {
        let (first, last) = (all[from], all[to]);
        let time = last.at.since(first.at) + tick;
        (last.used.0 - first.used.0) as f64 / time.0 as f64
    };
    let pairs = (0..all.len())
        .flat_map(|from| (from + 1..=(from + LOOK).min(all.len() - 1)).map(move |to| (from, to)));
    let most = pairs.map(|(from, to)| needed(from, to)).fold(0.0, f64::max);
    ((most - TOLERANCE).ceil() as usize).max(1)
}

/// The same usage, moved so that no two readings differ by more than this many threads can use.
fn evened(usage: &Usage, threads: usize) -> Usage {
    let mut readings = usage.readings().to_vec();
    for index in (1..readings.len()).rev() {
        let (before, after) = (readings[index - 1], readings[index]);
        let most = after.at.since(before.at).0 * threads as i64;
        readings[index - 1].used.0 = before.used.0.max(after.used.0 - most);
    }
    // Usage that had to be moved before the first reading happened before the watch began.
    Usage::new(readings).expect("as many readings as before")
}

#[cfg(test)]
mod tests {
    use super::super::usage::tests::every_10_ms;
    use super::*;

    const TICK: Nanos = Nanos::from_millis(4);

    #[test]
    fn one_thread_whose_counter_lags_is_one_thread() {
        // It ran for 100 ms without a pause, as seen with ticks of 4 ms.
        let usage = every_10_ms([8.0, 12.0, 8.0, 12.0, 12.0, 8.0, 10.0, 8.0, 12.0, 10.0]);
        let demand = Demand::of(&usage, TICK);
        assert_eq!((demand.threads(), demand.steps()), (1, 100));
        assert!((0..100).all(|step| demand.steps[step] <= 1.0001e6), "{demand:?}");
        // Of the 100 ms, 2 must have been used before the first reading.
        assert!((demand.total() - 98e6).abs() < 1.0, "{demand:?}");
    }

    #[test]
    fn what_one_cpu_cannot_have_given_belongs_to_several_threads() {
        let demand = Demand::of(&every_10_ms([25.0; 20]), TICK);
        assert_eq!(demand.threads(), 3);
        assert_eq!([0, 1, 2].map(|thread| demand.of_thread(7, thread).round()), [1e6, 1e6, 5e5]);
    }

    #[test]
    fn the_most_within_a_time_is_found_wherever_it_lies() {
        let usage = every_10_ms((0..40).map(|index| if (13..18).contains(&index) { 8.0 } else { 1.0 }));
        let demand = Demand::of(&usage, TICK);
        assert_eq!(demand.most_within(Nanos::from_millis(50)), Nanos::from_millis(40));
        assert_eq!(demand.most_within(Nanos::from_millis(100)), Nanos::from_millis(45));
    }
}
