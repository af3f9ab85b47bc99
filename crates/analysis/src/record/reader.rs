//! Reads a run directory, complete or damaged: what can be read is read, and the rest is counted. A million
//! samples take about a second, so lines are parsed on all CPUs, borrowed from the file's bytes, and reduced
//! to the values of their metrics at once.

use std::io::{BufRead, BufReader, Read};

use anyhow::{Context, Result, anyhow, bail};

use super::environment::{Environment, Order};
use super::plan_file;
use super::room;
use super::source::{ReadAt, Samples, Source, read_line};
use super::wire::{
    Begin, ENVIRONMENT, FORMAT, HEADER_FORMAT, Header, PLAN, RoundContext, SAMPLES, SampleLine, Stop,
    Treatment,
};
use crate::experiment::Experiment;
use crate::names::{Fact, Spread};
use crate::outcome::{Failure, Outcome, Sample};
use crate::plan::{Cell, Plan};
use crate::stats::tail::Counted;
use crate::units::Nanos;

/// Why a cell has no sample in a round.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// It was not tried.
    Skipped(String),
    /// It failed.
    Failed(Failure),
}

/// A cell without a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureRow {
    /// The cell's index in the plan.
    pub cell: usize,
    /// The round, warm-ups first, from 0.
    pub round: usize,
    /// Why.
    pub cause: Cause,
}

/// The values of one cell over the rounds that count.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// For each metric of the experiment, one value per round; NaN where there is none.
    pub values: Vec<Vec<f64>>,
    /// Its place in the order of each round, from 0.
    pub positions: Vec<Option<usize>>,
    /// The cell before it in each round.
    pub predecessors: Vec<Option<usize>>,
    /// The number of its treatment in each round.
    pub treatments: Vec<Option<usize>>,
    /// Whole samples by round, for experiments whose samples replicate within; empty for all others.
    pub samples: Vec<Option<Sample>>,
    /// For each distribution of which a metric is the tail, its values by round.
    pub tails: Vec<Tails>,
}

/// The values of a distribution in the rounds that count.
#[derive(Debug, Clone, PartialEq)]
pub struct Tails {
    /// Its name.
    pub distribution: Spread,
    /// By round; none without a sample.
    pub rounds: Vec<Option<Box<Counted>>>,
}

/// The distributions of which an experiment has the tail, each once.
fn tails_of(experiment: &Experiment) -> Vec<Spread> {
    let mut names: Vec<_> =
        experiment.metrics.iter().filter_map(|metric| Some(metric.is_tail()?.0)).collect();
    names.dedup();
    names
}

/// A run as read.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The run's name.
    pub run: String,
    /// The machine and the programs.
    pub environment: Environment,
    /// What was planned.
    pub plan: Plan,
    /// By cell.
    pub series: Vec<Series>,
    /// All cells without a sample, in the order of the file.
    pub failures: Vec<FailureRow>,
    /// By round, warm-ups first; none for incomplete rounds.
    pub contexts: Vec<Option<RoundContext>>,
    /// Facts by number.
    pub treatments: Vec<Vec<(String, String)>>,
    /// Why values are missing from samples, each reason once.
    pub missing: Vec<(String, String)>,
    /// Unreadable lines, without a truncated last line.
    pub damaged: usize,
    /// Whether the last line is truncated.
    pub cut: bool,
    /// Whether the run was resumed after an interruption.
    pub resumed: bool,
    /// From the start of its first sample to the start of its last.
    pub lasted: Option<Nanos>,
}

impl Recorded {
    /// Rounds that count and are complete.
    pub fn complete_rounds(&self) -> usize {
        self.contexts.iter().skip(self.plan.warmups).flatten().count()
    }

    /// What was found inside a cell, by name, in the rounds that have a sample.
    pub fn facts(&self, cell: usize, name: Fact) -> impl DoubleEndedIterator<Item = Option<&str>> {
        let numbers = self.series[cell].treatments.iter().flatten();
        numbers.map(move |number| {
            let (_, fact) = self.treatments.get(*number)?.iter().find(|(own, _)| own == name.text())?;
            Some(fact.as_str())
        })
    }

    /// Whether its samples were measured in blocks, one cell after the other, so that they cannot be paired.
    pub fn is_in_blocks(&self) -> bool {
        self.environment.origin.as_ref().is_some_and(|origin| origin.order == Order::Blocks)
    }
}

/// The content of a line, reduced to what is kept.
enum Item {
    Begin(usize),
    End(RoundContext),
    Stop(usize),
    Treatment(usize, Vec<(String, String)>),
    Taken {
        cell: usize,
        round: usize,
        position: usize,
        predecessor: Option<usize>,
        treatment: Option<usize>,
        more: Option<Box<More>>,
    },
    NotTaken(FailureRow),
}

