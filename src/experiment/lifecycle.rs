//! Which verb costs what? One container a sample: created, started, entered, asked to end, removed,
//! each by a verb of its own, in this order and without a pause.
//!
//! The program inside is the probe with the task to stay: it ends as soon as it gets SIGTERM. A program
//! that ignores the signal would make `stop` a measurement of the engine's patience, usually ten
//! seconds, so the sample counts only if the signal was awaited before it was sent.

use super::{About, Experiment, Metric, Setting, Weight};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::subject::{Entered, Need, RunContext, Span, Subject, Verbs};
use crate::units::Nanos;

/// How long the kernel is left alone before a container is created.
const QUIET: Nanos = Nanos::from_millis(100);
/// Longer than any stop of a program that answers, and shorter than the patience of any engine.
const PATIENCE: Nanos = Nanos::from_millis(8_000);
/// How often the probe may be found not yet waiting.
const LOOKS: usize = 100;

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

impl Experiment for Lifecycle {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn measure(&self, subject: &mut dyn Subject, _: &Setting, run: &RunContext) -> Result<Sample, Abort> {
        if subject.has_a_clock() {
            run.quiet(QUIET)?;
        }
        let verbs = verbs(subject)?;
        let lived = live(verbs, run);
        if lived.is_err() {
            verbs.discard(run);
        }
        lived
    }

    fn cost(&self, _: &Setting, launch: Nanos) -> Nanos {
        QUIET + launch + launch
    }
}

/// The verbs of a subject that offers them.
pub(super) fn verbs(subject: &mut dyn Subject) -> Result<&mut dyn Verbs, Failure> {
    let unsupported = || Failure::new(FailureClass::Unsupported, Need::Lifecycle.lacking());
    subject.verbs().ok_or_else(unsupported)
}

fn live(verbs: &mut dyn Verbs, run: &RunContext) -> Result<Sample, Abort> {
    let create = verbs.create(run)?;
    let start = verbs.start(run)?;
    let entered = verbs.exec(run)?;
    until_it_waits(verbs, run, &entered)?;
    let stop = verbs.stop(run)?;
    if stop.took() >= PATIENCE {
        let reason = format!(
            "to stop took {}: the program inside did not get SIGTERM, or did not answer it",
            stop.took()
        );
        return Err(Failure { took: stop.took(), ..Failure::new(FailureClass::Treatment, reason) }.into());
    }
    let remove = verbs.delete(run)?;
    let mut sample = Sample::default();
    let exec = Span { began: entered.spawned, ended: entered.returned };
    let named = [
        (["create", "created"], create),
        (["start", "started"], start),
        (["exec", "execed"], exec),
        (["stop", "stopped"], stop),
        (["remove", "removed"], remove),
    ];
    for ([from, to], span) in named {
        sample.stamps.extend([(from.into(), span.began), (to.into(), span.ended)]);
    }
    sample.treatment = entered.treatment.iter().map(|(name, fact)| ((*name).into(), fact.clone())).collect();
    Ok(sample)
}

/// Looks again, outside of every timed interval, until the first process of the container awaits the
/// signal. Where process ids are the host's, the signal ends it whether it waits or not.
pub(super) fn until_it_waits(
    verbs: &mut dyn Verbs,
    run: &RunContext,
    entered: &Entered,
) -> Result<(), Abort> {
    let own_ids =
        |entered: &Entered| entered.message.inside.namespaces.get("pid") != run.host.namespaces.get("pid");
    if !own_ids(entered) || entered.message.inside.awaits_term() != Some(false) {
        return Ok(());
    }
    for _ in 0..LOOKS {
        if verbs.exec(run)?.message.inside.awaits_term() != Some(false) {
            return Ok(());
        }
    }
    let reason =
        format!("the first process of the container did not begin to wait for SIGTERM within {LOOKS} looks");
    Err(Failure::new(FailureClass::Environment, reason).into())
}
