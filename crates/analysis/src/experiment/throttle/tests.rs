//! The names of windows under a quota, and what is said about their bursts.

use super::cause::told_of;
use super::rows::{Row, control};
use super::suspects;
use super::tables::band_in_words;
use super::window::{LARGEST, Measured};
use crate::outcome::Sample;
use crate::stats::quota::{self, Demand, Load, Quota};

pub(super) const MS: u64 = 1_000_000;

/// One second of bursts under a quota of so many milliseconds in each 100, as the model has it.
pub(super) fn measured(each: u64) -> Measured {
    measured_for(1, each)
}

/// The same for so many seconds.
pub(super) fn measured_for(seconds: u64, each: u64) -> Measured {
    let demand = Demand { load: Load::Bursts { work: 50 * MS, every: 100 * MS }, threads: 1, cpus: 2 };
    let quota = Some(Quota { each: each * MS, period: 100 * MS, burst: 0 });
    let length = seconds * 1000 * MS;
    let ideal = quota::ideal(quota, demand, length);
    Measured {
        window: length,
        usage: Some(ideal.usage),
        own: [ideal.usage, 0],
        quota,
        demand,
        throttling: ideal.periods.map(|periods| [periods, ideal.throttled, ideal.throttled_time]),
        latencies: vec![ideal.latencies.clone()],
        waiting: ideal.waiting,
        turns: ideal.usage / 2,
        ideal,
        length,
    }
}

#[test]
fn the_band_is_not_told_where_others_had_the_cpus_nor_at_the_edge() {
    assert_eq!(band_in_words(&measured(100)), "no one");
    assert_eq!(band_in_words(&measured(10)), "typical !!");
    let periods = measured(10).throttling.unwrap()[0];
    let starved = Measured { own: [1, 0], throttling: Some([periods, 0, 0]), ..measured(10) };
    assert_eq!(band_in_words(&starved), "unknown");
    let edge = Measured { throttling: Some([periods, periods, MS]), ..measured(50) };
    assert_eq!(band_in_words(&edge), "at the edge");
    assert_eq!(band_in_words(&Measured { quota: None, throttling: None, ..measured(100) }), "not applicable");
}

#[test]
fn growth_is_of_what_was_measured() {
    let late =
        |step: u64| Measured { latencies: vec![(1..=4).map(|n| n * step * MS).collect()], ..measured(10) };
    assert!((late(300).growth().unwrap() - 0.3).abs() < 1e-9);
    assert_eq!(late(300).ideal_growth(), Some(0.4));
    let few = Measured { latencies: vec![vec![MS, 400 * MS]], ..measured(10) };
    assert_eq!((few.growth(), measured(100).growth()), (None, None));
    // The bursts of several threads are listed thread by thread.
    let mut several = late(300);
    several.demand.threads = 2;
    assert_eq!(several.growth(), None);
}

#[test]
fn a_load_that_stops_by_the_clock_is_told_by_the_work_that_it_does() {
    let alternating = |each| {
        let mut one = measured_for(3, each);
        one.demand.load = Load::Alternating { busy: 50 * MS, idle: 50 * MS };
        one.ideal = quota::ideal(one.quota, one.demand, one.length);
        Measured {
            usage: Some(one.ideal.usage),
            own: [one.ideal.usage, 0],
            throttling: one
                .ideal
                .periods
                .map(|periods| [periods, one.ideal.throttled, one.ideal.throttled_time]),
            latencies: vec![one.ideal.latencies.clone()],
            turns: one.ideal.usage / 2,
            ..one
        }
    };
    let row = |each| Row {
        cell: 0,
        name: ["bare".to_owned(), "alternating".to_owned()],
        measured: alternating(each),
    };
    let rows = [row(100), row(10)];
    assert_eq!(rows[0].measured.latency(0.5), rows[1].measured.latency(0.5), "its bursts tell nothing");
    let share = rows[1].measured.work_share(control(&rows, &rows[1]).unwrap()).unwrap();
    assert!((share - 0.2).abs() < 0.01, "{share}");
    let told = &told_of(&rows)[0].text;
    assert!(told.contains("30 of 30 periods are throttled, 1.2"), "{told}");
    assert!(told.contains(", and 20.0 % of the work with 1 CPU is done, 50.0 M/s of 250 M/s"), "{told}");
    assert!(told.ends_with("the quota is the cause") && !told.contains("burst"), "{told}");
    // Only a quota above the load is a control.
    assert!(control(&rows[1..], &rows[1]).is_none());
}

/// A run of three rounds has three windows, and all of them count.
#[test]
fn windows_of_a_cell_are_told_together() {
    let slow = Measured { latencies: vec![(1..=4).map(|n| n * 500 * MS).collect()], ..measured_for(3, 10) };
    let one = measured_for(3, 10);
    let all = one.clone().together(one.clone()).together(slow);
    assert_eq!(
        (all.windows(), all.usage_share(), all.ideal_share()),
        (3, one.usage_share(), one.ideal_share())
    );
    assert_eq!(all.throttling.unwrap(), one.throttling.unwrap().map(|count| 3 * count));
    assert_eq!((all.growth(), all.waiting), (one.growth(), 3 * one.waiting));
}

#[test]
fn a_tail_is_of_a_hundred_bursts() {
    let of = |count| Measured { latencies: vec![vec![MS; count]], ..measured(100) }.tail();
    assert_eq!((of(99), of(100)), (None, Some(0.001)));
}

/// Numbers that no kernel counts must neither be divided by nor be simulated event by event.
#[test]
fn numbers_that_cannot_be_are_no_sample() {
    use super::names::*;
    use crate::names::Counter;

    let of = |changed: (Counter, i64)| {
        let fine = [
            (BUSY, 50_000_000),
            (EVERY, 100_000_000),
            (LOAD, 1),
            (THREADS, 1),
            (CPUS, 2),
            (LENGTH, 1_000_000_000),
            (WINDOW, 1_000_000_000),
            (USER, 1),
            (SYSTEM, 1),
        ];
        let quota = [(QUOTA, 10_000_000), (QUOTA_PERIOD, 100_000_000), (PERIODS, 9), (THROTTLED, 9)];
        let rest = [(THROTTLED_TIME, 1), (USAGE, 1)];
        let all = fine.into_iter().chain(quota).chain(rest);
        let of_name = |(name, value)| (name, if name == changed.0 { changed.1 } else { value });
        Measured::of(&Sample::default().with(all.map(of_name)))
    };
    assert!(of((LOAD, 1)).is_some_and(|measured| measured.quota.is_some()));
    for changed in [(EVERY, 1), (LENGTH, i64::MAX), (THREADS, 0), (THREADS, i64::MAX), (CPUS, 0)] {
        assert_eq!(of(changed), None, "{changed:?}");
    }
    assert!(of((QUOTA_PERIOD, 0)).is_some_and(|measured| measured.quota.is_none()));
    assert!(of((QUOTA, 0)).is_some_and(|measured| measured.quota.is_none()));
    assert!(of((QUOTA_PERIOD, 1)).is_none());
    for largest in [WINDOW, USER, QUOTA, PERIODS, THROTTLED, THROTTLED_TIME, USAGE] {
        let measured = of((largest, (LARGEST - 1) as i64)).unwrap();
        assert!(
            suspects::RULES.iter().all(|(_, _, rule)| rule(&measured).is_none_or(|told| !told.is_empty()))
        );
    }
}
