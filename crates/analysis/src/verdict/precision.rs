//! How narrow are the intervals of the comparisons with the baseline, and how many rounds would make them as
//! narrow as asked for? The precision of a comparison is half the width of the interval of its paired
//! difference, at the level of its family, as a share of the longer of the two medians. The precision of
//! a run is that of its widest decisive comparison with the baseline. Twins do not count: they are controls.

use super::{Columns, Finding};
use crate::experiment::Weight;
use crate::plan::{Plan, Precision, Relation, Role, Verdicts};
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

/// The number of looks of a run in stages.
const LOOKS: usize = 3;
/// A run has stages if it needs this many times the rounds that verdicts need, or more.
const STAGED: usize = 4;

/// One decisive comparison with the baseline: the two cells, the metric, and its level.
type Asked = ((usize, usize, usize), Alpha);

fn asked(plan: &Plan) -> Vec<Asked> {
    let asked = plan.compared().filter(|&(index, ..)| {
        let comparison = &plan.comparisons[index];
        let is_other = comparison.relation == Relation::Twin || comparison.relation.is_of_settings();
        !is_other && comparison.against == plan.baseline_of(comparison.experiment)
    });
    let decisive = |(comparison, cell, against): (usize, usize, usize)| {
        let metrics = plan.metrics(&plan.cells[cell]).iter().enumerate();
        let decisive = metrics.filter(|(_, metric)| metric.weight == Weight::Verdict);
        decisive.map(move |(metric, _)| {
            let role = plan.role(comparison, cell, metric);
            ((cell, against, metric), plan.alpha_for(plan.cells[cell].experiment, role))
        })
    };
    asked.flat_map(decisive).collect()
}

/// The value that differences are a share of.
fn longer_median(pairs: &Pairs) -> f64 {
    pairs.subject.median().abs().max(pairs.baseline.median().abs())
}

/// The precision of a comparison, infinite if it has no interval; none if no round has both values.
fn share(columns: &Columns, ((cell, against, metric), level): Asked) -> Option<f64> {
    let pairs = columns.pairs(against, cell, metric)?;
    let interval = pairs.difference(level).interval;
    Some(interval.map_or(f64::INFINITY, |interval| interval.half_width() / longer_median(&pairs)))
}

/// The precision of a run; none if no comparison with the baseline has an interval.
pub(super) fn reached(plan: &Plan, columns: &Columns, findings: &[Finding]) -> Option<Reached> {
    let share = |asked: Asked| {
        let fits = |one: &Finding| (one.cell, one.against, one.metric) == asked.0;
        let finding = findings.iter().position(fits)?;
        let interval = findings[finding].difference?.interval?;
        let (cell, against, metric) = asked.0;
        let pairs = columns.pairs(against, cell, metric)?;
        Some(Reached { share: interval.half_width() / longer_median(&pairs), finding })
    };
    let shares = asked(plan).into_iter().filter_map(share);
    shares.reduce(|widest, one| if one.share > widest.share { one } else { widest })
}

/// Whether the complete rounds reach the precision asked for in every comparison that has values.
pub fn is_reached(run: &Recorded) -> bool {
    let columns = Columns::of(run);
    let shares: Vec<f64> = asked(&run.plan).into_iter().filter_map(|one| share(&columns, one)).collect();
    let wanted = run.plan.precision.map_or(0.0, |precision| precision.asked);
    !shares.is_empty() && shares.iter().all(|share| *share <= wanted)
}

/// Sets the rounds of a plan for a precision, from what its pilot predicts, at most `most`. If they are many
/// times what verdicts need, a pilot on a disturbed machine may have asked for too long a run, so the run has
/// stages: after a quarter and a half of the rounds it checks whether the precision is reached.
pub fn fix_rounds(plan: &mut Plan, pilot: &Recorded, asked_for: f64, most: usize) {
    let (rounds, precision) = forecast(plan, pilot, asked_for, most);
    (plan.rounds, plan.precision) = (rounds, Some(precision));
    if rounds < STAGED * plan.rounds_for_verdicts() {
        return;
    }
    // The level depends on the number of looks, and the rounds depend on the level.
    plan.looks = vec![rounds; LOOKS];
    let (rounds, precision) = forecast(plan, pilot, asked_for, most);
    let first = rounds.div_ceil(4).max(plan.rounds_for_verdicts());
    (plan.rounds, plan.precision, plan.looks) =
        (rounds, Some(precision), vec![first, rounds.div_ceil(2), rounds]);
}

/// The rounds that a run needs for a precision, as its pilot predicts: the fewest that allow verdicts and
/// with which each comparison reaches the precision in four runs of five, but at most `most`.
fn forecast(plan: &Plan, pilot: &Recorded, asked_for: f64, most: usize) -> (usize, Precision) {
    let columns = Columns::of(pilot);
    let spread = |&((cell, against, metric), _): &Asked| {
        let pairs = Pairs::align(columns.get(against, metric), columns.get(cell, metric))?;
        let mut spread = Spread::of(&pairs.differences)?;
        spread.deviation /= longer_median(&pairs);
        spread.deviation.is_finite().then_some(spread)
    };
    let asked = asked(plan);
    let of_one = |own: &Verdicts, role: Role| {
        let level = plan.alpha_for(own.experiment, role);
        let is_its = |one: &&Asked| plan.cells[one.0.0].experiment == own.experiment && one.1 == level;
        (decisive_among(asked.iter().filter(is_its).filter_map(spread).collect()), level)
    };
    let both = |own| [of_one(own, Role::First), of_one(own, Role::Asked)];
    let spreads: Vec<_> = plan.verdicts.iter().flat_map(both).filter(|(own, _)| !own.is_empty()).collect();
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

/// The precision of the widest comparison.
fn widest(spreads: &[(Vec<Spread>, Alpha)], rounds: usize) -> Option<f64> {
    spreads
        .iter()
        .flat_map(|(own, alpha)| own.iter().map(|spread| spread.kept(rounds, *alpha)))
        .try_fold(0.0, |widest: f64, one| Some(widest.max(one?)))
}
