//! The seccomp filter of the floor: its parts separately, and compared with docker's real filter.

mod docker;
mod dump;
mod interpret;
mod interpreter;
mod loaded;
mod meaning;
mod profile;
mod real;
