//! Do old and new runs differ, or did the machine, or does a run differ as much from itself?
//!
//! Rounds show how much launches differ within a run. What makes one run differ from the next (a booted kernel,
//! a started daemon, the neighbours of a virtual machine) is in a run once, and no number of rounds shows how
//! large it is. So:
//!
//! - With enough runs on both sides, each run is one value, its median, and the interval of the shift comes
//!   from runs alone.
//! - With fewer, the interval comes from rounds, and between several runs it is wide enough for every old run
//!   with every new one. It is then only about these runs, not about others.
//! - A change must exceed that of the *controls*, which are known to be the same in both: if a control changed,
//!   the two must not overlap; if it did not, the change must be beyond what the control's interval leaves open.
//! - A change must exceed the difference between a run's later and earlier half, if that is shown.

use super::decide::{Decision, NewRun, decide};
use super::level::Alpha;
use super::order::{Estimate, Interval};
use super::paired::open;
use super::sample::Sample;
use super::unpaired::{fewest_each, shift};

/// What an interval is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Rounds of one run on each side.
    Rounds,
    /// Rounds, for every pair of an old and a new run.
    #[serde(rename = "rounds of every pair of runs")]
    Pairs,
    /// Runs, each of which is one value.
    Runs,
}

/// The difference between new and old runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Between {
    /// The shift. Its `rounds` are runs if it is computed from runs.
    pub shift: Estimate,
    /// What it is computed from.
    pub basis: Basis,
}

/// The shift between runs, each with its values in time order. `None` if a side has no run.
pub fn between(old: &[Sample], new: &[Sample], alpha: Alpha) -> Option<Between> {
    if let ([old], [new]) = (old, new) {
        return Some(Between { shift: shift(old, new, alpha), basis: Basis::Rounds });
    }
    let medians = |runs: &[Sample]| Sample::new(runs.iter().map(Sample::median));
    let of_runs = shift(&medians(old)?, &medians(new)?, alpha);
    if of_runs.interval.is_some() {
        return Some(Between { shift: of_runs, basis: Basis::Runs });
    }
    let pairs = old.iter().flat_map(|old| new.iter().map(move |new| shift(old, new, alpha)));
    let widest = pairs.reduce(|one, other| Estimate {
        interval: one.interval.zip(other.interval).map(|(one, other)| Interval {
            low: one.low.min(other.low),
            high: one.high.max(other.high),
            coverage: one.coverage.min(other.coverage),
        }),
        rounds: one.rounds.min(other.rounds),
        ..one
    })?;
    // Only rounding can put the middle of all runs outside every pair.
    let value = widest.interval.map_or(of_runs.value, |all| of_runs.value.clamp(all.low, all.high));
    Some(Between { shift: Estimate { value, ..widest }, basis: Basis::Pairs })
}

/// The shift without failed rounds, with an interval that holds wherever those are, from the shifts with all of them at the
/// lowest and at the highest place.
pub fn over_both(known: Between, [lowest, highest]: [Between; 2]) -> Between {
    let ends = lowest.shift.interval.zip(highest.shift.interval);
    let interval = ends.map(|(low, high)| Interval { low: open(low.low), high: open(high.high), ..low });
    Between { shift: Estimate { value: open(known.shift.value), interval, ..known.shift }, ..known }
}

/// Decides about a change in rounds of which some failed, given the shifts with all of them at the lowest and at the highest
/// place: what holds at both, if anything does.
pub fn rule_at_both(extremes: [Between; 2], matters: f64, controls: &[Estimate], own: f64) -> Ruling {
    let [lowest, highest] = extremes.map(|one| rule(&one, matters, controls, own));
    if std::mem::discriminant(&lowest) == std::mem::discriminant(&highest)
        && !matches!(lowest, Ruling::Undecided { .. })
    {
        return lowest;
    }
    Ruling::Undecided { smallest_visible: f64::INFINITY, new_run: None }
}

