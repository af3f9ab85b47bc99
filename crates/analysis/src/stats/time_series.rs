//! Reduces very many numbers to few enough to draw, without hiding any extremes.
//!
//! For drawings only: nothing is decided by the result.

use super::Sample;

/// Values over rounds, in as many points as can be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeSeries {
    /// The number of rounds of a point; the last one can have fewer.
    pub step: usize,
    /// In the order of rounds; none if all of its rounds lack a value.
    pub points: Vec<Option<Point>>,
}

/// The values of some consecutive rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The smallest.
    pub low: f64,
    /// The one in the middle, the lower of two.
    pub median: f64,
    /// The largest.
    pub high: f64,
}

/// Reduces values by round to at most `most` points; one value per point if there are no more rounds than
/// that. Values that are not finite count as holes.
pub fn time_series(values: &[Option<f64>], most: usize) -> TimeSeries {
    let step = values.len().div_ceil(most.max(1)).max(1);
    let point = |rounds: &[Option<f64>]| {
        let mut known: Vec<f64> =
            rounds.iter().flatten().copied().filter(|value| value.is_finite()).collect();
        let middle = known.len().checked_sub(1)? / 2;
        let low = known.iter().copied().fold(f64::INFINITY, f64::min);
        let high = known.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (_, median, _) = known.select_nth_unstable_by(middle, f64::total_cmp);
        Some(Point { low, median: *median, high })
    };
    TimeSeries { step, points: values.chunks(step).map(point).collect() }
}

/// Order statistics at equal steps from the smallest to the largest number, inclusive: at most `most`, and
/// all numbers if there are no more than that. `most` counts as at least 2.
pub fn steps(sample: &Sample, most: usize) -> Vec<f64> {
    let sorted = sample.sorted();
    let (count, most) = (sorted.len(), most.max(2));
    match count <= most {
        true => sorted,
        false => (0..most).map(|step| sorted[step * (count - 1) / (most - 1)]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_values_stay_as_they_are() {
        let time_series = time_series(&[Some(2.0), None, Some(f64::NAN), Some(1.0)], 4);
        let one = |value| Some(Point { low: value, median: value, high: value });
        assert_eq!(time_series, TimeSeries { step: 1, points: vec![one(2.0), None, None, one(1.0)] });
    }

    #[test]
    fn many_are_told_by_their_extremes_and_their_middle() {
        let values: Vec<_> = (0..1000).map(|round| Some(if round == 457 { 9.0 } else { 1.0 })).collect();
        let time_series = time_series(&values, 100);
        assert_eq!((time_series.step, time_series.points.len()), (10, 100));
        assert_eq!(time_series.points[45], Some(Point { low: 1.0, median: 1.0, high: 9.0 }));
        assert_eq!(time_series.points[44], Some(Point { low: 1.0, median: 1.0, high: 1.0 }));
    }

    #[test]
    fn nothing_has_no_points() {
        assert_eq!(time_series(&[], 10).points, []);
    }

    proptest! {
        #[test]
        fn no_more_points_than_asked_and_no_extreme_lost(
            values in prop::collection::vec(prop::option::of(-1e6..1e6), 1..500),
            most in 1usize..50,
        ) {
            let time_series = time_series(&values, most);
            prop_assert!(time_series.points.len() <= most);
            let low = time_series.points.iter().flatten().map(|point| point.low).fold(f64::INFINITY, f64::min);
            let least = values.iter().flatten().copied().fold(f64::INFINITY, f64::min);
            prop_assert_eq!(low, least);
        }

        #[test]
        fn steps_ascend_between_the_extremes(values in prop::collection::vec(-1e6..1e6, 1..500), most in 0usize..50) {
            let sample = Sample::new(values.clone()).unwrap();
            let steps = steps(&sample, most);
            prop_assert_eq!(steps.len(), values.len().min(most.max(2)));
            prop_assert!(steps.is_sorted());
            prop_assert_eq!((steps[0], *steps.last().unwrap()), (sample.min(), sample.max()));
        }
    }
}
