//! `exec`: an entry into a container of its own, which was started just before.

use super::Measure;
use super::lifecycle::{until_it_waits, verbs};
use crate::experiment::Setting;
use crate::experiment::exec::{Exec, QUIET};
use crate::outcome::{Abort, Failure, Sample};
use crate::subject::{Entered, RunContext, Subject};

impl Measure for Exec {
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
