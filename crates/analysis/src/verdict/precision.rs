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

/// The precision of a run; none where no comparison with the baseline has an interval.
pub(super) fn reached(plan: &Plan, columns: &Columns, findings: &[Finding]) -> Option<Reached> {
    let share = |(cell, against, metric): Asked| {
        let fits = |one: &Finding| one.cell == cell && one.against == against && one.metric == metric;
        let finding = findings.iter().position(fits)?;
        let interval = findings[finding].difference?.interval?;
        let pairs = Pairs::align(columns.get(against, metric), columns.get(cell, metric))?;
        let share = interval.half_width() / longer_median(&pairs);
        share.is_finite().then_some(Reached { share, finding })
    };
    let shares = asked(plan).into_iter().filter_map(share);
    shares.reduce(|widest, one| if one.share > widest.share { one } else { widest })
}

/// The rounds that a run needs for a precision, as its pilot foretells it: the fewest from `least` on
/// with which each comparison keeps the precision in four runs of five, but not more than `most`.
pub fn forecast(pilot: &Recorded, asked_for: f64, least: usize, most: usize) -> (usize, Precision) {
    let plan = &pilot.plan;
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
    let needed = (least..=most).find(|&rounds| widest(&spreads, rounds) <= Some(asked_for));
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
