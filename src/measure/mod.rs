//! How each experiment measures a subject: one file each, without the evaluation of its samples. No
//! experiment names an engine.

pub mod command;
pub mod cpu;
pub mod exec;
pub mod lifecycle;
mod network;
pub mod primitives;
mod scripted;
pub mod start;
pub mod syscall;
pub mod throttle;

use crate::experiment::{self, Setting};
use crate::outcome::{Abort, Failure, FailureClass, Name, Sample};
use crate::probe::message::{Done, Inside, Message};
use crate::subject::{Cpu, Launch, RunContext, Subject, Work};
use crate::units::Stamp;

/// Takes one sample of a subject. Nothing that the subject makes is left when this returns, also after an
/// error.
pub type Measure = fn(&mut dyn Subject, &Setting, &RunContext) -> Result<Sample, Abort>;

/// The function of each experiment.
static ALL: [(&str, Measure); 12] = [
    ("start", start::measure),
    ("primitives", primitives::measure),
    ("lifecycle", lifecycle::measure),
    ("exec", exec::measure),
    (experiment::command::NAME, command::measure),
    (experiment::service::NAME, command::measure),
    (experiment::syscall::NAME, syscall::measure),
    (experiment::throttle::NAME, throttle::measure),
    (experiment::cpu::NAME, cpu::measure),
    (experiment::network::latency::NAME, network::latency::measure),
    (experiment::network::throughput::NAME, network::throughput::measure),
    ("scripted", scripted::measure),
];

/// The function of the experiment with this name.
pub fn find(name: &str) -> Option<Measure> {
    ALL.iter().find(|(own, _)| *own == name).map(|(_, measure)| *measure)
}

/// Why this machine cannot measure an experiment with a value of a setting.
pub fn lacking(experiment: &str, key: &str, value: &str) -> Option<&'static str> {
    if experiment == "primitives" { primitives::lacking(key, value) } else { None }
}

/// Stamps in order, by name.
type Stamps = Vec<(&'static str, Stamp)>;
/// Metrics that a sample lacks, with the reason.
type Missing = Vec<(Name, String)>;

/// The usable stamps in order, and the metrics that are missing because of the others: stamps from a kernel
/// inside the container are from a different clock, which started with the container.
fn on_one_clock(inside: &Inside, stamps: Stamps, lost: &[&'static str]) -> (Stamps, Missing) {
    const STAMPED_INSIDE: [&str; 3] = ["first", "main", "ready"];
    const REASON: &str = "the kernel inside is not the host's, and its clock starts with the container, so only stamps from outside count";
    if !inside.has_own_kernel() {
        return (stamps, Vec::new());
    }
    let outside = stamps.into_iter().filter(|(name, _)| !STAMPED_INSIDE.contains(name)).collect();
    (outside, lost.iter().map(|name| ((*name).into(), REASON.to_owned())).collect())
}

/// The probe's stamps between those of the process that started it.
fn stamps(spawned: Stamp, message: &Message, then: &[(&'static str, Stamp)]) -> Stamps {
    let main = message.main.map(|main| ("main", main));
    let first = [("spawn", spawned), ("first", message.entry)].into_iter().chain(main);
    first.chain([("ready", message.ready)]).chain(then.iter().copied()).collect()
}

/// A sample with these stamps and this treatment.
fn sample_of(stamps: Stamps, treatment: &[(&'static str, String)]) -> Sample {
    Sample {
        stamps: stamps.into_iter().map(|(name, stamp)| (name.into(), stamp)).collect(),
        treatment: treatment.iter().map(|(name, fact)| ((*name).into(), fact.clone())).collect(),
        ..Sample::default()
    }
}

/// Adds the CPU time of a launch or an entry, or why there is none.
fn add_cpu(sample: &mut Sample, cpu: &Result<Cpu, String>) {
    match cpu {
        Ok(cpu) => {
            let (client, engine) = (cpu.client.0, cpu.engine.0);
            let counted = [("client_cpu", client), ("engine_cpu", engine), ("processes", cpu.processes)];
            sample.counters.extend(counted.map(|(name, value)| (name.into(), value)));
        }
        Err(why) => {
            sample.missing.extend(["client_cpu", "engine_cpu"].map(|name| (name.into(), why.clone())));
        }
    }
}

/// Fails if the stamps cannot be from one clock in this order.
fn in_order(stamps: &[(&str, Stamp)]) -> Result<(), Failure> {
    let Some(pair) = stamps.windows(2).find(|pair| pair[1].1 < pair[0].1) else { return Ok(()) };
    let [(earlier, _), (later, _)] = [pair[0], pair[1]];
    let reason =
        format!("`{later}` is stamped before `{earlier}`: the clock inside is not the clock outside");
    Err(Failure::new(FailureClass::WrongOutput, reason))
}

/// Runs work in a subject's probe, in a container that is gone when this returns; work that was refused or
/// failed is a failure.
pub fn worked(subject: &mut dyn Subject, run: &RunContext, work: &Work) -> Result<Launch, Abort> {
    let launch = subject.work(work, run)?;
    launch.message.done.succeeded()?;
    Ok(launch)
}

/// The sample of a work: the launch's own stamps and counters, the numbers and series that the work reported,
/// and its facts in addition to the treatment's.
pub fn work_sample(launch: &Launch) -> Result<Sample, Failure> {
    let mut sample = start::sample(launch)?;
    add(&mut sample, &launch.message.done);
    Ok(sample)
}

/// Adds the report of the work.
fn add(sample: &mut Sample, done: &Done) {
    sample.counters.extend(done.results.iter().map(|(name, value)| (name.clone().into(), *value)));
    sample.series.extend(done.series.iter().map(|(name, values)| (name.clone().into(), values.clone())));
    let distributions = done.distributions.iter().map(|(name, values)| (name.clone().into(), values.clone()));
    sample.distributions.extend(distributions);
    sample.treatment.extend(done.notes.iter().map(|(name, fact)| (name.clone().into(), fact.clone())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_can_be_measured() {
        let names = |all: &mut dyn Iterator<Item = &'static str>| all.collect::<Vec<_>>();
        let asked = names(&mut experiment::ALL.iter().chain(experiment::HIDDEN).map(|one| one.name));
        assert_eq!(names(&mut ALL.iter().map(|(name, _)| *name)), asked);
    }
}
