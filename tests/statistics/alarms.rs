//! Equal subjects are reported as different no more often than the level allows.

use dunnage::stats::{Alpha, Decision, Margin, Pairs, Rng, compare};

use crate::statistics::bounds::{assert_at_least, assert_at_most};
use crate::statistics::shapes::{LOG_NORMAL, NORMAL, Shape, series};

/// Twenty subjects that are the baseline under other names, in rounds that share it. A family counts if any
/// of them is reported as less or more, with a margin of zero.
fn families_with_a_false_alarm(rounds: usize, families: usize, shape: &Shape) -> usize {
    let alpha = Alpha::shared_by(20);
    let mut rng = Rng::for_stream(21, rounds as u64);
    (0..families)
        .filter(|_| {
            let baseline = series(rounds, || (shape.draw)(&mut rng));
            let twins: Vec<_> = (0..20).map(|_| series(rounds, || (shape.draw)(&mut rng))).collect();
            twins.iter().any(|twin| {
                let pairs = Pairs::align(&baseline, twin).unwrap();
                let decision = compare(&pairs, Margin::fixed(0.0, 0.0), alpha).decision;
                matches!(decision, Decision::Less | Decision::More)
            })
        })
        .count()
}

#[test]
fn false_alarms_on_twins_keep_the_level_of_the_family() {
    for shape in [NORMAL, LOG_NORMAL] {
        for rounds in [10, 30] {
            let alarms = families_with_a_false_alarm(rounds, 1000, &shape);
            let what = format!("{} with {rounds} rounds", shape.name);
            assert_at_most(0.05, alarms, 1000, &what);
            // A rule that never fires would pass the line above.
            assert!(alarms > 0, "{what}: no alarm at all");
        }
    }
}

/// A single comparison has no Bonferroni reserve: its false alarms are those of the interval.
#[test]
fn false_alarms_of_a_single_comparison_are_exactly_what_was_promised() {
    let (trials, rounds) = (4000, 30);
    let mut rng = Rng::new(22);
    let mut missed = 0.0;
    let alarms = (0..trials).filter(|_| {
        let baseline = series(rounds, || rng.standard_normal());
        let twin = series(rounds, || rng.standard_normal());
        let pairs = Pairs::align(&baseline, &twin).unwrap();
        let comparison = compare(&pairs, Margin::fixed(0.0, 0.0), Alpha::FIVE_PERCENT);
        missed = 1.0 - comparison.difference.interval.unwrap().coverage;
        matches!(comparison.decision, Decision::Less | Decision::More)
    });
    let alarms = alarms.count();
    assert_at_most(missed, alarms, trials, "alarms");
    assert_at_least(missed, alarms, trials, "alarms");
}

/// A run that may end at any of three looks errs if the interval of any look does: at the nominal rate if the
/// looks share the level, and about twice as often if they do not.
#[test]
fn looks_that_share_the_level_keep_it_and_others_do_not() {
    let (trials, looks) = (4000, [25, 50, 100]);
    let wrong = |alpha: Alpha| {
        let mut rng = Rng::new(31);
        let errs = |_: &usize| {
            let [baseline, twin] = [0; 2].map(|_| series(looks[2], || rng.standard_normal()));
            looks.iter().any(|&look| {
                let pairs = Pairs::align(&baseline[..look], &twin[..look]).unwrap();
                !pairs.difference(alpha).interval.unwrap().contains(0.0)
            })
        };
        (0..trials).filter(errs).count()
    };
    assert_at_most(0.05, wrong(Alpha::shared_by(looks.len())), trials, "shared by the looks");
    assert_at_least(0.075, wrong(Alpha::FIVE_PERCENT), trials, "the whole level at each look");
}
