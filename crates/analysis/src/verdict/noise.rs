//! How far apart are subjects that are the same? Twins show it, and no difference is believed that does not rise
//! above it.
//!
//! The one place where that is decided: the summary in words, the causes, places, predictions and every table ask
//! here. Deliberately absent: whether twins differ so much that the control has moved, which is a suspect.

use super::{CellSummary, Columns, Finding, Verdict};
use crate::plan::{Layer, Plan, Relation};
use crate::stats::{NoiseFloor, Pairs};

/// The noise floor of one metric in one setting: what twins show.
#[derive(Debug, Clone)]
pub struct Noise {
    /// The cell of the twin.
    pub cell: usize,
    /// Index into the experiment's metrics.
    pub metric: usize,
    /// What the pair shows.
    pub floor: NoiseFloor,
}

impl Noise {
    /// Whether it is of the metric and setting of a finding, and of one of these layers.
    pub(super) fn is_beside(&self, plan: &Plan, finding: &Finding, layers: &[Layer]) -> bool {
        self.metric == finding.metric
            && plan.cells[self.cell].is_beside(&plan.cells[finding.cell])
            && layers.contains(&plan.entry(self.cell).layer)
    }
}

/// What all twins show.
///
/// Their interval is one at 95 %, not at the level that the verdicts share. The floor describes the machine and
/// decides nothing by itself: whatever rises above it has its verdict at the level of its experiment besides. At that level
/// the interval of few rounds is their whole range, so that one disturbed round would be the floor, and each
/// subject that is added to a run would raise it.
pub(super) fn of_twins(
    plan: &Plan,
    columns: &Columns,
    cells: &[CellSummary],
    findings: &[Finding],
) -> Vec<Noise> {
    let are_twins = |finding: &&Finding| plan.comparisons[finding.comparison].relation == Relation::Twin;
    let floor = |finding: &Finding| {
        let [one, other] = [finding.against, finding.cell].map(|cell| columns.get(cell, finding.metric));
        let difference = Pairs::align(one, other)?.difference(plan.level(1));
        let median = cells[finding.against].metrics[finding.metric].as_ref()?.median.value;
        let at_its_level = finding.difference.and_then(|difference| difference.interval);
        // That twins differ is a verdict.
        let holds_zero = at_its_level.is_none_or(|interval| interval.contains(0.0));
        let floor = NoiseFloor { holds_zero, ..NoiseFloor::of_twins(&difference, median)? };
        Some(Noise { cell: finding.cell, metric: finding.metric, floor })
    };
    findings.iter().filter(are_twins).filter_map(floor).collect()
}

/// The noise floor of the two layers of a finding, the larger of the two, where a difference that was decided
/// does not rise above it. What twins themselves show is not held against it.
///
/// The interval of a difference says how it varies from round to round. It says nothing of what a label does in
/// every round alike, and that is what twins are for: as far as they can tell, the same subject under two labels
/// may differ by as much as their interval reaches.
pub(super) fn above(plan: &Plan, noise: &[Noise], finding: &Finding) -> Option<f64> {
    let is_difference = matches!(finding.verdict, Verdict::More | Verdict::Less);
    if !is_difference || plan.comparisons[finding.comparison].relation == Relation::Twin {
        return None;
    }
    let layers = [finding.cell, finding.against].map(|cell| plan.entry(cell).layer);
    let concerned = noise.iter().filter(|noise| noise.is_beside(plan, finding, &layers));
    let floor = NoiseFloor::widest(concerned.map(|noise| noise.floor))?;
    floor.hides(finding.difference?.value).then_some(floor.units)
}
