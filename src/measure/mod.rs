//! How each question is put to a subject: one file a question, and nothing of what is made of its samples. No
//! experiment names an engine.

pub mod command;
pub mod cpu;
pub mod exec;
pub mod lifecycle;
pub mod primitives;
mod scripted;
pub mod start;
pub mod syscall;
pub mod throttle;

use crate::experiment::{self, Question, Setting};
use crate::outcome::{Abort, Failure, FailureClass, Name, Sample};
use crate::probe::message::Inside;
use crate::subject::{Launch, RunContext, Subject, Work};
use crate::units::Stamp;

/// Every experiment there is, as something that can be measured.
static ALL: &[&dyn Measure] = &[
    &experiment::start::Start,
    &experiment::primitives::Primitives,
    &experiment::lifecycle::Lifecycle,
    &experiment::exec::Exec,
    &experiment::command::Command,
    &experiment::syscall::Syscall,
    &experiment::throttle::Throttle,
    &experiment::cpu::Cpu,
    &experiment::scripted::Scripted,
];

/// The experiment with this name.
pub fn find(name: &str) -> Option<&'static dyn Measure> {
    ALL.iter().copied().find(|one| one.about().name == name)
}

/// How a question is put to a subject.
pub trait Measure: Question {
    /// Takes one sample of a subject. Everything that the subject leaves behind is gone when this
    /// returns, whatever it returns.
    fn measure(
        &self,
        subject: &mut dyn Subject,
        setting: &Setting,
        run: &RunContext,
    ) -> Result<Sample, Abort>;
}

/// Stamps in their order, by name.
type Stamps = Vec<(&'static str, Stamp)>;
/// Metrics that a sample lacks, with the reason.
type Missing = Vec<(Name, String)>;

/// The stamps that count, in their order, and what is missing for want of the others: stamps of a kernel
/// that came with the container are of another clock, which began with it.
fn on_one_clock<const N: usize>(
    inside: &Inside,
    stamps: [(&'static str, Stamp); N],
    lost: &[&'static str],
) -> (Stamps, Missing) {
    const STAMPED_INSIDE: [&str; 3] = ["first", "main", "ready"];
    const REASON: &str = "the kernel inside is not the host's, and its clock begins with the container; only stamps from outside count";
    if !inside.has_own_kernel() {
        return (stamps.to_vec(), Vec::new());
    }
    let outside = stamps.into_iter().filter(|(name, _)| !STAMPED_INSIDE.contains(name)).collect();
    (outside, lost.iter().map(|name| ((*name).into(), REASON.to_owned())).collect())
}

/// Refuses stamps that cannot have come in this order from one clock.
fn in_order(stamps: &[(&str, Stamp)]) -> Result<(), Failure> {
    let Some(pair) = stamps.windows(2).find(|pair| pair[1].1 < pair[0].1) else { return Ok(()) };
    let [(earlier, _), (later, _)] = [pair[0], pair[1]];
    let reason =
        format!("`{later}` is stamped before `{earlier}`: the clock inside is not the clock outside");
    Err(Failure::new(FailureClass::WrongOutput, reason))
}

/// Has a subject's probe work, in a container that is gone when this returns; a work that the subject does not
/// support is a failure of that class.
pub fn worked(subject: &mut dyn Subject, run: &RunContext, work: &Work) -> Result<Launch, Abort> {
    let launch = subject.work(work, run)?;
    match &launch.message.done.refused {
        Some(why) => Err(Failure::new(FailureClass::Unsupported, why.clone()).into()),
        None => Ok(launch),
    }
}

/// The sample of a work: the launch's own stamps and counters, the numbers and series that the work
/// reported, and its facts beside those of the treatment.
pub fn work_sample(launch: &Launch) -> Result<Sample, Failure> {
    let mut sample = start::sample(launch)?;
    let done = &launch.message.done;
    sample.counters.extend(done.results.iter().map(|(name, value)| (name.clone().into(), *value)));
    sample.series.extend(done.series.iter().map(|(name, values)| (name.clone().into(), values.clone())));
    sample.treatment.extend(done.notes.iter().map(|(name, fact)| (name.clone().into(), fact.clone())));
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_can_be_measured() {
        let names = |all: &mut dyn Iterator<Item = &'static str>| all.collect::<Vec<_>>();
        let asked = names(&mut experiment::ALL.iter().chain(experiment::HIDDEN).map(|one| one.about().name));
        assert_eq!(names(&mut ALL.iter().map(|one| one.about().name)), asked);
    }
}
