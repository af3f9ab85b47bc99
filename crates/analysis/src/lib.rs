//! What dunnage knows and concludes without touching a machine: units, statistics, what became of a
//! cell, advice. Deliberately absent: processes, clocks, file handles, system calls, engines; `clippy.toml` refuses
//! them, and the only dependencies are formats.

pub mod advise;
pub mod outcome;
pub mod stats;
pub mod units;
