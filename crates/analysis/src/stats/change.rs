//! Between which values of a series did the level change?
//!
//! One value is one run, and runs are the replicates. Nothing is assumed about their distribution, only that
//! without a change any order of them is as likely as any other. A cut of a stretch into two parts is judged
//! by the energy distance of the parts, E-divisive's statistic (Matteson and James, "A nonparametric approach
//! for multiple change point analysis of multivariate data", JASA 109, 2014; the distance of Székely and
//! Rizzo, 2004), and the best cut of a stretch by how often a random order of it has one as good (a
//! permutation test, exact at its level). If there is a change, both parts are searched again, each with a
//! share of the level proportional to its length (Meinshausen, "Hierarchical testing of variable importance",
//! Biometrika 95, 2008).
//!
//! Deliberately absent: trends and correlated neighbours, both of which the test takes for changes.

use super::level::Alpha;
use super::rng::Rng;

/// A single different value is an outlier; a level has at least two.
pub const FEWEST_A_SIDE: usize = 2;
/// The smallest probability that the random orders can give is this share of the level, so the number of
/// orders hardly affects the result.
const FINENESS: f64 = 0.1;
/// Statistics that differ only by rounding are equal.
const ROUNDING: f64 = 1e-9;

/// A place where the level changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The index of the first value of the new level.
    pub at: usize,
    /// The probability of a cut as good in a random order.
    pub p: f64,
    /// The stretch that was searched: the first index, and the one after the last.
    pub within: (usize, usize),
}

/// The changes of a series, in order. It can only change at `cuts`: the indices of first values after a
/// possible change, in order; anywhere if none are given. Values must be finite.
pub fn changes(values: &[f64], cuts: Option<&[usize]>, level: Alpha, rng: &mut Rng) -> Vec<Change> {
    let all: Vec<usize> = (1..values.len()).collect();
    let mut found = Vec::new();
    search(values, cuts.unwrap_or(&all), (0, values.len()), level, rng, &mut found);
    found.sort_by_key(|change| change.at);
    found
}

/// The minimum number n of values to find a change at a level: the share of orders that keep the smaller half
/// at one end, 2 ÷ C(n, ⌊n/2⌋), must not exceed it.
pub fn fewest(level: Alpha) -> usize {
    let mut orders = 1.0;
    let mut count = 1;
    while count < 2 * FEWEST_A_SIDE || 2.0 / orders > level.get() {
        count += 1;
        // C(n, ⌊n/2⌋) from C(n−1, ⌊(n−1)/2⌋): times n over the larger half.
        orders *= count as f64 / count.div_ceil(2) as f64;
    }
    count
}

/// The probability that parts differ as much in a random order of both: the first `at` values and the others.
pub fn shifted(values: &[f64], at: usize, rng: &mut Rng, level: Alpha) -> f64 {
    if at == 0 || at >= values.len() {
        return 1.0;
    }
    probability(values, &[at], level, rng).map_or(1.0, |(_, p)| p)
}

fn search(
    values: &[f64],
    cuts: &[usize],
    within: (usize, usize),
    level: Alpha,
    rng: &mut Rng,
    found: &mut Vec<Change>,
) {
    let (from, to) = within;
    let share = (to - from) as f64 / values.len().max(1) as f64;
    let Some(own) = Alpha::new(level.get() * share) else { return };
    if to - from < fewest(own) {
        return;
    }
    let fits = |cut: &&usize| **cut >= from + FEWEST_A_SIDE && **cut + FEWEST_A_SIDE <= to;
    let inside: Vec<usize> = cuts.iter().filter(fits).map(|cut| cut - from).collect();
    let Some((cut, p)) = probability(&values[from..to], &inside, own, rng) else { return };
    if p > own.get() {
        return;
    }
    let at = from + cut;
    found.push(Change { at, p, within });
    search(values, cuts, (from, at), level, rng, found);
    search(values, cuts, (at, to), level, rng, found);
}

