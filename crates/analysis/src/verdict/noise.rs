//! How far apart are subjects that are the same? Twins show it, and a difference below that is not believed.
//!
//! This is decided only here: the summary in words, the causes, places, predictions and every table ask this
//! module. Deliberately absent: whether twins differ so much that the control has moved, which is a suspect.

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
    /// Whether it is for the metric and a setting of a finding, and for one of these layers.
    pub(super) fn is_beside(&self, plan: &Plan, finding: &Finding, layers: &[Layer]) -> bool {
        let is_in_its_setting = |cell: &usize| plan.cells[self.cell].is_beside(&plan.cells[*cell]);
        self.metric == finding.metric
            && [finding.cell, finding.against].iter().any(is_in_its_setting)
            && layers.contains(&plan.entry(self.cell).layer)
    }
}

/// What all twins show.
///
/// Their interval is at 95 %, not at the level that the verdicts share. The floor describes the machine and
/// decides nothing alone: a difference above it still needs its verdict at the level of its experiment. At
/// that level, the interval of few rounds is their whole range, so one disturbed round would set the floor,
/// and each subject added to a run would raise it.
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

/// The noise floor of the two layers of a finding, the larger of the two, if a difference was decided that
/// does not exceed it. Twins' own findings are exempt.
///
/// The interval of a difference shows how it varies from round to round. It does not show what a label does
/// in every round alike. Twins do: as far as they can tell, the same subject under two labels may differ by
/// as much as their interval reaches.
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
