//! How large a difference does this machine show between a subject and itself?
//!
//! Twins are the same subject under two labels in the same rounds (A/A). The noise floor is how far their
//! paired differences reach: a difference of two other subjects below it must not be believed, even if its
//! interval excludes zero.
use serde::Serialize;

use super::order::Estimate;

/// The largest difference that twins allow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// In the unit of the metric: the end of the interval that is farther from zero.
    #[serde(rename = "floor")]
    pub units: f64,
    /// As a share of the twins' own median (0.02 is 2 %); `None` if that is zero.
    #[serde(rename = "floor_share")]
    pub relative: Option<f64>,
    /// Whether zero is in the intervals. If not, twins differ although they are the same:
    /// a control that moved.
    pub holds_zero: bool,
}

impl NoiseFloor {
    /// The result of one pair of twins: their paired difference, and the median of the first of them.
    /// `None` if they have too few rounds for an interval.
    pub fn of_twins(difference: &Estimate, median: f64) -> Option<NoiseFloor> {
        let interval = difference.interval?;
        let units = interval.farthest_end();
        let relative = units / median.abs();
        Some(NoiseFloor {
            units,
            relative: (median != 0.0 && relative.is_finite()).then_some(relative),
            holds_zero: interval.contains(0.0),
        })
    }

    /// The floor of several pairs of twins of one metric: the largest in units, the largest as a
    /// share (perhaps of another pair), and whether all include zero. `None` if there are no twins.
    pub fn widest(floors: impl IntoIterator<Item = NoiseFloor>) -> Option<NoiseFloor> {
        floors.into_iter().reduce(|a, b| NoiseFloor {
            units: a.units.max(b.units),
            relative: match (a.relative, b.relative) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (one, other) => one.or(other),
            },
            holds_zero: a.holds_zero && b.holds_zero,
        })
    }

    /// Whether a difference, in the unit of the metric, is within the noise.
    pub fn hides(&self, difference: f64) -> bool {
        difference.abs() <= self.units
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Alpha, Sample};

    fn twins(differences: &[f64]) -> Estimate {
        Estimate::of_median(&Sample::new(differences).unwrap(), Alpha::FIVE_PERCENT)
    }

    #[test]
    fn the_floor_is_the_farther_end_of_the_interval() {
        let difference = twins(&[-3.0, -1.0, 0.0, 1.0, 1.5, 2.0]);
        let floor = NoiseFloor::of_twins(&difference, 100.0).unwrap();
        assert_eq!((floor.units, floor.relative), (3.0, Some(0.03)));
        assert!(floor.holds_zero);
        assert!(floor.hides(-3.0) && !floor.hides(3.1));
    }

    #[test]
    fn twins_that_differ_are_a_control_that_moved() {
        let floor = NoiseFloor::of_twins(&twins(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 0.0).unwrap();
        assert!(!floor.holds_zero);
        assert_eq!(floor.relative, None);
    }

    #[test]
    fn too_few_rounds_have_no_floor() {
        assert_eq!(NoiseFloor::of_twins(&twins(&[1.0; 5]), 10.0), None);
        assert_eq!(NoiseFloor::widest([]), None);
    }

    #[test]
    fn the_widest_of_several_counts() {
        let floor = |units, relative, holds_zero| NoiseFloor { units, relative, holds_zero };
        assert_eq!(
            NoiseFloor::widest([
                floor(1.0, Some(0.5), true),
                floor(4.0, Some(0.1), true),
                floor(2.0, None, false)
            ]),
            Some(floor(4.0, Some(0.5), false))
        );
    }
}
