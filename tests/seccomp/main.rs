//! The seccomp filter of the floor.

mod interpreter;
