//! What a question makes of its samples beside what is made of all: tables of its own, what cannot be true of its
//! metrics, sums of its prices. One list; a question that has nothing of its own stands not in it.

use super::columns::Columns;
use super::exhibit::{Evidence, Exhibit};
use super::price::{Price, Sum};
use super::suspect::{self, Suspect, View};
use crate::experiment::{command, cpu, primitives, start, syscall, throttle};
use crate::record::Recorded;

/// What a question makes tables by.
type Tables = fn(&Evidence<'_>) -> Vec<Exhibit>;

/// The tables of each question that has some.
static TABLES: [(&str, Tables); 4] = [
    (command::NAME, command::tables::exhibits),
    (syscall::NAME, syscall::tables::all),
    (throttle::NAME, throttle::tables::exhibits),
    (cpu::NAME, cpu::tables::exhibits),
];

/// What cannot be true of the metrics of one question.
static SUSPECTS: [fn(&View<'_>) -> Vec<Suspect>; 7] = [
    start::suspects::shorter_than_a_bare_start,
    start::suspects::longer_than_the_whole,
    syscall::suspects::vdso_without_gain,
    primitives::suspects::negative,
    primitives::suspects::shorter_than_a_spawn,
    throttle::suspects::suspects,
    cpu::tables::shorter_together,
];

/// The tables of the experiments of a run, in the order of its plan.
pub(super) fn tables(evidence: &Evidence<'_>) -> Vec<Exhibit> {
    let mut names: Vec<&str> = Vec::new();
    for cell in &evidence.run.plan.cells {
        if !names.contains(&cell.experiment) {
            names.push(cell.experiment);
        }
    }
    let own = |name: &&str| TABLES.iter().find(|(own, _)| own == name).map(|(_, tables)| tables(evidence));
    names.iter().filter_map(own).flatten().collect()
}

/// What is suspect, by the rules of single questions and by those that hold for all.
pub(super) fn suspects(view: &View<'_>) -> Vec<Suspect> {
    SUSPECTS.iter().flat_map(|rule| rule(view)).chain(suspect::all(view)).collect()
}

/// What prices come to together, where a question says which belong together.
pub(super) fn sums(run: &Recorded, columns: &Columns, prices: &[Price]) -> Vec<Sum> {
    primitives::sums::sums(run, columns, prices)
}
