//! Does it matter what ran just before?
//!
//! A launch can depend on its predecessor: what a busy kernel does in 0.3 ms takes a quiet one 10 ms.
//! The order is shuffled in every round, so predecessors are assigned at random, and shuffling the
//! values among them is an exact test for any distribution. Deliberately absent: which
//! predecessors belong together. With 20 to 30 rounds the caller must form few groups (say, an engine
//! and a bare process); groups of one value each can show nothing.

use super::rng::Rng;
use super::sample::Sample;

/// The number of shuffles. The smallest possible probability is one in 5,000.
const PERMUTATIONS: u32 = 4999;
/// After so many shuffles that reach the observed statistic no more are needed: chance is common enough.
const ENOUGH: u32 = 100;

/// The values that followed one kind of predecessor.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<G> {
    /// What ran before.
    pub predecessor: G,
    /// The number of rounds.
    pub count: usize,
    /// Median of the values in those rounds minus the median of all, in the unit of the values.
    pub deviation: f64,
}

/// How values depend on what ran before them.
#[derive(Clone, Debug, PartialEq)]
pub struct CarryOver<G> {
    /// The probability of groups that differ at least as much by chance.
    pub p: f64,
    /// The groups in the order of their labels.
    pub groups: Vec<Group<G>>,
    /// Index of the group that contributes most to the statistic.
    pub strongest: usize,
}

impl<G> CarryOver<G> {
    /// The smallest probability that these groups could show: at least that of one of two arrangements of
    /// their values among all there are (any and its reverse are equally far from chance), and that of one
    /// shuffle.
    pub fn smallest_p(&self) -> f64 {
        let (mut seen, mut arrangements) = (0.0, 1.0);
        for group in &self.groups {
            for chosen in 1..=group.count {
                seen += 1.0;
                arrangements *= seen / chosen as f64;
            }
        }
        f64::max(2.0 / arrangements, 1.0 / f64::from(PERMUTATIONS + 1))
    }
}

/// Tests whether values depend on their predecessors; one observation per round.
///
/// The statistic is that of Kruskal and Wallis (JASA 47, 1952) up to a factor that is the same for all
/// orders, and its distribution is that over random shuffles from `seed`. The observed order counts as one of
/// them, so the probability is never zero (Phipson and Smyth 2010). Shuffling ends early where so many have reached it that the
/// probability is not small (Besag and Clifford 1991), which keeps it valid. Subtracting the median does not change
/// ranks, so it only affects the reported deviations.
///
/// None if a value is not finite, or all have the same predecessor, so that there is nothing to compare.
pub fn carry_over<G: Ord + Clone>(observations: &[(G, f64)], seed: u64) -> Option<CarryOver<G>> {
    let sample = Sample::new(observations.iter().map(|(_, value)| value))?;
    let mut labels: Vec<&G> = observations.iter().map(|(label, _)| label).collect();
    labels.sort_unstable();
    labels.dedup();
    if labels.len() < 2 {
        return None;
    }
    let group_of: Vec<usize> =
        observations.iter().map(|(label, _)| labels.partition_point(|&other| other < label)).collect();
    let mut counts = vec![0usize; labels.len()];
    for &group in &group_of {
        counts[group] += 1;
    }

    let mut ranks = doubled_ranks(sample.values());
    let n = ranks.len() as f64;
    // The doubled ranks of a group should sum to twice the mean of all ranks times the group's count.
    let contribute = |ranks: &[f64], to: &mut [f64]| -> f64 {
        to.fill(0.0);
        for (&group, &rank) in group_of.iter().zip(ranks) {
            to[group] += rank;
        }
        for (sum, &count) in to.iter_mut().zip(&counts) {
            *sum = (*sum - (n + 1.0) * count as f64).powi(2) / count as f64;
        }
        to.iter().sum()
    };
    let mut observed = vec![0.0; counts.len()];
    let total = contribute(&ranks, &mut observed);
    let strongest = (0..observed.len())
        .reduce(|best, next| if observed[next] > observed[best] { next } else { best })
        .unwrap_or(0);

    let mut rng = Rng::new(seed);
    // Sums of the same numbers in another order can differ in the last digits and are still equal.
    let as_large = total * (1.0 - 1e-9);
    let mut shuffled = vec![0.0; counts.len()];
    let (mut reached, mut shuffles) = (0u32, 0u32);
    while shuffles < PERMUTATIONS && reached < ENOUGH {
        rng.shuffle(&mut ranks);
        reached += u32::from(contribute(&ranks, &mut shuffled) >= as_large);
        shuffles += 1;
    }
    let p = match reached {
        ENOUGH => f64::from(ENOUGH) / f64::from(shuffles),
        _ => f64::from(reached + 1) / f64::from(PERMUTATIONS + 1),
    };

    let median = sample.median();
    let groups = labels
        .iter()
        .enumerate()
        .map(|(group, &label)| {
            let own = group_of.iter().zip(sample.values()).filter(|&(&of, _)| of == group);
            let deviation = Sample::new(own.map(|(_, value)| value))?.median() - median;
            Some(Group { predecessor: label.clone(), count: counts[group], deviation })
        })
        .collect::<Option<Vec<_>>>()?;
    Some(CarryOver { p, groups, strongest })
}

