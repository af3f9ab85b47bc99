//! Results that cannot be true of a window under a quota.

use super::NAME;
use super::rows::{counted, quota_in_words};
use super::window::Measured;
use crate::stats::quota::{self, Health};
use crate::units::Unit;
use crate::verdict::{Suspect, View};

/// The kernel grants CPUs a budget in slices of this size by default (`sched_cfs_bandwidth_slice_us`), so one
/// period can lend to the next.
const SLICE: u64 = 5_000_000;
/// The kernel's clock ticks at least every 10 ms; what others ran since the last tick is not counted yet.
const TICK: f64 = 0.010;

/// What cannot be true of a window under a quota.
pub fn suspects(view: &View<'_>) -> Vec<Suspect> {
    let mut found: Vec<Suspect> = Vec::new();
    for cell in (0..view.cells.len()).filter(|&cell| view.cell(cell).experiment == NAME) {
        for measured in counted(view.run, cell).filter_map(Measured::of) {
            for (rule, mechanism, check) in RULES {
                let is_known = found.iter().any(|one| one.rule == rule && one.cells == [cell]);
                if let Some(seen) = check(&measured).filter(|_| !is_known) {
                    let evidence = format!("{}: {seen}", view.plan().named(cell));
                    found.push(Suspect { metric: None, ..Suspect::of(rule, (cell, 0), evidence, mechanism) });
                }
            }
        }
    }
    found
}

/// A rule's name, the likely mechanism, and what is seen if it fires.
pub(super) type Rule = (&'static str, &'static str, fn(&Measured) -> Option<String>);

pub(super) const RULES: [Rule; 5] = [
    (
        "more than the quota",
        "the quota that was read is not the one in force, or the counters include others",
        above,
    ),
    ("more periods than there was time", "the counters belong to another window or cgroup", too_many),
    (
        "more waiting than there was time",
        "the throttled time is in another unit or from another window",
        too_long,
    ),
    (
        "a control was throttled",
        "there is another quota further up, or others are in the same cgroup",
        control_throttled,
    ),
    (
        "window and counters disagree",
        "the counters belong to another window, or to more than this process",
        disagree,
    ),
];

fn above(measured: &Measured) -> Option<String> {
    let (usage, quota) = (measured.usage?, measured.quota?);
    // A window that does not start with a period touches one more than fits into it.
    let periods = measured.window / quota.period + 1;
    let most =
        periods.saturating_mul(quota.each).saturating_add(quota.burst + measured.demand.queues() * SLICE);
    (usage > most).then(|| {
        let shown = |nanos: u64| Unit::Seconds.format(nanos as f64 / 1e9);
        format!("it used {} of CPU time, but the quota allows {}", shown(usage), shown(most))
    })
}

fn too_many(measured: &Measured) -> Option<String> {
    let ([periods, throttled, _], quota) = (measured.throttling?, measured.quota?);
    let most = measured.window / quota.period + 2;
    let window = Unit::Seconds.format(measured.window as f64 / 1e9);
    (throttled > periods || periods > most)
        .then(|| format!("{throttled} throttled of {periods} periods in a window of {window}"))
}

fn too_long(measured: &Measured) -> Option<String> {
    let ([_, throttled, time], quota) = (measured.throttling?, measured.quota?);
    // Waiting that began before the window is added when it ends.
    let most = (measured.demand.queues() * (throttled + 1)).saturating_mul(quota.period);
    let [shown, period] = [time, quota.period].map(|nanos| Unit::Seconds.format(nanos as f64 / 1e9));
    (time > most).then(|| format!("{shown} of waiting in {throttled} throttled periods of {period}"))
}

