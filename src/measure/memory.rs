//! `memory`: more containers from step to step, and none again; what they weigh is read at each.

use std::net::Ipv4Addr;

use dunnage_orders::network::{AwaitAnswer, Client, StartProgram, Usage};

pub mod limit;

use super::{Stamps, sample_of, variables_of};
use crate::experiment::Setting;
use crate::experiment::command::Wanted;
use crate::experiment::memory::{Own, most, names, reserve, rest, steps};
use crate::launch::names::HELPERS;
use crate::names::Series;
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::subject::limits::Limits;
use crate::subject::pair::until_answered;
use crate::subject::ramp::{Furnish, Ramp};
use crate::subject::weighing::Scale;
use crate::subject::weight::{Instrument, Weighed, Weight};
use crate::subject::{Container, ContainerRequest, Resident, RunContext, Subject};
use crate::units::Nanos;

/// How many processes that have grown are named.
const NAMED: usize = 5;

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let (subject, most) = (&*subject, most(setting));
    let mut scale = Scale::begin(subject, run)?;
    let own = program(setting)?;
    let has_program = own.is_some();
    let mut ramp = match own {
        None => Ramp::new(subject, ContainerRequest::default(), (Box::new(|_| Ok(())), run)),
        Some(own) => {
            let variables = variables_of(setting, run)?.to_vec();
            with_program(own, variables, Limits::default(), (subject, run))
        }
    };
    ramp = ramp.leaving(reserve(setting));
    // What an engine does once, for the first container of all, is no part of the ramp.
    ramp.step(1)?;
    ramp.step(0)?;
    let mut reached = 0;
    for wanted in steps(most) {
        if ramp.ended().is_some() && wanted > 0 {
            continue;
        }
        ramp.step(wanted)?;
        let has_more = ramp.alive().len() > reached;
        if has_more || wanted == 0 {
            scale.weigh(ramp.alive())?;
        }
        if has_program {
            // One that has ended does not answer.
            ramp.alive().iter_mut().try_for_each(|one| one.ask(Usage {}, Nanos(0)).map(drop))?;
        }
        if has_more {
            reached = ramp.alive().len();
            if let Some(rest) = rest(setting).filter(|_| wanted == most) {
                subject.machine().rest(run, rest)?;
                scale.weigh(ramp.alive())?;
            }
        }
        if wanted > 0
            && (wanted == most || ramp.ended().is_some())
            && let Some(last) = ramp.alive().last_mut()
        {
            scale.ask(last)?;
        }
    }
    let mut sample = sample(&scale.end()?);
    if let Some(why) = ramp.ended() {
        let said = run.variables.hidden(why.words.as_deref().unwrap_or(&why.reason));
        sample.add(names::ENDED, format!("{reached} of {most} containers run: {said}"));
    }
    Ok(sample)
}

/// The user's own program in a setting, if there is one.
pub(super) fn program(setting: &Setting) -> Result<Option<Own>, Failure> {
    Own::of(setting).map_err(|why| Failure::new(FailureClass::Unsupported, why))
}

/// Containers with these limits in which the probe has started a program of the user's, which has answered if it has a port.
fn with_program<'a>(
    own: Own,
    variables: Vec<String>,
    limits: Limits,
    (subject, run): (&'a dyn Subject, &'a RunContext),
) -> Ramp<'a> {
    let (request, furnish) = of_program(own, variables, run);
    Ramp::new(subject, ContainerRequest { limits, ..request }, (furnish, run))
}

/// Such a container, and how its program is started and awaited.
pub(super) fn of_program(
    Own { wanted, port }: Own,
    variables: Vec<String>,
    run: &RunContext,
) -> (ContainerRequest, Furnish<'_>) {
    let Wanted { words, directory, mounts, .. } = wanted;
    let start = StartProgram { cpu: None, directory, variables, words };
    let request = ContainerRequest { mounts, program: Resident::Serves, ..ContainerRequest::default() };
    let furnish = move |container: &mut Container<'_>| {
        container.ready()?;
        container.ask(start.clone(), Nanos(0))?;
        let Some((port, path)) = &port else { return Ok(()) };
        let target = (Ipv4Addr::LOCALHOST, *port).into();
        let ask = |container: &mut Container<'_>, patience: Nanos| {
            let client = Client { patience: Some(patience.0.unsigned_abs()), ..Client::of(target) };
            container.ask(AwaitAnswer { client, path: path.clone() }, patience).map(drop)
        };
        until_answered(container, run, ask, |container| container.ask(Usage {}, Nanos(0)).map(drop))
    };
    (request, Box::new(furnish))
}

