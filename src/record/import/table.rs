//! The table that dunnage exports (`report --format csv`), read back into a run: line by line, of any length.
//!
//! What the table does not hold is not known afterwards: facts about the machine, treatments, margins that a person set,
//! and which runtime an engine chose by itself. So comparisons that rest on a runtime's name are not made.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{Imported, Source, environment};
use crate::experiment::{self, parse_setting};
use crate::outcome::{Failure, FailureClass, Outcome, Sample};
use crate::plan::again::{self, Measured, Pairing};
use crate::plan::{self, Cell, Entry, Ladder, Plan, Quota};
use crate::record::{self, Environment, Order, Origin, RoundContext, Row, Writer};
use crate::subject::{self, Layer, Spec};
use crate::units::Nanos;

/// Its name for people.
pub const FORMAT: &str = "dunnage's csv";
const TWIN: &str = " (twin)";
/// As many as a plan may have.
const MOST_ROUNDS: usize = 1_000_000;

/// A line of the table, by the names of its columns.
struct Line<'a> {
    record: &'a csv::StringRecord,
}

impl Line<'_> {
    fn get(&self, column: usize) -> &str {
        self.record.get(column).unwrap_or_default()
    }
}

// The columns, in their order.
const RUN: usize = 0;
const HOST: usize = 1;
const EXPERIMENT: usize = 2;
const SETTING: usize = 3;
const SUBJECT: usize = 4;
const LABEL: usize = 5;
const METRIC: usize = 6;
const UNIT: usize = 7;
const PHASE: usize = 8;
const ROUND: usize = 9;
const POSITION: usize = 10;
const PREDECESSOR: usize = 11;
const STARTED: usize = 12;
const VALUE: usize = 13;
const OUTCOME: usize = 14;
const CLASS: usize = 15;
const REASON: usize = 16;
const FLAGS: usize = 17;

/// What the whole table says, before any sample is written.
#[derive(Default)]
struct Known {
    run: String,
    host: String,
    /// Labels in their order, with the subject of each.
    labels: Vec<(String, String)>,
    cells: Vec<Cell>,
    /// The cell of experiment, setting and label.
    index: HashMap<(String, String, String), usize>,
    warmups: usize,
    rounds: usize,
    /// Rounds that count and in which an experiment has lines.
    visited: BTreeMap<&'static str, BTreeSet<usize>>,
    /// Rounds with their flags, warm-ups apart.
    flags: BTreeMap<(Phase, usize), String>,
    /// Rounds in which more than one cell has lines.
    shared: bool,
    last: Option<((Phase, usize), usize)>,
    started: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Phase {
    Warmup,
    Measure,
}

/// Makes a run directory of a table.
pub fn import(source: &Source<'_>, directory: &Path) -> Result<Imported> {
    let mut known = Known::default();
    each(source, &mut |line| known.take(line))?;
    if known.cells.is_empty() {
        bail!("`{}` holds no measurement", source.path.display());
    }
    known.settle()?;
    let plan = known.plan()?;
    record::plan_file::check(&plan)
        .with_context(|| format!("`{}` cannot be imported", source.path.display()))?;
    let order = if plan.comparisons.is_empty() && !known.shared { Order::Blocks } else { Order::Rounds };
    let notes = vec![
        "the table holds no facts about machine and programs, no treatment and no margin that a person may have set; margins are this program's own".to_owned(),
        "which runtime an engine chose by itself is not known, so nothing is concluded from it".to_owned(),
    ];
    let origin = Origin {
        format: FORMAT.to_owned(),
        file: source.name.clone(),
        sha256: source.sha256.clone(),
        order,
        notes: notes.clone(),
        doubts: Vec::new(),
    };
    let host = if known.host.is_empty() { "unknown" } else { &known.host };
    let environment = environment(source, &known.run, host, known.started.unwrap_or(source.changed), origin);
    let [samples, failures] = write(source, &known, &plan, &environment, directory)?;
    Ok(Imported { format: FORMAT, samples, failures, notes, doubts: Vec::new() })
}

/// Visits every line behind the first, with its number where something is wrong with it.
fn each(source: &Source<'_>, visit: &mut dyn FnMut(&Line<'_>) -> Result<()>) -> Result<()> {
    let context = || format!("`{}` cannot be imported", source.path.display());
    let mut reader = csv::ReaderBuilder::new().from_path(source.path).with_context(context)?;
    let mut record = csv::StringRecord::new();
    loop {
        if !reader.read_record(&mut record).with_context(context)? {
            return Ok(());
        }
        let number = record.position().map_or(0, csv::Position::line);
        visit(&Line { record: &record }).with_context(|| format!("line {number}")).with_context(context)?;
    }
}

