//! How long do the slowest of many values take, over all rounds?
//!
//! A sample of some hundred values has no 99.9th percentile: what would be called so is its maximum, and the median over
//! rounds of such maxima is the longest value of a usual round. What happens once in several rounds, such as a stall of the
//! server, is never in it, however long it is. So the values of all rounds are taken together, and the quantile is theirs.
//!
//! Rounds are independent and the values of one are not: a stall delays many. The interval is Woodruff's ("Confidence
//! intervals for medians and other position measures", JASA 47, 1952) with rounds as clusters: the share of values up to the
//! quantile varies between rounds, as the ratio of two sums does, and the quantiles at the two ends of that share's interval,
//! by Student's t, are the ends. It needs a number of rounds at which rare stalls are in several of them: [`FEWEST_ROUNDS`].

use super::level::Alpha;
use super::normal::exceeded_with;
use super::order::{Estimate, Interval};

/// With fewer values beyond it, a quantile is hardly more than the maximum.
pub const FEWEST_BEYOND: u64 = 10;

/// The fewest rounds at which an interval at 95 % holds the true quantile in 93 % of simulated runs, for stalls that are in
/// one round of thirteen and for values without a variance. (At 30 rounds it does in 81 %.)
pub const FEWEST_ROUNDS: usize = 200;

/// The values of a round in ascending order, each with how often it was seen.
pub type Counted = [(u64, u64)];

/// Whether so many values have this quantile; the maximum, a share of 1, needs only one.
pub fn has_tail(values: u64, share: f64) -> bool {
    let beyond = values as f64 * (1.0 - share);
    // A thousandth of ten thousand is ten, although 1 − 0.999 is a little less in binary.
    values > 0 && (share >= 1.0 || beyond > FEWEST_BEYOND as f64 - 1e-6)
}

/// The value that this share of the values of all rounds does not exceed, with its interval if there are enough rounds and
/// the interval has an end. None with fewer than [`FEWEST_BEYOND`] values beyond it.
pub fn tail(rounds: &[&Counted], share: f64, alpha: Alpha) -> Option<Estimate> {
    let all = merged(rounds);
    let values = all.last()?.1;
    if !has_tail(values, share) {
        return None;
    }
    let value = at(&all, share)?;
    let interval = if rounds.len() < FEWEST_ROUNDS || share >= 1.0 {
        None
    } else {
        interval(rounds, &all, value, share, alpha)
    };
    Some(Estimate { value: value as f64, interval, rounds: rounds.len(), alpha })
}

/// By how much one exceeds the other. The interval is that of Zou and Donner ("Construction of confidence limits about effect
/// measures", Statistics in Medicine 27, 2008) for two independent estimates; rounds in which both are slow make it too wide.
pub fn apart(subject: &Estimate, baseline: &Estimate) -> Estimate {
    let value = subject.value - baseline.value;
    let interval = subject.interval.zip(baseline.interval).map(|(own, other)| Interval {
        low: value - (subject.value - own.low).hypot(other.high - baseline.value),
        high: value + (own.high - subject.value).hypot(baseline.value - other.low),
        coverage: own.coverage.min(other.coverage),
    });
    Estimate { value, interval, rounds: subject.rounds.min(baseline.rounds), alpha: subject.alpha }
}

/// The values of all rounds in ascending order, each with the number of values up to it.
fn merged(rounds: &[&Counted]) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = rounds.iter().flat_map(|round| round.iter().copied()).collect();
    all.sort_unstable();
    let mut sum = 0;
    for (_, count) in &mut all {
        sum += *count;
        *count = sum;
    }
    all
}

/// The value that a share of all does not exceed; none beyond them.
fn at(all: &[(u64, u64)], share: f64) -> Option<u64> {
    let values = all.last()?.1;
    let rank = (share * values as f64 - 1e-6).ceil().max(1.0) as u64;
    all.get(all.partition_point(|(_, up_to)| *up_to < rank)).map(|(value, _)| *value)
}

