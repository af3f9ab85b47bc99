//! Works that report numbers by name: those of a command, of calls, of computing and of a limit.

use dunnage_analysis::outcome::Distribution;
use dunnage_analysis::units::{Nanos, whole_nanos};
use serde::{Deserialize, Serialize};

/// Keeps a CPU busy: a work without a purpose, to test everything that carries works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spin {
    /// For so many milliseconds.
    pub millis: u64,
}

/// Makes system calls in batches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Syscall {
    /// How long each call is repeated.
    #[serde(with = "whole_nanos")]
    pub window: Nanos,
    /// How often the call of the fixed work is made, without reading the clock.
    pub fixed: u64,
    /// Their names; all calls if there are none.
    pub calls: Vec<String>,
}

/// Computes, in passes of five kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cpu {
    /// Passes of each kind.
    pub passes: usize,
    /// Work of each pass in addition, in thousandths; only for benchmarks.
    pub more: u64,
    /// Passes in the fixed work.
    pub fixed: u64,
}

/// Puts a load on CPUs for a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Throttle {
    /// Its shape.
    pub load: Load,
    /// CPU time of a burst; of an alternating load wall time.
    #[serde(with = "whole_nanos")]
    pub busy: Nanos,
    /// From one burst to the next.
    #[serde(with = "whole_nanos")]
    pub every: Nanos,
    /// Threads that each carry it.
    pub threads: u64,
    /// The length of the window.
    #[serde(with = "whole_nanos")]
    pub length: Nanos,
}

/// The shape of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Without a pause.
    Continuous,
    /// Bursts of CPU time that are due at even intervals.
    Bursts,
    /// Busy, then asleep.
    Alternating,
}

/// Runs a user's command, or starts it as a service.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    /// What is done with it.
    pub mode: Mode,
    /// Whether its output takes the probe's own way; otherwise it is discarded.
    pub through: bool,
    /// The file for the probe's message, which first holds the variables.
    pub file: String,
    /// How it gets ready, if it is a service.
    pub service: Option<Ready>,
    /// The working directory; empty for the current one.
    pub directory: String,
    /// How many variables there are.
    pub variables: usize,
    /// Its words; without any nothing is started, which measures the start alone.
    pub words: Vec<String>,
}

/// What is done with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The file that would be executed is reported with its SHA-256.
    Identify,
    /// It runs.
    Run,
    /// The same, and how much of its file is in the page cache is reported.
    Cold,
}

/// When a service is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ready {
    /// When this port is open; without one, when the host signals it.
    pub port: Option<u16>,
    /// How long it has.
    #[serde(with = "whole_nanos")]
    pub allowed: Nanos,
}

/// What only a scripted subject does: all of a sample.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Script {
    /// Of which kind.
    pub kind: String,
    /// With which choices.
    pub words: Vec<String>,
}

/// Numbers and facts by name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Done {
    /// Numbers, in the unit of the kind of work.
    pub results: Vec<(String, i64)>,
    /// Lists of numbers.
    pub series: Vec<(String, Vec<i64>)>,
    /// Many values without their order.
    pub distributions: Vec<(String, Distribution)>,
    /// Facts about the conditions.
    pub notes: Vec<(String, String)>,
}

impl Done {
    /// The number with this name.
    pub fn result(&self, name: &str) -> Option<i64> {
        self.results.iter().find(|(own, _)| own == name).map(|(_, value)| *value)
    }

    /// The fact with this name.
    pub fn note(&self, name: &str) -> Option<&str> {
        self.notes.iter().find(|(own, _)| own == name).map(|(_, fact)| fact.as_str())
    }
}
