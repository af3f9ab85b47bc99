//! `start`: one launch, after a pause or after another launch, with the page cache unchanged or emptied.

use dunnage_analysis::launch::names::{CACHED_AFTER, CACHED_BEFORE, GONE, LOOK, RETURNED, SPAWN};
use dunnage_analysis::names::StampName;

use super::{add_observed, in_order, on_one_clock, stamps};
use crate::experiment::start::is_cold;
use crate::experiment::{QUIET, Setting};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::probe::Task;
use crate::subject::{Launch, RunContext, Subject};
use crate::sys::page_cache;
use crate::units::Stamp;

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let is_cold = is_cold(setting) && subject.has_a_clock();
    let dropped = is_cold.then(empty_the_cache).transpose()?;
    if is_cold {
        the_probe_is_gone(run)?;
    }
    let task = if setting.get("libc") == Some("yes") { Task::StartLibc } else { Task::Start };
    if setting.get("prestate") == Some("primed") {
        subject.fulfil(task.into(), run)?;
    } else if subject.has_a_clock() {
        run.quiet(QUIET)?;
    }
    let launch = subject.fulfil(task.into(), run)?;
    let mut sample = sample(&launch)?;
    if let Some([before, after]) = dropped {
        sample.extend([(CACHED_BEFORE, before), (CACHED_AFTER, after)]);
    }
    Ok(sample)
}

fn not_emptied(error: std::io::Error) -> Failure {
    let class = match error.kind() {
        std::io::ErrorKind::PermissionDenied => FailureClass::Permission,
        _ => FailureClass::Environment,
    };
    Failure::new(class, format!("cannot empty the page cache: {error}"))
}

/// Empties the page cache. Returns the bytes in it before and after.
pub(super) fn empty_the_cache() -> Result<[i64; 2], Failure> {
    let before = page_cache::bytes().map_err(not_emptied)?;
    page_cache::empty().map_err(not_emptied)?;
    let after = page_cache::bytes().map_err(not_emptied)?;
    Ok([before, after].map(|bytes| bytes as i64))
}

/// Makes sure that the probe's executable is no longer in it.
fn the_probe_is_gone(run: &RunContext) -> Result<(), Failure> {
    let left = page_cache::resident(&run.place.executable).map_err(not_emptied)?;
    if left > 0 {
        let path = run.place.executable.display();
        let reason = format!(
            "not as asked: {left} pages of `{path}` are still in the page cache after it was emptied"
        );
        return Err(Failure::new(FailureClass::Treatment, reason));
    }
    Ok(())
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
