//! The whole way from the command line to verdicts, on subjects that follow a script: exact, and
//! without engines.

mod damage;
mod events;
mod factors;
mod plan_files;
mod precision;
mod resume;
mod scripted;
mod spikes;
mod values;
