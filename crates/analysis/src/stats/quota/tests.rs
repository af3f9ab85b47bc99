//! The replay compared with closed forms, and with a second model that goes step by step.

use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
const WINDOW: u64 = 10_000 * MS;

fn cpus(share: f64) -> Option<Quota> {
    Some(Quota { each: (share * 100.0 * MS as f64) as u64, period: 100 * MS, burst: 0 })
}

fn on(threads: u64, load: Load) -> Demand {
    Demand { load, threads, cpus: 2 }
}

const HALF: Load = Load::Bursts { work: 50 * MS, every: 100 * MS };
const CLOCKED: Load = Load::Alternating { busy: 50 * MS, idle: 50 * MS };

#[test]
fn a_load_that_never_ends_gets_its_quota_and_waits_the_rest() {
    for (share, threads) in [(0.1, 1), (0.5, 1), (0.5, 2), (1.5, 2), (0.1, 8)] {
        let got = ideal(cpus(share), on(threads, Load::Continuous), WINDOW);
        let queues = threads.min(2) as f64;
        assert_eq!(got.usage as f64 / WINDOW as f64, share, "{share} {threads}");
        assert_eq!((got.periods, got.throttled, got.throttled_share()), (Some(100), 100, Some(1.0)));
        let closed = queues * (0.1 - share * 0.1 / queues);
        assert!((got.throttled_per_period().unwrap() - closed).abs() < 1e-9, "{share} {threads}: {got:?}");
    }
}

#[test]
fn a_quota_above_the_load_never_throttles_and_none_has_no_share() {
    for load in [Load::Continuous, HALF, CLOCKED] {
        let free = ideal(None, on(1, load), WINDOW);
        let ample = ideal(cpus(1.0), on(1, load), WINDOW);
        assert_eq!((free.throttled_share(), ample.throttled_share()), (None, Some(0.0)), "{load:?}");
        assert_eq!((free.usage, &free.latencies), (ample.usage, &ample.latencies));
        assert_eq!((ample.throttled_per_period(), ample.waiting), (None, 0));
    }
    let half = ideal(cpus(1.0), on(1, HALF), WINDOW);
    assert_eq!((half.usage, half.latencies), (WINDOW / 2, vec![50 * MS; 100]));
}

#[test]
fn bursts_beyond_the_quota_wait_longer_and_longer() {
    let got = ideal(cpus(0.1), on(1, HALF), WINDOW);
    // Burst j begins to run after j times five periods, and ends 10 ms into its fifth.
    let closed: Vec<u64> = (0..20).map(|j| (j * 500 + 410 - j * 100) * MS).collect();
    assert_eq!((&got.latencies, got.waiting), (&closed, 80));
    assert_eq!((got.usage, got.throttled_share()), (WINDOW / 10, Some(1.0)));
    // Every fifth burst ends with its budget; the next one is due, and waits as long.
    assert!((got.throttled_per_period().unwrap() - 0.09).abs() < 1e-9);
    assert_eq!(got.backlog, Backlog::Grows(0.4));
}

/// The published load: it stops by the clock. Its phase is locked to the period after the first one.
#[test]
fn a_load_that_stops_by_the_clock_is_throttled_for_40_ms_in_each_period() {
    let got = ideal(cpus(0.1), on(1, CLOCKED), WINDOW);
    assert_eq!((got.periods, got.throttled), (Some(100), 100));
    // 90 ms in the first period, 40 in all others.
    assert_eq!(got.throttled_time, (90 + 99 * 40) * MS);
    assert_eq!((got.usage, got.backlog), (WINDOW / 10, Backlog::Bounded));
    // It does a fifth of the work in the same time: such a load shows no latency.
    assert_eq!(got.latencies, [[100 * MS].as_slice(), &[50 * MS; 99]].concat());
}

#[test]
fn demand_at_the_quota_is_at_the_edge() {
    assert_eq!(on(1, HALF).backlog(cpus(0.5)), Backlog::AtTheEdge);
    assert_eq!(on(1, HALF).backlog(cpus(0.51)), Backlog::Bounded);
    assert!(matches!(on(1, HALF).backlog(cpus(0.49)), Backlog::Grows(more) if (more - 0.002).abs() < 1e-4));
    assert_eq!(on(2, HALF).backlog(cpus(1.0)), Backlog::AtTheEdge);
    for (share, load, at) in
        [(1.0, Load::Continuous, true), (1.02, Load::Continuous, false), (0.5, CLOCKED, true)]
    {
        assert_eq!(on(1, load).is_at(cpus(share)), at, "{share} {load:?}");
    }
    assert!(!on(1, HALF).is_at(None));
    let exact = ideal(cpus(0.5), on(1, HALF), WINDOW);
    assert_eq!((exact.throttled, exact.usage), (0, WINDOW / 2));
    // More than the CPUs can do piles up even without a quota.
    assert_eq!(on(6, HALF).backlog(None), Backlog::Grows(0.05));
    assert_eq!(on(1, CLOCKED).backlog(cpus(0.1)), Backlog::Bounded);
    assert_eq!((on(6, HALF).cpus_wanted(), on(1, CLOCKED).cpus_wanted()), (2.0, 0.5));
}

