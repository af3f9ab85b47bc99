//! By how much does a subject differ from the baseline, round by round?
//!
//! A round is a block: what disturbs it disturbs both sides, so the difference is taken inside
//! each round first, and the estimate is the median of those differences (not the difference of
//! the medians). A round in which either side is missing gives no pair. One in which a side *failed* is not
//! missing: what it would have shown is unknown, and it may be unknown because it is far from the others. So the
//! ends of an interval are those that remain when all such rounds are at the lowest and at the highest place.

use std::cmp::Ordering;

use super::level::Alpha;
use super::order::{Estimate, Interval, median_ranks};
use super::sample::{Sample, middle_ranks};

/// A ratio is only meaningful if the baseline is at least this many times the timer's resolution.
pub const RATIO_FLOORS: f64 = 10.0;

/// Two series, one value per round, reduced to the rounds that have both.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    /// The baseline's value in each complete round.
    pub baseline: Sample,
    /// The subject's value in the same rounds.
    pub subject: Sample,
    /// Subject minus baseline in the same rounds.
    pub differences: Sample,
    /// Rounds in which a side failed.
    pub failed: FailedRounds,
}

/// Rounds in which a side failed, by where their differences are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailedRounds {
    /// Below all others, since the baseline is above any value.
    pub below: usize,
    /// Above all others.
    pub above: usize,
    /// Anywhere.
    pub anywhere: usize,
}

/// Farther from zero than any value: it stands for a failed round. The difference of two such numbers does not overflow.
pub const FAR: f64 = f64::MAX / 8.0;

/// The end of an interval, or a median: infinite if a failed round is there.
pub(super) fn open(value: f64) -> f64 {
    if value.abs() < FAR / 2.0 { value } else { value * f64::INFINITY }
}

impl FailedRounds {
    /// Their number.
    pub fn count(&self) -> usize {
        self.below + self.above + self.anywhere
    }

    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.count() == 0
    }

    /// The estimate with the rounds that may be anywhere at their lowest place, and at their highest.
    pub(super) fn at_both_extremes(&self, known: &Sample, alpha: Alpha) -> [Estimate; 2] {
        [[self.anywhere, 0], [0, self.anywhere]].map(|more| self.with(known, more, alpha))
    }

    fn with(&self, known: &Sample, [below, above]: [usize; 2], alpha: Alpha) -> Estimate {
        let below = self.below + below;
        let rounds = known.count() + below + self.above + above;
        let (left, right) = middle_ranks(rounds);
        let ranks = median_ranks(rounds, alpha);
        let (lower, upper) = ranks.map_or((left, right), |ranks| (ranks.lower, ranks.upper));
        let [low, left, right, high] = among(known, [lower, left, right, upper], [below; 4]);
        let interval = ranks.map(|ranks| Interval { low, high, coverage: ranks.coverage });
        Estimate { value: left.midpoint(right), interval, rounds, alpha }
    }

    /// The median of the differences whose place is known, with an interval that holds wherever the others are. An end
    /// is infinite if a failed round could be there.
    pub(super) fn estimate(&self, known: &Sample, alpha: Alpha) -> Estimate {
        if self.is_none() {
            return Estimate::of_median(known, alpha);
        }
        let placed = known.count() + self.below + self.above;
        let rounds = placed + self.anywhere;
        let (left, right) = middle_ranks(placed);
        let ranks = median_ranks(rounds, alpha);
        let (lower, upper) = ranks.map_or((left, right), |ranks| (ranks.lower, ranks.upper));
        // The lower end with those that may be anywhere below all others, the upper one with them above.
        let below = [self.below + self.anywhere, self.below, self.below, self.below];
        let [low, left, right, high] = among(known, [lower, left, right, upper], below);
        let interval =
            ranks.map(|ranks| Interval { low: open(low), high: open(high), coverage: ranks.coverage });
        Estimate { value: open(left.midpoint(right)), interval, rounds, alpha }
    }
}

