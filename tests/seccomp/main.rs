//! The seccomp filter of the floor: its parts for themselves, and against the filter that docker
//! really gives.

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