fn interval(
    rounds: &[&Counted],
    all: &[(u64, u64)],
    value: u64,
    share: f64,
    alpha: Alpha,
) -> Option<Interval> {
    let count = rounds.len() as f64;
    let values = all.last()?.1 as f64;
    // Where many values are equal, the share below the quantile and the share up to it differ, and so may their spreads.
    let error = |is_within: &dyn Fn(u64) -> bool| {
        let of_round = |round: &&Counted| {
            let of = |(_, times): &(u64, u64)| *times as f64;
            let own: f64 = round.iter().map(of).sum();
            (own, round.iter().filter(|(one, _)| is_within(*one)).map(of).sum::<f64>())
        };
        let sums: Vec<(f64, f64)> = rounds.iter().map(of_round).collect();
        let reached = sums.iter().map(|(_, within)| within).sum::<f64>() / values;
        let squares: f64 = sums.iter().map(|(own, within)| (within - reached * own).powi(2)).sum();
        (count / (count - 1.0) * squares).sqrt() / values
    };
    let error = error(&|one| one <= value).max(error(&|one| one < value));
    // Student's t by its first term beyond the normal deviate (Abramowitz and Stegun 26.7.5): within 10^−4 here.
    let z = exceeded_with(alpha.get() / 2.0);
    let reach = (z + (z.powi(3) + z) / (4.0 * (count - 1.0))) * error;
    let low = at(all, (share - reach).max(0.0))?;
    let high = at(all, share + reach)?;
    Some(Interval { low: low as f64, high: high as f64, coverage: 1.0 - alpha.get() })
}

#[cfg(test)]
mod tests {
    use super::super::Rng;
    use super::*;

    type Rounds = Vec<Vec<(u64, u64)>>;

    fn counted(values: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
        let mut values: Vec<u64> = values.into_iter().collect();
        values.sort_unstable();
        values.chunk_by(|one, other| one == other).map(|same| (same[0], same.len() as u64)).collect()
    }

    fn of(rounds: &Rounds) -> Vec<&Counted> {
        rounds.iter().map(Vec::as_slice).collect()
    }

    /// The latencies of 600 requests in 0.3 s, in µs, due at regular times: from 80 to 120 µs, more or less by round; and stalls of
    /// `stall` µs, on average one in four seconds, after which everything that was due is answered at once.
    fn stalling(rng: &mut Rng, rounds: usize, stall: f64) -> Rounds {
        let round = |rng: &mut Rng| {
            let own = 1.0 + 0.1 * rng.uniform();
            let mut latencies: Vec<u64> = Vec::new();
            let mut begin = -stall;
            loop {
                begin += -4e6 * (1.0 - rng.uniform()).ln();
                if begin >= 300_000.0 {
                    break;
                }
                let due = (0..600).map(|request| f64::from(request) * 500.0);
                let late = due.filter(|due| (begin..begin + stall).contains(due));
                latencies.extend(late.map(|due| (own * 100.0).max(begin + stall - due) as u64));
            }
            latencies.truncate(600);
            let usual = 600 - latencies.len();
            latencies.extend((0..usual).map(|at| (own * (80.0 + 40.0 * at as f64 / usual as f64)) as u64));
            counted(latencies)
        };
        (0..rounds).map(|_| round(rng)).collect()
    }

    /// A hundred values of a Pareto distribution without a variance (α = 1.2), in rounds that differ by a third.
    fn pareto(rng: &mut Rng, rounds: usize) -> Rounds {
        let round = |rng: &mut Rng| {
            let own = 100.0 * (1.0 + rng.uniform() / 3.0);
            counted((0..100).map(|_| (own * (1.0 - rng.uniform()).powf(-1.0 / 1.2)) as u64))
        };
        (0..rounds).map(|_| round(rng)).collect()
    }

    const RUNS: usize = 300;

    /// In how many of these runs the interval of so many rounds has the quantiles of very many.
    fn covered<const K: usize>(
        seed: u64,
        rounds: usize,
        shares: [f64; K],
        of_runs: &dyn Fn(&mut Rng, usize) -> Rounds,
    ) -> [usize; K] {
        let mut rng = Rng::new(seed);
        let many = merged(&of(&of_runs(&mut rng, 8_000)));
        let mut held = [0; K];
        for _ in 0..RUNS {
            let run = of_runs(&mut rng, rounds);
            let (run, all) = (of(&run), merged(&of(&run)));
            for (share, held) in shares.into_iter().zip(&mut held) {
                let [truth, value] = [&many, &all].map(|values| at(values, share).unwrap());
                let found = interval(&run, &all, value, share, Alpha::FIVE_PERCENT);
                *held += usize::from(found.is_some_and(|one| one.contains(truth as f64)));
            }
        }
        held
    }