/// The numbers at ranks, counted from 1, of the known ones with so many others below them and the rest above.
fn among(known: &Sample, ranks: [usize; 4], below: [usize; 4]) -> [f64; 4] {
    let mut shifted = ranks;
    shifted.iter_mut().zip(below).for_each(|(rank, below)| *rank = rank.saturating_sub(below));
    let mut found = known.order_statistics(shifted);
    for (value, rank) in found.iter_mut().zip(shifted) {
        match rank {
            0 => *value = -FAR,
            rank if rank > known.count() => *value = FAR,
            _ => {}
        }
    }
    found
}

impl Pairs {
    /// Pairs the values of the same round; `None` is a round without one. None if no round has both values,
    /// or if a value or a difference is not a finite number.
    pub fn align(baseline: &[Option<f64>], subject: &[Option<f64>]) -> Option<Pairs> {
        let is_finite = |series: &[Option<f64>]| series.iter().flatten().all(|value| value.is_finite());
        if baseline.len() != subject.len() || !is_finite(baseline) || !is_finite(subject) {
            return None;
        }
        let mut kept: [Vec<f64>; 3] = Default::default();
        for (baseline, subject) in baseline.iter().zip(subject) {
            let (Some(baseline), Some(subject)) = (baseline, subject) else { continue };
            for (series, value) in kept.iter_mut().zip([*baseline, *subject, subject - baseline]) {
                series.push(value);
            }
        }
        // The difference of two finite values can overflow.
        let [baseline, subject, differences] = kept.map(Sample::new);
        let failed = FailedRounds::default();
        Some(Pairs { baseline: baseline?, subject: subject?, differences: differences?, failed })
    }

    /// The median of the paired differences, in the unit of the values, with its exact interval.
    pub fn difference(&self, alpha: Alpha) -> Estimate {
        self.failed.estimate(&self.differences, alpha)
    }

    /// The median ratio subject ÷ baseline: the median of the paired log ratios and its exact
    /// interval, both exponentiated. With an even count this is the geometric mean of the two
    /// ratios in the middle. `timer_floor` is in the unit of the values.
    ///
    /// None if the baseline is too close to the timer's resolution, a value is not above zero, or the ratio
    /// overflows.
    pub fn ratio(&self, timer_floor: f64, alpha: Alpha) -> Option<Estimate> {
        // Written so that a NaN floor gives no ratio either.
        let least = RATIO_FLOORS * timer_floor;
        let clear = self.baseline.values().iter().filter(|value| **value >= least).count();
        let is_clear_of_floor = match (2 * clear).cmp(&self.baseline.count()) {
            // Half of them are below: the middle may still be above.
            Ordering::Equal => self.baseline.median() >= least,
            most => most.is_gt(),
        };

        let sides = [self.baseline.values(), self.subject.values()];
        if !is_clear_of_floor || sides.into_iter().flatten().any(|value| *value <= 0.0) {
            return None;
        }
        let both = self.baseline.values().iter().zip(self.subject.values());
        let logs: Vec<f64> = both.map(|(baseline, subject)| subject.ln() - baseline.ln()).collect();
        let logs = self.failed.estimate(&Sample::new(logs)?, alpha);
        let ratio = logs.map(f64::exp);
        let is_known = |log: f64| log.exp().is_finite() || log.is_infinite();
        (is_known(logs.value) && logs.interval.is_none_or(|ends| is_known(ends.high))).then_some(ratio)
    }
}

