//! Experiments: one question, one module. The list below is the only place that knows them all; help, plan,
//! documentation and reports derive from it. No experiment names an engine.
//!
//! A module holds everything about its question that needs no measuring. Its `tables`, `suspects` and the
//! like add to what is made of the samples of every experiment; `verdict::own` lists them.

pub mod command;
pub mod cpu;
pub mod density;
pub mod exec;
pub mod fixed_work;
pub mod lifecycle;
pub mod memory;
pub mod nested;
pub mod network;
pub mod primitives;
pub mod question;
pub mod scripted;
pub mod service;
pub mod setting;
pub mod start;
pub mod storage;
pub mod syscall;
pub mod throttle;
mod variation;

use serde::de::{Deserialize, Deserializer, Error};

pub use question::{
    Compared, Concern, Event, Experiment, Metric, MetricFacts, QUIET, Range, Replicates, Scope, Shown,
    Weight, chosen_settings, parse_setting, settings_of,
};
pub use setting::{Controlled, Setting, SettingKey, settings};
pub use variation::{Variation, Varied};

/// All experiments that users see.
pub static ALL: &[&Experiment] = &[
    &start::START,
    &primitives::PRIMITIVES,
    &lifecycle::LIFECYCLE,
    &exec::EXEC,
    &command::COMMAND,
    &service::SERVICE,
    &syscall::SYSCALL,
    &throttle::THROTTLE,
    &cpu::CPU,
    &network::latency::NET_LATENCY,
    &network::throughput::NET_THROUGHPUT,
    &network::http::HTTP,
    &network::dns::DNS,
    &storage::disk::DISK,
    &storage::layers::LAYERS,
    &storage::owners::OWNERS,
    &memory::MEMORY,
    &memory::limit::MEMORY_LIMIT,
    &density::DENSITY,
    &nested::NESTED,
];

/// For tests of the whole program only: found by name, and on no list.
pub static HIDDEN: &[&Experiment] = &[&scripted::SCRIPTED];

/// What a run measures if it names no experiment: the main job.
pub static MAIN: &[&str] = &["start", "primitives"];

/// The name of a known experiment.
pub type ExperimentName = &'static str;

/// The experiment with this name, or an error that says there is none.
pub fn known(name: &str) -> Result<&'static Experiment, String> {
    find(name).ok_or_else(|| format!("this dunnage has no experiment `{name}`"))
}

/// Reads a name.
pub fn read_name<'de, D: Deserializer<'de>>(from: D) -> Result<ExperimentName, D::Error> {
    let name = String::deserialize(from)?;
    Ok(known(&name).map_err(D::Error::custom)?.name)
}

/// Reads several.
pub fn read_names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ExperimentName>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    names.iter().map(|name| Ok(known(name).map_err(D::Error::custom)?.name)).collect()
}

/// The names of all that samples hold, each at its question.
pub fn names() -> Vec<&'static str> {
    let lists = [
        crate::launch::names::ALL,
        lifecycle::names::ALL,
        command::names::ALL,
        fixed_work::names::ALL,
        syscall::names::ALL,
        throttle::names::ALL,
        cpu::names::ALL,
        network::names::ALL,
        network::latency::names::ALL,
        network::throughput::names::ALL,
        network::http::names::ALL,
        network::dns::names::ALL,
        storage::names::ALL,
        storage::disk::names::ALL,
        storage::layers::names::ALL,
        storage::owners::names::ALL,
        memory::names::ALL,
        memory::limit::names::ALL,
        density::names::ALL,
        nested::names::ALL,
        scripted::names::ALL,
    ];
    let derived = fixed_work::recorded().into_iter().chain(syscall::recorded()).chain(cpu::recorded());
    lists.concat().into_iter().chain(derived).collect()
}

/// The experiment with this name.
pub fn find(name: &str) -> Option<&'static Experiment> {
    ALL.iter().chain(HIDDEN).copied().find(|experiment| experiment.name == name)
}
