//! `exec`: an entry into a container of its own, which was started just before.

use super::Measure;
use super::lifecycle::ready;
use crate::experiment::Setting;
use crate::experiment::exec::{Exec, QUIET};
use crate::outcome::{Abort, Failure, Sample};
use crate::probe::Task;
use crate::subject::{ContainerRequest, Entered, RunContext, Subject};

impl Measure for Exec {
    fn measure(
        &self,
        subject: &mut dyn Subject,
        setting: &Setting,
        run: &RunContext,
    ) -> Result<Sample, Abort> {
        let passes_time = subject.has_a_clock();
        let primed = setting.get("prestate") == Some("primed");
        let mut container = ready(subject, &ContainerRequest::default(), run)?;
        if primed {
            container.exec(Task::Enter)?;
        } else if passes_time {
            run.quiet(QUIET)?;
        }
        let entered = container.exec(Task::Enter)?;
        container.stop()?;
        container.remove()?;
        Ok(sample(&entered)?)
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