/// What is kept of a sample apart from the values of its metrics.
struct More {
    /// All of it.
    whole: Option<Sample>,
    /// The values of distributions, in the order of the series.
    tails: Vec<Option<Box<Counted>>>,
}

impl More {
    /// None if nothing more is kept of the samples of this experiment.
    fn of(mut sample: Sample, experiment: &Experiment, names: &[Spread]) -> Option<Box<More>> {
        if names.is_empty() && !experiment.keeps_samples {
            return None;
        }
        let tails = names.iter().map(|name| Some(sample.distribution(*name)?.counted())).collect();
        // Unpacked, the shortest text of one takes a megabyte.
        sample.distributions.clear();
        Some(Box::new(More { whole: experiment.keeps_samples.then_some(sample), tails }))
    }
}

/// The content of a part of the file: at most as much as the plan allows, even if the lines are hostile.
#[derive(Default)]
struct Part {
    items: Vec<Item>,
    /// The values of the samples, one after the other, as many each as its cell has metrics.
    values: Vec<f64>,
    /// Why values are missing, each reason once.
    missing: Vec<(String, String)>,
    /// Unreadable lines.
    damaged: usize,
    /// When its first and its last sample started, in nanoseconds since 1970.
    began: Option<(u64, u64)>,
}

/// The maximum number of reasons that are kept.
const MOST_REASONS: usize = 64;

/// Adds a reason if it is new and there is room.
fn add_reason(all: &mut Vec<(String, String)>, name: &str, why: String) {
    if all.len() < MOST_REASONS && !all.iter().any(|(own, reason)| own == name && *reason == why) {
        all.push((name.to_owned(), why));
    }
}

/// Reads a run.
pub fn read(source: &Source) -> Result<Recorded> {
    let (environment, plan) = head(source)?;
    let wanted: Vec<_> = plan.cells.iter().map(Cell::asks).collect();
    let (header, length, cut) = begin(source)?;
    let rounds = plan.warmups + plan.rounds;
    let parts = parse_all(source, length, &wanted, rounds)?;
    let rounds = rounds.min(rounds_in(&parts) + 1);
    let counted = rounds.saturating_sub(plan.warmups);
    if !room::fits(&wanted, counted, length) {
        bail!("{} is too short for the rounds and cells that it names", source.name(SAMPLES));
    }
    let empty = |wanted: &&Experiment| Series {
        values: vec![vec![f64::NAN; counted]; wanted.metrics.len()],
        positions: vec![None; counted],
        predecessors: vec![None; counted],
        treatments: vec![None; counted],
        samples: if wanted.keeps_samples { vec![None; counted] } else { Vec::new() },
        tails: tails_of(wanted)
            .into_iter()
            .map(|distribution| Tails { distribution, rounds: vec![None; counted] })
            .collect(),
    };
    let mut recorded = Recorded {
        run: header.run,
        series: wanted.iter().map(empty).collect(),
        failures: Vec::new(),
        contexts: vec![None; rounds],
        treatments: Vec::new(),
        missing: Vec::new(),
        damaged: 0,
        cut,
        resumed: false,
        lasted: None,
        environment,
        plan,
    };
    let began = parts.iter().filter_map(|part| part.began);
    let began = began.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
    recorded.lasted = began.and_then(|(first, last)| Some(Nanos(last.checked_sub(first)? as i64)));
    let mut begun = vec![false; rounds];
    for part in parts {
        let mut values = part.values.as_slice();
        part.items.into_iter().for_each(|item| recorded.take(item, &mut values, &mut begun));
        part.missing.into_iter().for_each(|(name, why)| add_reason(&mut recorded.missing, &name, why));
        recorded.damaged += part.damaged;
    }
    recorded.end_with_the_plan();
    Ok(recorded)
}

/// The rounds up to the last one that the file names, but no more than it has lines: a plan may have room for many more.
fn rounds_in(parts: &[Part]) -> usize {
    let round = |item: &Item| match item {
        Item::Begin(round) | Item::Taken { round, .. } => Some(*round),
        Item::NotTaken(FailureRow { round, .. }) | Item::End(RoundContext { end: round, .. }) => Some(*round),
        Item::Stop(_) | Item::Treatment(..) => None,
    };
    let items = || parts.iter().flat_map(|part| &part.items);
    items().filter_map(round).max().map_or(0, |last| last.saturating_add(1)).min(items().count())
}

/// The error for a file of another format version.
fn other_format(name: &str, version: u32) -> anyhow::Error {
    anyhow!(
        "{name} has format version {version}, but this dunnage reads {FORMAT}\n\nhint: use the dunnage that wrote it"
    )
}

