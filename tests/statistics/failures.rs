//! Failed rounds neither make a winner nor vanish.

use dunnage::stats::{Alpha, Decision, FailedRounds, Margin, Pairs, Rng, compare, more_often, more_often_of};

use crate::statistics::bounds::{assert_at_least, assert_at_most};

const ROUNDS: usize = 30;

/// The same subject twice, the second of which crashes in about half of the rounds in which it would have been slower than
/// usual: the decision with these rounds left out, and with them at both extremes.
fn crashing(rng: &mut Rng) -> [Decision; 2] {
    let mut times = || -> Vec<f64> { (0..ROUNDS).map(|_| 10.0 + rng.standard_normal()).collect() };
    let (one, other) = (times(), times());
    let baseline: Vec<Option<f64>> = one.into_iter().map(Some).collect();
    let fails = |time: f64| time > 10.0;
    let subject: Vec<Option<f64>> = other.into_iter().map(|time| (!fails(time)).then_some(time)).collect();
    let without = Pairs::align(&baseline, &subject).unwrap();
    let anywhere = subject.iter().filter(|value| value.is_none()).count();
    let with = Pairs { failed: FailedRounds { anywhere, ..FailedRounds::default() }, ..without.clone() };
    [&without, &with].map(|pairs| compare(pairs, Margin::fixed(0.0, 0.0), Alpha::FIVE_PERCENT).decision)
}

#[test]
fn a_subject_that_crashes_when_it_would_be_slow_is_not_faster() {
    let mut rng = Rng::new(31);
    let trials: Vec<[Decision; 2]> = (0..1000).map(|_| crashing(&mut rng)).collect();
    let wrong = |which: usize| {
        trials.iter().filter(|one| matches!(one[which], Decision::Less | Decision::More)).count()
    };
    // The effect is there: without the failed rounds the faster half wins.
    assert_at_least(0.35, wrong(0), 1000, "left out");
    assert_at_most(0.05, wrong(1), 1000, "at both extremes");
}

/// One failure that has nothing to do with the time: a difference of one and a half deviations is still found.
#[test]
fn one_failure_in_thirty_rounds_costs_hardly_any_verdict() {
    let mut rng = Rng::new(32);
    let found = (0..1000).filter(|_| {
        let baseline: Vec<_> = (0..ROUNDS).map(|_| Some(10.0 + rng.standard_normal())).collect();
        let mut subject: Vec<_> = (0..ROUNDS).map(|_| Some(11.5 + rng.standard_normal())).collect();
        subject[7] = None;
        let mut pairs = Pairs::align(&baseline, &subject).unwrap();
        pairs.failed.anywhere = 1;
        compare(&pairs, Margin::fixed(0.0, 0.0), Alpha::FIVE_PERCENT).decision == Decision::More
    });
    assert_at_least(0.98, found.count(), 1000, "one failure");
}

/// How many trials decide that one side fails more often, of pairs of rounds and of independent ones.
fn alarms(shares: [f64; 2], rng: &mut Rng) -> [usize; 2] {
    let mut alarms = [0; 2];
    for _ in 0..2000 {
        let (mut alone, mut all) = ([0, 0], [(0, ROUNDS), (0, ROUNDS)]);
        for _ in 0..ROUNDS {
            // What makes one fail often makes the other fail too.
            let shared = rng.uniform() < 0.05;
            let fails = shares.map(|share| shared || rng.uniform() < share);
            let alike = fails[0] == fails[1];
            for side in 0..2 {
                alone[side] += usize::from(fails[side] && !alike);
                all[side].0 += usize::from(rng.uniform() < shares[side]);
            }
        }
        let level = Alpha::FIVE_PERCENT.get();
        alarms[0] += usize::from(more_often(alone[0], alone[1]) <= level);
        alarms[1] += usize::from(more_often_of(all) <= level);
    }
    alarms
}

#[test]
fn failures_alike_on_both_sides_are_not_told_apart_and_others_are() {
    let mut rng = Rng::new(33);
    for share in [0.05, 0.2, 0.5] {
        for count in alarms([share; 2], &mut rng) {
            assert_at_most(0.05, count, 2000, &format!("{share}"));
        }
    }
    for count in alarms([0.4, 0.0], &mut rng) {
        assert_at_least(0.95, count, 2000, "12 of 30");
    }
}

#[test]
fn the_tests_of_shares_are_those_of_the_textbooks() {
    assert_eq!([more_often(0, 0), more_often(3, 3)], [1.0, 1.0]);
    let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one} {other}");
    close(more_often(12, 0), 2.0 / 4096.0);
    close(more_often(1, 6), 2.0 * 8.0 / 128.0);
    // Fisher's tea: 3 of 4 against 1 of 4 has 17 of 70 in its tail.
    close(more_often_of([(3, 4), (1, 4)]), 2.0 * 17.0 / 70.0);
    close(more_often_of([(0, 5), (0, 9)]), 1.0);
}