/// How a value of a step is recorded.
type Recorded = (Series, fn(&Weight) -> Option<i64>);

const RECORDED: [Recorded; 25] = [
    (names::CONTAINERS, |step| Some(step.containers)),
    (names::OWN_ANON, |step| Some(step.own.anon)),
    (names::OWN_SHMEM, |step| Some(step.own.shmem)),
    (names::OWN_FILE, |step| Some(step.own.file)),
    (names::OWN_KERNEL, |step| Some(step.own.kernel)),
    (names::OWN_CHARGED, |step| Some(step.own.charged)),
    (names::RECLAIMABLE, |step| Some(step.parts?.reclaimable)),
    (names::STACKS, |step| Some(step.parts?.stacks)),
    (names::PAGE_TABLES, |step| Some(step.parts?.page_tables)),
    (names::PER_CPU, |step| Some(step.parts?.per_cpu)),
    (names::SLAB, |step| Some(step.parts?.slab)),
    (names::HELPER_COUNT, |step| Some(step.helpers)),
    (names::HELPERS_ANON, |step| Some(step.of_helpers.anon)),
    (names::HELPERS_SHMEM, |step| Some(step.of_helpers.shmem)),
    (names::HELPERS_FILE, |step| Some(step.of_helpers.file)),
    (names::HELPERS_RSS, |step| Some(step.of_helpers.rss)),
    (names::HELPERS_KERNEL, |step| Some(step.helpers_kernel)),
    (names::CALLER, |step| step.caller),
    (names::UNCHARGED, |step| Some(step.uncharged)),
    (names::MACHINE, |step| Some(step.machine)),
    (names::AVAILABLE, |step| Some(step.available)),
    (names::OTHERS, |step| Some(step.others)),
    (names::DUNNAGE, |step| Some(step.dunnage)),
    (names::LEFT, |step| Some(step.left)),
    (names::DYING, |step| step.dying),
];

fn sample(weighed: &Weighed) -> Sample {
    let mut sample = sample_of(Stamps::new(), &[]);
    for (name, of) in RECORDED {
        // A value that is not known at one step is known at none.
        if let Some(values) = weighed.steps.iter().map(of).collect::<Option<Vec<i64>>>() {
            sample.add(name, values);
        }
    }
    sample.add(HELPERS, weighed.helpers.clone());
    if !weighed.grown.is_empty() {
        // Any user gives processes any names.
        let plain =
            |name: &str| name.replace(|c: char| !c.is_ascii_alphanumeric() && !"-_./:".contains(c), "?");
        let grown: Vec<String> = weighed
            .grown
            .iter()
            .take(NAMED)
            .map(|(name, more)| format!("{} {} KiB", plain(name), more / 1024))
            .collect();
        sample.add(names::GROWN, grown.join(", "));
    }
    if let Some(Instrument { said, weight, figures, formula }) = weighed.instrument {
        sample.extend([
            (names::SAID, said),
            (names::SAID_CHARGED, figures.charged),
            (names::SAID_WEIGHT, weight.own() + weight.file),
        ]);
        sample.extend(formula.map(|formula| (names::SAID_BY_FORMULA, formula.of(&figures))));
        sample.extend(formula.map(|formula| (names::FORMULA, formula.to_string())));
    }
    sample.extend([(names::UNREAD, weighed.unread), (names::UNSETTLED, weighed.unsettled)]);
    if let Some(why) = &weighed.no_caller {
        sample.lacks(&["sum", "caller", "unexplained", "first"], why);
    }
    sample
}
