//! The seccomp filter of the floor: its parts for themselves, and against the filter that docker
//! really gives.

mod docker;
mod interpreter;
mod loaded;
mod profile;
mod real;
