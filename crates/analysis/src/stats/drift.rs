//! Do the values rise or fall over the rounds?
//!
//! Shuffled rounds and paired differences cancel a drift of the whole machine, but readers must
//! know about it. Deliberately absent: removing the drift, and steps or waves, which are
//! not trends. The test assumes independent rounds; if neighbours are correlated, it finds
//! drift too often.

use std::num::NonZeroU64;

use super::normal;
use super::rng::Rng;
use super::sample::Sample;

/// Fewer rounds cannot reach 5 % in any order: of the 5! orders of five, two are monotone (1.7 %),
/// of the 4! orders of four also two (8.3 %).
const FEWEST_ROUNDS: usize = 5;
/// Up to so many rounds the slope is from all pairs (two million), above that from a sample.
const ALL_PAIRS: usize = 2000;
/// The number of pairs in that sample. The rank of its median is within 0.1 % of all pairs from the middle (two
/// standard deviations of a share of one half).
const SAMPLED_PAIRS: usize = 1_000_000;

/// A trend over the rounds, and the evidence for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The number of rounds with a value.
    pub rounds: usize,
    /// Two-sided probability of an order at least as monotone by chance.
    pub p: f64,
    /// Change per round, in the unit of the values.
    pub slope: f64,
    /// Change from the first to the last round with a value, in the unit of the values.
    pub total: f64,
    /// The total as a share of the median (0.02 is 2 %); `None` when that is zero.
    pub relative: Option<f64>,
}

/// Looks for a trend in a series, one value per round in order of measurement; `None` is a round
/// without a value.
///
/// The probability is that of the Mann–Kendall test (Mann 1945, Kendall 1948) with ties, by its
/// normal approximation with continuity correction; the slope is that of Theil (1950) and Sen
/// (1968), the median slope over all pairs of rounds.
///
/// None if fewer than five rounds have a value, one of them is not finite, or the probability is not below this level: the
/// slope is found only where it is shown, since it takes longest.
pub fn drift(series: &[Option<f64>], level: f64) -> Option<Drift> {
    let (rounds, values): (Vec<usize>, Vec<f64>) =
        series.iter().enumerate().filter_map(|(round, value)| value.map(|value| (round, value))).unzip();
    if values.len() < FEWEST_ROUNDS || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let p = mann_kendall(&values);
    if p >= level {
        return None;
    }
    let slope = theil_sen(&rounds, &values);
    let total = slope * (rounds[rounds.len() - 1] - rounds[0]) as f64;
    let median = Sample::new(values)?.median();
    let relative = total / median.abs();
    Some(Drift {
        rounds: rounds.len(),
        p,
        slope,
        total,
        relative: (median != 0.0 && relative.is_finite()).then_some(relative),
    })
}

/// By how much values rise from one to the next: the median slope over all pairs (Theil 1950, Sen 1968); none for fewer than two.
pub fn rise(values: &[f64]) -> Option<f64> {
    let places: Vec<usize> = (0..values.len()).collect();
    Some(theil_sen(&places, values)).filter(|_| values.len() > 1).filter(|slope| slope.is_finite())
}

/// The two-sided probability of the Mann–Kendall statistic.
fn mann_kendall(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    let falling = sort_counting_inversions(&mut sorted);
    let pairs = |count: usize| count as f64 * (count as f64 - 1.0) / 2.0;
    // Under exchangeability, the variance of S is n(n−1)(2n+5)/18, less the same for each tie.
    let variance = |count: usize| pairs(count) * (2.0 * count as f64 + 5.0) / 9.0;
    let ties = || sorted.chunk_by(|a, b| a == b).map(<[f64]>::len);
    let tied: f64 = ties().map(pairs).sum();
    let rising_minus_falling = pairs(values.len()) - tied - 2.0 * falling as f64;
    let deviation = (variance(values.len()) - ties().map(variance).sum::<f64>()).sqrt();
    // S moves in steps of 2 (Kendall's correction by 1), and nothing is more likely than 0.
    let beyond = rising_minus_falling.abs() - 1.0;
    if beyond <= 0.0 || deviation == 0.0 { 1.0 } else { normal::two_sided(beyond / deviation) }
}

/// Sorts by merging and counts the pairs that were in descending order (Knight 1966).
fn sort_counting_inversions(values: &mut [f64]) -> u64 {
    if values.len() < 2 {
        return 0;
    }
    let middle = values.len() / 2;
    let (left, right) = values.split_at_mut(middle);
    let mut inversions = sort_counting_inversions(left) + sort_counting_inversions(right);
    let mut merged = Vec::with_capacity(values.len());
    let (mut i, mut j) = (0, middle);
    while i < middle && j < values.len() {
        if values[i] <= values[j] {
            merged.push(values[i]);
            i += 1;
        } else {
            merged.push(values[j]);
            j += 1;
            inversions += (middle - i) as u64;
        }
    }
    merged.extend_from_slice(&values[i..middle]);
    // The rest on the right is already in place.
    values[..merged.len()].copy_from_slice(&merged);
    inversions
}

