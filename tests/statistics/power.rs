//! Planted effects are found, and equality is shown only where it is true.

use dunnage::stats::{Alpha, Decision, Margin, Pairs, Rng, compare};

use crate::statistics::bounds::{assert_at_least, assert_at_most};

/// Decisions, each as one of `m`, about a subject that differs from the baseline by `effect`. Each value has
/// its own noise of 3 %, and a whole round shares a load of 10 %.
pub fn decisions(effect: f64, margin: Margin, rounds: usize, trials: usize, m: usize) -> Vec<Decision> {
    let alpha = Alpha::shared_by(m);
    let mut rng = Rng::for_stream(23, rounds as u64);
    (0..trials)
        .map(|_| {
            let (mut baseline, mut subject) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                let load = 10.0 * rng.standard_normal();
                baseline.push(Some(100.0 + load + 3.0 * rng.standard_normal()));
                subject.push(Some(100.0 * (1.0 + effect) + load + 3.0 * rng.standard_normal()));
            }
            let pairs = Pairs::align(&baseline, &subject).unwrap();
            compare(&pairs, margin, alpha).decision
        })
        .collect()
}

/// A margin as a share of the baseline.
pub fn share(relative: f64) -> Margin {
    Margin::new(0.0, relative).unwrap()
}

pub fn count(decisions: &[Decision], wanted: Decision) -> usize {
    decisions.iter().filter(|&&found| found == wanted).count()
}

/// The methodology's claim: 5 % with a margin of 3 % in 30 rounds, for a single comparison and among 20.
#[test]
fn a_planted_effect_is_found() {
    for m in [1, 20] {
        for (effect, wanted) in [(0.05, Decision::More), (-0.05, Decision::Less)] {
            let found = count(&decisions(effect, share(0.03), 30, 500, m), wanted);
            assert_at_least(0.9, found, 500, &format!("{effect} among {m}"));
        }
    }
}

/// The interval's half width is about 1.96 · 1.25 · 4.24 %/√n: 1.3 % at 60 rounds, which leaves room for the
/// estimate within a margin of 3 %, and 3.3 % at 10, which leaves none.
#[test]
fn equality_is_shown_with_enough_rounds_and_not_before() {
    let same = count(&decisions(0.0, share(0.03), 60, 500, 1), Decision::Same);
    assert_at_least(0.95, same, 500, "same in 60 rounds");
    let few = decisions(0.0, share(0.03), 10, 500, 1);
    let undecided = few.iter().filter(|found| matches!(found, Decision::Undecided { .. })).count();
    assert_at_least(0.5, undecided, 500, "undecided in 10 rounds");
}

/// The costly error: a difference at the margin or beyond must rarely be reported as the same.
#[test]
fn a_difference_that_matters_is_seldom_called_the_same() {
    // In units, since a share of the baseline's median would vary with it.
    let margin = Margin::new(3.0, 0.0).unwrap();
    for rounds in [30, 60] {
        let same = count(&decisions(0.03, margin, rounds, 1000, 1), Decision::Same);
        // Only one of the two ends can be wrong, for which the interval has half its level.
        assert_at_most(0.025, same, 1000, &format!("{rounds} rounds"));
    }
}
