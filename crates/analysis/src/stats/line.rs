//! Which part of a cost is fixed, and which grows with the work? The least-squares line through
//! points of several rounds, with the intervals from resampling whole rounds (Efron and Tibshirani
//! 1993, chapter 13: the percentile bootstrap). Rounds are the unit, since a disturbance of one affects all
//! its points. Deliberately absent: tests of whether a line fits.

use super::level::Alpha;
use super::order::{Estimate, Interval};
use super::rng::Rng;

/// The number of resamples for an interval.
const RESAMPLES: usize = 2000;
/// Fewer rounds than these give too few different resamples for an interval.
const FEWEST_ROUNDS: usize = 6;

/// A line: the value at zero, and what each unit adds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The value at zero.
    pub fixed: Estimate,
    /// The slope.
    pub proportional: Estimate,
}

/// The least-squares line through all points (x, y), given by rounds; none if they have fewer than
/// two different x.
pub fn line(rounds: &[Vec<(f64, f64)>], rng: &mut Rng, alpha: Alpha) -> Option<Line> {
    let (fixed, slope) = fit(rounds.iter().flatten().copied())?;
    let count = rounds.iter().filter(|round| !round.is_empty()).count();
    let (mut fixed_ones, mut slopes) = (Vec::new(), Vec::new());
    if count >= FEWEST_ROUNDS {
        for _ in 0..RESAMPLES {
            let chosen: Vec<_> = rounds.iter().filter_map(|_| rounds.get(rng.index(rounds.len())?)).collect();
            if let Some((fixed, slope)) = fit(chosen.iter().copied().flatten().copied()) {
                fixed_ones.push(fixed);
                slopes.push(slope);
            }
        }
    }
    let estimate = |value, resampled| {
        let interval = percentiles(resampled, alpha);
        Estimate { value, interval, rounds: count, alpha }
    };
    Some(Line { fixed: estimate(fixed, fixed_ones), proportional: estimate(slope, slopes) })
}

/// The slope of the least-squares line through points (x, y); none if they have fewer than two different x.
pub fn slope(points: impl Iterator<Item = (f64, f64)> + Clone) -> Option<f64> {
    fit(points).map(|(_, slope)| slope)
}

/// The share of the variance of y that the least-squares line through points (x, y) explains, R²; none without a line or
/// without variance.
pub fn determination(points: impl Iterator<Item = (f64, f64)> + Clone) -> Option<f64> {
    let (fixed, slope) = fit(points.clone())?;
    let mean = points.clone().map(|(_, y)| y).sum::<f64>() / points.clone().count() as f64;
    let whole: f64 = points.clone().map(|(_, y)| (y - mean).powi(2)).sum();
    let left: f64 = points.map(|(x, y)| (y - fixed - slope * x).powi(2)).sum();
    (whole > 0.0).then(|| 1.0 - left / whole)
}

/// Intercept and slope.
fn fit(points: impl Iterator<Item = (f64, f64)> + Clone) -> Option<(f64, f64)> {
    let count = points.clone().count() as f64;
    let mean = |of: fn((f64, f64)) -> f64| points.clone().map(of).sum::<f64>() / count;
    let (x_mean, y_mean) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.clone().map(|(x, _)| (x - x_mean).powi(2)).sum();
    let together: f64 = points.map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    let slope = together / spread;
    let fixed = y_mean - slope * x_mean;
    (spread > 0.0 && slope.is_finite() && fixed.is_finite()).then_some((fixed, slope))
}

fn percentiles(mut values: Vec<f64>, alpha: Alpha) -> Option<Interval> {
    if values.len() < RESAMPLES / 2 {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    let half = alpha.get() / 2.0;
    Some(Interval { low: at(half), high: at(1.0 - half), coverage: 1.0 - alpha.get() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of points on a line, with noise that a round shares and noise of each point.
    fn rounds(count: usize, noise: f64, rng: &mut Rng) -> Vec<Vec<(f64, f64)>> {
        let round = |rng: &mut Rng| {
            let shared = noise * rng.standard_normal();
            let own = |x: f64, rng: &mut Rng| (x, 0.3 + 0.05 * x + shared + noise * rng.standard_normal());
            [0.1, 1.0, 10.0].map(|x| own(x, rng)).to_vec()
        };
        (0..count).map(|_| round(rng)).collect()
    }

    #[test]
    fn without_noise_the_line_is_found_exactly() {
        let mut rng = Rng::new(1);
        let found = line(&rounds(8, 0.0, &mut rng), &mut rng, Alpha::FIVE_PERCENT).unwrap();
        assert!((found.fixed.value - 0.3).abs() < 1e-12 && (found.proportional.value - 0.05).abs() < 1e-12);
    }

    #[test]
    fn the_intervals_hold_the_truth_about_as_often_as_they_say() {
        let runs = 200;
        let mut held = [0; 2];
        for seed in 0..runs {
            let mut rng = Rng::new(seed);
            let found = line(&rounds(20, 0.02, &mut rng), &mut rng, Alpha::FIVE_PERCENT).unwrap();
            held[0] += usize::from(found.fixed.interval.unwrap().contains(0.3));
            held[1] += usize::from(found.proportional.interval.unwrap().contains(0.05));
        }
        // 20 rounds make percentile intervals a little narrow: 89 % of 200 is four standard errors below 95
        // %.
        assert!(held.iter().all(|held| *held >= 178), "{held:?}");
    }

    #[test]
    fn the_share_that_a_line_explains_is_one_on_it_and_zero_across_it() {
        let of = |points: &[(f64, f64)]| determination(points.iter().copied());
        assert_eq!(of(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), Some(1.0));
        assert_eq!(of(&[(-1.0, 0.0), (0.0, 1.0), (1.0, 0.0)]), Some(0.0));
        // Residuals −0.5, 1, −0.5 around y = x + 0.5: 1.5 of a variance of 3.5.
        let half = of(&[(0.0, 0.0), (1.0, 2.5), (2.0, 2.0)]).unwrap();
        assert!((half - (1.0 - 1.5 / 3.5)).abs() < 1e-12, "{half}");
        assert_eq!((of(&[(1.0, 2.0), (1.0, 3.0)]), of(&[(1.0, 2.0), (2.0, 2.0)])), (None, None));
    }

    #[test]
    fn too_little_gives_no_line_or_no_interval() {
        let mut rng = Rng::new(3);
        assert_eq!(line(&[vec![(1.0, 2.0)], vec![(1.0, 3.0)]], &mut rng, Alpha::FIVE_PERCENT), None);
        assert_eq!(line(&[], &mut rng, Alpha::FIVE_PERCENT), None);
        let few = line(&rounds(3, 0.1, &mut rng), &mut rng, Alpha::FIVE_PERCENT).unwrap();
        assert_eq!(few.fixed.interval, None);
    }
}
