//! What does each of several factors do, alone and together with others?
//!
//! All combinations of k factors with two levels are measured in every round. For an effect of the factors in
//! a set S, the sign of each combination is the product of −1 (first level) and +1 (second level) over S, and
//! the *contrast* of a round is the sum of the signed values over 2^(k − |S|). So a main effect is the mean
//! at the second level minus the mean at the first; an interaction of two is the difference of two such
//! differences, averaged over the other factors; one of three is the difference of two of those. (Textbooks
//! divide by 2^(k − 1) throughout, which halves an interaction of two: Box, Hunter and Hunter, "Statistics
//! for Experimenters", chapter 5.) Rounds are independent replicates of the whole factorial, so the estimate
//! is the median of the contrasts with its exact interval; nothing is resampled.
//!
//! A round without a value for one combination gives no contrast. In one in which a combination failed, the contrast
//! may be anything, as in `paired`.

use super::decide::{Decision, Margin, decide_with};
use super::level::Alpha;
use super::order::Estimate;
use super::paired::{FailedRounds, RATIO_FLOORS};
use super::sample::Sample;

/// An effect with everything that its decision is based on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Median of the contrasts, with interval.
    pub difference: Estimate,
    /// The same for the logarithms, exponentiated: a ratio, a ratio of ratios … `None` if a value is
    /// not above zero, or the middle of all is too close to the timer's resolution.
    pub ratio: Option<Estimate>,
    /// The smallest effect that matters: the margin at the median of the rounds' means; twice as much for
    /// an interaction of two, since it moves a single combination by half as much, four times for three.
    pub matters: f64,
    /// The conclusion; more and less are about the second levels.
    pub decision: Decision,
}

/// The effect of the factors whose bits are set in `factors`. `cells` are the values by round of each
/// combination; bit i of its index means the second level of factor i; in `failed` further rounds a combination failed.
/// `None` if no round is complete, or the values are not a complete factorial.
pub fn effect(
    cells: &[&[Option<f64>]],
    failed: usize,
    factors: usize,
    margin: Margin,
    timer_floor: f64,
    alpha: Alpha,
) -> Option<Effect> {
    if !cells.len().is_power_of_two() || factors == 0 || factors >= cells.len() {
        return None;
    }
    let rounds = cells.iter().map(|cell| cell.len()).min()?;
    let complete: Vec<Vec<f64>> =
        (0..rounds).filter_map(|round| cells.iter().map(|cell| cell[round]).collect()).collect();
    let contrasts = |scale: fn(f64) -> f64| {
        let of_round = |round: &Vec<f64>| contrast(round, factors, scale);
        Sample::new(complete.iter().map(of_round))
    };
    let failed = FailedRounds { anywhere: failed, ..FailedRounds::default() };
    let plain = contrasts(|value| value)?;
    let difference = failed.estimate(&plain, alpha);
    let mean = |round: &Vec<f64>| round.iter().sum::<f64>() / round.len() as f64;
    let middle = Sample::new(complete.iter().map(mean))?.median();
    let moved_by = f64::from(1u32 << (factors.count_ones() - 1));
    let matters = margin.at(middle) * moved_by;
    let has_ratio =
        middle >= RATIO_FLOORS * timer_floor && complete.iter().flatten().all(|value| *value > 0.0);
    let logs = contrasts(f64::ln).filter(|_| has_ratio);
    let ratio = logs.map(|logs| failed.estimate(&logs, alpha).map(f64::exp));
    let decision = decide_with(&failed, &plain, &difference, matters);
    Some(Effect { difference, ratio, matters, decision })
}

