//! What takes long because it waits, side by side: kill -9 at many moments of real runs, and whole sessions on a machine of our own
//! with pure cgroup v2, whatever this one has.

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