impl Known {
    fn take(&mut self, line: &Line<'_>) -> Result<()> {
        if self.cells.is_empty() {
            self.run = line.get(RUN).to_owned();
            self.host = line.get(HOST).to_owned();
        }
        if (line.get(RUN), line.get(HOST)) != (self.run.as_str(), self.host.as_str()) {
            bail!(
                "it belongs to another run than the lines before: import each run by itself, since no average holds two"
            );
        }
        let cell = self.cell(line)?;
        let place = place(line)?;
        match place {
            (Phase::Warmup, round) => self.warmups = self.warmups.max(round),
            (Phase::Measure, round) => {
                self.rounds = self.rounds.max(round);
                self.visited.entry(self.cells[cell].experiment).or_default().insert(round);
            }
        }
        self.shared |= self.last.is_some_and(|(last, other)| last == place && other != cell);
        self.last = Some((place, cell));
        let known = self.flags.entry(place).or_default();
        if known.is_empty() {
            line.get(FLAGS).clone_into(known);
        }
        let began = instant_of(line.get(STARTED))?;
        self.started = self.started.into_iter().chain(began).min();
        Ok(())
    }

    fn cell(&mut self, line: &Line<'_>) -> Result<usize> {
        let key = [EXPERIMENT, SETTING, LABEL].map(|column| line.get(column).to_owned());
        let [name, setting, label] = key;
        let key = (name, setting, label);
        if let Some(cell) = self.index.get(&key) {
            return Ok(*cell);
        }
        let (name, setting, label) = &key;
        let experiment =
            experiment::find(name).with_context(|| format!("this dunnage has no experiment `{name}`"))?;
        let parsed = parse_setting(experiment, setting)
            .with_context(|| format!("`{setting}` is no setting of `{name}`"))?;
        let subject = line.get(SUBJECT);
        Spec::parse(subject)?;
        let index = match self.labels.iter().position(|(own, _)| own == label) {
            Some(index) if self.labels[index].1 != subject => {
                bail!("`{label}` is `{subject}` here and `{}` further up", self.labels[index].1)
            }
            Some(index) => index,
            None => {
                self.labels.push((label.clone(), subject.to_owned()));
                self.labels.len() - 1
            }
        };
        self.cells.push(Cell { experiment: experiment.about().name, setting: parsed, subject: index });
        self.index.insert(key, self.cells.len() - 1);
        Ok(self.cells.len() - 1)
    }

    /// Puts subjects and cells into the order that a plan has: the lines stand in that of shuffled rounds. Which of two alike
    /// was named first is not known.
    fn settle(&mut self) -> Result<()> {
        let rank = |(at, (label, text)): (usize, &(String, String))| -> Result<_> {
            let spec = Spec::parse(text)?;
            let kind = subject::KINDS.iter().position(|kind| kind.name == spec.name);
            let layer = kind.map_or(Layer::Engine, |kind| subject::KINDS[kind].layer);
            let ladder = again::ladder_of(&spec, layer) == Ladder::Equalised;
            // The first of each layer has a twin.
            let twin = format!("{label}{TWIN}");
            let has_none = !self.labels.iter().any(|(other, _)| *other == twin);
            let place = (label.ends_with(TWIN), ladder, layer, has_none, kind);
            Ok((place, spec.runtime.is_some(), spec.keys.len(), label.clone(), at))
        };
        let mut ranks = self.labels.iter().enumerate().map(rank).collect::<Result<Vec<_>>>()?;
        ranks.sort();
        let order: Vec<usize> = ranks.into_iter().map(|(.., at)| at).collect();
        self.labels = order.iter().map(|&at| self.labels[at].clone()).collect();
        for cell in &mut self.cells {
            cell.subject = order.iter().position(|&at| at == cell.subject).unwrap_or(cell.subject);
        }
        let experiment = |name: &str| experiment::ALL.iter().position(|one| one.about().name == name);
        let rank = |at: usize| {
            let cell: &Cell = &self.cells[at];
            let settings =
                experiment::find(cell.experiment).map(|one| plan::settings(one, &[])).unwrap_or_default();
            let setting = settings.iter().position(|one| *one == cell.setting).unwrap_or(usize::MAX);
            (experiment(cell.experiment), setting, cell.setting.to_string(), cell.subject, at)
        };
        let mut ranks: Vec<_> = (0..self.cells.len()).map(rank).collect();
        ranks.sort();
        let order: Vec<usize> = ranks.into_iter().map(|(.., at)| at).collect();
        self.cells = order.iter().map(|&at| self.cells[at].clone()).collect();
        for cell in self.index.values_mut() {
            *cell = order.iter().position(|at| at == cell).unwrap_or(*cell);
        }
        Ok(())
    }

