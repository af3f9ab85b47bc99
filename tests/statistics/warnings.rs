//! Drift, carry-over, spikes and modes are detected where they were planted, and rarely elsewhere.

use dunnage::stats::{Rng, Sample, bimodal, carry_over, drift, outer_fences};

use crate::statistics::bounds::{assert_at_least, assert_at_most};
use crate::statistics::shapes::{COARSE, LOG_NORMAL, NORMAL};

#[test]
fn drift_raises_few_false_alarms_and_finds_a_planted_one() {
    let trials = 1000;
    for rounds in [10, 15, 30] {
        let mut rng = Rng::for_stream(24, rounds as u64);
        let mut found = |slope: f64, draw: fn(&mut Rng) -> f64| {
            let drifting = |_: &usize| {
                let values: Vec<_> =
                    (0..rounds).map(|round| Some(slope * f64::from(round) + draw(&mut rng))).collect();
                drift(&values, 0.05).is_some()
            };
            (0..trials).filter(drifting).count()
        };
        for shape in [NORMAL, LOG_NORMAL, COARSE] {
            let what = format!("{} with {rounds} rounds", shape.name);
            assert_at_most(0.05, found(0.0, shape.draw), trials, &what);
        }
        // Four standard deviations of one round over the whole run.
        let planted = found(4.0 / f64::from(rounds), NORMAL.draw);
        assert_at_least(0.8, planted, trials, &format!("planted, {rounds} rounds"));
    }
}

#[test]
fn carry_over_raises_few_false_alarms_and_finds_a_planted_one() {
    let trials = 40;
    let found = |effect: f64, stream| {
        let mut rng = Rng::for_stream(25, stream);
        (0..trials)
            .filter(|&trial| {
                let observations: Vec<(usize, f64)> = (0..24)
                    .map(|_| {
                        let predecessor = rng.index(4).unwrap();
                        let planted = if predecessor == 2 { effect } else { 0.0 };
                        (predecessor, planted + rng.standard_normal())
                    })
                    .collect();
                carry_over(&observations, trial as u64).unwrap().p <= 0.05
            })
            .count()
    };
    assert_at_most(0.05, found(0.0, 0), trials, "no carry-over");
    assert_at_least(0.8, found(3.0, 1), trials, "planted");
}

/// Severe outliers are rare in normal data (two in a million), and spikes planted in one round of twenty are
/// all counted.
#[test]
fn spikes_are_counted_and_normal_values_are_not() {
    let mut rng = Rng::new(27);
    let plain: Vec<f64> = (0..2000).map(|_| rng.standard_normal()).collect();
    let severe = |values: Vec<f64>| {
        let fences = outer_fences(&Sample::new(&values).unwrap(), 0.0);
        values.iter().filter(|value| !fences.contains(value)).count()
    };
    assert_eq!(severe(plain.clone()), 0);

    let planted: Vec<f64> = plain
        .iter()
        .enumerate()
        .map(|(round, value)| value + if round % 20 == 7 { 30.0 } else { 0.0 })
        .collect();
    assert_eq!(severe(planted), 100);
}

/// The shape of a run whose every second round found a warm cache.
#[test]
fn alternating_rounds_are_two_heaps_without_drift() {
    let mut rng = Rng::new(28);
    let values: Vec<f64> =
        (0..30).map(|round| if round % 2 == 0 { 5.0 } else { 21.0 } + rng.standard_normal()).collect();
    let modes = bimodal(&Sample::new(values.clone()).unwrap(), 0.0).unwrap();
    assert_eq!(modes.counts, [15, 15]);
    let series: Vec<_> = values.into_iter().map(Some).collect();
    assert!(drift(&series, 2.0).unwrap().p > 0.05);
}
