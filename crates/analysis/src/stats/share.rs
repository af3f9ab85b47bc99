//! What share of a difference disappears when something is taken away?
//!
//! Each round has three values: the baseline's, the whole's, and the whole's without the thing. The
//! difference of that round is whole − baseline, the removed part is whole − without, and the share is their
//! quotient; below zero if taking it away made things worse, above one if more than the difference
//! disappeared. The estimate is the median share with its interval by order statistics.
//!
//! A round in which the whole is not above the baseline has no difference to take a share of. It is not left
//! out, since it contradicts the other rounds: it counts as below every share at the lower end of the
//! interval and as above every share at the upper end. If such rounds are among the extremes, there is no
//! interval.

use super::level::Alpha;
use super::order::{Estimate, Interval, median_ranks};
use super::sample::Sample;

/// A share with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The median of the shares of rounds that have one; 1 is the whole difference.
    pub removed: Estimate,
    /// Complete rounds without a difference above zero.
    pub without_difference: usize,
}

/// The share of whole − baseline that disappears. None without a round that has all three values and a
/// difference.
pub fn share(
    baseline: &[Option<f64>],
    whole: &[Option<f64>],
    without: &[Option<f64>],
    alpha: Alpha,
) -> Option<Share> {
    let complete = |((baseline, whole), without): ((&Option<f64>, &Option<f64>), &Option<f64>)| {
        Some(((*whole)? - (*baseline)?, (*whole)? - (*without)?))
    };
    let rounds: Vec<_> = baseline.iter().zip(whole).zip(without).filter_map(complete).collect();
    let with = rounds.iter().filter(|(difference, _)| *difference > 0.0);
    let shares: Vec<f64> = with.map(|(difference, removed)| removed / difference).collect();
    let without_difference = rounds.len() - shares.len();
    let sample = Sample::new(shares)?;
    let interval = median_ranks(rounds.len(), alpha).and_then(|ranks| {
        // Rounds without a share are below the lowest for one end and above the highest for the other.
        let lower = ranks.lower.checked_sub(without_difference).filter(|rank| *rank >= 1)?;
        let [low, high] = sample.order_statistics([lower, sample.count() + 1 - lower]);
        Some(Interval { low, high, coverage: ranks.coverage })
    });
    let removed = Estimate { value: sample.median(), interval, rounds: rounds.len(), alpha };
    Some(Share { removed, without_difference })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Rng;
    use proptest::prelude::*;

    const ALPHA: Alpha = Alpha::FIVE_PERCENT;

    fn full(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn a_share_is_what_goes_over_what_there_was() {
        let (baseline, whole) = (full(&[100.0; 9]), full(&[200.0; 9]));
        let removed = |without: f64| share(&baseline, &whole, &full(&[without; 9]), ALPHA).unwrap().removed;
        assert_eq!(
            [100.0, 150.0, 200.0, 220.0, 90.0].map(|one| removed(one).value),
            [1.0, 0.5, 0.0, -0.2, 1.1]
        );
        assert_eq!(removed(150.0).interval.map(|all| (all.low, all.high)), Some((0.5, 0.5)));
    }

    #[test]
    fn rounds_with_a_hole_do_not_count_and_rounds_without_a_difference_count_against_both_ends() {
        let baseline = full(&[0.0; 10]);
        let mut whole = full(&[10.0; 10]);
        let without = full(&[9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
        let all = share(&baseline, &whole, &without, ALPHA).unwrap();
        let ends = |share: &Share| share.removed.interval.map(|all| (all.low, all.high));
        assert_eq!((all.without_difference, ends(&all)), (0, Some((0.2, 0.9))));
        whole[9] = Some(-1.0);
        let fewer = share(&baseline, &whole, &without, ALPHA).unwrap();
        assert_eq!((fewer.without_difference, fewer.removed.rounds), (1, 10));
        assert_eq!(ends(&fewer), Some((0.1, 0.9)));
        whole[8] = Some(0.0);
        assert_eq!(ends(&share(&baseline, &whole, &without, ALPHA).unwrap()), None);
        whole[7] = None;
        assert_eq!(share(&baseline, &whole, &without, ALPHA).unwrap().removed.rounds, 9);
        assert_eq!(share(&baseline, &full(&[-1.0; 10]), &without, ALPHA), None);
        assert_eq!(share(&[None], &[None], &[None], ALPHA), None);
    }

    /// The promise of the interval, with noise in all three columns: 95 % of intervals contain the true
    /// share.
    #[test]
    fn the_interval_holds_the_share_as_often_as_promised() {
        const TRIALS: usize = 600;
        let mut rng = Rng::new(20);
        let mut held = 0;
        for _ in 0..TRIALS {
            let mut noisy = |middle: f64| {
                full(&std::array::from_fn::<f64, 12, _>(|_| middle + 6.0 * (rng.uniform() - 0.5)))
            };
            let (baseline, whole, without) = (noisy(100.0), noisy(200.0), noisy(140.0));
            let interval = share(&baseline, &whole, &without, ALPHA).unwrap().removed.interval.unwrap();
            held += usize::from(interval.contains(0.6));
        }
        // Five standard deviations below the promise.
        let least = 0.95 * TRIALS as f64 - 5.0 * (0.95 * 0.05 * TRIALS as f64).sqrt();
        assert!(held as f64 >= least, "{held} of {TRIALS}");
    }

    proptest! {
        /// The share does not depend on the unit, nor on disturbances of whole rounds.
        #[test]
        fn shares_have_no_unit_and_no_zero(
            rounds in prop::collection::vec((0i32..1000, 1i32..1000, -500i32..1500), 1..40),
            shift in 0i32..1000,
        ) {
            let column = |of: fn(&(i32, i32, i32)) -> i32, shift: i32| -> Vec<Option<f64>> {
                rounds.iter().map(|round| Some(f64::from(of(round) + shift))).collect()
            };
            let shares = |shift, factor: f64| {
                let scaled = |column: Vec<Option<f64>>| -> Vec<_> {
                    column.into_iter().map(|value| value.map(|value| value * factor)).collect()
                };
                let columns = [
                    column(|round| round.0, shift),
                    column(|round| round.0 + round.1, shift),
                    column(|round| round.2, shift),
                ]
                .map(scaled);
                share(&columns[0], &columns[1], &columns[2], ALPHA)
            };
            prop_assert_eq!(shares(0, 1.0), shares(shift, 1.0));
            prop_assert_eq!(shares(0, 1.0), shares(shift, 4.0));
        }
    }
}
