//! By how much do the values of one run differ from those of another, with which it shares no round?
//!
//! Nothing pairs the values of two independent samples, so all differences new − old are used. The estimate
//! is their median (Hodges and Lehmann 1963), the *shift*; the interval runs from the k-th smallest to the
//! k-th largest of them, where k comes from the exact distribution of Mann and Whitney's U (Hollander, Wolfe
//! and Chicken, "Nonparametric Statistical Methods", section 4.3). If the two distributions differ only by a
//! shift, with any shape, it misses that shift with probability 2·P(U ≤ k − 1), exactly without ties
//! and less often with them. If they also differ in width, the level nearly holds while both samples have
//! about as many values, and is missed if the smaller sample is much wider: `tests/statistics` says by how
//! much. The difference of the two medians would not need this assumption, but its exact interval (each
//! median's own, one end minus the other) is two to four times as wide.
//!
//! U assumes independent values within a sample. Neighbours in time are correlated, the more so the more
//! values a run has: if both samples have more than [`MOST_VALUES`], neighbours are combined into blocks,
//! each of which counts with its median. Blocks of both samples have the same length, since medians of more
//! values spread less, and those of two have another location than those of one; so if only one sample is
//! long, some of its values represent it. Deliberately absent: what differs from run to run but not within
//! one. No sample of one run shows it; it takes several runs on each side, each counted as one value.

use super::level::Alpha;
use super::order::{Estimate, Interval};
use super::sample::{Sample, middle};

/// Up to this many values count individually, and longer samples count as at most this many blocks. With
/// 60 and 60, the numbers of arrangements, up to C(120, 60), fit into whole numbers of 128 bits.
pub const MOST_VALUES: usize = 60;

/// The shift from the old to the new sample, with its interval at this level; no interval with fewer
/// than [`fewest_each`] values. Its `rounds` are those of the shorter sample, before blocks were formed.
pub fn shift(old: &Sample, new: &Sample, alpha: Alpha) -> Estimate {
    let rounds = old.count().min(new.count());
    let length = rounds.div_ceil(MOST_VALUES);
    let (old, new) = (blocks(old, length), blocks(new, length));
    let mut all: Vec<f64> = new.iter().flat_map(|new| old.iter().map(move |old| new - old)).collect();
    // Two numbers near the largest possible differ by infinity; as an order statistic that is harmless.
    all.iter_mut().for_each(|one| *one = one.clamp(f64::MIN, f64::MAX));
    all.sort_unstable_by(f64::total_cmp);
    // Two values against many would have an interval too, which unequal widths would distort most.
    let enough = old.len().min(new.len()) >= fewest_each(alpha);
    let interval = rank(old.len(), new.len(), alpha).filter(|_| enough).map(|(rank, coverage)| Interval {
        low: all[rank - 1],
        high: all[all.len() - rank],
        coverage,
    });
    Estimate { value: middle(&all), interval, rounds, alpha }
}

/// The two-sided probability that shares as far apart as these, each a count of so many, come from samples that are alike:
/// twice the smaller tail of Fisher's exact test.
pub fn more_often_of([(one, of_one), (other, of_other)]: [(usize, usize); 2]) -> f64 {
    let (of_both, both) = (of_one + of_other, one + other);
    let chosen = |all: usize, few: usize| -> f64 {
        (0..few).map(|step| ((all - step) as f64 / (step + 1) as f64).ln()).sum()
    };
    let probability =
        |count: usize| (chosen(of_one, count) + chosen(of_other, both - count) - chosen(of_both, both)).exp();
    let possible = both.saturating_sub(of_other)..=both.min(of_one);
    let up = possible.clone().filter(|count| *count >= one).map(probability).sum::<f64>();
    let down = possible.filter(|count| *count <= one).map(probability).sum::<f64>();
    (2.0 * up.min(down)).min(1.0)
}

/// The minimum number of values on each side for an interval: the smallest n with 2 ÷ C(2n, n) ≤ alpha. With
/// one fewer, even the range of all differences would miss the shift too often.
pub fn fewest_each(alpha: Alpha) -> usize {
    let mut each = 1;
    let mut error = 1.0;
    while error > alpha.get() {
        each += 1;
        // C(2n, n) ÷ C(2n − 2, n − 1) = 2(2n − 1) ÷ n.
        error *= each as f64 / (2.0 * (2.0 * each as f64 - 1.0));
    }
    each
}

