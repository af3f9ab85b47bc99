//! The requested number of rounds is about right.

use dunnage::stats::{Alpha, Decision, Estimate, Goal, Rng, Sample, Spread};

use crate::statistics::bounds::{assert_at_least, assert_at_most};
use crate::statistics::power::{count, decisions, share};

/// The typical request of an undecided run decides at least half of the new runs, and a quarter of it would
/// not.
#[test]
fn the_rounds_asked_for_are_about_right() {
    for (effect, matters, goal, wanted) in
        [(0.0, 0.03, Goal::Same, Decision::Same), (0.05, 0.01, Goal::Difference, Decision::More)]
    {
        let margin = share(matters);
        let asked: Vec<f64> = decisions(effect, margin, 10, 500, 20)
            .iter()
            .filter_map(|decision| match decision {
                Decision::Undecided { new_run: Some(new_run), .. } if new_run.goal == goal => {
                    Some(new_run.rounds as f64)
                }
                _ => None,
            })
            .collect();
        let typical = Sample::new(asked).unwrap().median() as usize;
        let decided = |rounds| count(&decisions(effect, margin, rounds, 300, 20), wanted);
        let what = format!("{goal:?}, {typical} rounds asked for");
        assert_at_least(0.5, decided(typical), 300, &what);
        assert_at_most(0.5, decided(typical / 4), 300, &what);
    }
}

/// The share of runs that reach the requested width: four of five by design, neither fewer nor many more, at
/// every level and width.
#[test]
fn the_rounds_that_a_pilot_finds_reach_the_precision_in_four_runs_of_five() {
    let trials = 2000;
    for (stream, (level, wanted)) in
        [(0.05, 0.5), (0.05, 0.25), (0.0005, 0.8), (0.0005, 0.4)].into_iter().enumerate()
    {
        let alpha = Alpha::new(level).unwrap();
        let mut rng = Rng::for_stream(29, stream as u64);
        let mut sample = |rounds: usize| {
            Sample::new((0..rounds).map(|_| rng.standard_normal()).collect::<Vec<_>>()).unwrap()
        };
        // The kept value is proportional to the spread, so it is computed once for each number of rounds.
        let mut unit = Spread::of(&sample(15)).unwrap();
        unit.deviation = 1.0;
        let kept: Vec<_> =
            (0..1000).map(|rounds| unit.kept(rounds, alpha).unwrap_or(f64::INFINITY)).collect();
        let mut planned = 0;
        let reached = (0..trials).filter(|_| {
            let deviation = Spread::of(&sample(15)).unwrap().deviation;
            let rounds = kept.iter().position(|half| half * deviation <= wanted).unwrap();
            planned += rounds;
            Estimate::of_median(&sample(rounds), alpha).interval.unwrap().half_width() <= wanted
        });
        let reached = reached.count();
        let what = format!("{level}, {wanted}, {} rounds on average", planned / trials);
        assert_at_least(0.8, reached, trials, &what);
        assert_at_most(0.8, reached, trials, &what);
    }
}
