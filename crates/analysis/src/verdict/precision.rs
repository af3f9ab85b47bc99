//! How narrow are the intervals of the comparisons with the baseline, and how many rounds would make
//! them as narrow as was asked for? The precision of a comparison is half the width of the interval of
//! its paired difference, at the level of its experiment, as a share of the longer of the two
//! medians; that of a run is the widest of its decisive comparisons with the baseline. Twins do not
//! count: they are controls.

use super::{Columns, Finding};
use crate::experiment::Weight;
use crate::plan::{Plan, Precision, Relation, Verdicts};
use crate::record::Recorded;
use crate::stats::{Alpha, Pairs, Spread, decisive as decisive_among};

/// The precision that a run reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reached {
    /// As a share.
    pub share: f64,
    /// Index into the findings: the widest comparison.
    pub finding: usize,
}

/// How many looks a run in stages has.
const LOOKS: usize = 3;
/// A run has stages from this many times the rounds on that verdicts need.
const STAGED: usize = 4;

/// One decisive comparison with the baseline: the two cells and the metric.
type Asked = (usize, usize, usize);

fn asked(plan: &Plan) -> Vec<Asked> {
    let asked = plan.compared().filter(|&(index, ..)| {
        let comparison = &plan.comparisons[index];
        let is_control = comparison.relation == Relation::Twin;
        !is_control && comparison.against == plan.baseline_of(comparison.experiment)
    });
    let decisive = |(_, cell, against): (usize, usize, usize)| {
        let metrics = plan.metrics(&plan.cells[cell]).iter().enumerate();
        let decisive = metrics.filter(|(_, metric)| metric.weight == Weight::Verdict);
        decisive.map(move |(metric, _)| (cell, against, metric))
    };
    asked.flat_map(decisive).collect()
}

/// What differences are a share of.
fn longer_median(pairs: &Pairs) -> f64 {
    pairs.subject.median().abs().max(pairs.baseline.median().abs())
}

/// The precision of a comparison, infinite where it has no interval; none where no round has both values.
fn share(plan: &Plan, columns: &Columns, (cell, against, metric): Asked) -> Option<f64> {
    let pairs = Pairs::align(columns.get(against, metric), columns.get(cell, metric))?;
    let interval = pairs.difference(plan.alpha(plan.cells[cell].experiment)).interval;
    Some(interval.map_or(f64::INFINITY, |interval| interval.half_width() / longer_median(&pairs)))
}

/// The precision of a run; none where no comparison with the baseline has an interval.
pub(super) fn reached(plan: &Plan, columns: &Columns, findings: &[Finding]) -> Option<Reached> {
    let share = |asked: Asked| {
        let fits = |one: &Finding| (one.cell, one.against, one.metric) == asked;
        let finding = findings.iter().position(fits)?;
        let share = share(plan, columns, asked).filter(|share| share.is_finite())?;
        Some(Reached { share, finding })
    };
    let shares = asked(plan).into_iter().filter_map(share);
    shares.reduce(|widest, one| if one.share > widest.share { one } else { widest })
}

/// Whether the complete rounds of a run reach the precision that was asked for in every comparison that has values.
pub fn is_reached(run: &Recorded) -> bool {
    let columns = Columns::of(run);
    let shares: Vec<f64> =
        asked(&run.plan).into_iter().filter_map(|one| share(&run.plan, &columns, one)).collect();
    let wanted = run.plan.precision.map_or(0.0, |precision| precision.asked);
    !shares.is_empty() && shares.iter().all(|share| *share <= wanted)
}

/// Fixes the rounds of a plan for a precision by what its pilot foretells, not more than `most`. Where they are many
/// times what verdicts need, so that a pilot on a disturbed machine may have cost a long run, they come in stages: after
/// a quarter and a half of them the run looks whether the precision is reached.
pub fn fix_rounds(plan: &mut Plan, pilot: &Recorded, asked_for: f64, most: usize) {
    let (rounds, precision) = forecast(plan, pilot, asked_for, most);
    (plan.rounds, plan.precision) = (rounds, Some(precision));
    if rounds < STAGED * plan.rounds_for_verdicts() {
        return;
    }
    // The level knows how many looks there are, and the rounds follow from the level.
    plan.looks = vec![rounds; LOOKS];
    let (rounds, precision) = forecast(plan, pilot, asked_for, most);
    let first = rounds.div_ceil(4).max(plan.rounds_for_verdicts());
    (plan.rounds, plan.precision, plan.looks) =
        (rounds, Some(precision), vec![first, rounds.div_ceil(2), rounds]);
}

/// The rounds that a run needs for a precision, as its pilot foretells it: the fewest that leave room for verdicts
/// with which each comparison keeps the precision in four runs of five, but not more than `most`.
fn forecast(plan: &Plan, pilot: &Recorded, asked_for: f64, most: usize) -> (usize, Precision) {
    let columns = Columns::of(pilot);
    let spread = |&(cell, against, metric): &Asked| {
        let pairs = Pairs::align(columns.get(against, metric), columns.get(cell, metric))?;
        let mut spread = Spread::of(&pairs.differences)?;
        spread.deviation /= longer_median(&pairs);
        spread.deviation.is_finite().then_some(spread)
    };
    let asked = asked(plan);
    let of_one = |own: &Verdicts| {
        let its = asked.iter().filter(|(cell, ..)| plan.cells[*cell].experiment == own.experiment);
        (decisive_among(its.filter_map(spread).collect()), plan.alpha(own.experiment))
    };
    let spreads: Vec<_> = plan.verdicts.iter().map(of_one).filter(|(own, _)| !own.is_empty()).collect();
    let needed =
        (plan.rounds_for_verdicts()..=most).find(|&rounds| widest(&spreads, rounds) <= Some(asked_for));
    let rounds = needed.unwrap_or(most);
    let precision = Precision {
        asked: asked_for,
        pilot_rounds: pilot.complete_rounds(),
        predicted: widest(&spreads, rounds).filter(|_| !spreads.is_empty()),
        capped: needed.is_none(),
    };
    (rounds, precision)
}

/// The precision that the widest comparison keeps.
fn widest(spreads: &[(Vec<Spread>, Alpha)], rounds: usize) -> Option<f64> {
    spreads
        .iter()
        .flat_map(|(own, alpha)| own.iter().map(|spread| spread.kept(rounds, *alpha)))
        .try_fold(0.0, |widest: f64, one| Some(widest.max(one?)))
}
