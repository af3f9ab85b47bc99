//! How many rounds make an interval as narrow as asked for?
//!
//! The interval of a median runs from the k-th smallest of n paired differences to the k-th largest
//! (`order`). For a normal distribution with standard deviation σ, the expected half of that distance
//! is σ·z(n, k), where z(n, k) = Φ⁻¹((n − k + 5/8)/(n + 1/4)) (Blom, "Statistical Estimates and
//! Transformed Beta-Variables", 1958). The same formula, solved for σ, takes it from a pilot: from two
//! symmetrical order statistics near the outer tenths, which say nearly as much as all values would, and
//! which a single spike does not move.
//!
//! Both distances vary from run to run, so a number of rounds for which the expected width is just
//! right would miss it every second time (Kupper and Hafner, "How appropriate are popular sample size
//! formulas?", 1989). Therefore the width that four runs of five keep must meet the precision asked for:
//! the expected one times exp(0.84·τ), where τ² is the sum of the relative variances of both
//! distances, by the asymptotic variance of order statistics (David and Nagaraja, section 10.3).
//!
//! This is planning: a pilot without spikes cannot predict them. The precision reached is read from the run.

use super::level::Alpha;
use super::normal::{density, exceeded_with};
use super::order::median_ranks;
use super::sample::Sample;

/// The minimum number of values that show how much they spread.
const FEWEST_PILOT_ROUNDS: usize = 5;
/// The standard normal deviate that four of five stay below.
const FOUR_OF_FIVE: f64 = 0.841_621_233_572_914_2;

/// The spread of paired differences in a pilot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The standard deviation of a normal distribution with the same spread, in the unit of the
    /// sample.
    pub deviation: f64,
    /// The relative variance of that figure over pilots like this one.
    variance: f64,
}

impl Spread {
    /// The spread of a pilot's values; `None` if they are too few.
    pub fn of(pilot: &Sample) -> Option<Spread> {
        let rounds = pilot.count();
        if rounds < FEWEST_PILOT_ROUNDS {
            return None;
        }
        let rank = 1 + rounds / 12;
        let [low, high] = pilot.order_statistics([rank, rounds + 1 - rank]);
        let deviation = (high / 2.0 - low / 2.0) / half_distance(rounds, rank);
        Some(Spread { deviation, variance: relative_variance(rounds, rank) })
    }

    /// Half the width of the interval of the median that four of five runs with so many rounds keep; `None`
    /// if there is no interval at this level.
    pub fn kept(&self, rounds: usize, alpha: Alpha) -> Option<f64> {
        let rank = median_ranks(rounds, alpha)?.lower;
        let variance = self.variance + relative_variance(rounds, rank);
        Some(self.deviation * half_distance(rounds, rank) * (FOUR_OF_FIVE * variance.sqrt()).exp())
    }
}

/// The spreads that no other covers by being at least as wide and as uncertain: a width that these keep, all
/// keep.
pub fn decisive(mut spreads: Vec<Spread>) -> Vec<Spread> {
    spreads.sort_by(|one, other| other.deviation.total_cmp(&one.deviation));
    let mut kept: Vec<Spread> = Vec::new();
    for one in spreads {
        if kept.iter().all(|wider| wider.variance < one.variance) {
            kept.push(one);
        }
    }
    kept
}

/// Half the expected distance of the k-th smallest and the k-th largest of n standard normal values;
/// a little above zero if the two meet in the middle.
fn half_distance(rounds: usize, rank: usize) -> f64 {
    let (n, k) = (rounds as f64, rank as f64);
    exceeded_with(((k - 0.375) / (n + 0.25)).min(0.499_999))
}

/// The relative variance of that distance: p(1 − 2p)/(2nφ²z²) with p = k/(n + 1).
fn relative_variance(rounds: usize, rank: usize) -> f64 {
    let (n, k) = (rounds as f64, rank as f64);
    let p = (k / (n + 1.0)).min(0.499_999);
    let z = exceeded_with(p);
    p * (1.0 - 2.0 * p) / (2.0 * n * (density(z) * half_distance(rounds, rank)).powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected ranges of normal samples and their standard deviations (Pearson and Hartley,
    /// "Biometrika Tables", table 20; quality control's d₂ and d₃).
    #[test]
    fn distances_are_those_of_the_tables() {
        for (n, d2, d3) in [(10, 3.078, 0.797), (15, 3.472, 0.756), (20, 3.735, 0.729)] {
            assert!((2.0 * half_distance(n, 1) / d2 - 1.0).abs() < 0.01, "{n}");
            let relative = relative_variance(n, 1).sqrt();
            assert!((relative / (d3 / d2) - 1.0).abs() < 0.15, "{n}: {relative}");
        }
    }

    #[test]
    fn a_spike_does_not_move_the_spread() {
        let plain: Vec<f64> = (0..15).map(f64::from).collect();
        let mut spiked = plain.clone();
        spiked[14] = 1000.0;
        let spread = |values: Vec<f64>| Spread::of(&Sample::new(values).unwrap());
        assert_eq!(spread(plain), spread(spiked));
        assert_eq!(spread(vec![1.0; 4]), None);
    }

    #[test]
    fn more_rounds_keep_less() {
        let values: Vec<f64> = (0..15).map(f64::from).collect();
        let spread = Spread::of(&Sample::new(values).unwrap()).unwrap();
        let kept = |rounds| spread.kept(rounds, Alpha::FIVE_PERCENT).unwrap();
        assert!(kept(100) > 1.5 * kept(400) && kept(100) < 2.5 * kept(400));
        assert_eq!(spread.kept(5, Alpha::FIVE_PERCENT), None);
    }
}
