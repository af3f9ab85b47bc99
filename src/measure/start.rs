//! `start`: one launch, after a pause or after another launch, with the page cache unchanged or emptied.

use dunnage_analysis::launch::names::{CACHED_AFTER, CACHED_BEFORE, GONE, LOOK, RETURNED, SPAWN};
use dunnage_analysis::names::StampName;

use super::{add_observed, in_order, on_one_clock, stamps};
use crate::experiment::start::is_cold;
use crate::experiment::{QUIET, Setting};
use crate::outcome::{Abort, Failure, Sample};
use crate::probe::Task;
use crate::subject::{Launch, RunContext, Subject};
use crate::units::Stamp;

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let probe = &run.place.executable;
    let dropped = is_cold(setting).then(|| subject.machine().empty_the_cache(Some(probe))).transpose()?;
    let task = if setting.get("libc") == Some("yes") { Task::StartLibc } else { Task::Start };
    if setting.get("prestate") == Some("primed") {
        subject.fulfil(task.into(), run)?;
    } else {
        subject.machine().rest(run, QUIET)?;
    }
    let launch = subject.fulfil(task.into(), run)?;
    let mut sample = sample(&launch)?;
    if let Some([before, after]) = dropped {
        sample.extend([(CACHED_BEFORE, before), (CACHED_AFTER, after)]);
    }
    Ok(sample)
}

/// The steps of the command itself. The container runs between them, so they are in a list of their own.
fn parts(launch: &Launch) -> Vec<(StampName, Stamp)> {
    let ends = [(SPAWN, launch.spawned), (RETURNED, launch.returned)];
    [&ends[..1], &launch.parts, &ends[1..]].concat()
}

/// The sample of a launch, if its stamps are plausible.
pub(super) fn sample(launch: &Launch) -> Result<Sample, Failure> {
    let message = &launch.message;
    let order = stamps(launch.spawned, message, &[(RETURNED, launch.returned), (GONE, launch.gone)]);
    // The last is lost only where libc was started.
    let lost = ["first_instruction", "teardown", "probe_work", "libc_start"];
    let lost = &lost[..3 + usize::from(message.main.is_some())];
    let mut sample = on_one_clock(&message.inside, order, &launch.treatment, lost)?;
    in_order(&parts(launch))?;
    sample.extend(launch.parts.iter().copied());
    sample.add(LOOK, launch.look.0);
    add_observed(&mut sample, &launch.observed);
    Ok(sample)
}
