//! The probe and the experiments on the kernel, runtimes and engines of this machine. One executable, since
//! each one contains the whole program and takes as long to link; tests that must be alone or count what is
//! left on the machine are in other executables.

mod cold;
mod command;
mod cpu;
mod host;
mod service;
mod start;
mod syscall;
mod throttle;
mod wasted;