/// A burst that needs three budgets out of four periods: throttled in two of them, never later and later.
#[test]
fn a_stable_backlog_has_a_latency() {
    let rare = Load::Bursts { work: 50 * MS, every: 400 * MS };
    let got = ideal(cpus(0.2), on(1, rare), WINDOW);
    assert_eq!((got.latencies, got.waiting), (vec![210 * MS; 25], 0));
    assert_eq!((got.throttled, got.throttled_time, got.backlog), (50, 50 * 80 * MS, Backlog::Bounded));
    // The timer fires once more after the last period with work, and stops.
    assert_eq!(got.periods, Some(100));
    let rarer = Load::Bursts { work: 50 * MS, every: 1000 * MS };
    assert_eq!(ideal(cpus(0.2), on(1, rarer), WINDOW).periods, Some(40));
}

#[test]
fn unused_time_may_be_used_later_where_bursting_is_allowed() {
    let rare = on(1, Load::Bursts { work: 50 * MS, every: 400 * MS });
    let with = |burst| Some(Quota { burst: burst * MS, ..cpus(0.2).unwrap() });
    let got = ideal(with(30), rare, WINDOW);
    // The first gets only one budget; the others also what was left before them.
    assert_eq!((got.latencies[0], &got.latencies[1..]), (210 * MS, &[50 * MS; 24][..]));
    assert_eq!(ideal(with(0), rare, WINDOW), ideal(cpus(0.2), rare, WINDOW));
}

#[test]
fn bands_end_where_a_quantile_begins_to_wait() {
    let bands = [0.0, 0.0099, 0.01, 0.1, 0.5, 0.51, 1.0].map(Health::of_share);
    use Health::{Clear, TailWaits, TypicalWaits};
    assert_eq!(bands, [Clear, Clear, TailWaits, TailWaits, TailWaits, TypicalWaits, TypicalWaits]);
}

/// The same rule in small steps: one thing happens in each.
#[derive(Debug, PartialEq, Default)]
struct Stepped {
    usage: u64,
    throttled: u64,
    waited: u64,
    latencies: Vec<u64>,
    waiting: u64,
}

fn stepped(quota: Quota, work: u64, every: u64, window: u64) -> Stepped {
    let mut got = Stepped::default();
    let mut queue = std::collections::VecDeque::new();
    let mut budget = 0;
    for step in 0..window {
        if step % quota.period == 0 {
            // A thread that would have run in the step before and could not is throttled.
            got.throttled += u64::from(step > 0 && budget == 0 && !queue.is_empty());
            budget = if step == 0 { quota.each } else { (budget + quota.each).min(quota.each + quota.burst) };
        }
        if step % every == 0 {
            queue.push_back((step, work));
        }
        let Some(first) = queue.front_mut() else { continue };
        if budget == 0 {
            got.waited += 1;
            continue;
        }
        (budget, got.usage, first.1) = (budget - 1, got.usage + 1, first.1 - 1);
        if first.1 == 0 {
            got.latencies.push(step + 1 - first.0);
            queue.pop_front();
        }
    }
    got.throttled += u64::from(budget == 0 && !queue.is_empty());
    got.waiting = queue.len() as u64;
    got
}

proptest! {
    #[test]
    fn going_by_events_agrees_with_going_by_steps(
        period in 2u64..30, share in 0.01f64..1.2, burst in 0u64..20, work in 1u64..60, every in 1u64..80, periods in 1u64..40,
    ) {
        let each = ((period as f64 * share) as u64).max(1);
        let quota = Quota { each, period, burst };
        let window = period * periods;
        let got = ideal(Some(quota), on(1, Load::Bursts { work, every }), window);
        let told = stepped(quota, work, every, window);
        prop_assert_eq!((got.usage, &got.latencies, got.waiting), (told.usage, &told.latencies, told.waiting));
        prop_assert_eq!(got.throttled_time, told.waited);
        // A budget that ends with its period throttles for no time: the kernel can count it or not.
        prop_assert!(got.throttled <= told.throttled, "{} {}", got.throttled, told.throttled);
        prop_assert!(got.throttled * quota.period >= got.throttled_time);
    }

    #[test]
    fn nothing_uses_more_than_it_may_or_wants(
        each in 1u64..300, threads in 1u64..6, cpus in 1u64..4, work in 1u64..300, every in 1u64..300, idle in 0u64..200,
    ) {
        let quota = Quota { each: each * MS, period: 100 * MS, burst: 0 };
        for load in [
            Load::Continuous,
            Load::Bursts { work: work * MS, every: every * MS },
            Load::Alternating { busy: work * MS, idle: idle * MS },
        ] {
            let demand = Demand { load, threads, cpus };
            let window = 1000 * MS;
            let (got, free) = (ideal(Some(quota), demand, window), ideal(None, demand, window));
            prop_assert!(got.usage <= 10 * quota.each && got.usage <= demand.queues() * window, "{:?}", got);
            prop_assert!(got.throttled <= got.periods.unwrap_or(0) && free.throttled_time == 0);
            prop_assert!(got.usage <= free.usage || matches!(load, Load::Alternating { .. }), "{:?} {:?}", got, free);
            if let Load::Bursts { work, .. } = load {
                let stretched = work * threads / demand.queues();
                prop_assert!(got.latencies.iter().all(|latency| *latency >= stretched));
            }
        }
    }
}
