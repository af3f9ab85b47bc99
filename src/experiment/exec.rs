//! What does it cost to enter a running container? An engine's or runtime's `exec`; on the floor plain
//! `setns`, fork and exec; on the host, where there is nothing to enter, fork and exec of the same
//! program, which all others are compared with.
//!
//! Every sample has a container of its own, started just before and removed after it, outside of the
//! timed interval.

use super::lifecycle::{until_it_waits, verbs};
use super::{About, Experiment, Metric, Setting, SettingKey, Taken, Weight};
use crate::outcome::{Abort, Failure, Sample};
use crate::subject::{Entered, Need, RunContext, Subject};
use crate::units::Nanos;

/// How long the kernel is left alone before an idle entry.
const QUIET: Nanos = Nanos::from_millis(100);

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

impl Experiment for Exec {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn measure(
        &self,
        subject: &mut dyn Subject,
        setting: &Setting,
        run: &RunContext,
    ) -> Result<Sample, Abort> {
        let passes_time = subject.has_a_clock();
        let primed = setting.get("prestate") == Some("primed");
        let verbs = verbs(subject)?;
        let mut enter = || {
            verbs.create(run)?;
            verbs.start(run)?;
            // The first entry also says that the program inside is ready to be stopped.
            let first = verbs.exec(run)?;
            until_it_waits(verbs, run, &first)?;
            if primed {
                verbs.exec(run)?;
            } else if passes_time {
                run.quiet(QUIET)?;
            }
            let entered = verbs.exec(run)?;
            verbs.stop(run)?;
            verbs.delete(run)?;
            Ok(sample(&entered)?)
        };
        let entered = enter();
        if entered.is_err() {
            verbs.discard(run);
        }
        entered
    }

    fn cost(&self, setting: &Setting, launch: Nanos) -> Nanos {
        let around = launch + launch + launch;
        match setting.get("prestate") {
            Some("primed") => around,
            _ => around + QUIET,
        }
    }
}

/// The sample of an entry, if its stamps can be what they say they are.
pub(super) fn sample(entered: &Entered) -> Result<Sample, Failure> {
    let message = &entered.message;
    let order = [
        ("spawn", entered.spawned),
        ("first", message.entry),
        ("main", message.main),
        ("ready", message.ready),
        ("returned", entered.returned),
    ];
    let lost = ["first_instruction", "return", "probe_work"];
    let (stamps, missing) = super::on_one_clock(&message.inside, order, &lost);
    super::in_order(&stamps)?;
    let treatment = entered.treatment.iter().map(|(name, fact)| ((*name).into(), fact.clone())).collect();
    Ok(Sample {
        stamps: stamps.into_iter().map(|(name, stamp)| (name.into(), stamp)).collect(),
        missing,
        treatment,
        ..Sample::default()
    })
}
