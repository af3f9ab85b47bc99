//! The effect of each factor of a complete factorial, alone and with others: one finding for each effect,
//! setting and decisive metric. They count among the verdicts of their experiment, and suspects overrule
//! them.

use super::{Columns, Suspect, Verdict};
use crate::experiment::Weight;
use crate::record::Recorded;
use crate::stats::{self, Effect};

/// An effect in one setting and metric.
#[derive(Debug, Clone)]
pub struct FactorFinding {
    /// The cells of all combinations, by their index in the plan's factorial.
    pub cells: Vec<usize>,
    /// The factors whose effect it is: bit i stands for factor i.
    pub factors: usize,
    /// Index into the experiment's metrics.
    pub metric: usize,
    /// The numbers; none if no round has values of all combinations.
    pub effect: Option<Effect>,
    /// The conclusion; slower and faster are about the factor's second level. For an interaction they say
    /// that the difference of the first factor is larger or smaller at the second level of the other.
    pub verdict: Verdict,
}

/// Every effect of the plan's factorial.
pub(super) fn findings(run: &Recorded, columns: &Columns) -> Vec<FactorFinding> {
    let plan = &run.plan;
    let Some(factorial) = &plan.factorial else { return Vec::new() };
    let timer = run.environment.timer.step as f64 / 1e9;
    let mut all = Vec::new();
    for cells in plan.factorial_cells() {
        let planned = &plan.cells[cells[0]];
        let alpha = plan.alpha(planned.experiment);
        for (metric, definition) in plan.metrics(planned).iter().enumerate() {
            if definition.weight != Weight::Verdict {
                continue;
            }
            let values: Vec<_> = cells.iter().map(|&cell| columns.get(cell, metric)).collect();
            let failed = columns.rounds_in_which_one_failed(&cells, metric);
            let margin = plan.margin_of(planned.experiment, definition);
            for factors in factorial.effects() {
                let effect = stats::effect(&values, failed, factors, margin, timer, alpha);
                let verdict = effect.as_ref().map_or(Verdict::NoData, |effect| effect.decision.into());
                all.push(FactorFinding { cells: cells.clone(), factors, metric, effect, verdict });
            }
        }
    }
    all
}

/// Overrules the effects that rest on suspect numbers.
pub(super) fn overrule(suspects: &[Suspect], findings: &mut [FactorFinding]) {
    for (index, suspect) in suspects.iter().enumerate() {
        for finding in findings.iter_mut() {
            let size = finding.effect.map_or(0.0, |effect| effect.difference.value.abs());
            if suspect.concerns(&finding.cells, finding.metric, size) {
                finding.verdict = Verdict::Suspect(index);
            }
        }
    }
}
