//! Experiments: one question, one module. The list below is the only place that knows them all; help, plan,
//! documentation and reports derive from it. No experiment names an engine.
//!
//! A module holds everything about its question that needs no measuring. Its `tables`, `suspects` and the
//! like add to what is made of the samples of every experiment; `verdict::own` lists them.

pub mod command;
pub mod cpu;
pub mod density;
pub mod exec;
mod facts;
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

pub use facts::MetricFacts;
pub use question::{
    Compared, Concern, Event, Experiment, Metric, QUIET, Replicates, Scope, Shown, Weight, chosen_settings,
    parse_setting, settings_of,
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

/// Experiments that are about one thing.
#[derive(Debug)]
pub struct Area {
    /// What they are about.
    pub name: &'static str,
    /// Other words for it that people type.
    pub words: &'static [&'static str],
    /// The experiments, all of which are in [`ALL`].
    pub experiments: &'static [&'static Experiment],
}

/// What experiments are about; together these are all.
pub static AREAS: [Area; 6] = [
    Area {
        name: "start",
        words: &["startup", "boot", "launch", "run", "cold"],
        experiments: &[&start::START, &primitives::PRIMITIVES, &lifecycle::LIFECYCLE, &exec::EXEC],
    },
    Area {
        name: "your program",
        words: &["program", "app", "application", "workload", "benchmark", "web"],
        experiments: &[&command::COMMAND, &service::SERVICE],
    },
    Area {
        name: "CPU and system calls",
        words: &["quota", "limit", "limits", "throttling", "seccomp", "syscalls", "compute"],
        experiments: &[&cpu::CPU, &throttle::THROTTLE, &syscall::SYSCALL],
    },
    Area {
        name: "network",
        words: &[
            "net",
            "networking",
            "latency",
            "throughput",
            "bandwidth",
            "tcp",
            "udp",
            "port",
            "ports",
            "bridge",
        ],
        experiments: &[
            &network::latency::NET_LATENCY,
            &network::throughput::NET_THROUGHPUT,
            &network::http::HTTP,
            &network::dns::DNS,
        ],
    },
    Area {
        name: "files",
        words: &[
            "storage",
            "io",
            "fs",
            "filesystem",
            "volume",
            "volumes",
            "overlay",
            "image",
            "images",
            "fsync",
        ],
        experiments: &[&storage::disk::DISK, &storage::layers::LAYERS, &storage::owners::OWNERS],
    },
    Area {
        name: "memory and many containers",
        words: &["mem", "ram", "oom", "scale", "many", "fleet", "nesting", "dind", "pinp"],
        experiments: &[&memory::MEMORY, &memory::limit::MEMORY_LIMIT, &density::DENSITY, &nested::NESTED],
    },
];

/// The area that a word means.
pub fn area(word: &str) -> Option<&'static Area> {
    AREAS.iter().find(|area| area.name == word || area.words.contains(&word))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_in_one_area_and_no_word_means_two_things() {
        let mut of_areas: Vec<&str> =
            AREAS.iter().flat_map(|area| area.experiments).map(|one| one.name).collect();
        let mut all: Vec<&str> = ALL.iter().map(|one| one.name).collect();
        of_areas.sort_unstable();
        all.sort_unstable();
        assert_eq!(of_areas, all);
        let mut words: Vec<&str> = AREAS.iter().flat_map(|area| area.words).copied().collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
        assert!(words.iter().all(|word| find(word).is_none()));
    }

    /// A quick run does less of the same: it takes values that the keys take, and of a key that is asked for on demand
    /// its default or a smaller number, never another work.
    #[test]
    fn a_quick_run_does_less_of_the_same() {
        let amount =
            |value: &str| value.trim_end_matches(|end: char| end.is_ascii_alphabetic()).parse::<f64>().ok();
        for experiment in ALL {
            for key in experiment.all_keys() {
                for (place, value) in (experiment.quick_values)(key).iter().enumerate() {
                    let taken = key.take(value);
                    let is_default = place == 0 && key.values.first() == Some(value);
                    assert!(
                        is_default || taken.is_ok(),
                        "{} {}={value}: {taken:?}",
                        experiment.name,
                        key.name
                    );
                    let is_guarded = experiment.guarded.iter().any(|one| one.name == key.name);
                    let is_less = || {
                        amount(value)
                            .zip(key.values.first().and_then(|first| amount(first)))
                            .is_some_and(|(new, old)| new < old)
                    };
                    assert!(
                        !is_guarded || is_default || is_less(),
                        "{} {}={value}",
                        experiment.name,
                        key.name
                    );
                }
            }
        }
    }
}
