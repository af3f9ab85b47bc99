//! Why cells have no sample, each reason once.

use dunnage_analysis::group::in_groups;
use serde::Serialize;

use crate::outcome::FailureClass;
use crate::plan::Cell;
use crate::record::{Cause, Recorded};
use crate::report::text::clean;
use crate::verdict::Analysis;

/// Cells without samples, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The experiment.
    pub experiment: &'static str,
    /// The subject's label.
    pub label: String,
    /// `skipped` or the class of the failure.
    pub class: &'static str,
    /// The settings in which it happened.
    pub settings: Vec<String>,
    /// The number of lost samples.
    pub times: usize,
    /// The planned samples in those settings.
    pub planned: usize,
    /// The first reason, with the engine's own words.
    pub reason: String,
}

/// `skipped` or the class of a failure, how often, and the first reason.
type Reason = (&'static str, usize, String);

/// Lost samples by experiment, subject and class, over all settings.
pub(super) fn failures(run: &Recorded, analysis: &Analysis) -> Vec<Failure> {
    let of_cell =
        |(index, cell)| reasons(run, analysis, index).into_iter().map(move |reason: Reason| (cell, reason));
    let all = run.plan.cells.iter().enumerate().flat_map(of_cell);
    let groups = in_groups(all, |(cell, (class, ..))| (cell.experiment, cell.subject, *class)).into_iter();
    let failure = |((experiment, subject, class), all): ((_, usize, _), Vec<(&Cell, Reason)>)| Failure {
        experiment,
        label: clean(&run.plan.subjects[subject].label),
        class,
        settings: all.iter().map(|(cell, _)| cell.setting.to_string()).collect(),
        times: all.iter().map(|(_, (_, times, _))| times).sum(),
        planned: run.plan.rounds * all.len(),
        reason: all[0].1.2.clone(),
    };
    groups.map(failure).collect()
}

/// Why a cell has no sample.
pub(super) fn reasons(run: &Recorded, analysis: &Analysis, cell: usize) -> Vec<Reason> {
    let summary = &analysis.cells[cell];
    let failed = |(class, times, reason): &(FailureClass, usize, String)| {
        let own = reason.strip_prefix(class.name()).and_then(|rest| rest.strip_prefix(": "));
        (class.name(), *times, clean(own.unwrap_or(reason)))
    };
    let mut reasons: Vec<_> = summary.failures.iter().map(failed).collect();
    if summary.skipped > 0 {
        let first = run.failures.iter().find_map(|row| match &row.cause {
            Cause::Skipped(reason) if row.cell == cell && row.round >= run.plan.warmups => Some(reason),
            _ => None,
        });
        reasons.push(("skipped", summary.skipped, clean(first.map_or("", String::as_str))));
    }
    reasons
}
