//! Does `compare` say what changed between runs, no more and no less? Planted runs for every verdict,
//! simulations for its promises, and the command line with runs of every kind of damage.

mod command;
mod planted;
mod promises;
#[path = "../../report/scripted.rs"]
#[allow(dead_code, reason = "not all of it is used here")]
mod scripted;
mod verdicts;
