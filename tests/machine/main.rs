//! What the probe and the experiments do on the kernel, the runtimes and the engines that are here. One executable,
//! since each has the whole program in it and takes as long to link; what must be alone or counts what is left on the
//! machine stands in others.

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
