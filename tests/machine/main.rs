//! The probe and the experiments on the kernel, runtimes and engines of this machine. One executable, since
//! each one contains the whole program and takes as long to link; tests that must be alone or count what is
//! left on the machine are in other executables.

mod cold;
mod command;
mod cpu;
#[path = "../support/dunnage.rs"]
mod dunnage;
mod host;
#[path = "../support/left.rs"]
mod left;
#[path = "../scripted/planted.rs"]
mod planted;
mod service;
mod start;
#[path = "../support/mod.rs"]
mod support;
mod syscall;
mod throttle;
mod wasted;