/// Twice the rank of each value, with ties sharing their mean, so that all are whole.
fn doubled_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for tie in order.chunk_by(|&a, &b| values[a] == values[b]) {
        for &index in tie {
            ranks[index] = (2 * before + tie.len() + 1) as f64;
        }
        before += tie.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    // Named, because proptest's prelude has a trait of that name.
    use crate::stats::Rng;
    use proptest::prelude::*;

    #[test]
    fn a_predecessor_that_matters_is_named() {
        let mut rng = Rng::new(5);
        let observations: Vec<_> = (0..30)
            .map(|i| {
                let predecessor = ["bare", "docker", "runc"][i % 3];
                let planted = if predecessor == "docker" { -4.0 } else { 0.0 };
                (predecessor, 20.0 + planted + rng.standard_normal())
            })
            .collect();
        let found = carry_over(&observations, 1).unwrap();
        assert_eq!(found.p, 1.0 / 5000.0);
        let strongest = &found.groups[found.strongest];
        assert_eq!((strongest.predecessor, strongest.count), ("docker", 10));
        assert!(strongest.deviation < -2.0);
        assert_eq!(carry_over(&observations, 1).unwrap(), found);
    }

    /// Two groups of three, completely separate: 2 of the 20 ways to divide six values are as extreme.
    #[test]
    fn the_probability_is_that_of_all_permutations() {
        let observations: Vec<_> = (0..6).map(|i| (i / 3, f64::from(i))).collect();
        let found = carry_over(&observations, 3).unwrap();
        // Four standard deviations of the shuffles until a hundred have reached it, which are negatively binomial.
        assert!((found.p - 0.1).abs() < 4.0 * 0.1 * (0.9 / f64::from(ENOUGH)).sqrt(), "{}", found.p);
    }

    #[test]
    fn ties_share_their_rank() {
        let ranks = doubled_ranks(&[1.0, 2.0, 2.0, 3.0, 3.0, 3.0]);
        assert_eq!(ranks, [2.0, 5.0, 5.0, 10.0, 10.0, 10.0]);
    }

    #[test]
    fn nothing_is_shown_where_nothing_can_be() {
        // Each predecessor once: every shuffle is as extreme.
        let single: Vec<_> = (0..20).map(|i| (i, f64::from(i))).collect();
        assert_eq!(carry_over(&single, 0).unwrap().p, 1.0);
        let equal = [("a", 1.0), ("a", 1.0), ("b", 1.0)];
        let found = carry_over(&equal, 0).unwrap();
        assert_eq!(found.p, 1.0);
        assert_eq!(carry_over(&equal[..2], 0), None);
        let bad = [("a", 1.0), ("b", f64::NAN)];
        assert_eq!(carry_over(&bad, 0), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Only ranks count, not the unit nor the zero of the values.
        #[test]
        fn units_change_nothing(observations in prop::collection::vec((0u8..4, -99i8..99), 8..30)) {
            let series = |map: fn(f64) -> f64| -> Vec<_> {
                observations.iter().map(|&(g, v)| (g, map(f64::from(v)))).collect()
            };
            let plain = carry_over(&series(|v| v), 9).map(|found| (found.p, found.strongest));
            let other = carry_over(&series(|v| 1000.0 + 16.0 * v), 9).map(|found| (found.p, found.strongest));
            prop_assert_eq!(plain, other);
        }
    }
}