/// The absolute difference between the later half of a run and the earlier one; 0 if it is not shown at this
/// level.
pub fn own_move(run: &Sample, alpha: Alpha) -> f64 {
    let (earlier, later) = run.values().split_at(run.count() / 2);
    let (Some(earlier), Some(later)) = (Sample::new(earlier), Sample::new(later)) else { return 0.0 };
    let moved = shift(&earlier, &later, alpha);
    let shown = moved.interval.is_some_and(|interval| !interval.contains(0.0));
    if shown { moved.value.abs() } else { 0.0 }
}

/// What the runs show about a change.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// The whole interval is within the margin.
    Same,
    /// Less in the new runs, and neither a control nor a run's own changes explain it.
    Less,
    /// More in the new runs, likewise.
    More,
    /// There is a change, and a control shows one that overlaps with it.
    Machine,
    /// There is a change, but the controls are not known well enough to rule it out, up to this size.
    ControlsTooWide(f64),
    /// There is a change, but a run differs from itself by this much.
    Unsteady(f64),
    /// Whether there is a change that matters is open.
    Undecided {
        /// The program would just have seen an effect of this size.
        smallest_visible: f64,
        /// What new runs would need: rounds, or runs if the interval is computed from runs.
        new_run: Option<NewRun>,
    },
    /// Too few values for an interval at this level.
    TooFew {
        /// Values of the shorter side.
        have: usize,
        /// Values that the level needs on each side.
        need: usize,
    },
}