/// The environment and plan of a run.
pub fn head(source: &Source) -> Result<(Environment, Plan)> {
    const HINT: &str = "hint: copy it again from where it was measured, or start a new run";
    let damaged = |name| move || format!("{} is damaged\n\n{HINT}", source.name(name));
    let environment = serde_json::from_slice(&source.environment).with_context(damaged(ENVIRONMENT))?;
    let version = plan_file::version(&source.plan).with_context(damaged(PLAN))?;
    if version != FORMAT {
        return Err(other_format("the plan", version));
    }
    let plan =
        plan_file::read(&source.plan).with_context(|| format!("{} cannot be used", source.name(PLAN)))?;
    Ok((environment, plan))
}

/// The first line, the length of the file, and whether its last line is truncated.
pub fn begin(source: &Source) -> Result<(Header, u64, bool)> {
    let unread = || format!("cannot read {}", source.name(SAMPLES));
    let length = source.samples.length().with_context(unread)?;
    let mut last = [b'\n'];
    if length > 0 {
        ReadAt::new(&*source.samples, length - 1).read_exact(&mut last).with_context(unread)?;
    }
    let mut line = Vec::new();
    let mut start = BufReader::new(ReadAt::new(&*source.samples, 0)).take(65536);
    start.read_until(b'\n', &mut line).with_context(unread)?;
    let header: Header = serde_json::from_slice(&line)
        .ok()
        .filter(|header: &Header| header.format == HEADER_FORMAT)
        .with_context(|| format!("{} does not start like a file of samples", source.name(SAMPLES)))?;
    if header.version != FORMAT {
        return Err(other_format(&source.name(SAMPLES), header.version));
    }
    Ok((header, length, last != *b"\n"))
}

/// Parses the file in as many parts as there are CPUs; a line belongs to the part in which it starts.
fn parse_all(
    source: &Source,
    length: u64,
    wanted: &[&'static Experiment],
    rounds: usize,
) -> Result<Vec<Part>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8) as u64;
    let workers = if length < 1 << 20 { 1 } else { workers };
    let bounds = (0..workers).map(|index| (length * index / workers, length * (index + 1) / workers));
    let most = room::most_lines(wanted.len(), rounds);
    let parsed: Vec<std::io::Result<Part>> = std::thread::scope(|scope| {
        let started: Vec<_> = bounds
            .map(|(from, to)| scope.spawn(move || parse_part(&*source.samples, from, to, wanted, most)))
            .collect();
        started.into_iter().map(|worker| worker.join().expect("a parser does not panic")).collect()
    });
    parsed
        .into_iter()
        .collect::<std::io::Result<_>>()
        .with_context(|| format!("cannot read {}", source.name(SAMPLES)))
}

/// Bytes of a line with few stamps.
const SHORT_LINE: u64 = 256;

