//! Whole sessions on a machine of our own with pure cgroup v2, whatever this one has.

mod advise;
mod faults;
mod limits;
mod throttle;
mod whole;

#[path = "../support/dunnage.rs"]
mod dunnage;
#[path = "../support/mod.rs"]
mod support;