/// The contrast of one round.
fn contrast(round: &[f64], factors: usize, scale: fn(f64) -> f64) -> f64 {
    let order = factors.count_ones();
    let signed = |(place, value): (usize, &f64)| {
        let first_levels = order - (place & factors).count_ones();
        if first_levels.is_multiple_of(2) { scale(*value) } else { -scale(*value) }
    };
    let sum: f64 = round.iter().enumerate().map(signed).sum();
    sum / (round.len() >> order) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two factors: 10 and 14 at the first level of the second factor, 20 and 30 at the second.
    fn planted(factors: usize) -> Effect {
        let cells = [10.0, 14.0, 20.0, 30.0].map(|value| vec![Some(value); 8]);
        let cells: Vec<&[Option<f64>]> = cells.iter().map(Vec::as_slice).collect();
        effect(&cells, 0, factors, Margin::new(0.0, 0.1).unwrap(), 0.0, Alpha::FIVE_PERCENT).unwrap()
    }

    #[test]
    fn effects_are_differences_of_means_and_differences_of_those() {
        // Means 22 and 15, 25 and 12; the first factor costs 10 at one level of the second and 4 at the other.
        assert_eq!([1, 2, 3].map(|factors| planted(factors).difference.value), [7.0, 13.0, 6.0]);
        let ratio = planted(3).ratio.unwrap().value;
        assert!((ratio - (30.0 / 20.0) / (14.0 / 10.0)).abs() < 1e-12, "{ratio}");
    }

    #[test]
    fn a_decision_holds_with_failed_rounds_at_both_extremes() {
        let cells = [vec![Some(10.0); 8], vec![Some(14.0); 8]];
        let cells: Vec<&[Option<f64>]> = cells.iter().map(Vec::as_slice).collect();
        let found =
            |failed| effect(&cells, failed, 1, Margin::fixed(0.0, 0.0), 0.0, Alpha::FIVE_PERCENT).unwrap();
        // Of nine values each end is the second, of eleven too.
        let ends = |failed| found(failed).difference.interval.map(|ends| (ends.low, ends.high));
        assert_eq!((ends(1), found(1).decision), (Some((4.0, 4.0)), Decision::More));
        assert_eq!(ends(3), Some((f64::NEG_INFINITY, f64::INFINITY)));
        assert!(matches!(found(3).decision, Decision::Undecided { .. }));
    }

    #[test]
    fn an_interaction_matters_when_it_moves_a_combination_as_far_as_an_effect_would() {
        assert_eq!([1, 2, 3].map(|factors| planted(factors).matters), [1.85, 1.85, 3.7]);
        assert_eq!(planted(3).decision, Decision::More);
    }

    #[test]
    fn only_whole_rounds_count() {
        let whole = vec![Some(1.0); 9];
        let mut holed = whole.clone();
        holed[4] = None;
        let judge = |cells: &[&[Option<f64>]], factors| {
            effect(cells, 0, factors, Margin::fixed(0.0, 0.0), 0.0, Alpha::FIVE_PERCENT)
        };
        assert_eq!(judge(&[&whole, &holed, &whole, &whole], 1).unwrap().difference.rounds, 8);
        assert_eq!(judge(&[&whole, &whole, &whole], 1), None);
        assert_eq!(judge(&[&whole, &whole], 2), None);
        assert_eq!(judge(&[&[None], &[None]], 1), None);
    }

    #[test]
    fn three_factors_have_seven_effects_that_do_not_mix() {
        // 100 + 8a + 4b + 2c in coded units, and an interaction of 1 in each combination of all three.
        let value = |place: usize| {
            let sign = |bit: usize| if place >> bit & 1 == 1 { 1.0 } else { -1.0 };
            100.0 + 8.0 * sign(0) + 4.0 * sign(1) + 2.0 * sign(2) + sign(0) * sign(1) * sign(2)
        };
        let cells: Vec<Vec<Option<f64>>> = (0..8).map(|place| vec![Some(value(place)); 7]).collect();
        let cells: Vec<&[Option<f64>]> = cells.iter().map(Vec::as_slice).collect();
        let found: Vec<f64> = (1..8)
            .map(|factors| {
                effect(&cells, 0, factors, Margin::fixed(0.0, 0.0), 0.0, Alpha::FIVE_PERCENT)
                    .unwrap()
                    .difference
                    .value
            })
            .collect();
        // An interaction of three moves each combination by an eighth of itself.
        assert_eq!(found, [16.0, 8.0, 0.0, 4.0, 0.0, 0.0, 8.0]);
    }
}
