//! Ends services started by dunnage: first by SIGTERM, then by killing them with everything that they
//! started. They are recognised by a path in the run's own directory that is in their command lines.

use crate::sys::{pidfd, process};
use crate::units::Nanos;

/// How long one may take to end after SIGTERM: a docker daemon stops its containers meanwhile.
const ENDS: Nanos = Nanos::from_millis(10_000);

/// Ends the programs with these names, one name after the other, and then everything else with the token.
pub(super) fn end(token: &str, names: &[&str]) {
    for name in names {
        let called = |one: &process::Process| one.name == name[..name.len().min(15)];
        let held: Vec<_> = process::bearing(token)
            .into_iter()
            .filter(called)
            .filter_map(|one| pidfd::open(one.pid).ok())
            .collect();
        held.iter().for_each(|one| drop(pidfd::signal(one, libc::SIGTERM)));
        for one in &held {
            process::await_end(one, ENDS);
        }
    }
    process::kill_bearing(token);
}
