//! `compare` must report what changed between runs, no more and no less. Planted runs for every verdict,
//! simulations for its guarantees, and the command line with damaged runs of every kind.

mod command;
mod notices;
pub mod planted;
mod promises;
mod verdicts;
