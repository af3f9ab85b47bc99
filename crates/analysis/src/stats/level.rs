//! How sure must one comparison be if there are many?
//!
//! The plan fixes the comparisons, and one level for all of them together is divided by
//! their number (Bonferroni). That holds however they depend on each other, and they
//! do, because they share a baseline. The interval and the verdict use the same share.

/// A two-sided probability of error, above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, serde::Serialize)]
pub struct Alpha(f64);

impl Alpha {
    /// One in twenty: the default level of a whole family.
    pub const FIVE_PERCENT: Alpha = Alpha(0.05);

    /// `None` unless the number is above 0 and below 1.
    pub fn new(alpha: f64) -> Option<Alpha> {
        (alpha > 0.0 && alpha < 1.0).then_some(Alpha(alpha))
    }

    /// The level of each of so many comparisons, so that the probability of any error is 5 % if nothing
    /// differs; 0 counts as 1.
    pub fn shared_by(comparisons: usize) -> Alpha {
        Alpha(Alpha::FIVE_PERCENT.0 / comparisons.max(1) as f64)
    }

    /// The probability as a number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// The minimum number of rounds for an interval: the smallest n with 2^(1−n) ≤ alpha. With one fewer, even
/// the range of all values would miss the median too often.
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
        let needed = |comparisons| min_rounds(Alpha::shared_by(comparisons));
        assert_eq!([0, 1, 20, 100].map(needed), [6, 6, 10, 12]);
        assert_eq!(Alpha::shared_by(0), Alpha::FIVE_PERCENT);
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
        assert!((Alpha::shared_by(40).get() * 40.0 - 0.05).abs() < 1e-15);
    }
}
