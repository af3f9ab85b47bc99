//! How sure must one comparison be, when there are many?
//!
//! The comparisons are fixed in the plan, and one level for all of them together is divided by
//! their number (Bonferroni): it holds however the comparisons depend on each other, which they
//! do, because they share a baseline. The same share serves the interval and the verdict.

/// A two-sided probability of error, above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, serde::Serialize)]
pub struct Alpha(f64);

impl Alpha {
    /// One in twenty: the level of a whole family unless the plan says otherwise.
    pub const FIVE_PERCENT: Alpha = Alpha(0.05);

    /// `None` unless the number is above 0 and below 1.
    pub fn new(alpha: f64) -> Option<Alpha> {
        (alpha > 0.0 && alpha < 1.0).then_some(Alpha(alpha))
    }

    /// The probability as a number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// The comparisons that are judged together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Family {
    /// How many there are; 0 counts as 1.
    pub comparisons: usize,
    /// The probability that any of them goes wrong when nothing differs.
    pub level: Alpha,
}

impl Family {
    /// A family at the usual level of 5 %.
    pub fn of(comparisons: usize) -> Family {
        Family { comparisons, level: Alpha::FIVE_PERCENT }
    }

    /// What each comparison may use of the level: level ÷ comparisons.
    pub fn per_comparison(&self) -> Alpha {
        let share = self.level.0 / self.comparisons.max(1) as f64;
        // Dividing the smallest numbers could give zero, which is no level.
        Alpha(share.max(f64::MIN_POSITIVE))
    }

    /// The fewest rounds with which any comparison of the family can be decided.
    pub fn min_rounds(&self) -> usize {
        min_rounds(self.per_comparison())
    }
}

/// The fewest rounds that give an interval at all: the smallest n with 2^(1−n) ≤ alpha, when even
/// the range of all values would miss the median too often with one fewer.
pub fn min_rounds(alpha: Alpha) -> usize {
    let mut rounds = 1;
    let mut error = 1.0;
    while error > alpha.get() {
        rounds += 1;
        error /= 2.0;
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_needed_are_those_of_the_methodology() {
        assert_eq!(Family::of(1).min_rounds(), 6);
        assert_eq!(Family::of(20).min_rounds(), 10);
        assert_eq!(Family::of(100).min_rounds(), 12);
        assert_eq!(Family::of(0), Family { comparisons: 0, level: Alpha::FIVE_PERCENT });
        assert_eq!(Family::of(0).min_rounds(), 6);
    }

    #[test]
    fn only_probabilities_are_levels() {
        for bad in [0.0, -0.1, 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Alpha::new(bad), None);
        }
        assert_eq!(Alpha::new(0.01).map(Alpha::get), Some(0.01));
    }

    #[test]
    fn the_shares_add_up_to_the_level() {
        let family = Family::of(40);
        assert!((family.per_comparison().get() * 40.0 - 0.05).abs() < 1e-15);
    }
}