/// The two-sided probability that, of the rounds in which only one side failed, it is the same side at least as often
/// as this, if each is as likely: the exact test of paired shares (McNemar 1947), a sign test.
pub fn more_often(one: usize, other: usize) -> f64 {
    let all = one + other;
    let mut term = -(all as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    for count in 0..=one.min(other) {
        tail += term.exp();
        term += ((all - count) as f64 / (count + 1) as f64).ln();
    }
    (2.0 * tail).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALPHA: Alpha = Alpha::FIVE_PERCENT;

    fn full(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn only_complete_rounds_are_paired() {
        let baseline = [Some(1.0), None, Some(3.0), None, Some(5.0)];
        let subject = [Some(2.0), Some(9.0), None, None, Some(9.0)];
        let pairs = Pairs::align(&baseline, &subject).unwrap();
        assert_eq!(pairs.differences.values(), [1.0, 4.0]);
        assert_eq!(pairs.differences.count(), 2);
        assert_eq!(pairs.difference(ALPHA).value, 2.5);
    }

    #[test]
    fn series_that_cannot_be_paired_are_refused() {
        let one = full(&[1.0]);
        for (baseline, subject) in [(&one[..], &[][..]), (&one, &[None]), (&[], &[])] {
            assert_eq!(Pairs::align(baseline, subject), None);
        }
        // A bad value is rejected even in a round that would not be paired.
        assert_eq!(Pairs::align(&[None, Some(1.0)], &[Some(f64::NAN), Some(1.0)]), None);
        assert_eq!(Pairs::align(&full(&[-f64::MAX]), &full(&[f64::MAX])), None);
    }

    /// The median of differences is not the difference of medians: here 1 and −10.
    #[test]
    fn the_difference_is_taken_within_each_round() {
        let pairs = Pairs::align(&full(&[10.0, 20.0, 30.0]), &full(&[11.0, 0.0, 31.0])).unwrap();
        assert_eq!(pairs.difference(ALPHA).value, 1.0);
        assert_eq!(pairs.subject.median() - pairs.baseline.median(), -9.0);
    }

    #[test]
    fn a_ratio_needs_a_baseline_far_above_the_timer() {
        let pairs = Pairs::align(&full(&[100.0; 9]), &full(&[150.0; 9])).unwrap();
        let ratio = pairs.ratio(10.0, ALPHA).unwrap();
        assert!((ratio.value - 1.5).abs() < 1e-12);
        assert!((ratio.interval.unwrap().low - 1.5).abs() < 1e-12);
        assert_eq!((pairs.ratio(10.1, ALPHA), pairs.ratio(f64::NAN, ALPHA)), (None, None));
    }

    #[test]
    fn a_ratio_needs_positive_values() {
        let pairs = Pairs::align(&full(&[5.0, 5.0]), &full(&[5.0, 0.0])).unwrap();
        assert_eq!(pairs.ratio(0.1, ALPHA), None);
        let pairs = Pairs::align(&full(&[1e-300]), &full(&[1e300])).unwrap();
        assert_eq!(pairs.ratio(0.0, ALPHA), None);
    }

    proptest! {
        /// Swapping the sides changes the sign of a difference and inverts a ratio, intervals too.
        #[test]
        fn swapping_sides_mirrors_the_result(values in prop::collection::vec((1.0..1e6, 1.0..1e6), 1..60)) {
            let (a, b): (Vec<_>, Vec<_>) = values.iter().map(|&(a, b)| (Some(a), Some(b))).unzip();
            let (there, back) = (Pairs::align(&a, &b).unwrap(), Pairs::align(&b, &a).unwrap());
            prop_assert_eq!(there.difference(ALPHA).value, -back.difference(ALPHA).value);
            if let (Some(x), Some(y)) = (there.difference(ALPHA).interval, back.difference(ALPHA).interval) {
                prop_assert_eq!((x.low, x.high), (-y.high, -y.low));
            }
            let (x, y) = (there.ratio(0.0, ALPHA).unwrap(), back.ratio(0.0, ALPHA).unwrap());
            prop_assert!((x.value * y.value - 1.0).abs() < 1e-9);
        }

        /// A shift of a whole round is not seen.
        #[test]
        fn a_disturbance_of_the_whole_round_cancels(values in prop::collection::vec((0i32..1000, 0i32..1000, 0i32..100_000), 1..60)) {
            let series = |value: fn(&(i32, i32, i32)) -> i32| -> Vec<_> {
                values.iter().map(|v| Some(f64::from(value(v)))).collect()
            };
            let calm = Pairs::align(&series(|v| v.0), &series(|v| v.1)).unwrap();
            let disturbed = Pairs::align(&series(|v| v.0 + v.2), &series(|v| v.1 + v.2)).unwrap();
            prop_assert_eq!(calm.difference(ALPHA), disturbed.difference(ALPHA));
        }
    }
}
