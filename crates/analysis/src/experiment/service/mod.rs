//! How long until your own service is ready, in each subject? This is `command --ready`: a command that does
//! not end on its own is started as `command` starts one, and stopped once it is ready.
//!
//! A sample is two launches of the subject: an untimed one that finds the program and hashes it, and one that
//! runs the service. A stamp within that launch separates the start from the rest.

pub mod tables;

use super::command::names::{FORKED, SERVING};
use super::command::ready::Ready;
use super::command::{CMD, GIVEN, MODE, UNKNOWN, cost, refused};
use super::question::{Event, Experiment, Metric};
use super::setting::SettingKey;
use crate::launch::names::SPAWN;
use crate::stats::Margin;
use crate::subject::Need;
use crate::units::Unit;

/// Its name.
pub const NAME: &str = "service";
/// The port is probed a thousand times a second, and no user waits for less.
const MATTERS: Margin = Margin::fixed(1e-3, 0.03);

static METRICS: [Metric; 3] = [
    Metric::span("ready", SPAWN, SERVING).of(Unit::Seconds, MATTERS).meaning(
        "from right before the system call that starts the container, or the entry into one, until the service is ready: \
         dunnage has read its line, or a connection to its port succeeded inside; stopping and removing come later",
    ),
    Metric::span("start", SPAWN, FORKED).of(Unit::Seconds, MATTERS).context().meaning(
        "the part of it until right before the probe inside forks the service: the container's start, and some tenths of \
         a millisecond of the probe's own work",
    ),
    Metric::span("beyond_start", FORKED, SERVING).of(Unit::Seconds, MATTERS).context().meaning(
        "the rest of it: the service's own start as a process until it is ready; with `log`, also the time until its line \
         reaches dunnage",
    ),
];

/// The experiment `service`.
pub static SERVICE: Experiment = Experiment {
    keys: &[
        CMD,
        MODE,
        SettingKey::of("ready", &[]).or(|text| Ready::of(text).map(drop)).meaning(
            "when the service is ready: `log REGEX`, once a line on its standard output or standard error matches; \
             `port N`, once a TCP connection to it succeeds from inside",
        ),
    ],
    guarded: &GIVEN,
    empty_launch: Some("start"),
    // A service that is missing, or does not get ready, will not be there or get ready in the next round.
    recovers: false,
    event: Event::Whole,
    parts: &["start", "beyond_start"],
    refuses: refused,
    cost: |setting, launch| cost(setting, launch, 2),
    unknown: Some(UNKNOWN),
    ..Experiment::of(NAME, "how long until your service is ready in each subject?", Need::Work, &METRICS)
};
