//! The requested precision and its outcome, in words.

use serde::Serialize;

use crate::plan;
use crate::record::Recorded;
use crate::report::text::{clean, listed, percent};
use crate::verdict::Analysis;

/// A requested precision and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Precision {
    /// The request, and the prediction of the pilot.
    #[serde(flatten)]
    pub foretold: plan::Precision,
    /// The precision of the widest comparison; none without an interval.
    pub reached: Option<f64>,
    /// The rounds after which the run checked the precision, the last being all; empty without such looks.
    pub looks: Vec<usize>,
    /// The look that ended the run, from 1; none if it has not ended.
    pub ended_at_look: Option<usize>,
    /// All of it in words.
    pub sentence: String,
}

/// The precision of a run whose rounds were computed for one.
pub(super) fn precision(run: &Recorded, analysis: &Analysis) -> Option<Precision> {
    let foretold = run.plan.precision?;
    let plan::Precision { asked, pilot_rounds, predicted, capped } = foretold;
    let reached = analysis.precision;
    let found = match (predicted.map(percent), capped) {
        (Some(share), true) => {
            format!(
                "found that more rounds are needed than allowed, and predicted ±{share} for those allowed"
            )
        }
        (Some(share), false) => format!("predicted ±{share}"),
        (None, _) => "gave too few samples for a prediction".to_owned(),
    };
    let became = match reached {
        None => "no comparison with the baseline has an interval".to_owned(),
        Some(reached) => {
            let finding = &analysis.findings[reached.finding];
            let cell = &run.plan.cells[finding.cell];
            let setting = cell.setting.in_brackets();
            let metric = run.plan.metrics(cell)[finding.metric].name;
            let label = clean(&run.plan.subjects[cell.subject].label);
            let verb = if reached.share <= asked { "reached" } else { "reached only" };
            format!("{verb} ±{} (widest: {metric} of `{label}`{setting})", percent(reached.share))
        }
    };
    let reached = reached.map(|one| one.share);
    let looks = &run.plan.looks;
    let is_over = analysis.rounds == run.plan.rounds;
    let ended_at_look = looks.iter().position(|look| is_over && *look == run.plan.rounds).map(|at| at + 1);
    let ended = ended_at_look.map_or("not ended yet".to_owned(), |number| format!("ended at look {number}"));
    let stages = match looks.len() {
        0 => String::new(),
        all => format!(
            "; {ended} (looks after {} rounds; each interval has 1/{all} of its error, so it holds whichever look ends the run)",
            listed(looks, ", ")
        ),
    };
    let sentence = format!(
        "requested ±{} of the longer median in differences from the baseline; a pilot of {pilot_rounds} rounds {found}; \
         {became}{stages}",
        percent(asked)
    );
    Some(Precision { foretold, reached, looks: looks.clone(), ended_at_look, sentence })
}
