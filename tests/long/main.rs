//! Slow tests that mostly wait, in parallel: kill -9 at many moments of real runs, and whole sessions in a
//! guest with pure cgroup v2.

mod advise;
mod faults;
mod kill;
mod limits;
mod throttle;
mod whole;

#[path = "../support/dunnage.rs"]
mod dunnage;
#[path = "../support/left.rs"]
mod left;
#[path = "../support/mod.rs"]
mod support;