fn parse_part(
    samples: &dyn Samples,
    from: u64,
    to: u64,
    wanted: &[&'static Experiment],
    most: usize,
) -> std::io::Result<Part> {
    // The byte before shows whether a line starts exactly here.
    let mut at = from.saturating_sub(1);
    // Unused room is never touched; growing would copy everything several times.
    let room = ((to - from) / SHORT_LINE).min(most as u64) as usize;
    let widest = wanted.iter().map(|one| one.metrics.len()).max().unwrap_or(0);
    let mut part = Part {
        items: Vec::with_capacity(room),
        values: Vec::with_capacity(room * widest),
        ..Part::default()
    };
    let mut line = Vec::new();
    let mut reader = BufReader::with_capacity(1 << 20, ReadAt::new(samples, at));
    if from > 0 {
        at += reader.skip_until(b'\n')? as u64;
    }
    while at < to {
        at += read_line(&mut reader, &mut line)?;
        if line.last() == Some(&b'\n') {
            parse_line(&line, wanted, &mut part);
        }
        if part.items.len() > most {
            return Err(std::io::Error::other("it has more lines than a run of its plan can have"));
        }
    }
    Ok(part)
}

/// Adds the content of a line to its part.
fn parse_line(line: &[u8], wanted: &[&'static Experiment], part: &mut Part) {
    let parsed = if line.starts_with(b"{\"cell\"") {
        sample_line(line, wanted, part)
    } else if line.starts_with(b"{\"begin\"") {
        serde_json::from_slice(line).ok().map(|begin: Begin| Item::Begin(begin.begin))
    } else if line.starts_with(b"{\"end\"") {
        serde_json::from_slice(line).ok().map(Item::End)
    } else if line.starts_with(b"{\"stop\"") {
        serde_json::from_slice(line).ok().map(|stop: Stop| Item::Stop(stop.stop))
    } else if line.starts_with(b"{\"treatment\"") {
        serde_json::from_slice(line).ok().map(|one: Treatment| {
            let facts = one.facts.0.into_iter().map(|(name, fact)| (name.into_owned(), fact)).collect();
            Item::Treatment(one.treatment, facts)
        })
    } else if line.starts_with(b"{\"format\"") || line == b"\n" {
        return;
    } else {
        None
    };
    match parsed {
        Some(item) => part.items.push(item),
        None => part.damaged += 1,
    }
}

fn sample_line(line: &[u8], wanted: &[&'static Experiment], part: &mut Part) -> Option<Item> {
    let line: SampleLine = serde_json::from_slice(line).ok()?;
    let (cell, round, position) = (line.cell, line.round, line.position);
    let (first, last) = part.began.unwrap_or((line.started, line.started));
    part.began = Some((first.min(line.started), last.max(line.started)));
    let cells = wanted.len();
    let wanted = wanted.get(cell)?;
    let (predecessor, treatment) = (line.predecessor, line.treatment);
    if predecessor.is_some_and(|before| before >= cells) {
        return None;
    }
    Some(match line.outcome()? {
        Outcome::Measured(mut sample) => {
            part.values.extend(wanted.metrics.iter().map(|metric| metric.value(&sample).unwrap_or(f64::NAN)));
            for (name, why) in std::mem::take(&mut sample.missing) {
                add_reason(&mut part.missing, &name, why);
            }
            let more = More::of(sample, wanted, &tails_of(wanted));
            Item::Taken { cell, round, position, predecessor, treatment, more }
        }
        Outcome::Skipped(reason) => Item::NotTaken(FailureRow { cell, round, cause: Cause::Skipped(reason) }),
        Outcome::Failed(failure) => Item::NotTaken(FailureRow { cell, round, cause: Cause::Failed(failure) }),
    })
}

impl Recorded {
    fn take(&mut self, item: Item, values: &mut &[f64], begun: &mut [bool]) {
        // Its values must be skipped, whether or not it counts.
        let own = match &item {
            Item::Taken { cell, .. } => {
                let (own, rest) = values.split_at(self.series[*cell].values.len());
                *values = rest;
                own
            }
            _ => &[],
        };
        match item {
            Item::Begin(round) if round < begun.len() => {
                if std::mem::replace(&mut begun[round], true) {
                    self.resumed = true;
                    self.forget(round);
                }
            }
            Item::End(context) if context.end < begun.len() => {
                let round = context.end;
                self.contexts[round] = Some(context);
            }
            Item::Stop(rounds) if self.plan.looks.contains(&rounds) => self.plan.rounds = rounds,
            Item::Treatment(number, facts) if number < 1 << 20 => {
                if self.treatments.len() <= number {
                    self.treatments.resize(number + 1, Vec::new());
                }
                self.treatments[number] = facts;
            }
            Item::Taken { cell, round, position, predecessor, treatment, more } if round < begun.len() => {
                let Some(counted) = round.checked_sub(self.plan.warmups) else { return };
                let series = &mut self.series[cell];
                for (column, value) in series.values.iter_mut().zip(own) {
                    column[counted] = *value;
                }
                series.positions[counted] = Some(position);
                series.predecessors[counted] = predecessor;
                series.treatments[counted] = treatment;
                let (whole, tails) = more.map_or((None, Vec::new()), |more| (more.whole, more.tails));
                if let Some(place) = series.samples.get_mut(counted) {
                    *place = whole;
                }
                for (place, values) in series.tails.iter_mut().zip(tails) {
                    place.rounds[counted] = values;
                }
            }
            Item::NotTaken(row) if row.round < begun.len() && row.cell < self.series.len() => {
                self.failures.push(row)
            }
            _ => self.damaged += 1,
        }
    }

    /// Drops the room for rounds that were not needed because the run ended at a look.
    fn end_with_the_plan(&mut self) {
        let rounds = self.plan.rounds;
        self.contexts.truncate(self.plan.warmups + rounds);
        self.failures.retain(|row| row.round < self.contexts.len());
        for series in &mut self.series {
            series.values.iter_mut().for_each(|column| column.truncate(rounds));
            series.positions.truncate(rounds);
            series.predecessors.truncate(rounds);
            series.treatments.truncate(rounds);
            series.samples.truncate(rounds);
            series.tails.iter_mut().for_each(|one| one.rounds.truncate(rounds));
        }
    }

    /// Drops the results of an earlier attempt at a round.
    fn forget(&mut self, round: usize) {
        self.failures.retain(|row| row.round != round);
        self.contexts[round] = None;
        let Some(counted) = round.checked_sub(self.plan.warmups) else { return };
        for series in &mut self.series {
            series.values.iter_mut().for_each(|column| column[counted] = f64::NAN);
            series.positions[counted] = None;
            series.predecessors[counted] = None;
            series.treatments[counted] = None;
            if let Some(whole) = series.samples.get_mut(counted) {
                *whole = None;
            }
            series.tails.iter_mut().for_each(|one| one.rounds[counted] = None);
        }
    }
}