fn control_throttled(measured: &Measured) -> Option<String> {
    let (quota, [_, throttled, _]) = (measured.quota?, measured.throttling?);
    // Below that, bursts that others delayed can use it up when they follow each other.
    let is_out_of_reach = quota.each >= measured.demand.queues().saturating_mul(quota.period);
    // What ran ahead of the window can have used up the period in which it begins.
    let is_often = throttled > 1;
    let share =
        measured.throttled_share().filter(|_| measured.is_control() && is_out_of_reach && is_often)?;
    (Health::of_share(share) > Health::Clear).then(|| {
        let [share, wanted] = [share, measured.demand.cpus_wanted()].map(|share| Unit::Share.format(share));
        let quota = quota_in_words(measured.quota);
        format!("{share} of its periods are throttled, though it needs {wanted} of a CPU of {quota}")
    })
}

fn disagree(measured: &Measured) -> Option<String> {
    let cgroup = measured.usage? as f64 / 1e9;
    let own = (measured.own[0] + measured.own[1]) as f64 / 1e9;
    let margin = (own * quota::TOLERANCE).max(TICK * measured.demand.queues() as f64);
    ((cgroup - own).abs() > margin).then(|| {
        let shown = |seconds: f64| Unit::Seconds.format(seconds);
        format!("its cgroup counted {} of CPU time, but the process itself {}", shown(cgroup), shown(own))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MS, measured};
    use super::*;

    fn fired(measured: &Measured) -> Vec<&'static str> {
        RULES.iter().filter(|(.., check)| check(measured).is_some()).map(|(rule, ..)| *rule).collect()
    }

    #[test]
    fn what_the_model_says_is_never_suspect() {
        for each in [1, 10, 30, 50, 51, 100, 200] {
            assert_eq!(fired(&measured(each)), [""; 0], "{each}");
        }
    }

    #[test]
    fn more_than_the_quota_and_a_slice_is_suspect() {
        // Eleven periods of 10 ms each, and what a slice can lend.
        let used = |usage| Measured { usage: Some(usage), own: [usage, 0], ..measured(10) };
        assert_eq!(fired(&used(115 * MS)), [""; 0]);
        assert_eq!(fired(&used(115 * MS + 1)), ["more than the quota"]);
    }

    #[test]
    fn periods_and_waiting_fit_into_the_window() {
        let counted = |all| Measured { throttling: Some(all), ..measured(10) };
        assert_eq!(fired(&counted([12, 12, 1080 * MS])), [""; 0]);
        assert_eq!(fired(&counted([13, 12, 1080 * MS])), ["more periods than there was time"]);
        assert_eq!(fired(&counted([10, 11, 900 * MS])), ["more periods than there was time"]);
        assert_eq!(fired(&counted([10, 10, 1100 * MS])), [""; 0]);
        // Microseconds taken for nanoseconds would be caught from the other side.
        assert_eq!(fired(&counted([10, 10, 1101 * MS])), ["more waiting than there was time"]);
    }

    #[test]
    fn a_control_is_not_throttled() {
        let throttled = |periods, each| Measured {
            throttling: Some([1000, periods, MS]),
            window: 100_000 * MS,
            ..measured(each)
        };
        assert_eq!(fired(&throttled(9, 100)), [""; 0]);
        assert_eq!(fired(&throttled(10, 100)), ["a control was throttled"]);
        // At the edge the rule promises nothing, and a little above it late bursts can fall into one period.
        assert_eq!([50, 60, 99].map(|each| fired(&throttled(10, each)).len()), [0; 3]);
        let in_ten_periods = |count| Measured { throttling: Some([10, count, MS]), ..measured(100) };
        assert_eq!([1, 2].map(|count| fired(&in_ten_periods(count)).len()), [0, 1]);
    }

    #[test]
    fn cgroup_and_process_agree_within_a_tick_or_a_percent() {
        let own = |own| Measured { own: [own, 0], ..measured(100) };
        assert_eq!(fired(&own(509 * MS)), [""; 0]);
        assert_eq!(fired(&own(511 * MS)), ["window and counters disagree"]);
        assert_eq!(fired(&own(489 * MS)), ["window and counters disagree"]);
        assert_eq!(fired(&Measured { usage: None, ..own(489 * MS) }), [""; 0]);
    }
}
