//! `compare` must report what changed between runs, no more and no less. Planted runs for every verdict,
//! simulations for its guarantees, and the command line with damaged runs of every kind.

mod command;
mod planted;
mod promises;
#[path = "../../report/scripted.rs"]
#[allow(dead_code, reason = "not all of it is used here")]
mod scripted;
mod verdicts;
