//! What dunnage knows and concludes without touching a machine: units, statistics, questions,
//! plans, reading of runs, verdicts, advice. Deliberately absent: processes, clocks, file handles, system calls, engines; `clippy.toml` refuses
//! them, and the only dependencies are formats.

pub mod advise;
mod distribution;
pub mod experiment;
pub mod outcome;
pub mod plan;
pub mod record;
pub mod stats;
pub mod subject;
pub mod units;
pub mod verdict;
