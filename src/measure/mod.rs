//! How each experiment measures a subject: one file each, without the evaluation of its samples. No
//! experiment names an engine.

pub mod command;
pub mod cpu;
mod density;
pub mod exec;
pub mod lifecycle;
mod memory;
mod nested;
mod network;
pub mod primitives;
mod scripted;
pub mod start;
pub mod storage;
pub mod syscall;
pub mod throttle;

use dunnage_analysis::launch::names::{
    CLIENT_CPU, ENGINE_CPU, FIRST, MAIN, PORT_HELPERS, PROCESSES, READY, SHARED_CPU, SPAWN,
};
use dunnage_analysis::names::StampName;
use dunnage_orders::Ask;
use dunnage_orders::work::{Throttled, Whole};

use crate::experiment::{self, Setting, fixed_work};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::probe::message::{Inside, Message};
use crate::subject::{Launch, Observed, RunContext, Subject, Work, bare};
use crate::units::{Nanos, Stamp};
use crate::variables;

/// What an experiment measures: one subject in one round with all its settings. It may hold any number of containers, and gives
/// samples as they come; nothing of it is left when it is dropped.
pub trait Visit {
    /// Takes the next sample: in the order of the plan, each setting at most once, and after a failure too. A visit that came only
    /// a part of the way gives what it has, with the reason for what is missing.
    fn take(&mut self, asked: Asked<'_>) -> Result<Sample, Abort>;
}

/// An experiment and one of its settings.
pub type Asked<'a> = (&'static str, &'a Setting);

/// Where and for what a visit is.
pub struct Visited<'a> {
    /// The subject.
    pub subject: &'a mut dyn Subject,
    /// Where programs outside of containers run.
    pub host: &'a dyn Subject,
    /// The run.
    pub run: &'a RunContext,
    /// All that it may be asked.
    pub asked: Vec<Asked<'a>>,
}

/// Begins a visit. Nothing is made yet.
type Begin = for<'a> fn(Visited<'a>) -> Box<dyn Visit + 'a>;

/// How each experiment is visited.
static ALL: [(&str, Begin); 21] = [
    ("start", |visited| each(visited, start::measure)),
    ("primitives", |visited| each(visited, primitives::measure)),
    ("lifecycle", |visited| each(visited, lifecycle::measure)),
    ("exec", |visited| each(visited, exec::measure)),
    (experiment::command::NAME, |visited| each(visited, command::measure)),
    (experiment::service::NAME, |visited| each(visited, command::measure)),
    (experiment::syscall::NAME, |visited| each(visited, syscall::measure)),
    (experiment::throttle::NAME, |visited| each(visited, throttle::measure)),
    (experiment::cpu::NAME, |visited| each(visited, cpu::measure)),
    (experiment::network::latency::NAME, network::begin),
    (experiment::network::throughput::NAME, network::begin),
    (experiment::network::http::NAME, network::begin),
    (experiment::network::dns::NAME, |visited| each(visited, network::dns::measure)),
    (experiment::storage::disk::NAME, |visited| each(visited, storage::disk::measure)),
    (experiment::storage::layers::NAME, |visited| each(visited, storage::layers::measure)),
    (experiment::storage::owners::NAME, |visited| each(visited, storage::owners::measure)),
    (experiment::memory::NAME, |visited| each(visited, memory::measure)),
    (experiment::memory::limit::NAME, |visited| each(visited, memory::limit::measure)),
    (experiment::density::NAME, |visited| each(visited, density::measure)),
    (experiment::nested::NAME, |visited| each(visited, nested::measure)),
    ("scripted", |visited| each(visited, scripted::measure)),
];

/// Takes one sample of a subject. Nothing that the subject makes is left when this returns, also after an error.
type Measure = fn(&mut dyn Subject, &Setting, &RunContext) -> Result<Sample, Abort>;

/// A visit whose samples share nothing.
struct Each<'a>(Visited<'a>, Measure);

fn each<'a>(visited: Visited<'a>, measure: Measure) -> Box<dyn Visit + 'a> {
    Box::new(Each(visited, measure))
}

impl Visit for Each<'_> {
    fn take(&mut self, (_, setting): Asked<'_>) -> Result<Sample, Abort> {
        let Each(Visited { subject, run, .. }, measure) = self;
        measure(*subject, setting, run)
    }
}

/// A visit that has begun.
pub struct Begun<'a>(Box<dyn Visit + 'a>, &'a RunContext);

/// Begins the visit for all that is asked; the experiments share their visits.
pub fn begin<'a>(visited: Visited<'a>) -> Begun<'a> {
    let run = visited.run;
    let found = |(experiment, _): &Asked<'_>| ALL.iter().find(|(own, _)| own == experiment);
    let (_, begin) = visited.asked.first().and_then(found).expect("cells are made of known experiments");
    Begun(begin(visited), run)
}

impl Begun<'_> {
    /// Takes the next sample.
    pub fn take(&mut self, asked: Asked<'_>) -> Result<Sample, Abort> {
        let Begun(visit, run) = self;
        // A command that fails may print its environment.
        let hide = |text: String| run.variables.hidden(&text);
        visit.take(asked).map_err(|abort| match abort {
            Abort::Failed(failure) => Abort::Failed(Failure {
                reason: hide(failure.reason),
                words: failure.words.map(hide),
                ..failure
            }),
            other => other,
        })
    }
}

