//! What this machine is ([`facts`]), what it does while we measure ([`context`]), and what on it
//! distorts measuring or prevents it ([`checks`]).
//!
//! Everything is read from `/proc` and `/sys`; nothing is changed, and no engine or runtime is
//! asked (those are subjects). What cannot be read is `None`, never a guess.

pub mod cgroups;
pub mod checks;
pub mod context;
pub mod cpu;
pub mod facts;
pub mod isolation;
pub mod mounts;
pub mod own;
pub mod private;
mod tree;
