//! What does each verb cost? One container per sample: created, started, entered, asked to end, removed, each
//! by its own verb, in this order and without a pause.
//!
//! The program inside is the probe, which stays until it gets SIGTERM and then ends at once. If it ignored
//! the signal, `stop` would measure the engine's patience, usually ten seconds; so a sample counts only if
//! the probe was waiting for the signal before it was sent.

use super::question::{Experiment, Metric, QUIET};
use crate::names::names;
use crate::subject::Need;
use names::{CREATE, CREATED, EXEC, EXECED, REMOVE, REMOVED, START, STARTED, STOP, STOPPED};

names! {
    StampName {
        CREATE = "create", CREATED = "created", START = "start", STARTED = "started", EXEC = "exec", EXECED = "execed",
        STOP = "stop", STOPPED = "stopped", REMOVE = "remove", REMOVED = "removed",
    }
}

static METRICS: [Metric; 6] = [
    Metric::by("verbs", |sample| {
        let verbs = [(CREATE, CREATED), (START, STARTED), (EXEC, EXECED), (STOP, STOPPED), (REMOVE, REMOVED)];
        verbs.into_iter().map(|(from, to)| sample.seconds(from, to)).sum()
    })
    .meaning(
        "the sum of the five verbs: each from right before its first system call until right after its end \
         is reported, without the gaps between them",
    ),
    Metric::span("create", CREATE, CREATED)
        .meaning("creates the container without running it; after at least 100 ms of quiet"),
    Metric::span("start", START, STARTED)
        .meaning("starts its program, a probe that waits for SIGTERM, right after `create`"),
    Metric::span("exec", EXEC, EXECED)
        .meaning("runs the probe as a second process inside, until the command returns; right after `start`"),
    Metric::span("stop", STOP, STOPPED).meaning(
        "asks the program to end with SIGTERM, which it does at once; until the command returns and the \
         container is stopped",
    ),
    Metric::span("remove", REMOVE, REMOVED)
        .meaning("removes the stopped container, until the command returns"),
];

/// The experiment `lifecycle`.
pub static LIFECYCLE: Experiment = Experiment {
    parts: &["create", "start", "exec", "stop", "remove"],
    cost: |_, launch| QUIET + launch + launch,
    ..Experiment::of(
        "lifecycle",
        "what does each verb cost: create, start, exec, stop, remove?",
        Need::Lifecycle,
        &METRICS,
    )
};
