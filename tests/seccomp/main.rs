//! The seccomp filter of the floor: its parts for themselves.

mod interpreter;
mod loaded;
mod profile;
