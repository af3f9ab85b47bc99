//! How long until your own service is ready, in each subject? What `command --ready` asks: a command that does not end by
//! itself, started as `command` starts one, and asked to end once it is ready.
//!
//! A sample is two launches of the subject: an untimed one that finds the program and sums it up, and one that runs the
//! service. Its start and what follows are told apart by a stamp within that launch.

pub mod tables;

use super::command::ready::Ready;
use super::command::{CMD, GIVEN, MODE, UNKNOWN, cost, refused};
use super::question::{Event, Experiment, Metric};
use super::setting::SettingKey;
use crate::stats::Margin;
use crate::subject::Need;
use crate::units::Unit;

/// Its name.
pub const NAME: &str = "service";
/// A port is looked at a thousand times a second, and nobody waits for less.
const MATTERS: Margin = Margin::fixed(1e-3, 0.03);

static METRICS: [Metric; 3] = [
    Metric::span("ready", "spawn", "serving").of(Unit::Seconds, MATTERS).meaning(
        "from right before the system call that starts the container, or the entry into one, until the service is ready: \
         its line was read at our end, or a connection to its port succeeded inside; stopping and removing come after",
    ),
    Metric::span("start", "spawn", "forked").of(Unit::Seconds, MATTERS).context().meaning(
        "of it, until right before the probe inside forks the service: the container's start, and some tenths of a \
         millisecond of the probe's own work",
    ),
    Metric::span("beyond_start", "forked", "serving").of(Unit::Seconds, MATTERS).context().meaning(
        "of it, from then on: the service's own start as a process until it is ready; with `log`, also the way of the line \
         to our end",
    ),
];

/// The experiment `service`.
pub static SERVICE: Experiment = Experiment {
    keys: &[
        CMD,
        MODE,
        SettingKey::of("ready", &[]).or(|text| Ready::of(text).map(drop)).meaning(
            "when the service is ready: `log REGEX`, once a line that it writes to standard output or standard error fits; \
             `port N`, once a TCP connection to it succeeds from inside",
        ),
    ],
    guarded: &GIVEN,
    empty_launch: Some("start"),
    // A service that is not there, or does not get ready, will not be or do so in the next round.
    recovers: false,
    event: Event::Whole,
    refuses: refused,
    cost: |setting, launch| cost(setting, launch, 2),
    unknown: Some(UNKNOWN),
    ..Experiment::of(NAME, "how long until your service is ready in each subject?", Need::Work, &METRICS)
};
