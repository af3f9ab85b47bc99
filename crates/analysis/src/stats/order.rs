//! Between which two of the measured values does the true median lie?
//!
//! Each independent round is below the median with probability ½, for any distribution.
//! So the number below it is Bin(n, ½), and the interval from the k-th smallest to the k-th
//! largest value misses the median with probability 2·P(Bin(n, ½) ≤ k−1), exactly for continuous
//! distributions and at most that for others (W. R. Thompson 1936; David and Nagaraja, "Order
//! Statistics", 3rd edition, section 7.1). It assumes nothing about the shape and resamples
//! nothing. Deliberately absent: intervals of other quantiles.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::level::{Alpha, min_rounds};
use super::sample::{Sample, middle_ranks};

/// Which order statistics bound the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianRanks {
    /// Rank of the lower bound, counted from 1.
    pub lower: usize,
    /// Rank of the upper bound: n + 1 − lower.
    pub upper: usize,
    /// The probability that the interval contains the median; at least 1 − alpha.
    pub coverage: f64,
}

/// An interval for a median, both ends measured values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end, in the unit of the sample.
    pub low: f64,
    /// The upper end; not below `low`.
    pub high: f64,
    /// The probability that such an interval contains the median: at least what was asked for,
    /// and more because ranks are whole numbers.
    pub coverage: f64,
}

impl Interval {
    /// Half the width: the smallest effect that the rounds could show.
    pub fn half_width(&self) -> f64 {
        // Halved first, since the width itself could overflow.
        self.high / 2.0 - self.low / 2.0
    }

    /// Whether the value is within, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The end that is farther from zero, without its sign.
    pub fn farthest_end(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }
}

/// A median that never travels without its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median, in the unit of the sample.
    pub value: f64,
    /// `None` when there are fewer rounds than [`min_rounds`] of `alpha`.
    pub interval: Option<Interval>,
    /// The number of values.
    pub rounds: usize,
    /// The two-sided error of the interval, which a decision inherits.
    pub alpha: Alpha,
}

/// The value with the ends of its interval.
impl Serialize for Estimate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_struct("Estimate", 6)?;
        fields.serialize_field("estimate", &self.value)?;
        fields.serialize_field("low", &self.interval.map(|one| one.low))?;
        fields.serialize_field("high", &self.interval.map(|one| one.high))?;
        fields.serialize_field("coverage", &self.interval.map(|one| one.coverage))?;
        fields.serialize_field("level", &self.alpha.get())?;
        fields.serialize_field("rounds", &self.rounds)?;
        fields.end()
    }
}

impl Estimate {
    /// The same on another scale, which must be monotone.
    pub fn map(self, scale: impl Fn(f64) -> f64) -> Estimate {
        let interval = self.interval.map(|one| {
            let (low, high) = (scale(one.low), scale(one.high));
            Interval { low: low.min(high), high: low.max(high), ..one }
        });
        Estimate { value: scale(self.value), interval, ..self }
    }

    /// The median of a sample and its exact interval.
    pub fn of_median(sample: &Sample, alpha: Alpha) -> Estimate {
        let rounds = sample.count();
        let (left, right) = middle_ranks(rounds);
        let Some(ranks) = median_ranks(rounds, alpha) else {
            return Estimate { value: sample.median(), interval: None, rounds, alpha };
        };
        let [low, left, right, high] = sample.order_statistics([ranks.lower, left, right, ranks.upper]);
        let interval = Interval { low, high, coverage: ranks.coverage };
        Estimate { value: left.midpoint(right), interval: Some(interval), rounds, alpha }
    }
}

