//! Which verb costs what? One container a sample: created, started, entered, asked to end, removed,
//! each by a verb of its own, in this order and without a pause.
//!
//! The program inside is the probe with the task to stay: it ends as soon as it gets SIGTERM. A program
//! that ignores the signal would make `stop` a measurement of the engine's patience, usually ten
//! seconds, so the sample counts only if the signal was awaited before it was sent.

use super::question::{About, Metric, Question, Weight};
use super::setting::Setting;
use crate::outcome::Sample;
use crate::subject::Need;
use crate::units::Nanos;

/// How long the kernel is left alone before a container is created.
pub const QUIET: Nanos = Nanos::from_millis(100);

/// The experiment `lifecycle`.
pub struct Lifecycle;

const fn verb(name: &'static str, meaning: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::of_launch(name, Weight::Verdict, meaning, derive)
}

static METRICS: [Metric; 6] = [
    verb(
        "verbs",
        "the five verbs added up: from right before each one's first system call to right after its end was \
         reported, without what lies between them",
        |sample| {
            let spans =
                [("create", "created"), ("start", "started"), ("exec", "execed"), ("stop", "stopped")];
            let sum: Option<f64> = spans.iter().map(|(from, to)| sample.seconds(from, to)).sum();
            Some(sum? + sample.seconds("remove", "removed")?)
        },
    ),
    verb("create", "makes the container, which does not run yet; after at least 100 ms of quiet", |sample| {
        sample.seconds("create", "created")
    }),
    verb("start", "starts its program, the probe waiting for SIGTERM, right after `create`", |sample| {
        sample.seconds("start", "started")
    }),
    verb(
        "exec",
        "runs the probe as a second process inside, until the command returns, right after `start`",
        |sample| sample.seconds("exec", "execed"),
    ),
    verb(
        "stop",
        "asks the program to end by SIGTERM, which it does at once, until the command returns and the container is \
         stopped",
        |sample| sample.seconds("stop", "stopped"),
    ),
    verb("remove", "removes the stopped container, until the command returns", |sample| {
        sample.seconds("remove", "removed")
    }),
];

static ABOUT: About = About::of(
    "lifecycle",
    "which verb costs what: create, start, exec, stop, remove?",
    Need::Lifecycle,
    &METRICS,
);

impl Question for Lifecycle {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn cost(&self, _: &Setting, launch: Nanos) -> Nanos {
        QUIET + launch + launch
    }
}