/// The medians of blocks of neighbours, all of this length, which is at most the count: as many as fit, at
/// most [`MOST_VALUES`], from the first values to the last at equal steps.
fn blocks(sample: &Sample, length: usize) -> Vec<f64> {
    let values = sample.values();
    let count = (values.len() / length).min(MOST_VALUES);
    let step = |block: usize| block * (values.len() - length) / count.saturating_sub(1).max(1);
    let median = |block: usize| {
        let own = &values[step(block)..][..length];
        if length == 1 { own[0] } else { Sample::new(own).map_or(f64::NAN, |own| own.median()) }
    };
    (0..count).map(median).collect()
}

/// The rank from either end of the sorted differences at which an interval ends, and its coverage: the
/// largest k with 2·P(U ≤ k − 1) ≤ alpha. None if no k is possible.
fn rank(old: usize, new: usize, alpha: Alpha) -> Option<(usize, f64)> {
    let counts = arrangements(old, new);
    let total: f64 = (1..=new).map(|i| (old + i) as f64 / i as f64).product();
    let mut tail = 0;
    let mut rank = 0;
    for count in counts {
        if 2.0 * (tail + count) as f64 / total > alpha.get() {
            break;
        }
        tail += count;
        rank += 1;
    }
    (rank > 0).then(|| (rank, 1.0 - 2.0 * tail as f64 / total))
}

