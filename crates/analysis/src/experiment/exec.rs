//! What does it cost to enter a running container? An engine's or runtime's `exec`; on the floor plain
//! `setns`, fork and exec; on the host, where there is nothing to enter, fork and exec of the same
//! program, which all others are compared with.
//!
//! Every sample has a container of its own, started just before and removed after it, outside of the
//! timed interval.

use super::question::{About, Metric, Question, Weight};
use super::setting::{Setting, SettingKey, Taken};
use crate::subject::Need;
use crate::units::Nanos;

/// How long the kernel is left alone before an idle entry.
pub const QUIET: Nanos = Nanos::from_millis(100);

/// The experiment `exec`.
pub struct Exec;

static METRICS: [Metric; 4] = [
    Metric::of_launch(
        "returned",
        Weight::Verdict,
        "from right before the system call that starts the command until its end was reported; the probe inside has \
         started, read its treatment back and ended by then",
        |sample| sample.seconds("spawn", "returned"),
    ),
    Metric::of_launch(
        "first_instruction",
        Weight::Verdict,
        "from right before the system call that starts the command until the ELF entry of the probe inside, before \
         libc's own start",
        |sample| sample.seconds("spawn", "first"),
    ),
    Metric::of_launch(
        "return",
        Weight::Context,
        "from the moment the probe has its message ready until the command's end was reported",
        |sample| sample.seconds("ready", "returned"),
    ),
    Metric::of_launch(
        "probe_work",
        Weight::Context,
        "from `main` until the probe's message is ready: reading the treatment back, inside `returned`",
        |sample| sample.seconds("main", "ready"),
    ),
];

static KEYS: [SettingKey; 1] = [SettingKey {
    name: "prestate",
    values: &["idle", "primed"],
    taken: Taken::Listed,
    meaning: "what ran just before: `idle` is at least 100 ms of quiet, `primed` one untimed entry into the same container",
}];

static ABOUT: About = About {
    keys: &KEYS,
    ..About::of("exec", "what does it cost to enter a running container?", Need::Exec, &METRICS)
};

impl Question for Exec {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn cost(&self, setting: &Setting, launch: Nanos) -> Nanos {
        let around = launch + launch + launch;
        match setting.get("prestate") {
            Some("primed") => around,
            _ => around + QUIET,
        }
    }
}