    fn plan(&self) -> Result<Plan> {
        let entry = |(label, subject): &(String, String)| -> Result<Entry> {
            let spec = Spec::parse(subject)?;
            let layer = subject::kind_of(&spec).map_or(Layer::Engine, |kind| kind.layer);
            let default = || (layer == Layer::Engine).then(|| format!("{}'s default", spec.name));
            Ok(Entry {
                twin_of: label
                    .strip_suffix(TWIN)
                    .and_then(|own| self.labels.iter().position(|(other, _)| other == own)),
                label: label.clone(),
                layer,
                ladder: again::ladder_of(&spec, layer),
                runtime: spec.runtime.clone().or_else(default),
                launch: Nanos(0),
                offers: Vec::new(),
                only_in: Vec::new(),
                variant_of: None,
                spec,
            })
        };
        let mut subjects: Vec<Entry> = self.labels.iter().map(entry).collect::<Result<_>>()?;
        for index in 0..subjects.len() {
            let mut names: Vec<&'static str> =
                self.cells.iter().filter(|cell| cell.subject == index).map(|cell| cell.experiment).collect();
            names.dedup();
            subjects[index].variant_of = self.variant_of(&subjects, index, &names);
            let needs = names.iter().filter_map(|name| Some(experiment::find(name)?.about().needs));
            subjects[index].offers = needs.collect();
            subjects[index].only_in = names;
        }
        let quota = |(name, rounds): (&&'static str, &BTreeSet<usize>)| {
            (rounds.len() < self.rounds)
                .then(|| Quota { experiment: (*name).to_owned(), rounds: rounds.len() })
        };
        Ok(again::of(Measured {
            subjects,
            cells: self.cells.clone(),
            rounds: self.rounds,
            warmups: self.warmups,
            quotas: self.visited.iter().filter_map(quota).collect(),
            pairing: if self.shared { Pairing::ByRound } else { Pairing::None },
        }))
    }

