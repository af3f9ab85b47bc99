//! What a question makes of its samples beside what is made of all: tables of its own, what cannot be true of its
//! metrics, sums of its prices. One list; a question that has nothing of its own is not in it.

use super::price::Sum;
use super::suspect::{self, Suspect};
use super::table::ExperimentTable;
use super::view::View;
use crate::experiment::{command, cpu, primitives, service, start, syscall, throttle};

/// What a question makes tables by.
type Tables = fn(&View<'_>) -> Vec<ExperimentTable>;

/// The tables of each question that has some.
static TABLES: [(&str, Tables); 7] = [
    ("start", |view| command::tables::cold(view, "start", "returned").into_iter().collect()),
    (primitives::NAME, primitives::tables::all),
    (command::NAME, command::tables::experiment_tables),
    (service::NAME, service::tables::experiment_tables),
    (syscall::NAME, syscall::tables::all),
    (throttle::NAME, throttle::tables::experiment_tables),
    (cpu::NAME, cpu::tables::experiment_tables),
];

/// What cannot be true of the metrics of one question, and what of none.
static SUSPECTS: [fn(&View<'_>) -> Vec<Suspect>; 12] = [
    start::suspects::shorter_than_a_bare_start,
    start::suspects::longer_than_the_whole,
    syscall::suspects::vdso_without_gain,
    primitives::suspects::negative,
    primitives::suspects::shorter_than_a_spawn,
    throttle::suspects::suspects,
    cpu::tables::shorter_together,
    suspect::of_the_import,
    suspect::negative,
    suspect::faster_than_bare,
    suspect::control_moved,
    suspect::copies,
];

/// The tables of the experiments of a run, in the order of its plan.
pub(super) fn tables(view: &View<'_>) -> Vec<ExperimentTable> {
    let names = crate::distinct(view.run.plan.cells.iter().map(|cell| cell.experiment));
    let own = |name: &&str| TABLES.iter().find(|(own, _)| own == name).map(|(_, tables)| tables(view));
    names.iter().filter_map(own).flatten().collect()
}

/// What is suspect, by the rules of single questions and by those that hold for all.
pub(super) fn suspects(view: &View<'_>) -> Vec<Suspect> {
    SUSPECTS.iter().flat_map(|rule| rule(view)).collect()
}

/// What prices come to together, where a question says which belong together.
pub(super) fn sums(view: &View<'_>) -> Vec<Sum> {
    primitives::sums::sums(view)
}