/// The narrowest exact interval: the largest k with 2·P(Bin(n, ½) ≤ k−1) ≤ alpha.
///
/// `None` if n is too small for any. Takes about √n steps for large n (about 15 µs for a
/// million); callers that need the same n and alpha often can keep the result.
pub fn median_ranks(rounds: usize, alpha: Alpha) -> Option<MedianRanks> {
    if rounds < min_rounds(alpha) {
        return None;
    }
    let n = rounds as f64;
    let (mut at, mut probability) = lowest_term(rounds, alpha);
    let mut tail = 0.0;
    // `tail` is P(Bin ≤ at − 1), so while it is small enough, `at` itself is an allowed rank.
    loop {
        let next = tail + probability;
        // It never passes the middle, where the tail would be about a half.
        if 2.0 * next > alpha.get() || 2 * (at + 1) > rounds {
            break;
        }
        tail = next;
        probability *= (n - at as f64) / (at as f64 + 1.0);
        at += 1;
    }
    // With enough rounds there is at least the first rank, even if rounding at the very limit denies it.
    let lower = at.max(1);
    Some(MedianRanks { lower, upper: rounds + 1 - lower, coverage: 1.0 - 2.0 * tail })
}

/// Where to start summing P(Bin(n, ½) = j): a j with its probability, below which all terms
/// together are negligible.
fn lowest_term(rounds: usize, alpha: Alpha) -> (usize, f64) {
    // Up to here 2^−n is a normal number, and while the binomial coefficients fit into 53 bits
    // everything that follows is exact.
    if rounds <= 1000 {
        return (0, 0.5f64.powi(rounds as i32));
    }
    // Above, walk down from the middle until a term is 10^−20 of what is allowed. The sum of all
    // terms below it is at most a few dozen times as large.
    let negligible = alpha.get() * 1e-20;
    let n = rounds as f64;
    let mut at = rounds / 2;
    let mut probability = central_term(rounds);
    while at > 0 && probability > negligible {
        probability *= at as f64 / (n - at as f64 + 1.0);
        at -= 1;
    }
    (at, probability)
}

