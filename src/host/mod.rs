//! Facts about this machine ([`facts`]), its activity during a run ([`context`]), and checks for what would distort or prevent
//! measuring ([`checks`]).
//!
//! Everything is read from `/proc` and `/sys`. Nothing is changed, and no engine or runtime is called (subjects do that).
//! Unreadable values are `None`, never guessed.

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