/// Takes a single sample. Nothing that the subject makes is left when this returns, also after an error.
pub fn once(
    experiment: &'static str,
    subject: &mut dyn Subject,
    setting: &Setting,
    run: &RunContext,
) -> Result<Sample, Abort> {
    let host = bare::peer(&run.place);
    let asked = (experiment, setting);
    begin(Visited { subject, host: &host, run, asked: vec![asked] }).take(asked)
}

/// Why this machine cannot measure an experiment with a value of a setting.
pub fn lacking(experiment: &str, key: &str, value: &str) -> Option<&'static str> {
    if experiment == "primitives" { primitives::lacking(key, value) } else { None }
}

/// The variables of a setting, as `NAME=VALUE`.
fn variables_of<'a>(setting: &Setting, run: &'a RunContext) -> Result<&'a [String], Failure> {
    let Some(names) = setting.get(variables::KEY) else { return Ok(&[]) };
    let lost = || Failure::environment(format!("the values of the variables `{names}` are not known"));
    run.variables.named(names).ok_or_else(lost)
}

/// Stamps in order, by name.
type Stamps = Vec<(StampName, Stamp)>;

/// A sample with the usable ones of these stamps, if they are in order, without the metrics that are lost because of the
/// others: stamps from a kernel inside the container are from a different clock, which started with the container.
fn on_one_clock(
    inside: &Inside,
    mut stamps: Stamps,
    treatment: &[(&'static str, String)],
    lost: &[&'static str],
) -> Result<Sample, Failure> {
    const REASON: &str = "the kernel inside is not the host's, and its clock starts with the container, so only stamps from outside count";
    let has_own_kernel = inside.has_own_kernel();
    stamps.retain(|(name, _)| !has_own_kernel || ![FIRST, MAIN, READY].contains(name));
    in_order(&stamps)?;
    let mut sample = sample_of(stamps, treatment);
    sample.lacks(lost.iter().filter(|_| has_own_kernel), REASON);
    Ok(sample)
}

/// The probe's stamps between those of the process that started it.
fn stamps(spawned: Stamp, message: &Message, then: &[(StampName, Stamp)]) -> Stamps {
    let main = message.main.map(|main| (MAIN, main));
    let first = [(SPAWN, spawned), (FIRST, message.entry)].into_iter().chain(main);
    first.chain([(READY, message.ready)]).chain(then.iter().copied()).collect()
}

/// A sample with these stamps and this treatment.
fn sample_of(stamps: Stamps, treatment: &[(&'static str, String)]) -> Sample {
    let mut sample = Sample::default().with(stamps);
    sample.treatment.extend(treatment.iter().map(|(name, fact)| ((*name).into(), fact.clone())));
    sample
}

/// Adds what was seen of a launch or an entry from outside.
fn add_observed(sample: &mut Sample, observed: &Observed) {
    match &observed.cpu {
        Ok(cpu) => {
            let (client, engine) = (cpu.client.0, cpu.engine.0);
            sample.extend([(CLIENT_CPU, client), (ENGINE_CPU, engine), (PROCESSES, cpu.processes)]);
            let more = [(PORT_HELPERS, cpu.port_helpers), (SHARED_CPU, cpu.shared.0)];
            sample.extend(more.into_iter().filter(|(_, value)| *value > 0));
        }
        Err(why) => sample.lacks(&["client_cpu", "engine_cpu"], why),
    }
    sample.extend(observed.counters.iter().copied());
    sample.treatment.extend(observed.facts.iter().map(|(name, fact)| ((*name).into(), fact.clone())));
    sample.artefacts.extend(observed.artefacts.iter().cloned());
}

/// Fails if the stamps cannot be from one clock in this order.
fn in_order(stamps: &[(StampName, Stamp)]) -> Result<(), Failure> {
    let Some(pair) = stamps.windows(2).find(|pair| pair[1].1 < pair[0].1) else { return Ok(()) };
    let [(earlier, _), (later, _)] = [pair[0], pair[1]];
    let reason =
        format!("`{later}` is stamped before `{earlier}`: the clock inside is not the clock outside");
    Err(Failure::new(FailureClass::WrongOutput, reason))
}

/// Runs a work that takes this long in a subject's probe, in a container that is gone when this returns, with its answer.
pub fn worked<O: Ask>(
    subject: &mut dyn Subject,
    run: &RunContext,
    (order, takes): (O, Nanos),
) -> Result<(Launch, O::Answer), Abort> {
    let launch = subject.work(&Work::new(order, takes), run)?;
    let done = launch.message.answer()?;
    Ok((launch, done))
}

/// Adds the counters of a fixed work.
fn add_fixed(sample: &mut Sample, names: fixed_work::Names, whole: &Whole) {
    sample.extend([(names.took, whole.took.0), (names.cpu, whole.cpu.0)]);
    if let Some(Throttled { periods, throttled, time }) = whole.limit {
        let counted = [(names.periods, periods as i64), (names.throttled, throttled as i64)];
        sample.extend(counted.into_iter().chain([(names.throttled_time, time.0)]));
    }
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
