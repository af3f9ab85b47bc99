//! From the command line to verdicts, on scripted subjects: exact, and without engines.

mod damage;
mod events;
mod factors;
mod plan_files;
mod ports;
mod precision;
mod resume;
mod scripted;
mod spikes;
mod values;
