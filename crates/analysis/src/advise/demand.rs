//! What a group of processes wanted, millisecond by millisecond and thread by thread, from what it used while
//! nothing limited it.
//!
//! A counter of CPU time is brought up to date when a task leaves its CPU and at each tick of the kernel, so a reading
//! lacks up to one tick of every task that runs at that moment, and the next reading has too much. What is more than the threads
//! can have used between two readings is therefore moved to before the first of them.
//!
//! Which thread used what is not known. The usage is given to as few threads as can have used it: what is
//! below one CPU is one thread's. Deliberately absent: demand that a limit held back, which nobody can see.

use super::usage::Usage;
use crate::units::Nanos;

/// The step of a replay.
pub const STEP: Nanos = Nanos::from_millis(1);
/// Over how many readings in a row the number of threads is looked for. Over so many, one tick weighs little.
const LOOK: usize = 10;
/// Of a CPU: what clocks of different CPUs and rounding may add to what one thread used.
const TOLERANCE: f64 = 0.02;

/// What was wanted in each step, by each thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    threads: usize,
    /// Nanoseconds of CPU time in each step, by all threads together; at most `threads` steps.
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

    /// At least how many threads ran at the same time.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// In how many steps it is.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// What this thread wants in a step: what is left by those before it, and no more than one CPU gives. The last
    /// one has all the rest.
    pub fn of_thread(&self, step: usize, thread: usize) -> f64 {
        let left = (self.steps[step] - (thread as f64) * STEP.0 as f64).max(0.0);
        if thread + 1 == self.threads { left } else { left.min(STEP.0 as f64) }
    }

    /// All of it.
    #[cfg(test)]
    pub(super) fn total(&self) -> f64 {
        self.steps.iter().sum()
    }

    /// The most that was wanted within any time of this length.
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

/// The smallest number of threads that can have used what lies between any two readings, if each
/// was one tick ahead of its counter at the first of them.
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

/// The same usage, of which no two readings lie apart by more than so many threads can use.
fn evened(usage: &Usage, threads: usize) -> Usage {
    let mut readings = usage.readings().to_vec();
    for index in (1..readings.len()).rev() {
        let (before, after) = (readings[index - 1], readings[index]);
        let most = after.at.since(before.at).0 * threads as i64;
        readings[index - 1].used.0 = before.used.0.max(after.used.0 - most);
    }
    // What had to lie before the first reading was used before anybody watched.
    Usage::new(readings).expect("as many readings as before")
}

#[cfg(test)]
mod tests {
    use super::super::usage::tests::every_10_ms;
    use super::*;

    const TICK: Nanos = Nanos::from_millis(4);

    #[test]
    fn one_thread_whose_counter_lags_is_one_thread() {
        // It ran for 100 ms without a pause, seen at ticks of 4 ms.
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