    /// Of 300 runs with a coverage of 93 %, fewer than 268 hold the truth in one of 60 simulations, and of 300 with 95 %, in one
    /// of 10,000.
    #[test]
    fn an_interval_holds_the_true_tail_where_it_is_given_and_would_not_with_fewer_rounds() {
        let both = [0.99, 0.999];
        let short = covered(1, FEWEST_ROUNDS, both, &|rng, rounds| stalling(rng, rounds, 10_000.0));
        let long = covered(2, FEWEST_ROUNDS, both, &|rng, rounds| stalling(rng, rounds, 100_000.0));
        let without_a_variance = covered(3, FEWEST_ROUNDS, both, &pareto);
        for held in [short, long, without_a_variance] {
            assert!(held.iter().all(|held| *held >= 268), "{short:?} {long:?} {without_a_variance:?}");
        }
        let [held] = covered(4, 30, [0.999], &|rng, rounds| stalling(rng, rounds, 10_000.0));
        assert!(held < 268, "30 rounds: {held} of {RUNS}");
    }

    /// 0.13 ms is the median over rounds of the longest of 600; a request in a thousand takes 6 ms or more.
    #[test]
    fn stalls_that_few_rounds_have_are_seen() {
        let run = stalling(&mut Rng::new(5), 400, 10_000.0);
        let found = tail(&of(&run), 0.999, Alpha::FIVE_PERCENT).unwrap();
        assert!((4_500.0..8_000.0).contains(&found.value), "{found:?}");
        assert!(found.interval.unwrap().contains(6_200.0), "{found:?}");
        let longest: Vec<f64> = run.iter().map(|round| round.last().unwrap().0 as f64).collect();
        let usual = super::super::Sample::new(longest).unwrap().median();
        assert!(usual < 140.0, "{usual}");
        // The near miss: without stalls both are about the same.
        let run = stalling(&mut Rng::new(5), 400, 1.0);
        let found = tail(&of(&run), 0.999, Alpha::FIVE_PERCENT).unwrap();
        assert!((110.0..140.0).contains(&found.value), "{found:?}");
    }

    #[test]
    fn a_quantile_needs_ten_values_beyond_it_and_an_interval_many_rounds() {
        let round = counted(1..=1_000);
        let run = |rounds: usize| vec![round.clone(); rounds];
        let found = |rounds, share| tail(&of(&run(rounds)), share, Alpha::FIVE_PERCENT);
        assert_eq!(found(9, 0.999), None);
        assert_eq!(found(10, 0.999).map(|one| (one.value, one.interval)), Some((999.0, None)));
        assert_eq!(found(1, 0.99).map(|one| (one.value, one.rounds)), Some((990.0, 1)));
        assert_eq!((found(1, 1.0).map(|one| one.value), found(0, 1.0)), (Some(1_000.0), None));
        assert_eq!(found(FEWEST_ROUNDS - 1, 0.99).and_then(|one| one.interval), None);
        let interval = found(FEWEST_ROUNDS, 0.99).and_then(|one| one.interval).unwrap();
        assert_eq!((interval.low, interval.high), (990.0, 990.0));
        assert_eq!(found(FEWEST_ROUNDS, 1.0).and_then(|one| one.interval), None);
    }

    #[test]
    fn an_interval_without_an_end_is_none() {
        // One round of many has all that is slow, so the true share may be anything up to that.
        let mut run = vec![counted([1; 100]); FEWEST_ROUNDS];
        run[0] = counted([1_000; 100]);
        let found = tail(&of(&run), 0.999, Alpha::FIVE_PERCENT).unwrap();
        assert_eq!((found.value, found.interval), (1_000.0, None));
    }

    #[test]
    fn a_difference_is_as_uncertain_as_both_together() {
        let interval = |low, high| Some(Interval { low, high, coverage: 0.95 });
        let of = |value, interval| Estimate { value, interval, rounds: 200, alpha: Alpha::FIVE_PERCENT };
        let found = apart(&of(10.0, interval(7.0, 13.0)), &of(5.0, interval(1.0, 9.0)));
        assert_eq!((found.value, found.interval.map(|one| (one.low, one.high))), (5.0, Some((0.0, 10.0))));
        assert_eq!(apart(&of(10.0, None), &of(5.0, interval(1.0, 9.0))).interval, None);
    }
}
