//! What the kernel would have done with this demand under that limit.
//!
//! The model is the kernel's own bandwidth control (`kernel/sched/fair.c`, `cpu.max` and `cpu.cfs_quota_us`).
//! A pool is refilled to the quota at the end of every period. Each CPU takes slices of 5 ms from it when its
//! own share is used up, which it notices at a tick or when its task sleeps; what it used beyond its share is
//! a debt that the next refill pays; when a task sleeps, all but 1 ms of the rest goes back. A CPU that gets
//! nothing is throttled until the period ends. A period counts if the group took from the pool in it, or
//! something waited; it counts as throttled if something waits at its end.
//!
//! The watched demand is replayed twice in a row, and the second pass counts: work still waiting when it
//! starts again is part of the limit's effect, and without it every prediction would be too good by the work
//! left at the end.
//!
//! Work arrives as it was seen, whether or not earlier work is done, is served in order of arrival, and is
//! never dropped. A program that waits for its own answers before it asks for more would ask later, and be
//! throttled less. Deliberately absent: other processes on the machine, bursts that `cpu.max.burst` saves up,
//! and limits of groups further up.

use std::collections::VecDeque;

use serde::Serialize;

use super::demand::{Demand, STEP};
use super::{Quota, Throttling};
use crate::units::Nanos;

/// How the kernel grants quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    /// How much a CPU takes from the pool at a time (`sched_cfs_bandwidth_slice_us`).
    pub slice: Nanos,
    /// How often a running task's time is checked (one divided by `CONFIG_HZ`).
    pub tick: Nanos,
}

impl Kernel {
    /// The kernel's default slice.
    pub const USUAL_SLICE: Nanos = Nanos::from_millis(5);
    /// What a CPU keeps when its task sleeps (`min_cfs_rq_runtime`).
    const KEPT: f64 = 1e6;
}

/// The number of phases of the period relative to the work that are tried: the phase of a real container is
/// chance.
const PHASES: i64 = 10;
/// Up to this many steps are replayed with all phases. In more, the work itself meets the period in every
/// phase.
const ENOUGH: usize = 60_000;

/// The effect that a limit would have had.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The limit.
    pub limit: Quota,
    /// The share of counted periods at whose end something waited. None if no period counts, as without work.
    #[serde(rename = "throttled_share")]
    pub throttled: Option<f64>,
    /// How much later the CPU time was given than without a limit.
    pub wait: Wait,
    /// By how much the waiting work grows with each pass, as the mean over the phases: only chance if the
    /// limit covers the mean demand.
    pub behind: Nanos,
}

impl Prediction {
    /// Whether it falls ever farther behind. Waits are then those of the first pass, and longer in the next.
    pub fn falls_behind(&self) -> bool {
        self.behind > self.limit.quota
    }
}

/// Quantiles by CPU time: half of it waited no longer than `p50`. CPU time still waiting at the end counts
/// with the time that it has waited so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Wait {
    /// For half the CPU time.
    pub p50: Nanos,
    /// For 99 % of it.
    pub p99: Nanos,
    /// For all of it.
    pub max: Nanos,
}

/// One pass through the watched demand, with one phase of the period.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replayed {
    /// What the kernel would have counted.
    pub counted: Throttling,
    /// CPU time by the number of steps that it waited.
    pub waits: Vec<f64>,
    /// CPU time that was given.
    pub served: f64,
    /// CPU time that was waiting at the end.
    pub left: f64,
}

/// The replays of all phases together.
pub fn predict(demand: &Demand, limit: Quota, kernel: Kernel) -> Prediction {
    let phases = (PHASES * ENOUGH as i64 / demand.steps().max(1) as i64).clamp(2, PHASES);
    let phase = |index: i64| Nanos(limit.period.0 * index / phases);
    let all: Vec<[Replayed; 2]> =
        (0..phases).map(|index| replay(demand, limit, kernel, phase(index))).collect();
    let mut counted = Throttling::default();
    for [_, again] in &all {
        counted.periods += again.counted.periods;
        counted.throttled += again.counted.throttled;
    }
    let behind = all.iter().map(|[first, again]| again.left - first.left).sum::<f64>() / phases as f64;
    let mut found = Prediction {
        limit,
        throttled: counted.share(),
        wait: Wait::default(),
        behind: Nanos(behind.round().max(0.0) as i64),
    };
    let telling = if found.falls_behind() { 0 } else { 1 };
    let mut waits = Vec::new();
    for (steps, work) in all.iter().flat_map(|times| times[telling].waits.iter().enumerate()) {
        note(&mut waits, steps, *work);
    }
    found.wait = Wait { p50: waited(&waits, 0.5), p99: waited(&waits, 0.99), max: waited(&waits, 1.0) };
    found
}

