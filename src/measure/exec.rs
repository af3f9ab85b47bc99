//! `exec`: an entry into a container that was started just before.

use dunnage_analysis::launch::names::RETURNED;

use super::lifecycle::ready;
use super::{add_observed, on_one_clock, stamps};
use crate::experiment::{QUIET, Setting};
use crate::outcome::{Abort, Failure, Sample};
use crate::probe::Task;
use crate::subject::{ContainerRequest, Entered, GRACE, RunContext, Subject};

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let primed = setting.get("prestate") == Some("primed");
    let mut container = ready(subject, &ContainerRequest::default(), run)?;
    container.find_processes();
    if !primed {
        subject.machine().rest(run, QUIET)?;
    }
    let (entered, observed) = container.exec_counted(Task::Enter, if primed { 2 } else { 1 })?;
    container.stop(GRACE)?;
    container.remove()?;
    let mut sample = sample(&entered)?;
    add_observed(&mut sample, &observed);
    Ok(sample)
}

/// The sample of an entry, if its stamps are plausible.
pub(super) fn sample(entered: &Entered) -> Result<Sample, Failure> {
    let message = &entered.message;
    let order = stamps(entered.spawned, message, &[(RETURNED, entered.returned)]);
    let lost = ["first_instruction", "return", "probe_work"];
    on_one_clock(&message.inside, order, &entered.treatment, &lost)
}
