//! The plan of a run that was already measured and is known only by its samples: the cells as they were, and
//! the comparisons that a plan would have fixed beforehand.

use super::{ALLOWED, Ladder, Layer, Plan, margins, pairs, parts};
use crate::experiment::{self, Experiment};
use crate::subject::Spec;

/// The ladder of a subject: an engine is equalised if it has no network, keeps no log and filters system
/// calls, whether by request or by default.
pub fn ladder_of(spec: &Spec, layer: Layer) -> Ladder {
    let is = |key: &str, value: &str| pairs::in_force(spec, key) == Some(value);
    match layer == Layer::Engine && is("net", "none") && is("log", "none") && !is("seccomp", "off") {
        true => Ladder::Equalised,
        false => Ladder::AsInstalled,
    }
}

/// The plan of samples that were measured one cell after the other, with these subjects, cells and rounds:
/// nothing is compared.
pub fn in_blocks(measured: Plan) -> Plan {
    let everyone: Vec<_> = (0..measured.subjects.len()).collect();
    let baseline = parts::baseline_among(&measured.subjects, &everyone);
    Plan { baseline, margins: margins(&experiments(&measured), Vec::new()), allowed: ALLOWED, ..measured }
}

/// The same for samples that belong together in rounds: subjects and settings are compared.
pub fn in_rounds(measured: Plan) -> Plan {
    let mut plan = in_blocks(measured);
    plan.compare(&experiments(&plan));
    plan.verdicts = plan.count_verdicts();
    plan
}

fn experiments(plan: &Plan) -> Vec<&'static Experiment> {
    let names = crate::distinct(plan.cells.iter().map(|cell| cell.experiment));
    names.into_iter().filter_map(experiment::find).collect()
}
