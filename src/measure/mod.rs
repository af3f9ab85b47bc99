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
pub mod storage;
pub mod syscall;
pub mod throttle;

use dunnage_orders::work::{Done, Script};

use crate::experiment::{self, Setting};
use crate::outcome::{Abort, Failure, FailureClass, Name, Sample};
use crate::probe::message::{Inside, Message};
use crate::subject::{Launch, Observed, RunContext, Subject, Work, bare};
use crate::units::{Nanos, Stamp};
use crate::variables;

/// Takes one sample of a subject. Nothing that the subject makes is left when this returns, also after an
/// error.
pub type Measure = fn(&mut dyn Subject, &Setting, &RunContext) -> Result<Sample, Abort>;

/// How an experiment is measured.
#[derive(Clone, Copy)]
enum How {
    /// Each sample has containers of its own.
    Alone(Measure),
    /// The samples of a subject in a round share a server.
    Together(&'static network::Exchange),
}

use How::{Alone, Together};

/// How each experiment is measured.
static ALL: [(&str, How); 17] = [
    ("start", Alone(start::measure)),
    ("primitives", Alone(primitives::measure)),
    ("lifecycle", Alone(lifecycle::measure)),
    ("exec", Alone(exec::measure)),
    (experiment::command::NAME, Alone(command::measure)),
    (experiment::service::NAME, Alone(command::measure)),
    (experiment::syscall::NAME, Alone(syscall::measure)),
    (experiment::throttle::NAME, Alone(throttle::measure)),
    (experiment::cpu::NAME, Alone(cpu::measure)),
    (experiment::network::latency::NAME, Together(&network::latency::EXCHANGE)),
    (experiment::network::throughput::NAME, Together(&network::throughput::EXCHANGE)),
    (experiment::network::http::NAME, Together(&network::http::EXCHANGE)),
    (experiment::network::dns::NAME, Alone(network::dns::measure)),
    (experiment::storage::disk::NAME, Alone(storage::disk::measure)),
    (experiment::storage::layers::NAME, Alone(storage::layers::measure)),
    (experiment::storage::owners::NAME, Alone(storage::owners::measure)),
    ("scripted", Alone(scripted::measure)),
];

fn how(experiment: &str) -> How {
    let found = ALL.iter().find(|(own, _)| *own == experiment).map(|(_, how)| *how);
    found.expect("cells are made of known experiments")
}

/// Takes the samples of a subject in one round, one for each setting. What they share is gone when this is
/// dropped.
pub enum Visit<'a> {
    /// They share nothing.
    Alone(&'a mut dyn Subject, &'a RunContext),
    /// They share servers.
    Together(network::Servers<'a>),
}

impl<'a> Visit<'a> {
    /// For these experiments and settings; `host` is where programs outside of containers run. Nothing is made
    /// yet.
    pub fn of(
        subject: &'a mut dyn Subject,
        asked: impl Iterator<Item = (&'static str, &'a Setting)>,
        (host, run): (&'a dyn Subject, &'a RunContext),
    ) -> Visit<'a> {
        let exchange = |(experiment, setting)| match how(experiment) {
            Together(exchange) => Some((exchange, setting)),
            Alone(_) => None,
        };
        match asked.map(exchange).collect::<Option<Vec<_>>>() {
            Some(asked) if subject.has_a_clock() => {
                Visit::Together(network::Servers::of((subject, host), asked, run))
            }
            _ => Visit::Alone(subject, run),
        }
    }

    /// Takes a sample of one of them.
    pub fn take(&mut self, experiment: &str, setting: &Setting) -> Result<Sample, Abort> {
        let run = match self {
            Visit::Alone(_, run) => *run,
            Visit::Together(servers) => servers.run(),
        };
        // A command that fails may print its environment.
        let hide = |text: String| run.variables.hidden(&text);
        self.taken(experiment, setting).map_err(|abort| match abort {
            Abort::Failed(failure) => Abort::Failed(Failure {
                reason: hide(failure.reason),
                words: failure.words.map(hide),
                ..failure
            }),
            other => other,
        })
    }

    fn taken(&mut self, experiment: &str, setting: &Setting) -> Result<Sample, Abort> {
        match (self, how(experiment)) {
            (Visit::Alone(subject, run), Alone(measure)) => measure(*subject, setting, run),
            (Visit::Alone(subject, run), Together(exchange)) => exchange.script(*subject, setting, run),
            (Visit::Together(servers), Together(exchange)) => servers.take((exchange, setting)),
            (Visit::Together(_), Alone(_)) => unreachable!("it was not asked for"),
        }
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
    Visit::of(subject, [(experiment, setting)].into_iter(), (&host, run)).take(experiment, setting)
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

/// Adds what was seen of a launch or an entry from outside.
fn add_observed(sample: &mut Sample, observed: &Observed) {
    match &observed.cpu {
        Ok(cpu) => {
            let (client, engine) = (cpu.client.0, cpu.engine.0);
            let counted = [("client_cpu", client), ("engine_cpu", engine), ("processes", cpu.processes)];
            let more = [("port_helpers", cpu.port_helpers), ("shared_cpu", cpu.shared.0)];
            let more = more.into_iter().filter(|(_, value)| *value > 0);
            let all = counted.into_iter().chain(more).map(|(name, value)| (name.into(), value));
            sample.counters.extend(all);
        }
        Err(why) => {
            sample.missing.extend(["client_cpu", "engine_cpu"].map(|name| (name.into(), why.clone())));
        }
    }
    sample.counters.extend(observed.counters.iter().cloned());
    sample.artefacts.extend(observed.artefacts.iter().cloned());
}

/// Fails if the stamps cannot be from one clock in this order.
fn in_order(stamps: &[(&str, Stamp)]) -> Result<(), Failure> {
    let Some(pair) = stamps.windows(2).find(|pair| pair[1].1 < pair[0].1) else { return Ok(()) };
    let [(earlier, _), (later, _)] = [pair[0], pair[1]];
    let reason =
        format!("`{later}` is stamped before `{earlier}`: the clock inside is not the clock outside");
    Err(Failure::new(FailureClass::WrongOutput, reason))
}

/// Runs work in a subject's probe, in a container that is gone when this returns, with what it reported.
pub fn worked(subject: &mut dyn Subject, run: &RunContext, work: &Work) -> Result<(Launch, Done), Abort> {
    let launch = subject.work(work, run)?;
    let done = launch.message.answer()?;
    Ok((launch, done))
}

/// A sample of a scripted subject.
fn scripted<const N: usize>(
    subject: &mut dyn Subject,
    run: &RunContext,
    (kind, words): (&str, [&str; N]),
) -> Result<Sample, Abort> {
    let script = Script { kind: kind.to_owned(), words: words.map(str::to_owned).to_vec() };
    let (launch, done) = worked(subject, run, &Work::new(script, Nanos(0)))?;
    Ok(work_sample(&launch, &done)?)
}

/// The sample of a work: the launch's own stamps and counters, the numbers and series that the work reported,
/// and its facts in addition to the treatment's.
pub fn work_sample(launch: &Launch, done: &Done) -> Result<Sample, Failure> {
    let mut sample = start::sample(launch)?;
    add(&mut sample, done);
    Ok(sample)
}

/// Adds the report of the work, which takes precedence over what the launch says under the same name.
fn add(sample: &mut Sample, done: &Done) {
    sample.counters.retain(|(name, _)| done.results.iter().all(|(own, _)| own != name.as_ref()));
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