/// The longest wait of this share of the work.
fn waited(waits: &[f64], share: f64) -> Nanos {
    let needed = waits.iter().sum::<f64>() * share;
    let mut sum = 0.0;
    for (steps, work) in waits.iter().enumerate() {
        sum += work;
        // Sums of the same numbers in another order differ in their last digits.
        if sum >= needed * (1.0 - 1e-9) {
            return Nanos(steps as i64 * STEP.0);
        }
    }
    Nanos(0)
}

/// A CPU of the group, which runs one of its threads.
#[derive(Default)]
struct Cpu {
    /// Work that has arrived and is not done, with the step in which it arrived, the oldest first.
    queue: VecDeque<(usize, f64)>,
    /// The rest of its share of the quota; negative if it is a debt.
    share: f64,
    throttled: bool,
    /// Whether it worked until the very end of the last step: then only a tick checks it.
    awake: bool,
}

/// The group's pool.
struct Pool {
    quota: f64,
    left: f64,
    /// Whether the timer of the period runs.
    active: bool,
    /// Whether nothing has been taken since the last refill.
    idle: bool,
}

impl Pool {
    /// Fills a CPU's share up to `target`, as far as the pool allows.
    fn give(&mut self, cpu: &mut Cpu, target: f64) {
        self.active = true;
        let given = (target - cpu.share).clamp(0.0, self.left.max(0.0));
        if given > 0.0 {
            self.left -= given;
            self.idle = false;
        }
        cpu.share += given;
    }
}

/// Replays the demand twice in a row, the second time with the work left by the first; the first period ends
/// `phase` after a whole one.
pub fn replay(demand: &Demand, limit: Quota, kernel: Kernel, phase: Nanos) -> [Replayed; 2] {
    let mut cpus: Vec<Cpu> = (0..demand.threads()).map(|_| Cpu::default()).collect();
    let mut pool =
        Pool { quota: limit.quota.0 as f64, left: limit.quota.0 as f64, active: false, idle: true };
    let steps_of = |time: Nanos| ((time.0 / STEP.0) as usize).max(1);
    let (period, tick, phase) = (steps_of(limit.period), steps_of(kernel.tick), (phase.0 / STEP.0) as usize);
    [0, demand.steps()].map(|begin| {
        let mut done = Replayed::default();
        for step in begin..begin + demand.steps() {
            if (step + phase) % period == 0 {
                end_period(&mut pool, &mut cpus, &mut done.counted);
            }
            for (thread, cpu) in cpus.iter_mut().enumerate() {
                let wanted = demand.of_thread(step - begin, thread);
                if wanted > 0.0 {
                    cpu.queue.push_back((step, wanted));
                }
                // The ticks of the CPUs are not simultaneous.
                let is_tick = (step + thread) % tick == 0;
                run(cpu, &mut pool, kernel, (step, is_tick), &mut done);
            }
            // What others gave back is enough for the CPUs that wait.
            if pool.left > kernel.slice.0 as f64 {
                wake(&mut pool, &mut cpus);
            }
        }
        for (came, work) in cpus.iter().flat_map(|cpu| &cpu.queue) {
            done.left += work;
            note(&mut done.waits, begin + demand.steps() - came, *work);
        }
        done
    })
}

/// Does what `do_sched_cfs_period_timer` does.
fn end_period(pool: &mut Pool, cpus: &mut [Cpu], counted: &mut Throttling) {
    if !pool.active {
        return;
    }
    counted.periods += 1;
    let throttled = cpus.iter().any(|cpu| cpu.throttled);
    if pool.idle && !throttled {
        pool.active = false;
        return;
    }
    pool.left = pool.quota;
    pool.idle = true;
    if throttled {
        counted.throttled += 1;
        wake(pool, cpus);
    }
}

/// Gives each throttled CPU just enough to run; it takes more once it runs.
fn wake(pool: &mut Pool, cpus: &mut [Cpu]) {
    for cpu in cpus.iter_mut().filter(|cpu| cpu.throttled) {
        pool.give(cpu, 1.0);
        cpu.throttled = cpu.share <= 0.0;
    }
}

