//! By how much does a subject differ from the baseline, round by round?
//!
//! A round is a block: what disturbs it disturbs both sides, so the difference is taken inside
//! each round first, and the estimate is the median of those differences (not the difference of
//! the medians). A round in which either side is missing gives no pair and is counted.

use std::fmt;

use super::level::Alpha;
use super::order::{Estimate, Interval};
use super::sample::Sample;

/// A ratio means something only when the baseline is at least this many times the timer's floor.
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
    /// How many rounds were planned, complete or not.
    pub rounds: usize,
    /// In how many rounds the baseline has no value.
    pub missing_baseline: usize,
    /// In how many rounds the subject has no value.
    pub missing_subject: usize,
}

/// One of the two series of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What is compared with.
    Baseline,
    /// What is compared.
    Subject,
}

/// Why two series cannot be paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairError {
    /// They do not belong to the same rounds.
    Lengths {
        /// Rounds of the baseline's series.
        baseline: usize,
        /// Rounds of the subject's series.
        subject: usize,
    },
    /// A value is infinite or not a number.
    NotFinite {
        /// Which series.
        side: Side,
        /// Which round, counted from 0.
        round: usize,
    },
    /// The difference of two finite values is too large for a number.
    Overflow {
        /// Which round, counted from 0.
        round: usize,
    },
    /// No round has both values.
    NoPairs,
}

impl fmt::Display for PairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PairError::Lengths { baseline, subject } => {
                write!(f, "the baseline has {baseline} rounds and the subject {subject}")
            }
            PairError::NotFinite { side, round } => {
                let side = match side {
                    Side::Baseline => "baseline",
                    Side::Subject => "subject",
                };
                write!(f, "the {side} of round index {round} is not a finite number")
            }
            PairError::Overflow { round } => {
                write!(f, "the difference of round index {round} is too large")
            }
            PairError::NoPairs => write!(f, "no round has both values"),
        }
    }
}

impl std::error::Error for PairError {}

/// Why no ratio is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoRatio {
    /// The baseline's median is too close to what the timer can resolve.
    NearFloor {
        /// The baseline's median.
        median: f64,
        /// What it would have to be: [`RATIO_FLOORS`] × the timer's floor.
        needed: f64,
    },
    /// A value is zero or negative, and has no logarithm.
    NotPositive {
        /// Which series.
        side: Side,
        /// Which pair, counted from 0 over the complete rounds.
        pair: usize,
    },
    /// The ratio is too large for a number.
    Overflow,
}

impl Pairs {
    /// Pairs the values of the same round; `None` is a round without a value.
    pub fn align(baseline: &[Option<f64>], subject: &[Option<f64>]) -> Result<Pairs, PairError> {
        if baseline.len() != subject.len() {
            return Err(PairError::Lengths { baseline: baseline.len(), subject: subject.len() });
        }
        let mut kept: [Vec<f64>; 3] = Default::default();
        for (round, (&baseline, &subject)) in baseline.iter().zip(subject).enumerate() {
            for (side, value) in [(Side::Baseline, baseline), (Side::Subject, subject)] {
                if value.is_some_and(|value| !value.is_finite()) {
                    return Err(PairError::NotFinite { side, round });
                }
            }
            let (Some(baseline), Some(subject)) = (baseline, subject) else {
                continue;
            };
            let difference = subject - baseline;
            if !difference.is_finite() {
                return Err(PairError::Overflow { round });
            }
            for (series, value) in kept.iter_mut().zip([baseline, subject, difference]) {
                series.push(value);
            }
        }
        let missing = |series: &[Option<f64>]| series.iter().filter(|v| v.is_none()).count();
        // All three are finite by now, so a refusal can only mean that they are empty.
        let [baseline_values, subject_values, differences] = kept.map(Sample::new);
        Ok(Pairs {
            baseline: baseline_values.map_err(|_| PairError::NoPairs)?,
            subject: subject_values.map_err(|_| PairError::NoPairs)?,
            differences: differences.map_err(|_| PairError::NoPairs)?,
            rounds: baseline.len(),
            missing_baseline: missing(baseline),
            missing_subject: missing(subject),
        })
    }

    /// How many rounds have both values; at least 1.
    pub fn count(&self) -> usize {
        self.differences.count()
    }