/// Decides about a change, of which `matters` is the smallest that matters, given the shifts of the controls
/// and the largest difference of a run from itself, all on one scale.
pub fn rule(change: &Between, matters: f64, controls: &[Estimate], own: f64) -> Ruling {
    let shift = &change.shift;
    let up = match decide(shift, matters) {
        Decision::Same => return Ruling::Same,
        Decision::TooFew { have, .. } => {
            return Ruling::TooFew { have, need: fewest_each(shift.alpha) };
        }
        Decision::Undecided { smallest_visible, new_run } => {
            // More rounds do not bring runs closer together.
            let new_run = new_run.filter(|_| change.basis != Basis::Pairs);
            return Ruling::Undecided { smallest_visible, new_run };
        }
        Decision::More => true,
        Decision::Less => false,
    };
    // From here on, everything is in the direction of the change.
    let towards = |estimate: &Estimate| {
        let ends = estimate.interval.map_or((estimate.value, estimate.value), |all| (all.low, all.high));
        if up { ends } else { (-ends.1, -ends.0) }
    };
    let near_end = towards(shift).0;
    let moved = |control: &&Estimate| control.interval.is_some() && towards(control).0 > 0.0;
    if controls.iter().filter(moved).any(|control| near_end <= towards(control).1) {
        return Ruling::Machine;
    }
    let left_open = controls.iter().map(|control| towards(control).1).fold(0.0, f64::max);
    if shift.value.abs() <= left_open {
        return Ruling::ControlsTooWide(left_open);
    }
    if change.basis != Basis::Runs && shift.value.abs() <= own {
        return Ruling::Unsteady(own);
    }
    if up { Ruling::More } else { Ruling::Less }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Rng;

    fn run(seed: u64, middle: f64) -> Sample {
        let mut rng = Rng::new(seed);
        Sample::new((0..30).map(|_| middle + rng.standard_normal()).collect::<Vec<_>>()).unwrap()
    }

    fn estimate(low: f64, high: f64) -> Estimate {
        let interval = Interval { low, high, coverage: 0.95 };
        let value = f64::midpoint(low, high);
        Estimate { value, interval: Some(interval), rounds: 30, alpha: Alpha::FIVE_PERCENT }
    }

    fn ruled(low: f64, high: f64, controls: &[(f64, f64)], own: f64) -> Ruling {
        let controls: Vec<_> = controls.iter().map(|(low, high)| estimate(*low, *high)).collect();
        rule(&Between { shift: estimate(low, high), basis: Basis::Rounds }, 3.0, &controls, own)
    }

    #[test]
    fn a_change_must_exceed_what_controls_and_runs_do_by_themselves() {
        assert_eq!(ruled(4.0, 6.0, &[], 0.0), Ruling::More);
        assert_eq!(ruled(4.0, 6.0, &[(-1.0, 1.5), (-8.0, -7.0)], 0.0), Ruling::More);
        assert_eq!(ruled(-6.0, -4.0, &[(-1.0, 9.0)], 0.0), Ruling::Less);
        // A control that moved the same way and overlaps; one that is below.
        assert_eq!(ruled(4.0, 6.0, &[(1.0, 4.5)], 0.0), Ruling::Machine);
        assert_eq!(ruled(4.0, 6.0, &[(1.0, 3.5)], 0.0), Ruling::More);
        assert_eq!(ruled(-6.0, -4.0, &[(-9.0, -1.0)], 0.0), Ruling::Machine);
        // One that includes zero and leaves too much open.
        assert_eq!(ruled(4.0, 6.0, &[(-2.0, 5.0)], 0.0), Ruling::ControlsTooWide(5.0));
        assert_eq!(ruled(4.0, 6.0, &[], 5.5), Ruling::Unsteady(5.5));
        assert_eq!(ruled(-2.0, 2.0, &[(4.0, 5.0)], 9.0), Ruling::Same);
        assert!(matches!(ruled(-1.0, 9.0, &[], 0.0), Ruling::Undecided { .. }));
    }

    #[test]
    fn what_runs_do_by_themselves_is_in_their_own_interval() {
        let change = Between { shift: estimate(4.0, 6.0), basis: Basis::Runs };
        assert_eq!(rule(&change, 3.0, &[], 9.0), Ruling::More);
    }

    #[test]
    fn few_runs_make_the_interval_as_wide_as_their_pairs_and_many_count_as_one_value_each() {
        let old = [run(1, 10.0), run(2, 12.0)];
        let new = [run(3, 14.0), run(4, 15.0)];
        let alone = between(&old[..1], &new[..1], Alpha::FIVE_PERCENT).unwrap();
        assert_eq!(alone.basis, Basis::Rounds);
        let few = between(&old, &new, Alpha::FIVE_PERCENT).unwrap();
        let interval = few.shift.interval.unwrap();
        assert_eq!(few.basis, Basis::Pairs);
        assert!(interval.low < 2.0 && interval.high > 5.0 && interval.contains(few.shift.value));
        let runs = |from: u64, middle: f64| -> Vec<Sample> {
            (from..from + 5).map(|seed| run(seed, middle)).collect()
        };
        let many = between(&runs(10, 10.0), &runs(20, 14.0), Alpha::FIVE_PERCENT).unwrap();
        assert_eq!((many.basis, many.shift.rounds), (Basis::Runs, 5));
        assert!(many.shift.interval.unwrap().low > 2.0);
        assert_eq!(between(&[], &old, Alpha::FIVE_PERCENT), None);
    }

    #[test]
    fn what_it_would_take_is_foretold_in_what_stands_behind_the_interval() {
        let foretold = |basis| match rule(&Between { shift: estimate(-1.0, 9.0), basis }, 3.0, &[], 0.0) {
            Ruling::Undecided { new_run, .. } => new_run.map(|run| run.rounds > 30),
            other => panic!("{other:?}"),
        };
        assert_eq!(foretold(Basis::Rounds), Some(true));
        assert_eq!(foretold(Basis::Runs), Some(true));
        assert_eq!(foretold(Basis::Pairs), None);
    }

    #[test]
    fn a_run_that_climbs_moves_and_one_that_stays_does_not() {
        let climbing = Sample::new((0..30).map(f64::from).collect::<Vec<_>>()).unwrap();
        assert_eq!(own_move(&climbing, Alpha::FIVE_PERCENT), 15.0);
        assert_eq!(own_move(&run(7, 5.0), Alpha::new(1e-3).unwrap()), 0.0);
        assert_eq!(own_move(&Sample::new(vec![1.0]).unwrap(), Alpha::FIVE_PERCENT), 0.0);
    }

    #[test]
    fn too_few_values_say_how_many_are_needed() {
        let short = |middle| Sample::new(vec![middle; 3]).unwrap();
        let change = between(&[short(1.0)], &[short(2.0)], Alpha::FIVE_PERCENT).unwrap();
        assert_eq!(rule(&change, 0.0, &[], 0.0), Ruling::TooFew { have: 3, need: 4 });
    }
}