/// The best cut, and the probability of one as good in a random order. Once that is clearly above the level,
/// no more orders are tried (Besag and Clifford, "Sequential Monte Carlo p-values", Biometrika 78, 1991).
fn probability(values: &[f64], cuts: &[usize], level: Alpha, rng: &mut Rng) -> Option<(usize, f64)> {
    let (cut, best) = best_cut(values, cuts)?;
    if best <= 0.0 {
        return Some((cut, 1.0));
    }
    let orders = (1.0 / (FINENESS * level.get())).ceil() as usize;
    let enough = (level.get() * (orders + 1) as f64).floor() as usize + 1;
    let mut shuffled = values.to_vec();
    let mut as_good = 0;
    for tried in 1..=orders {
        rng.shuffle(&mut shuffled);
        let other = best_cut(&shuffled, cuts).map_or(0.0, |(_, statistic)| statistic);
        as_good += usize::from(other >= best * (1.0 - ROUNDING));
        if as_good >= enough {
            return Some((cut, as_good as f64 / tried as f64));
        }
    }
    Some((cut, (as_good + 1) as f64 / (orders + 1) as f64))
}

/// The cut with the largest statistic: mk/(m+k) times the energy distance of the m values before it and the k
/// after it.
fn best_cut(values: &[f64], cuts: &[usize]) -> Option<(usize, f64)> {
    let distance = |one: usize, other: usize| (values[one] - values[other]).abs();
    let count = values.len();
    let total: f64 = (0..count).map(|one| (0..one).map(|other| distance(one, other)).sum::<f64>()).sum();
    // Sums over pairs: both before the cut, one on each side, both after it.
    let (mut before, mut across) = (0.0, 0.0);
    let mut best: Option<(usize, f64)> = None;
    let mut cuts = cuts.iter().peekable();
    for cut in 1..count {
        let moved = cut - 1;
        let to_before: f64 = (0..moved).map(|other| distance(moved, other)).sum();
        let to_behind: f64 = (cut..count).map(|other| distance(moved, other)).sum();
        before += to_before;
        across += to_behind - to_before;
        if cuts.next_if(|own| **own == cut).is_none() {
            continue;
        }
        let behind = total - before - across;
        let (m, k) = (cut as f64, (count - cut) as f64);
        let energy = 2.0 * (across / (m * k) - before / (m * m) - behind / (k * k));
        let statistic = energy * m * k / (m + k);
        if best.is_none_or(|(_, known)| statistic > known) {
            best = Some((cut, statistic));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    // Named, because proptest's prelude has a trait of that name.
    use crate::stats::Rng;
    use proptest::prelude::*;

    fn alpha(level: f64) -> Alpha {
        Alpha::new(level).unwrap()
    }

    /// Runs around these levels, with noise of 2 %.
    fn planted(levels: &[(usize, f64)], rng: &mut Rng) -> Vec<f64> {
        let of = |&(count, level): &(usize, f64)| std::iter::repeat_n(level, count);
        levels.iter().flat_map(of).map(|level| level + 0.02 * rng.standard_normal()).collect()
    }

    #[test]
    fn the_fewest_values_are_those_of_which_two_orders_are_rare_enough() {
        // 2/C(8, 4) = 2.9 % and 2/C(7, 3) = 5.7 %; 2/C(12, 6) = 0.22 %.
        assert_eq!(fewest(alpha(0.05)), 8);
        assert_eq!(fewest(alpha(0.05 / 20.0)), 12);
        for level in [0.05, 0.0025] {
            let count = fewest(alpha(level));
            let halves =
                |count: usize| (0..count).map(|at| f64::from(u8::from(at >= count / 2))).collect::<Vec<_>>();
            let tries = |count| changes(&halves(count), None, alpha(level), &mut Rng::new(1)).len();
            assert_eq!((tries(count - 1), tries(count + 2)), (0, 1), "{count}");
        }
    }

    #[test]
    fn a_step_is_found_where_it_is_and_two_steps_twice() {
        let mut rng = Rng::new(3);
        let one = planted(&[(10, 1.0), (8, 1.1)], &mut rng);
        let found: Vec<usize> = changes(&one, None, alpha(0.05), &mut rng).iter().map(|one| one.at).collect();
        assert_eq!(found, [10]);
        let two = planted(&[(15, 1.0), (15, 1.2), (15, 1.0)], &mut rng);
        let found: Vec<usize> = changes(&two, None, alpha(0.05), &mut rng).iter().map(|one| one.at).collect();
        assert_eq!(found, [15, 30]);
        // If it cannot have happened there, it is reported at the nearest possible place.
        let found = changes(&one, Some(&[6, 12]), alpha(0.05), &mut rng);
        assert!(found.iter().all(|one| one.at == 6 || one.at == 12) && !found.is_empty());
    }

    #[test]
    fn a_single_odd_run_and_equal_runs_are_no_change() {
        let mut odd = vec![1.0; 20];
        odd[12] = 3.0;
        assert_eq!(changes(&odd, None, alpha(0.05), &mut Rng::new(5)), []);
        for count in [0, 1, 7, 40] {
            assert_eq!(changes(&vec![1.0; count], None, alpha(0.05), &mut Rng::new(5)), []);
        }
    }

    /// Series without a change are called changed at most as often as the level allows, also with two modes
    /// and heavy tails. 400 series at 5 %: 20 expected, and 35 is beyond 99.9 % of a binomial count.
    #[test]
    fn false_alarms_stay_within_the_level() {
        let shapes: [fn(&mut Rng) -> f64; 3] = [
            |rng| rng.standard_normal(),
            |rng| (1.5 * rng.standard_normal()).exp(),
            |rng| if rng.uniform() < 0.3 { 2.0 } else { 1.0 } + 0.05 * rng.standard_normal(),
        ];
        for (index, shape) in shapes.into_iter().enumerate() {
            let alarms = (0..400).filter(|series| {
                let mut rng = Rng::for_stream(11 + index as u64, *series);
                let values: Vec<f64> = (0..16).map(|_| shape(&mut rng)).collect();
                !changes(&values, None, alpha(0.05), &mut rng).is_empty()
            });
            let alarms = alarms.count();
            assert!(alarms <= 35, "shape {index}: {alarms} of 400");
        }
    }

    /// A step of three deviations among 20 runs is found, without a second one, in at least 90 % of all
    /// series. Of 200, 167 or fewer would happen by chance less than once in a thousand.
    #[test]
    fn steps_are_found_and_nothing_beside_them() {
        let (mut found, mut more) = (0, 0);
        for series in 0..200 {
            let mut rng = Rng::for_stream(17, series);
            let values = planted(&[(10, 1.0), (10, 1.06)], &mut rng);
            let own = changes(&values, None, alpha(0.05), &mut rng);
            found += usize::from(own.iter().any(|one| one.at.abs_diff(10) <= 1));
            more += usize::from(own.len() > 1);
        }
        assert!(found > 167, "{found} of 200");
        assert!(more <= 21, "{more} of 200 have a second one; 5 % are 10, and 21 is beyond 99.9 %");
    }

    /// The same two levels in random order are not a change, so the share that is called one is the level.
    #[test]
    fn a_given_cut_is_tested_at_its_level() {
        let level = alpha(0.05);
        let mut alarms = 0;
        for series in 0..400 {
            let mut rng = Rng::for_stream(23, series);
            let values: Vec<f64> = (0..14).map(|_| rng.standard_normal()).collect();
            alarms += usize::from(shifted(&values, 7, &mut rng, level) <= 0.05);
        }
        assert!(alarms <= 35, "{alarms} of 400");
        let step = planted(&[(7, 1.0), (7, 1.1)], &mut Rng::new(1));
        assert!(shifted(&step, 7, &mut Rng::new(2), level) <= 0.05);
        assert_eq!(shifted(&step, 0, &mut Rng::new(2), level), 1.0);
    }

    proptest! {
        #[test]
        fn changes_lie_within_and_in_order(values in proptest::collection::vec(-1e6f64..1e6, 0..24), seed: u64) {
            let found = changes(&values, None, alpha(0.2), &mut Rng::new(seed));
            prop_assert!(found.windows(2).all(|pair| pair[0].at < pair[1].at));
            for change in found {
                let (from, to) = change.within;
                prop_assert!(from + FEWEST_A_SIDE <= change.at && change.at + FEWEST_A_SIDE <= to && to <= values.len());
                prop_assert!(change.p > 0.0 && change.p <= 0.2);
            }
        }

        #[test]
        fn neither_unit_nor_offset_matters(values in proptest::collection::vec(-100i32..100, 8..16), seed: u64) {
            let plain: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
            let other: Vec<f64> = plain.iter().map(|value| 1024.0 * value + 4096.0).collect();
            let at = |values: &[f64]| changes(values, None, alpha(0.05), &mut Rng::new(seed)).iter().map(|one| one.at).collect::<Vec<_>>();
            prop_assert_eq!(at(&plain), at(&other));
        }
    }
}