/// P(Bin(n, ½) = ⌊n/2⌋) for large n, by the asymptotic series of the central binomial coefficient
/// C(2m, m)/4^m = (1 − 1/8m + 1/128m² + 5/1024m³ − 21/32768m⁴ …)/√(πm) (Graham, Knuth and
/// Patashnik, "Concrete Mathematics", exercise 9.60). For m ≥ 500 the rest is below 10^−16.
fn central_term(rounds: usize) -> f64 {
    let m = rounds.div_ceil(2) as f64;
    let x = 1.0 / m;
    let series = 1.0 + x * (-1.0 / 8.0 + x * (1.0 / 128.0 + x * (5.0 / 1024.0 - x * 21.0 / 32768.0)));
    // For odd n = 2m − 1 the term C(n, m−1)/2^n equals C(2m, m)/4^m; for even n it is that itself.
    series / (std::f64::consts::PI * m).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn alpha(value: f64) -> Alpha {
        Alpha::new(value).unwrap()
    }

    /// The definition itself in whole numbers, for n ≤ 120: the largest k, and how many of the 2^n
    /// outcomes its interval misses.
    fn by_counting(n: u32, alpha: f64) -> Option<(usize, f64)> {
        let total = 2f64.powi(n as i32);
        let (mut choose, mut missed, mut best) = (1u128, 0u128, None);
        for k in 1..=n.div_ceil(2) {
            missed += 2 * choose;
            choose = choose * u128::from(n - k + 1) / u128::from(k);
            if missed as f64 / total <= alpha {
                best = Some((k as usize, 1.0 - missed as f64 / total));
            }
        }
        best
    }

    #[test]
    fn ranks_agree_with_counting_outcomes() {
        for n in 1..=120 {
            for level in [0.5, 0.1, 0.05, 0.0025, 0.0005, 1e-9] {
                let got = median_ranks(n, alpha(level));
                let expected = by_counting(n as u32, level);
                assert_eq!(got.map(|ranks| ranks.lower), expected.map(|(k, _)| k), "n {n} alpha {level}");
                if let (Some(ranks), Some((_, coverage))) = (got, expected) {
                    assert!((ranks.coverage - coverage).abs() < 1e-14);
                    assert_eq!(ranks.lower + ranks.upper, n + 1);
                }
            }
        }
    }

    /// Values from tables (Conover, "Practical Nonparametric Statistics", sign test, α = 0.05).
    #[test]
    fn ranks_are_those_of_the_tables() {
        for (n, k) in [(6, 1), (8, 1), (9, 2), (10, 2), (15, 4), (20, 6), (25, 8), (30, 10), (50, 18)] {
            assert_eq!(median_ranks(n, Alpha::FIVE_PERCENT).unwrap().lower, k, "n {n}");
        }
        assert_eq!(median_ranks(5, Alpha::FIVE_PERCENT), None);
        assert_eq!(median_ranks(0, Alpha::FIVE_PERCENT), None);
    }

    #[test]
    fn a_level_that_is_just_reached_counts() {
        let exact = alpha(2f64.powi(-9));
        assert_eq!(min_rounds(exact), 10);
        let ranks = median_ranks(10, exact).unwrap();
        assert_eq!((ranks.lower, ranks.upper), (1, 10));
        assert_eq!(ranks.coverage, 1.0 - 2f64.powi(-9));
    }

    /// Both ways of starting the sum must agree where they meet.
    #[test]
    fn the_series_for_large_counts_continues_the_exact_sum() {
        for n in [1000usize, 999] {
            let mut term = 0.5f64.powi(n as i32);
            for j in 0..n / 2 {
                term *= (n - j) as f64 / (j + 1) as f64;
            }
            assert!((central_term(n) / term - 1.0).abs() < 1e-12, "n {n}");
        }
    }

    /// By the normal approximation with its error bound (Berry and Esseen): the rank of a million
    /// rounds is within one of n/2 − z·√n/2, where z is the normal quantile of alpha.
    #[test]
    fn a_million_rounds_work() {
        for (level, z) in [(0.05, 1.959_963_984_540_054), (0.0005, 3.480_756_404_346_17)] {
            for n in [20_001usize, 1_000_000] {
                let ranks = median_ranks(n, alpha(level)).unwrap();
                let expected = n as f64 / 2.0 - z * (n as f64).sqrt() / 2.0;
                assert!((ranks.lower as f64 - expected).abs() <= 1.5, "{n} {level}");
                // The next rank costs about 5 % of the level at worst (20,001 rounds, 0.0005).
                assert!(ranks.coverage >= 1.0 - level && ranks.coverage < 1.0 - level * 0.9);
            }
        }
    }

    #[test]
    fn vanishing_levels_end_in_a_refusal_or_the_whole_range() {
        let tiny = alpha(f64::MIN_POSITIVE);
        assert_eq!(median_ranks(1000, tiny), None);
        let need = min_rounds(tiny);
        assert_eq!(median_ranks(need, tiny).unwrap().lower, 1);
    }

    #[test]
    fn an_estimate_has_an_interval_only_with_enough_rounds() {
        let few = Sample::new(vec![1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let estimate = Estimate::of_median(&few, Alpha::FIVE_PERCENT);
        assert_eq!((estimate.value, estimate.interval), (3.0, None));

        let nine: Vec<f64> = (1..=9).rev().map(f64::from).collect();
        let estimate = Estimate::of_median(&Sample::new(nine).unwrap(), Alpha::FIVE_PERCENT);
        let interval = estimate.interval.unwrap();
        assert_eq!((interval.low, estimate.value, interval.high), (2.0, 5.0, 8.0));
        assert_eq!(interval.half_width(), 3.0);
    }

    proptest! {
        #[test]
        fn the_level_is_kept_by_every_count(n in 1usize..3000, level in 1e-6..0.9) {
            let level = alpha(level);
            if let Some(ranks) = median_ranks(n, level) {
                prop_assert!(ranks.lower >= 1 && ranks.lower <= ranks.upper);
                prop_assert!(ranks.coverage >= 1.0 - level.get());
            } else {
                prop_assert!(n < min_rounds(level));
            }
        }

        #[test]
        fn more_rounds_never_lower_the_rank(n in 1usize..3000, level in 1e-6..0.9) {
            let rank = |n| median_ranks(n, alpha(level)).map(|ranks| ranks.lower);
            prop_assert!(rank(n) <= rank(n + 1));
        }

        #[test]
        fn the_median_lies_in_its_interval(values in prop::collection::vec(-1e9..1e9, 1..100)) {
            let estimate = Estimate::of_median(&Sample::new(values).unwrap(), Alpha::FIVE_PERCENT);
            if let Some(interval) = estimate.interval {
                prop_assert!(interval.contains(estimate.value));
            }
        }
    }
}