/// The number of arrangements of two samples in which U is 0, 1, … up to the middle: the coefficients of
/// Gauss's binomial ∏(1 − q^(old + i)) ÷ (1 − q^i), i = 1 … new. After each factor they count arrangements
/// with i new values, so none is below zero.
fn arrangements(old: usize, new: usize) -> Vec<i128> {
    let mut counts = vec![0; old * new / 2 + 1];
    counts[0] = 1;
    for i in 1..=new {
        for u in (old + i..counts.len()).rev() {
            counts[u] -= counts[u - old - i];
        }
        for u in i..counts.len() {
            counts[u] += counts[u - i];
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).unwrap()
    }

    fn at(alpha: f64) -> Alpha {
        Alpha::new(alpha).unwrap()
    }

    /// Every arrangement, counted one by one.
    #[test]
    fn arrangements_are_those_that_can_be_counted() {
        for (old, new) in [(1, 1), (3, 2), (4, 4), (5, 3), (2, 7)] {
            let mut expected = vec![0; old * new / 2 + 1];
            for places in 0u32..1 << (old + new) {
                if places.count_ones() as usize != new {
                    continue;
                }
                // For each new value, the number of old ones before it.
                let before = |place: usize| (0..place).filter(|lower| places >> lower & 1 == 0).count();
                let u: usize = (0..old + new).filter(|place| places >> place & 1 == 1).map(before).sum();
                if let Some(count) = expected.get_mut(u) {
                    *count += 1;
                }
            }
            assert_eq!(arrangements(old, new), expected, "{old} and {new}");
        }
    }

    /// R: qwilcox(0.025, n, m), from which wilcox.test computes its interval.
    #[test]
    fn ranks_are_those_of_the_tables() {
        for (old, new, k) in [(4, 4, 1), (5, 5, 3), (10, 10, 24), (8, 12, 23), (20, 20, 128)] {
            assert_eq!(rank(old, new, Alpha::FIVE_PERCENT).unwrap().0, k, "{old} and {new}");
        }
        assert_eq!(rank(3, 3, Alpha::FIVE_PERCENT), None);
        let (most, coverage) = rank(60, 60, Alpha::FIVE_PERCENT).unwrap();
        // The normal approximation: 1800 − 1.96·√(60·60·121/12) = 1426.6.
        assert!((1426..=1428).contains(&most) && (0.95..0.951).contains(&coverage), "{most} {coverage}");
    }

    #[test]
    fn the_fewest_values_are_those_with_a_rank() {
        for alpha in [0.3, 0.05, 0.01, 1e-4, 1e-9] {
            let each = fewest_each(at(alpha));
            assert!(rank(each, each, at(alpha)).is_some(), "{alpha}");
            assert!(rank(each - 1, each - 1, at(alpha)).is_none(), "{alpha}");
        }
        assert_eq!(fewest_each(Alpha::FIVE_PERCENT), 4);
    }

    #[test]
    fn the_shift_of_a_small_pair_is_worked_by_hand() {
        let found =
            shift(&sample(&[1.0, 2.0, 3.0, 4.0]), &sample(&[11.0, 13.0, 12.0, 14.0]), Alpha::FIVE_PERCENT);
        let interval = found.interval.unwrap();
        assert_eq!((found.value, interval.low, interval.high, found.rounds), (10.0, 7.0, 13.0, 4));
        assert!((interval.coverage - (1.0 - 2.0 / 70.0)).abs() < 1e-12);
        let alone = shift(&sample(&[1.0]), &sample(&[3.5]), Alpha::FIVE_PERCENT);
        assert_eq!((alone.value, alone.interval), (2.5, None));
    }

    #[test]
    fn many_values_become_blocks_of_neighbours() {
        let long = sample(&(0..20_000).map(|i| f64::from(i % 10)).collect::<Vec<_>>());
        let cut = blocks(&long, long.count().div_ceil(MOST_VALUES));
        assert!(cut.len() <= MOST_VALUES && cut.len() > MOST_VALUES / 2);
        assert!(cut.iter().all(|value| *value == 4.5 || *value == 4.0 || *value == 5.0));
        let widest = sample(&[-f64::MAX, f64::MAX, 0.0, 1.0]);
        assert!(shift(&widest, &widest, Alpha::FIVE_PERCENT).value.is_finite());
    }

    #[test]
    fn blocks_are_of_one_length_do_not_overlap_and_reach_from_end_to_end() {
        let counting = |count: u32| sample(&(0..count).map(f64::from).collect::<Vec<_>>());
        assert_eq!(blocks(&counting(5), 1), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(blocks(&counting(7), 3), [1.0, 5.0]);
        assert_eq!(blocks(&counting(1), 1), [0.0]);
        let spread = blocks(&counting(1000), 1);
        assert_eq!((spread.len(), spread[0], spread[59]), (MOST_VALUES, 0.0, 999.0));
        for (count, length) in [(61, 2), (119, 2), (121, 3), (400, 7), (20_000, 4)] {
            let middles = blocks(&counting(count), length);
            assert!(middles.windows(2).all(|pair| pair[1] - pair[0] >= length as f64), "{count} by {length}");
            let half = (length - 1) as f64 / 2.0;
            assert_eq!((middles[0], middles[middles.len() - 1]), (half, f64::from(count - 1) - half));
        }
    }

    fn values() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((-50i16..50).prop_map(f64::from), 1..150)
    }

    proptest! {
        #[test]
        fn swapped_samples_give_the_mirrored_shift(old in values(), new in values()) {
            let (old, new) = (sample(&old), sample(&new));
            let there = shift(&old, &new, Alpha::FIVE_PERCENT);
            let back = shift(&new, &old, Alpha::FIVE_PERCENT);
            prop_assert_eq!(there.value, -back.value);
            prop_assert_eq!(there.interval.is_some(), back.interval.is_some());
            if let (Some(there), Some(back)) = (there.interval, back.interval) {
                prop_assert_eq!((there.low, there.high), (-back.high, -back.low));
                prop_assert!(there.coverage >= 0.95);
            }
        }

        #[test]
        fn the_shift_lies_in_its_interval_and_follows_a_constant(old in values(), new in values()) {
            let moved = sample(&new.iter().map(|value| value + 1000.0).collect::<Vec<_>>());
            let (old, new) = (sample(&old), sample(&new));
            let (plain, moved) =
                (shift(&old, &new, Alpha::FIVE_PERCENT), shift(&old, &moved, Alpha::FIVE_PERCENT));
            prop_assert_eq!(plain.value + 1000.0, moved.value);
            if let Some(interval) = plain.interval {
                prop_assert!(interval.contains(plain.value));
            }
        }
    }
}
