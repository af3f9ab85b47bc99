//! What are the quantiles of some numbers?
//!
//! A [`Sample`] is never empty and holds only finite numbers, so everything computed from one is
//! total. Means and standard deviations decide nothing, because start-up times have heavy
//! tails; they are only shown for comparison with published ones.

use std::borrow::Borrow;

/// From so many numbers on, those near a rank are taken out before they are sorted.
const MANY: usize = 1 << 14;
/// So many are drawn to find which those are.
const DRAWN: usize = 1 << 10;
/// So many of the drawn on either side: five standard deviations of the place of a median among them.
const BESIDE: usize = 80;

/// At least one finite number, in order of measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    values: Box<[f64]>,
}

impl Sample {
    /// Takes the numbers; none if there are no numbers, or one is infinite or NaN.
    pub fn new(values: impl IntoIterator<Item: Borrow<f64>>) -> Option<Sample> {
        let values: Box<[f64]> = values.into_iter().map(|value| *value.borrow()).collect();
        let is_one = !values.is_empty() && values.iter().all(|value| value.is_finite());
        is_one.then_some(Sample { values })
    }

    /// The numbers in the order they were given.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The number of values; at least 1.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The smallest number.
    pub fn min(&self) -> f64 {
        self.values.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The largest number.
    pub fn max(&self) -> f64 {
        self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// The arithmetic mean, and the standard deviation with n − 1, which is NaN for a single value.
    pub fn mean_and_deviation(&self) -> (f64, f64) {
        let count = self.count() as f64;
        let mean = self.values.iter().sum::<f64>() / count;
        let squares = self.values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        (mean, (squares / (count - 1.0)).sqrt())
    }

    /// The middle number, or the midpoint of the two in the middle.
    pub fn median(&self) -> f64 {
        let (low, high) = middle_ranks(self.count());
        let [low, high] = self.order_statistics([low, high]);
        low.midpoint(high)
    }

    /// The quantile at `p`, linear between neighbours: definition 7 of Hyndman and Fan, "Sample
    /// quantiles in statistical packages" (1996), the default of R and NumPy.
    ///
    /// A `p` below 0 (or not a number) gives the minimum and one above 1 the maximum.
    pub fn quantile(&self, p: f64) -> f64 {
        let [value] = self.quantiles([p]);
        value
    }

    /// Several quantiles, each as [`Sample::quantile`] gives it.
    pub fn quantiles<const K: usize>(&self, ps: [f64; K]) -> [f64; K] {
        let last = self.count() - 1;
        let positions = ps.map(|p| if p > 0.0 { p.min(1.0) * last as f64 } else { 0.0 });
        positions.map(|position| {
            let below = (position.floor() as usize).min(last);
            let above = (below + 1).min(last);
            let pair = self.at([below, above]);

            let share = position - below as f64;
            // Written as a sum of two parts, since the difference of the two could overflow, and
            // kept between them, since rounding could put the sum outside.
            (pair[0] * (1.0 - share) + pair[1] * share).clamp(pair[0], pair[1])
        })
    }

    /// The numbers at the given ranks in ascending order.
    ///
    /// Ranks count from 1, as in the literature, and must ascend (equal ones are fine). A rank of
    /// 0 counts as 1 and one beyond the end as the last. Takes time proportional to the count.
    pub fn order_statistics<const K: usize>(&self, ranks: [usize; K]) -> [f64; K] {
        debug_assert!(ranks.is_sorted());
        let positions = ranks.map(|rank| rank.clamp(1, self.count()) - 1);
        self.at(positions)
    }

    /// The numbers at ascending positions, from 0, of the sorted ones.
    fn at<const K: usize>(&self, positions: [usize; K]) -> [f64; K] {
        let mut found = [0.0; K];
        let (mut keys, below) = self.around(&positions).unwrap_or_else(|| (self.keys(), 0));
        select(&mut keys, &positions.map(|at| at - below), &mut found);
        found
    }

    /// The numbers between two that are likely to enclose these positions, and how many are below: one look at each number instead of
    /// several (the idea of Floyd and Rivest, "Expected time bounds for selection", 1975). None if there are few, or a position is
    /// outside.
    fn around(&self, positions: &[usize]) -> Option<(Vec<i64>, usize)> {
        let (first, last) = (*positions.first()?, *positions.last()?);
        if self.count() < MANY {
            return None;
        }
        let step = self.count() / DRAWN;
        let mut drawn: Vec<i64> = self.values.iter().step_by(step).map(|value| key_of(*value)).collect();
        let [low, high] = [(first / step).checked_sub(BESIDE)?, last / step + BESIDE];
        let mut ends = [0.0; 2];
        (high < drawn.len()).then(|| select(&mut drawn, &[low, high], &mut ends))?;
        let [low, high] = ends;

        let (mut between, mut kept, mut below) = (vec![0; self.count()], 0, 0);
        for value in &self.values {
            // Without a branch, which could not be foreseen: what is not kept is written over.
            between[kept] = key_of(*value);
            kept += usize::from(low <= *value) & usize::from(*value <= high);
            below += usize::from(*value < low);
        }
        between.truncate(kept);
        (below <= first && last < below + kept).then_some((between, below))
    }

    /// All numbers in ascending order. Prefer quantiles and ranks, which need no full sort.
    pub fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.keys();
        sorted.sort_unstable();
        sorted.into_iter().map(of_key).collect()
    }

    /// The numbers as integers in the same order, which compare faster.
    fn keys(&self) -> Vec<i64> {
        self.values.iter().map(|value| key_of(*value)).collect()
    }
}

/// The ranks, counted from 1, of the one or two in the middle of so many numbers.
pub(super) fn middle_ranks(count: usize) -> (usize, usize) {
    (count.div_ceil(2), count / 2 + 1)
}

/// The bits of a number as an integer in the order of `f64::total_cmp`, and back: of negative ones all bits but the sign are turned.
fn in_order(bits: i64) -> i64 {
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn key_of(value: f64) -> i64 {
    in_order(value.to_bits() as i64)
}

fn of_key(key: i64) -> f64 {
    f64::from_bits(in_order(key) as u64)
}

/// The median of numbers in ascending order.
pub(super) fn middle(sorted: &[f64]) -> f64 {
    sorted[(sorted.len() - 1) / 2].midpoint(sorted[sorted.len() / 2])
}

/// Writes the values at ascending `positions` (from 0) of the sorted `data` into `found`.
///
/// The outermost two positions are selected first: the rest between them is usually small.
fn select(mut data: &mut [i64], mut positions: &[usize], mut found: &mut [f64]) {
    let mut base = 0;
    while let [first, rest @ ..] = positions {
        let (_, key, right) = data.select_nth_unstable(first - base);
        let value = of_key(*key);
        found[0] = value;
        data = right;
        base = first + 1;
        let repeated = rest.iter().take_while(|&again| again == first).count();
        found[1..=repeated].fill(value);
        positions = &rest[repeated..];
        found = &mut found[repeated + 1..];

        let [inner @ .., last] = positions else {
            return;
        };
        let (left, key, _) = data.select_nth_unstable(last - base);
        let repeated = inner.iter().rev().take_while(|&again| again == last).count();
        let kept = inner.len() - repeated;
        found[kept..].fill(of_key(*key));
        data = left;
        positions = &inner[..kept];
        found = &mut found[..kept];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).unwrap()
    }

    #[test]
    fn means_and_deviations_are_those_of_the_textbook() {
        assert_eq!(
            sample(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).mean_and_deviation(),
            (5.0, (32.0f64 / 7.0).sqrt())
        );
        let (mean, deviation) = sample(&[3.0]).mean_and_deviation();
        assert!(mean == 3.0 && deviation.is_nan());
    }

    #[test]
    fn nothing_and_what_is_not_finite_are_refused() {
        assert_eq!(Sample::new([0.0; 0]), None);
        assert_eq!(Sample::new([1.0, f64::INFINITY]), None);
        assert_eq!(Sample::new([f64::NAN, 1.0]), None);
    }

    #[test]
    fn medians_and_quantiles_of_small_samples_are_the_textbook_ones() {
        assert_eq!(sample(&[3.0]).median(), 3.0);
        assert_eq!(sample(&[4.0, 1.0]).median(), 2.5);
        assert_eq!(sample(&[9.0, 1.0, 5.0]).median(), 5.0);
        // R: quantile(c(1,2,4,8), c(.25,.5,.9)) gives 1.75, 3.0, 6.8.
        let got = sample(&[8.0, 2.0, 1.0, 4.0]).quantiles([0.25, 0.5, 0.9]);
        assert_eq!(got.map(|value| (value * 1e9).round() / 1e9), [1.75, 3.0, 6.8]);
    }

    #[test]
    fn the_widest_numbers_do_not_overflow() {
        let wide = sample(&[-f64::MAX, f64::MAX, f64::MAX]);
        assert_eq!(wide.median(), f64::MAX);
        assert_eq!(sample(&[f64::MAX, f64::MAX]).median(), f64::MAX);
        assert_eq!(sample(&[-f64::MAX, f64::MAX]).quantile(0.5), 0.0);
    }

    fn finite() -> impl Strategy<Value = Vec<f64>> {
        // Few distinct values in half of the cases, to have ties.
        prop_oneof![
            prop::collection::vec(-1e12..1e12, 1..200),
            prop::collection::vec((0u8..6).prop_map(f64::from), 1..200),
        ]
    }

    proptest! {
        #[test]
        fn selection_agrees_with_sorting(values in finite(), ranks: [u8; 5]) {
            let sample = sample(&values);
            let sorted = sample.sorted();
            let mut ranks = ranks.map(usize::from);
            ranks.sort_unstable();
            let expected = ranks.map(|rank| sorted[rank.clamp(1, sorted.len()) - 1]);
            prop_assert_eq!(sample.order_statistics(ranks), expected);
            prop_assert_eq!(sample.min(), sorted[0]);
            prop_assert_eq!(sample.max(), sorted[sorted.len() - 1]);
        }

        #[test]
        fn many_are_selected_like_few(seed: u64, kinds in 1u64..100_000, ranks: [u32; 3]) {
            let mut rng = crate::stats::Rng::new(seed);
            let kinds = std::num::NonZeroU64::new(kinds).unwrap();
            let values: Vec<f64> = (0..MANY + 77).map(|_| rng.below(kinds) as f64 - 9.0).collect();
            let sample = sample(&values);
            let sorted = sample.sorted();
            let mut ranks = ranks.map(|rank| rank as usize % values.len());
            ranks.sort_unstable();
            prop_assert_eq!(sample.order_statistics(ranks.map(|rank| rank + 1)), ranks.map(|rank| sorted[rank]));
            prop_assert_eq!(sample.median(), middle(&sorted));
        }

        #[test]
        fn quantiles_ascend_between_the_extremes(values in finite(), a in 0.0..=1.0, b in 0.0..=1.0) {
            let sample = sample(&values);
            let (a, b) = (f64::min(a, b), f64::max(a, b));
            let [low, high] = sample.quantiles([a, b]);
            prop_assert!(sample.min() <= low && low <= high && high <= sample.max());
        }

        #[test]
        fn half_of_the_values_lie_on_each_side_of_the_median(values in finite()) {
            let median = sample(&values).median();
            let half = values.len().div_ceil(2);
            prop_assert!(values.iter().filter(|&&value| value <= median).count() >= half);
            prop_assert!(values.iter().filter(|&&value| value >= median).count() >= half);
        }

        #[test]
        fn the_order_of_measuring_changes_nothing(values in finite(), seed: u64) {
            let mut shuffled = values.clone();
            crate::stats::Rng::new(seed).shuffle(&mut shuffled);
            prop_assert_eq!(sample(&values).median(), sample(&shuffled).median());
            prop_assert_eq!(sample(&values).quantile(0.9), sample(&shuffled).quantile(0.9));
        }
    }
}
