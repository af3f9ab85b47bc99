//! By how much does a subject differ from the baseline, round by round?
//!
//! A round is a block: what disturbs it disturbs both sides, so the difference is taken inside
//! each round first, and the estimate is the median of those differences (not the difference of
//! the medians). A round in which either side is missing gives no pair.

use super::level::Alpha;
use super::order::Estimate;
use super::sample::Sample;

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
        Some(Pairs { baseline: baseline?, subject: subject?, differences: differences? })
    }

    /// The median of the paired differences, in the unit of the values, with its exact interval.
    pub fn difference(&self, alpha: Alpha) -> Estimate {
        Estimate::of_median(&self.differences, alpha)
    }

    /// The median ratio subject ÷ baseline: the median of the paired log ratios and its exact
    /// interval, both exponentiated. With an even count this is the geometric mean of the two
    /// ratios in the middle. `timer_floor` is in the unit of the values.
    ///
    /// None if the baseline is too close to the timer's resolution, a value is not above zero, or the ratio
    /// overflows.
    pub fn ratio(&self, timer_floor: f64, alpha: Alpha) -> Option<Estimate> {
        // Written so that a NaN floor gives no ratio either.
        let is_clear_of_floor = self.baseline.median() >= RATIO_FLOORS * timer_floor;
        let sides = [self.baseline.values(), self.subject.values()];
        if !is_clear_of_floor || sides.into_iter().flatten().any(|value| *value <= 0.0) {
            return None;
        }
        let both = self.baseline.values().iter().zip(self.subject.values());
        let logs: Vec<f64> = both.map(|(baseline, subject)| subject.ln() - baseline.ln()).collect();
        let ratio = Estimate::of_median(&Sample::new(logs)?, alpha).map(f64::exp);
        let largest = ratio.interval.map_or(ratio.value, |interval| interval.high);
        largest.is_finite().then_some(ratio)
    }
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
