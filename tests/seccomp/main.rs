//! The seccomp filter of the floor: its parts separately, and compared with docker's real filter.

mod docker;
mod dump;
#[path = "../support/dunnage.rs"]
mod dunnage;
mod interpret;
mod interpreter;
mod loaded;
mod meaning;
mod profile;
mod real;