    /// The subject that an experiment varied in one of its keys: what is in that experiment alone, and differs from another
    /// in nothing but a value that the experiment tries by itself.
    fn variant_of(&self, subjects: &[Entry], index: usize, names: &[&'static str]) -> Option<String> {
        let [name] = names else { return None };
        let own = &subjects[index];
        let varied = experiment::find(name)?.about().varies;
        let is_original = |other: &&Entry| {
            let plain = |spec: &Spec, key: &str| Spec {
                keys: spec.keys.iter().filter(|(own, _)| own != key).cloned().collect(),
                ..spec.clone()
            };
            varied.iter().any(|one| {
                own.spec.get(one.key).is_some_and(|value| one.values.contains(&value))
                    && other.spec.get(one.key).is_none()
                    && plain(&own.spec, one.key) == plain(&other.spec, one.key)
            })
        };
        let found = subjects.iter().find(|other| other.twin_of.is_none() && is_original(other))?;
        (own.twin_of.is_none() && own.label == own.spec.to_string()).then(|| found.label.clone())
    }
}

/// The phase and the round, counted from 1.
fn place(line: &Line<'_>) -> Result<(Phase, usize)> {
    let phase = match line.get(PHASE) {
        "warmup" => Phase::Warmup,
        "measure" => Phase::Measure,
        other => bail!("`{other}` is no phase: `warmup` or `measure`"),
    };
    let text = line.get(ROUND);
    let round = text.parse().ok().filter(|round| (1..=MOST_ROUNDS).contains(round));
    Ok((phase, round.with_context(|| format!("`{text}` is no round from 1 to {MOST_ROUNDS}"))?))
}

/// Nanoseconds since 1970; none where nothing is said.
fn instant_of(text: &str) -> Result<Option<u64>> {
    if text.is_empty() {
        return Ok(None);
    }
    let time: jiff::Timestamp = text.parse().with_context(|| format!("`{text}` is no time"))?;
    Ok(u64::try_from(time.as_nanosecond()).ok())
}

/// Lines of one sample, which stand together.
struct Open {
    cell: usize,
    place: (Phase, usize),
    position: usize,
    predecessor: Option<usize>,
    started: u64,
    outcome: Outcome,
}

fn write(
    source: &Source<'_>,
    known: &Known,
    plan: &Plan,
    environment: &Environment,
    directory: &Path,
) -> Result<[usize; 2]> {
    let mut writer = record::create(directory, &known.run, environment, plan)?;
    let total = known.warmups + known.rounds;
    for round in 0..total {
        writer.begin_round(round)?;
    }
    let mut counts = [0, 0];
    let mut seen: HashSet<(usize, Phase, usize)> = HashSet::new();
    let mut open: Option<Open> = None;
    let copied = each(source, &mut |line| {
        let key = [EXPERIMENT, SETTING, LABEL].map(|column| line.get(column).to_owned());
        let [name, setting, label] = key;
        let cell = *known.index.get(&(name, setting, label)).context("the file changed while it was read")?;
        let place = place(line)?;
        let is_more = open.as_ref().is_some_and(|open| (open.cell, open.place) == (cell, place));
        if !is_more {
            finish(&mut writer, known, open.take(), &mut counts)?;
            if !seen.insert((cell, place.0, place.1)) {
                bail!(
                    "the sample of this cell and round has lines further up that it does not stand with: the order of the lines must be as it was exported"
                );
            }
            open = Some(begun(line, known, plan, cell, place)?);
        }
        let Some(open) = open.as_mut() else { return Ok(()) };
        add(open, line, plan)
    });
    copied.and_then(|()| finish(&mut writer, known, open, &mut counts)).with_context(|| {
        format!("the import is incomplete; remove `{}` before the next attempt", directory.display())
    })?;
    for round in 0..total {
        let place = match round.checked_sub(known.warmups) {
            Some(counted) => (Phase::Measure, counted + 1),
            None => (Phase::Warmup, round + 1),
        };
        let flags = known.flags.get(&place).map_or("incomplete", String::as_str);
        if flags != "incomplete" {
            let disturbed = (flags == "disturbed").then(|| "marked so in the table".to_owned());
            writer.end_round(round, &RoundContext { disturbed, ..RoundContext::default() })?;
        }
    }
    Ok(counts)
}

fn begun(line: &Line<'_>, known: &Known, plan: &Plan, cell: usize, place: (Phase, usize)) -> Result<Open> {
    let text = line.get(POSITION);
    let position: usize = text.parse().with_context(|| format!("`{text}` is no position"))?;
    let before = line.get(PREDECESSOR);
    // The table tells the subject that came before, not which of its cells.
    let predecessor = (!before.is_empty()).then(|| {
        plan.cells
            .iter()
            .position(|cell| known.labels[cell.subject].0 == before)
            .with_context(|| format!("the predecessor `{before}` has no cell"))
    });
    let outcome = match line.get(OUTCOME) {
        "measured" => Outcome::Measured(Sample::default()),
        "skipped" => Outcome::Skipped(line.get(REASON).to_owned()),
        "failed" => {
            let class = line.get(CLASS);
            let class = FailureClass::from_name(class)
                .with_context(|| format!("`{class}` is no class of failures"))?;
            Outcome::Failed(Failure::new(class, line.get(REASON)))
        }
        other => bail!("`{other}` is no outcome: `measured`, `skipped` or `failed`"),
    };
    Ok(Open {
        cell,
        place,
        position: position.checked_sub(1).context("positions count from 1")?,
        predecessor: predecessor.transpose()?,
        started: instant_of(line.get(STARTED))?.unwrap_or(0),
        outcome,
    })
}

/// Adds what a line says of a metric.
fn add(open: &mut Open, line: &Line<'_>, plan: &Plan) -> Result<()> {
    let Outcome::Measured(sample) = &mut open.outcome else { return Ok(()) };
    if line.get(OUTCOME) != "measured" {
        bail!("the sample is `measured` further up and `{}` here", line.get(OUTCOME));
    }
    let cell = &plan.cells[open.cell];
    let name = line.get(METRIC);
    let metric = plan.metrics(cell).iter().find(|metric| metric.name == name);
    let metric = metric.with_context(|| format!("`{}` has no metric `{name}`", cell.experiment))?;
    if line.get(UNIT) != metric.unit.name() {
        bail!("`{name}` is given in `{}`, and its unit is `{}`", line.get(UNIT), metric.unit.name());
    }
    if sample.given.iter().any(|(own, _)| own == metric.name) {
        bail!("`{name}` is given twice for one sample");
    }
    let text = line.get(VALUE);
    if text.is_empty() {
        sample.missing.push((metric.name.into(), line.get(REASON).to_owned()));
        return Ok(());
    }
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
    sample.given.push((metric.name.into(), value.with_context(|| format!("`{text}` is no number"))?));
    Ok(())
}

fn finish(writer: &mut Writer, known: &Known, open: Option<Open>, counts: &mut [usize; 2]) -> Result<()> {
    let Some(open) = open else { return Ok(()) };
    counts[usize::from(!matches!(open.outcome, Outcome::Measured(_)))] += 1;
    let round = match open.place {
        (Phase::Warmup, round) => round - 1,
        (Phase::Measure, round) => known.warmups + round - 1,
    };
    writer.imported(&Row {
        cell: open.cell,
        round,
        position: open.position,
        predecessor: open.predecessor,
        started: open.started,
        outcome: Cow::Owned(open.outcome),
    })
}
