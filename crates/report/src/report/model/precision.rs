//! The precision that was asked for and what became of it, in words.

use serde::Serialize;

use crate::plan;
use crate::record::Recorded;
use crate::report::text::{clean, listed, percent};
use crate::verdict::Analysis;

/// A precision that was asked for, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Precision {
    /// What was asked for, and what the pilot foretold.
    #[serde(flatten)]
    pub foretold: plan::Precision,
    /// What the widest comparison reached; none if there is no interval.
    pub reached: Option<f64>,
    /// The rounds after which the run was to look whether it is reached, the last being all; empty where it was not to.
    pub looks: Vec<usize>,
    /// The look that ended the run, from 1; none where none did, or not yet.
    pub ended_at_look: Option<usize>,
    /// All of it in words.
    pub sentence: String,
}

/// What is said of a run whose rounds were computed for a precision.
pub(super) fn precision(run: &Recorded, analysis: &Analysis) -> Option<Precision> {
    let foretold = run.plan.precision?;
    let plan::Precision { asked, pilot_rounds, predicted, capped } = foretold;
    let reached = analysis.precision;
    let pilot = match (predicted, capped) {
        (Some(share), true) => {
            format!(
                "a pilot of {pilot_rounds} rounds found too many rounds necessary, and foretold ±{} for as many as the run may have",
                percent(share)
            )
        }
        (Some(share), false) => format!("a pilot of {pilot_rounds} rounds foretold ±{}", percent(share)),
        (None, _) => format!("a pilot of {pilot_rounds} rounds gave too few samples to foretell anything"),
    };
    let became = match reached {
        None => "no comparison with the baseline has an interval".to_owned(),
        Some(reached) => {
            let finding = &analysis.findings[reached.finding];
            let cell = &run.plan.cells[finding.cell];
            let setting = cell.setting.in_brackets();
            let metric = run.plan.metrics(cell)[finding.metric].name;
            let label = clean(&run.plan.subjects[cell.subject].label);
            let verb = if reached.share <= asked { "reached" } else { "not reached, but" };
            format!("{verb} ±{}, the widest being {metric} of `{label}`{setting}", percent(reached.share))
        }
    };
    let reached = reached.map(|one| one.share);
    let looks = &run.plan.looks;
    let is_over = analysis.rounds == run.plan.rounds;
    let ended_at_look = looks.iter().position(|look| is_over && *look == run.plan.rounds).map(|at| at + 1);
    let ended =
        ended_at_look.map_or("not at its end yet".to_owned(), |number| format!("ended at look {number}"));
    let stages = match looks.len() {
        0 => String::new(),
        all => format!(
            "; {ended} of the looks that were fixed after {} rounds, so that each interval has 1/{all} of its error and holds whichever look ends the run",
            listed(looks, ", ")
        ),
    };
    let sentence = format!(
        "±{} of the longer median was asked for in differences from the baseline; {pilot}; {became}{stages}",
        percent(asked)
    );
    Some(Precision { foretold, reached, looks: looks.clone(), ended_at_look, sentence })
}