/// One step of one CPU.
fn run(cpu: &mut Cpu, pool: &mut Pool, kernel: Kernel, (step, is_tick): (usize, bool), done: &mut Replayed) {
    if cpu.queue.is_empty() || cpu.throttled {
        cpu.awake = false;
        return;
    }
    if cpu.share <= 0.0 && (is_tick || !cpu.awake) {
        pool.give(cpu, kernel.slice.0 as f64);
        cpu.throttled = cpu.share <= 0.0;
        if cpu.throttled {
            return;
        }
    }
    let mut room = STEP.0 as f64;
    while let Some((came, work)) = cpu.queue.front_mut() {
        let now = work.min(room);
        note(&mut done.waits, step - *came, now);
        (done.served, cpu.share, room) = (done.served + now, cpu.share - now, room - now);
        *work -= now;
        if *work > 0.0 {
            break;
        }
        cpu.queue.pop_front();
    }
    // A pause of less than a nanosecond is rounding.
    cpu.awake = room < 1.0;
    if !cpu.awake && cpu.share > Kernel::KEPT {
        pool.left += cpu.share - Kernel::KEPT;
        cpu.share = Kernel::KEPT;
    }
}

fn note(waits: &mut Vec<f64>, steps: usize, work: f64) {
    if waits.len() <= steps {
        waits.resize(steps + 1, 0.0);
    }
    waits[steps] += work;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Cpus;
    use super::super::usage::tests::every_10_ms;
    use super::*;

    const KERNEL: Kernel = Kernel { slice: Kernel::USUAL_SLICE, tick: Nanos::from_millis(4) };

    fn under(cpus: f64, used: impl IntoIterator<Item = f64>) -> Prediction {
        predict(&Demand::of(&every_10_ms(used), KERNEL.tick), Quota::of(Cpus(cpus)), KERNEL)
    }

    /// Bursts of this many milliseconds at the beginning of every so many, for this many times.
    fn bursts(millis: usize, every: usize, times: usize) -> impl Iterator<Item = f64> {
        let burst = move |_| (0..every / 10).map(move |part| if part * 10 < millis { 10.0 } else { 0.0 });
        (0..times).flat_map(burst)
    }

    #[test]
    fn continuous_work_beyond_the_quota_is_throttled_in_every_period_and_falls_ever_farther_behind() {
        let found = under(0.5, [10.0; 1000]);
        assert!(found.throttled.unwrap() > 0.98, "{found:?}");
        // In 10 s, the 5 s that the quota allows are given; at most a tick and a slice more.
        assert!((found.behind.seconds() - 5.0).abs() < 0.07 && found.falls_behind(), "{found:?}");
        assert!((found.wait.max.seconds() - 5.0).abs() < 0.15, "{found:?}");
    }

    #[test]
    fn work_within_the_quota_is_never_throttled() {
        let found = under(0.5, [4.0; 1000]);
        assert_eq!((found.throttled, found.wait), (Some(0.0), Wait::default()));
        assert_eq!(under(0.5, [0.0; 100]).throttled, None);
    }

    #[test]
    fn bursts_above_a_quota_that_carries_their_mean_are_throttled_and_done_with_before_the_next() {
        // 60 ms every 300 ms under 40 ms in 100 ms. If a period ends 20 to 40 ms after the burst began,
        // neither part exceeds the quota; in the other 7 of 10 phases, one period in three is throttled.
        let found = under(0.4, bursts(60, 300, 40));
        let share = found.throttled.unwrap();
        assert!((share - 0.7 / 3.0).abs() < 0.02, "{found:?}");
        assert!(!found.falls_behind() && found.wait.max.0 <= 80_000_000, "{found:?}");
        assert!(found.wait.p50 == Nanos(0), "{found:?}");
    }

    #[test]
    fn what_is_left_at_the_end_is_waiting_when_it_begins_again() {
        // A second of 10 ms in each period, then one of 70 ms, under 50 ms: of the 700 ms, 200 wait at the
        // end, and are done in the fifth period after it, 40 ms in each next to the new ones. A replay that
        // started without waiting work would find half of the periods throttled.
        let found = under(0.5, (0..400).map(|index| if index / 100 % 2 == 0 { 1.0 } else { 7.0 }));
        let share = found.throttled.unwrap();
        assert!((share - 0.7).abs() < 0.03, "{found:?}");
        assert!(!found.falls_behind() && found.wait.max.seconds() > 0.3, "{found:?}");
    }

    #[test]
    fn a_quota_is_used_up_faster_by_several_threads() {
        // Two threads want 60 ms each at once, twice what the quota gives.
        let two = under(0.6, (0..40).flat_map(|_| [vec![20.0; 6], vec![0.0; 24]].concat()));
        let one = under(0.6, bursts(120, 300, 40));
        assert!(two.wait.p99 > one.wait.p99, "{two:?} {one:?}");
        assert!(two.throttled.unwrap() >= one.throttled.unwrap(), "{two:?} {one:?}");
    }

    #[test]
    fn a_group_that_sleeps_through_periods_has_fewer_of_them() {
        let demand = Demand::of(&every_10_ms(bursts(30, 1000, 10)), KERNEL.tick);
        for done in replay(&demand, Quota::of(Cpus(1.0)), KERNEL, Nanos(0)) {
            let counted = done.counted;
            assert!((10..=30).contains(&counted.periods) && counted.throttled == 0, "{counted:?}");
        }
    }

    fn usage() -> impl Strategy<Value = Vec<f64>> {
        let calm = prop::collection::vec(0.0..4.0f64, 1..40);
        let busy = prop::collection::vec(0.0..20.0f64, 1..40);
        prop::collection::vec(prop_oneof![calm, busy], 1..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn work_is_neither_lost_nor_made(used in usage(), cpus in 0.05..2.5f64, phase in 0i64..100) {
            let demand = Demand::of(&every_10_ms(used), KERNEL.tick);
            let times = replay(&demand, Quota::of(Cpus(cpus)), KERNEL, Nanos::from_millis(phase));
            let mut before = 0.0;
            for done in times {
                prop_assert!((done.served + done.left - demand.total() - before).abs() < 1e3);
                prop_assert!((done.waits.iter().sum::<f64>() - demand.total() - before).abs() < 1e3);
                prop_assert!(done.counted.throttled <= done.counted.periods);
                before = done.left;
            }
        }

        #[test]
        fn no_more_is_given_than_the_quota_allows(used in usage(), cpus in 0.05..1.0f64) {
            let demand = Demand::of(&every_10_ms(used), KERNEL.tick);
            let done = replay(&demand, Quota::of(Cpus(cpus)), KERNEL, Nanos(0))[0].clone();
            let refills = (demand.steps() / 100 + 1) as f64;
            // Each CPU can be a tick in debt at the end.
            let most = refills * cpus * 100e6 + demand.threads() as f64 * KERNEL.tick.0 as f64;
            prop_assert!(done.served <= most + 1e3, "{} {most}", done.served);
        }

        #[test]
        fn more_quota_never_means_more_throttling_or_waiting(used in usage(), cpus in 0.1..1.5f64) {
            let demand = Demand::of(&every_10_ms(used), KERNEL.tick);
            let [less, more] = [cpus, cpus * 1.3].map(|cpus| predict(&demand, Quota::of(Cpus(cpus)), KERNEL));
            // A group that is hardly throttled has fewer periods, so a share of few periods can go up a
            // little.
            prop_assert!(more.throttled.unwrap_or(0.0) <= less.throttled.unwrap_or(0.0) + 0.1, "{less:?} {more:?}");
            // Waits of the first pass and of the second are not compared.
            if more.falls_behind() == less.falls_behind() {
                prop_assert!(more.wait.p99.0 <= less.wait.p99.0 + 5_000_000, "{less:?} {more:?}");
            }
            // The two replays begin with different shares: a CPU holds at most a slice, and owes at most a
            // tick.
            let held = demand.threads() as i64 * (KERNEL.slice.0 + KERNEL.tick.0);
            prop_assert!(more.behind.0 <= less.behind.0 + held, "{less:?} {more:?}");
        }

        #[test]
        fn a_quota_above_the_most_that_was_wanted_throttles_nothing(used in usage()) {
            let demand = Demand::of(&every_10_ms(used.clone()), KERNEL.tick);
            // Its end and its beginning follow each other, too.
            let most = Demand::of(&every_10_ms([used.clone(), used].concat()), KERNEL.tick).most_within(Quota::USUAL_PERIOD);
            // Each CPU can hold a slice that it does not need.
            let quota = Nanos(most.0 + demand.threads() as i64 * KERNEL.slice.0);
            let found = predict(&demand, Quota { quota, period: Quota::USUAL_PERIOD }, KERNEL);
            prop_assert_eq!((found.throttled.unwrap_or(0.0), found.behind), (0.0, Nanos(0)));
        }
    }
}
