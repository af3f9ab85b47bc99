//! Intervals contain the truth as often as they claim.

use dunnage::stats::{Alpha, Estimate, Pairs, Rng, Sample};

use crate::statistics::bounds::{assert_at_least, assert_at_most};
use crate::statistics::shapes::{BIMODAL, COARSE, LOG_NORMAL, NORMAL, Shape};

/// The number of `trials` whose interval contains the true median, and the nominal probability.
fn coverage(shape: &Shape, rounds: usize, trials: usize, alpha: Alpha) -> (usize, f64) {
    let mut rng = Rng::for_stream(26, rounds as u64);
    let mut promised = 0.0;
    let held = (0..trials).filter(|_| {
        let values: Vec<f64> = (0..rounds).map(|_| (shape.draw)(&mut rng)).collect();
        let estimate = Estimate::of_median(&Sample::new(values).unwrap(), alpha);
        let interval = estimate.interval.unwrap();
        promised = interval.coverage;
        interval.contains(shape.median)
    });
    (held.count(), promised)
}

/// For continuous distributions the coverage is exactly the nominal one, so both sides are tested: an
/// interval that is always too wide fails as well.
#[test]
fn intervals_hold_the_median_as_often_as_they_say() {
    let trials = 4000;
    for shape in [NORMAL, LOG_NORMAL, BIMODAL] {
        for rounds in [10, 15, 30] {
            let (held, promised) = coverage(&shape, rounds, trials, Alpha::FIVE_PERCENT);
            let what = format!("{} with {rounds} rounds", shape.name);
            assert!(promised >= 0.95);
            assert_at_least(0.95, held, trials, &what);
            assert_at_least(promised, held, trials, &what);
            assert_at_most(promised, held, trials, &what);
        }
    }
}

#[test]
fn intervals_of_coarse_values_hold_the_median_at_least_as_often() {
    for rounds in [10, 15, 30] {
        let (held, promised) = coverage(&COARSE, rounds, 4000, Alpha::FIVE_PERCENT);
        assert_at_least(promised, held, 4000, &format!("{rounds} rounds"));
    }
}

#[test]
fn intervals_keep_the_level_of_a_large_family() {
    let alpha = Alpha::shared_by(20);
    for rounds in [10, 15, 30] {
        let (held, promised) = coverage(&LOG_NORMAL, rounds, 4000, alpha);
        assert_at_least(promised, held, 4000, &format!("{rounds} rounds"));
    }
}

/// Ratios of log-normal values with a true median ratio of 1.2, with a disturbance per round.
#[test]
fn intervals_of_ratios_hold_the_ratio() {
    let (trials, rounds) = (2000, 15);
    let mut rng = Rng::new(18);
    let mut promised = 0.0;
    let held = (0..trials).filter(|_| {
        let (mut baseline, mut subject) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let load = 100.0 * (0.5 * rng.standard_normal()).exp();
            let mut noisy = |factor: f64| Some(factor * load * (0.1 * rng.standard_normal()).exp());
            baseline.push(noisy(1.0));
            subject.push(noisy(1.2));
        }
        let pairs = Pairs::align(&baseline, &subject).unwrap();
        let ratio = pairs.ratio(1.0, Alpha::FIVE_PERCENT).unwrap();
        let interval = ratio.interval.unwrap();
        promised = interval.coverage;
        interval.contains(1.2)
    });
    let held = held.count();
    assert_at_least(promised, held, trials, "ratio");
    assert_at_most(promised, held, trials, "ratio");
}
