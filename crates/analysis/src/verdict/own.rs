//! What an experiment adds to the common results: tables, rules for what cannot be true of its metrics, sums
//! of its prices. One list; an experiment that adds nothing is not on it.

use super::price::Sum;
use super::suspect::{self, Suspect};
use super::table::ExperimentTable;
use super::view::View;
use crate::experiment::{
    command, cpu, density, memory, nested, network, primitives, service, start, storage, syscall, throttle,
};

/// Makes the tables of an experiment.
type Tables = fn(&View<'_>) -> Vec<ExperimentTable>;

/// The tables of each experiment that has any.
static TABLES: [(&str, Tables); 18] = [
    ("start", |view| {
        let cold = command::tables::cold(view, "start", "returned");
        cold.into_iter().chain(start::ports::tables(view)).collect()
    }),
    (primitives::NAME, primitives::tables::all),
    (command::NAME, command::tables::experiment_tables),
    (service::NAME, service::tables::experiment_tables),
    (syscall::NAME, syscall::tables::all),
    (throttle::NAME, throttle::tables::experiment_tables),
    (cpu::NAME, cpu::tables::experiment_tables),
    (network::latency::NAME, network::tables::of_latency),
    (network::throughput::NAME, network::tables::of_throughput),
    (network::http::NAME, network::tables::of_http),
    (network::dns::NAME, network::dns::tables::all),
    (storage::disk::NAME, storage::disk::tables::all),
    (storage::layers::NAME, storage::layers::tables::all),
    (storage::owners::NAME, storage::owners::tables::all),
    (memory::NAME, memory::tables::all),
    (memory::limit::NAME, memory::limit::tables::all),
    (density::NAME, density::tables::all),
    (nested::NAME, nested::tables::all),
];

/// The rules for suspects of single experiments.
static SUSPECTS: [fn(&View<'_>) -> Vec<Suspect>; 14] = [
    start::suspects::shorter_than_a_bare_start,
    start::suspects::longer_than_the_whole,
    syscall::suspects::vdso_without_gain,
    primitives::suspects::negative,
    primitives::suspects::shorter_than_a_spawn,
    throttle::suspects::suspects,
    cpu::tables::shorter_together,
    storage::suspects::not_durable,
    storage::suspects::above_the_ceiling,
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
    names.iter().filter_map(own).flatten().map(ExperimentTable::cleaned).collect()
}

/// All suspects, by the rules of single experiments and the common ones.
pub(super) fn suspects(view: &View<'_>) -> Vec<Suspect> {
    SUSPECTS.iter().flat_map(|rule| rule(view)).collect()
}

/// The sums of prices, for experiments that say which belong together.
pub(super) fn sums(view: &View<'_>) -> Vec<Sum> {
    primitives::sums::sums(view)
}
