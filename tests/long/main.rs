//! Slow tests that mostly wait, in parallel: kill -9 at many moments of real runs, whole sessions in a guest with pure cgroup v2,
//! and the engines of a newer release.

mod advise;
mod faults;
mod kill;
mod limits;
mod stack;
mod throttle;
mod whole;

#[path = "../support/dunnage.rs"]
mod dunnage;
#[path = "../support/left.rs"]
mod left;
#[path = "../support/mod.rs"]
mod support;
