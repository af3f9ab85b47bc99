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

use dunnage_analysis::launch::names::{
    CLIENT_CPU, ENGINE_CPU, FIRST, MAIN, PORT_HELPERS, PROCESSES, READY, SPAWN,
};
use dunnage_analysis::names::StampName;
use dunnage_orders::Ask;
use dunnage_orders::work::{Throttled, Whole};

use crate::experiment::{self, Setting, fixed_work};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::probe::message::{Inside, Message};
use crate::subject::{Cpu, Launch, RunContext, Subject, Work, bare};
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
            Some(asked) => Visit::Together(network::Servers::of((subject, host), asked, run)),
            None => Visit::Alone(subject, run),
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
            (Visit::Together(servers), Together(exchange)) => servers.take((exchange, setting)),
            (Visit::Alone(..), Together(_)) | (Visit::Together(_), Alone(_)) => {
                unreachable!("it was not asked for")
            }
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

/// Adds the CPU time of a launch or an entry, or why there is none.
fn add_cpu(sample: &mut Sample, cpu: &Result<Cpu, String>) {
    match cpu {
        Ok(cpu) => {
            let (client, engine) = (cpu.client.0, cpu.engine.0);
            sample.extend([(CLIENT_CPU, client), (ENGINE_CPU, engine), (PROCESSES, cpu.processes)]);
            sample.extend(Some((PORT_HELPERS, cpu.port_helpers)).filter(|(_, count)| *count > 0));
        }
        Err(why) => sample.lacks(&["client_cpu", "engine_cpu"], why),
    }
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