    /// The median of the paired differences, in the unit of the values, with its exact interval.
    pub fn difference(&self, alpha: Alpha) -> Estimate {
        Estimate::of_median(&self.differences, alpha)
    }

    /// The median ratio subject ÷ baseline: the median of the paired log ratios and its exact
    /// interval, both exponentiated. With an even count this is the geometric mean of the two
    /// ratios in the middle. `timer_floor` is in the unit of the values.
    pub fn ratio(&self, timer_floor: f64, alpha: Alpha) -> Result<Estimate, NoRatio> {
        let median = self.baseline.median();
        let needed = RATIO_FLOORS * timer_floor;
        // The positive form, so that a floor that is not a number gives no ratio either.
        let clear_of_floor = median >= needed;
        if !clear_of_floor {
            return Err(NoRatio::NearFloor { median, needed });
        }
        for (side, sample) in [(Side::Baseline, &self.baseline), (Side::Subject, &self.subject)] {
            if let Some(pair) = sample.values().iter().position(|&value| value <= 0.0) {
                return Err(NoRatio::NotPositive { side, pair });
            }
        }
        let logs: Vec<f64> = self
            .baseline
            .values()
            .iter()
            .zip(self.subject.values())
            .map(|(baseline, subject)| subject.ln() - baseline.ln())
            .collect();
        let logs = Sample::new(logs).map_err(|_| NoRatio::Overflow)?;
        let estimate = Estimate::of_median(&logs, alpha);
        let ratio = Estimate {
            value: estimate.value.exp(),
            interval: estimate.interval.map(|interval| Interval {
                low: interval.low.exp(),
                high: interval.high.exp(),
                coverage: interval.coverage,
            }),
            ..estimate
        };
        let largest = ratio.interval.map_or(ratio.value, |interval| interval.high);
        if largest.is_finite() { Ok(ratio) } else { Err(NoRatio::Overflow) }
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
    fn only_complete_rounds_are_paired_and_the_rest_is_counted() {
        let baseline = [Some(1.0), None, Some(3.0), None, Some(5.0)];
        let subject = [Some(2.0), Some(9.0), None, None, Some(9.0)];
        let pairs = Pairs::align(&baseline, &subject).unwrap();
        assert_eq!(pairs.differences.values(), [1.0, 4.0]);
        assert_eq!((pairs.count(), pairs.rounds), (2, 5));
        assert_eq!((pairs.missing_baseline, pairs.missing_subject), (2, 2));
        assert_eq!(pairs.difference(ALPHA).value, 2.5);
    }

    #[test]
    fn series_that_cannot_be_paired_say_why() {
        let one = full(&[1.0]);
        assert_eq!(Pairs::align(&one, &[]), Err(PairError::Lengths { baseline: 1, subject: 0 }));
        assert_eq!(Pairs::align(&one, &[None]), Err(PairError::NoPairs));
        assert_eq!(Pairs::align(&[], &[]), Err(PairError::NoPairs));
        // A bad value is an error even in a round that would not be paired.
        let error = Pairs::align(&[None], &[Some(f64::NAN)]).unwrap_err();
        assert_eq!(error.to_string(), "the subject of round index 0 is not a finite number");
        assert_eq!(
            Pairs::align(&full(&[-f64::MAX]), &full(&[f64::MAX])),
            Err(PairError::Overflow { round: 0 })
        );
    }

    /// The median of differences is not the difference of medians: here 1 against −10.
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
        assert_eq!(pairs.ratio(10.1, ALPHA), Err(NoRatio::NearFloor { median: 100.0, needed: 101.0 }));
        assert!(matches!(pairs.ratio(f64::NAN, ALPHA), Err(NoRatio::NearFloor { .. })));
    }

    #[test]
    fn a_ratio_needs_positive_values() {
        let pairs = Pairs::align(&full(&[5.0, 5.0]), &full(&[5.0, 0.0])).unwrap();
        assert_eq!(pairs.ratio(0.1, ALPHA), Err(NoRatio::NotPositive { side: Side::Subject, pair: 1 }));
        let pairs = Pairs::align(&full(&[1e-300]), &full(&[1e300])).unwrap();
        assert_eq!(pairs.ratio(0.0, ALPHA), Err(NoRatio::Overflow));
    }

    proptest! {
        /// Swapping the sides turns the sign of a difference and inverts a ratio, intervals too.
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

        /// What shifts a whole round alike is not seen.
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
