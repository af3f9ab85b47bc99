//! How programs of ours end that serve: asked first, then killed with all that they started. They are told from
//! others by a path in the run's own directory that stands in their command lines.

use crate::sys::{pidfd, process};
use crate::units::Nanos;

/// How long one may take to end when it is asked to: a docker daemon stops its containers meanwhile.
const ENDS: Nanos = Nanos::from_millis(10_000);

/// Ends the programs of these names, one name after the other, and then whatever else bears the token.
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