/// The median slope over pairs of rounds: all of them, or a fixed sample of many.
fn theil_sen(rounds: &[usize], values: &[f64]) -> f64 {
    let n = values.len();
    let slope = |i: usize, j: usize| (values[j] - values[i]) / (rounds[j] as f64 - rounds[i] as f64);
    let slopes: Vec<f64> = if n <= ALL_PAIRS {
        (0..n).flat_map(|j| (0..j).map(move |i| (i, j))).map(|(i, j)| slope(i, j)).collect()
    } else {
        // A fixed seed: the same data give the same slope. The second round of a pair is drawn from one
        // fewer, stepping over the first, so that the two are different.
        let mut rng = Rng::new(0x7468_6569_6c73_656e);
        let others = NonZeroU64::MIN.saturating_add(n as u64 - 2);
        (0..SAMPLED_PAIRS)
            .map(|_| {
                let i = rng.below(others.saturating_add(1)) as usize;
                let j = rng.below(others) as usize;
                slope(i, if j >= i { j + 1 } else { j })
            })
            .collect()
    };
    Sample::new(slopes).map_or(f64::NAN, |slopes| slopes.median())
}

#[cfg(test)]
mod tests {
    use super::*;
    // Named, because proptest's prelude has a trait of that name.
    use crate::stats::Rng;
    use proptest::prelude::*;

    /// Above all probabilities.
    const ANY: f64 = 2.0;

    fn of(values: impl IntoIterator<Item = f64>) -> Drift {
        let series: Vec<_> = values.into_iter().map(Some).collect();
        drift(&series, ANY).unwrap()
    }

    /// A planted slope with one wild value, which a least-squares line would follow.
    #[test]
    fn a_planted_trend_is_found_and_an_outlier_does_not_bend_it() {
        let found = of((0..21).map(|i| if i == 20 { -900.0 } else { 100.0 + 2.0 * f64::from(i) }));
        assert_eq!((found.slope, found.total), (2.0, 40.0));
        assert_eq!(found.relative, Some(40.0 / 118.0));
        assert!(found.p < 1e-4);
    }

    /// Worked by hand, without and with ties.
    #[test]
    fn the_probability_is_that_of_the_formula() {
        // One of 45 pairs falls: S = 44 − 1, and Var = 10·9·25/18.
        let found = of([1.0, 2.0, 3.0, 5.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
        let expected = normal::two_sided((43.0 - 1.0) / 125f64.sqrt());
        assert!((found.p / expected - 1.0).abs() < 1e-12);
        // Two tied pairs: S = 15 − 2, Var = (6·5·17 − 2 · 2·1·9)/18.
        let found = of([1.0, 1.0, 2.0, 3.0, 4.0, 4.0]);
        let expected = normal::two_sided((13.0 - 1.0) / ((510.0 - 36.0) / 18.0f64).sqrt());
        assert!((found.p / expected - 1.0).abs() < 1e-12);
    }

    #[test]
    fn equal_values_have_no_drift() {
        let found = of([0.0; 30]);
        assert_eq!((found.p, found.total, found.relative), (1.0, 0.0, None));
    }

    #[test]
    fn missing_rounds_keep_their_place_in_time() {
        let mut series: Vec<_> = (0..30).map(|i| Some(f64::from(i))).collect();
        series[0] = None;
        series[10..20].fill(None);
        let found = drift(&series, ANY).unwrap();
        assert_eq!((found.rounds, found.slope, found.total), (19, 1.0, 28.0));
    }

    #[test]
    fn what_cannot_be_judged_has_no_drift() {
        let few = [Some(1.0), None, Some(2.0), Some(3.0), Some(4.0)];
        assert_eq!(drift(&few, ANY), None);
        let bad = [Some(1.0), Some(2.0), Some(f64::NAN), Some(3.0), Some(4.0)];
        assert_eq!(drift(&bad, ANY), None);
    }

    #[test]
    fn a_sample_of_pairs_gives_nearly_the_slope_of_all() {
        let mut rng = Rng::new(11);
        let values: Vec<f64> = (0..3000).map(|i| f64::from(i) * 0.001 + rng.standard_normal()).collect();
        let found = of(values);
        // The standard error of the slope itself is σ·√12/n^1.5 = 2.1e-5.
        assert!((found.slope - 0.001).abs() < 8e-5, "{}", found.slope);
        assert!(found.p < 1e-9);
    }

    proptest! {
        #[test]
        fn inversions_are_counted_like_pair_by_pair(values in prop::collection::vec((-9i8..9).prop_map(f64::from), 0..60)) {
            let expected = (0..values.len())
                .flat_map(|j| (0..j).map(move |i| (i, j)))
                .filter(|&(i, j)| values[i] > values[j])
                .count() as u64;
            let mut sorted = values.clone();
            prop_assert_eq!(sort_counting_inversions(&mut sorted), expected);
            prop_assert!(sorted.is_sorted());
        }

        #[test]
        fn time_reversed_the_drift_is_mirrored(values in prop::collection::vec((-9i8..9).prop_map(f64::from), 5..40)) {
            let (there, back) = (of(values.iter().copied()), of(values.iter().rev().copied()));
            prop_assert_eq!(there.p, back.p);
            prop_assert_eq!(there.total, -back.total);
        }
    }
}
