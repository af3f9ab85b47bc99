//! Which values are far from the others?
//!
//! They are named and counted, never dropped: a spike is part of what users get. The median
//! and the decisions do not need them removed.

use std::ops::RangeInclusive;

use super::sample::Sample;

/// The range of values that are not outliers: from 3 interquartile ranges below the quartiles to 3 above.
///
/// These fences are Tukey's outer ones ("Exploratory Data Analysis", 1977). `resolution` is the smallest
/// step that the instrument can show, in the unit of the sample (0 if unknown): if more
/// than half of the values are the same tick, the next tick is not an outlier.
pub fn outer_fences(sample: &Sample, resolution: f64) -> RangeInclusive<f64> {
    let [first, third] = sample.quantiles([0.25, 0.75]);
    let far = 3.0 * (third - first).max(resolution);
    first - far..=third + far
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn outliers(values: &[f64], resolution: f64) -> usize {
        let fences = outer_fences(&Sample::new(values).unwrap(), resolution);
        values.iter().filter(|value| !fences.contains(value)).count()
    }

    /// Quartiles 3 and 7, so the fences are at −9 and 19; another value moves the quartiles to 3.25 and 7.75,
    /// or 2.25 and 6.75.
    #[test]
    fn fences_stand_where_tukey_put_them() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        assert_eq!(outliers(&values, 0.0), 0);
        for (value, count) in [(21.2, 0), (21.3, 1), (-11.2, 0), (-11.3, 1)] {
            assert_eq!(outliers(&[&values[..], &[value]].concat(), 0.0), count, "{value}");
        }
    }

    #[test]
    fn one_tick_of_a_coarse_timer_is_no_outlier() {
        let mut values = [10.0; 12];
        values[3] = 11.0;
        assert_eq!((outliers(&values, 1.0), outliers(&values, 0.0)), (0, 1));
        values[3] = 15.0;
        assert_eq!(outliers(&values, 1.0), 1);
    }

    proptest! {
        #[test]
        fn at_most_half_of_the_values_stand_apart(values in prop::collection::vec(-1e9..1e9, 1..100)) {
            prop_assert!(2 * outliers(&values, 0.0) <= values.len());
        }

        #[test]
        fn the_mirror_image_has_as_many_outliers(values in prop::collection::vec(-1000i32..1000, 1..100)) {
            let there: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
            let back: Vec<f64> = there.iter().map(|v| -v).collect();
            prop_assert_eq!(outliers(&there, 0.0), outliers(&back, 0.0));
        }
    }
}
