//! Which verb costs what? One container a sample: created, started, entered, asked to end, removed,
//! each by a verb of its own, in this order and without a pause.
//!
//! The program inside is the probe with the task to stay: it ends as soon as it gets SIGTERM. A program
//! that ignores the signal would make `stop` a measurement of the engine's patience, usually ten
//! seconds, so the sample counts only if the signal was awaited before it was sent.

use super::question::{Experiment, Metric, QUIET};
use crate::subject::Need;

static METRICS: [Metric; 6] = [
    Metric::by("verbs", |sample| {
        let spans = [("create", "created"), ("start", "started"), ("exec", "execed"), ("stop", "stopped")];
        let sum: Option<f64> = spans.iter().map(|(from, to)| sample.seconds(from, to)).sum();
        Some(sum? + sample.seconds("remove", "removed")?)
    })
    .meaning(
        "the five verbs added up: from right before each one's first system call to right after its end \
         was reported, without what lies between them",
    ),
    Metric::span("create", "create", "created")
        .meaning("makes the container, which does not run yet; after at least 100 ms of quiet"),
    Metric::span("start", "start", "started")
        .meaning("starts its program, the probe waiting for SIGTERM, right after `create`"),
    Metric::span("exec", "exec", "execed")
        .meaning("runs the probe as a second process inside, until the command returns, right after `start`"),
    Metric::span("stop", "stop", "stopped").meaning(
        "asks the program to end by SIGTERM, which it does at once, until the command returns and the \
         container is stopped",
    ),
    Metric::span("remove", "remove", "removed")
        .meaning("removes the stopped container, until the command returns"),
];

/// The experiment `lifecycle`.
pub static LIFECYCLE: Experiment = Experiment {
    cost: |_, launch| QUIET + launch + launch,
    ..Experiment::of(
        "lifecycle",
        "which verb costs what: create, start, exec, stop, remove?",
        Need::Lifecycle,
        &METRICS,
    )
};
