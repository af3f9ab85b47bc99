//! Reads the table that dunnage exports (`report --format csv`) back into a run, line by line and of any length.
//!
//! Information that is not in the table is lost: facts about the machine, treatments, the user's margins, and the default runtime
//! of an engine. So comparisons that depend on a runtime's name are not made.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::{Imported, Source, entry, environment};
use crate::experiment::{self, parse_setting};
use crate::outcome::{Failure, FailureClass, Outcome, Sample};
use crate::plan::{self, Cell, Entry, Ladder, Plan, Quota, again};
use crate::record::{self, Order, RoundContext, Row, Writer};
use crate::subject::{self, Spec};

/// The format's name.
pub const FORMAT: &str = "dunnage's csv";
const TWIN: &str = " (twin)";
/// The most that a plan may have.
const MOST_ROUNDS: usize = 1_000_000;

/// A line of the table, with the columns in order.
#[derive(Deserialize)]
struct Line<'a> {
    run: &'a str,
    host: &'a str,
    experiment: &'a str,
    setting: &'a str,
    subject: &'a str,
    label: &'a str,
    metric: &'a str,
    unit: &'a str,
    phase: Phase,
    round: usize,
    position: usize,
    predecessor: &'a str,
    started: &'a str,
    value: &'a str,
    outcome: &'a str,
    class: &'a str,
    reason: &'a str,
    flags: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Phase {
    Warmup,
    Measure,
}

impl Line<'_> {
    /// Experiment, setting and label.
    fn key(&self) -> [String; 3] {
        [self.experiment, self.setting, self.label].map(str::to_owned)
    }

    /// Phase and round, counted from 1.
    fn place(&self) -> (Phase, usize) {
        (self.phase, self.round)
    }

    /// Nanoseconds since 1970, if the line has them.
    fn started(&self) -> Result<Option<u64>> {
        if self.started.is_empty() {
            return Ok(None);
        }
        let time: jiff::Timestamp =
            self.started.parse().with_context(|| format!("`{}` is not a time", self.started))?;
        Ok(u64::try_from(time.as_nanosecond()).ok())
    }
}

/// The facts from the whole table, collected before writing any sample.
#[derive(Default)]
struct Known {
    run: String,
    host: String,
    subjects: Vec<Entry>,
    cells: Vec<Cell>,
    /// The cell by experiment, setting and label.
    index: HashMap<[String; 3], usize>,
    warmups: usize,
    rounds: usize,
    /// The counted rounds in which an experiment has lines.
    visited: BTreeMap<&'static str, BTreeSet<usize>>,
    /// Flags by phase and round.
    flags: BTreeMap<(Phase, usize), String>,
    /// Whether rounds have lines of several cells.
    shared: bool,
    last: Option<((Phase, usize), usize)>,
    started: Option<u64>,
}

/// Creates a run directory from a table.
pub fn import(source: &Source<'_>, directory: &Path) -> Result<Imported> {
    let mut known = Known::default();
    each(source, &mut |line| known.take(line))?;
    if known.cells.is_empty() {
        bail!("`{}` contains no measurements", source.path.display());
    }
    known.settle();
    let plan = known.plan();
    record::plan_file::check(&plan).with_context(|| format!("cannot import `{}`", source.path.display()))?;
    let order = if plan.comparisons.is_empty() && !known.shared { Order::Blocks } else { Order::Rounds };
    let notes = vec![
        "the table has no facts about machine and programs, no treatments and no margins that were set for the run; dunnage's default margins are used".to_owned(),
        "the default runtimes of engines are unknown, so no comparison depends on them".to_owned(),
    ];
    let origin = source.origin(FORMAT, order, notes, Vec::new());
    let started = known.started.unwrap_or(source.changed);
    let environment = environment(source, &known.run, &known.host, started, &origin);
    let writer = record::create(directory, &known.run, &environment, &plan)?;
    let [samples, failures] = write(source, &known, &plan, writer).with_context(|| {
        format!("the import is incomplete: remove `{}` before you try again", directory.display())
    })?;
    Ok(Imported { origin, samples, failures })
}

/// Visits every line after the first, and adds the line number to errors.
fn each(source: &Source<'_>, visit: &mut dyn FnMut(&Line<'_>) -> Result<()>) -> Result<()> {
    let context = || format!("cannot import `{}`", source.path.display());
    let mut reader = csv::ReaderBuilder::new().from_path(source.path).with_context(context)?;
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).with_context(context)? {
        let number = record.position().map_or(0, csv::Position::line);
        let line = record.deserialize(None).map_err(anyhow::Error::from);
        line.and_then(|line| visit(&line)).with_context(|| format!("line {number}")).with_context(context)?;
    }
    Ok(())
}

/// The items sorted by rank, and the new position of each.
fn in_order<T, K: Ord>(items: Vec<T>, rank: impl Fn(&T) -> K) -> (Vec<T>, Vec<usize>) {
    let mut all: Vec<(usize, T)> = items.into_iter().enumerate().collect();
    all.sort_by_cached_key(|(_, item)| rank(item));
    let mut places = vec![0; all.len()];
    all.iter().enumerate().for_each(|(new, (old, _))| places[*old] = new);
    (all.into_iter().map(|(_, item)| item).collect(), places)
}

impl Known {
    fn take(&mut self, line: &Line<'_>) -> Result<()> {
        if self.cells.is_empty() {
            (self.run, self.host) = (line.run.to_owned(), line.host.to_owned());
        }
        ensure!(
            (line.run, line.host) == (self.run.as_str(), self.host.as_str()),
            "it belongs to another run than the lines before: import each run separately"
        );
        ensure!(
            (1..=MOST_ROUNDS).contains(&line.round),
            "`{}` is not a round from 1 to {MOST_ROUNDS}",
            line.round
        );
        let cell = self.cell(line)?;
        match line.phase {
            Phase::Warmup => self.warmups = self.warmups.max(line.round),
            Phase::Measure => {
                self.rounds = self.rounds.max(line.round);
                self.visited.entry(self.cells[cell].experiment).or_default().insert(line.round);
            }
        }
        let place = line.place();
        self.shared |= self.last.is_some_and(|(last, other)| last == place && other != cell);
        self.last = Some((place, cell));
        let known = self.flags.entry(place).or_default();
        if known.is_empty() {
            line.flags.clone_into(known);
        }
        self.started = self.started.into_iter().chain(line.started()?).min();
        Ok(())
    }

    fn cell(&mut self, line: &Line<'_>) -> Result<usize> {
        let key = line.key();
        if let Some(cell) = self.index.get(&key) {
            return Ok(*cell);
        }
        let Line { experiment: name, setting, label, .. } = line;
        let experiment =
            experiment::find(name).with_context(|| format!("this dunnage has no experiment `{name}`"))?;
        let parsed = parse_setting(experiment, setting)
            .with_context(|| format!("`{setting}` is not a setting of `{name}`"))?;
        let spec = Spec::parse(line.subject)?;
        let subject = match self.subjects.iter().position(|entry| entry.label == *label) {
            Some(subject) => subject,
            None => {
                self.subjects.push(entry(label, spec.clone()));
                self.subjects.len() - 1
            }
        };
        let known = &self.subjects[subject].spec;
        ensure!(*known == spec, "`{label}` is `{}` here but `{known}` in an earlier line", line.subject);
        self.cells.push(Cell { experiment: experiment.name, setting: parsed, subject });
        self.index.insert(key, self.cells.len() - 1);
        Ok(self.cells.len() - 1)
    }

    /// Sorts subjects and cells as in a plan, because the lines are in the order of shuffled rounds. The original order of two
    /// similar subjects is unknown.
    fn settle(&mut self) {
        let labels: BTreeSet<String> = self.subjects.iter().map(|entry| entry.label.clone()).collect();
        let rank = |entry: &Entry| {
            let kind = subject::KINDS.iter().position(|kind| kind.name == entry.spec.name);
            // The first of each layer has a twin.
            let has_none = !labels.contains(&format!("{}{TWIN}", entry.label));
            let is_equalised = entry.ladder == Ladder::Equalised;
            let place = (entry.label.ends_with(TWIN), is_equalised, entry.layer, has_none, kind);
            (place, entry.spec.runtime.is_some(), entry.spec.keys.len(), entry.label.clone())
        };
        let (subjects, places) = in_order(std::mem::take(&mut self.subjects), rank);
        self.subjects = subjects;
        self.cells.iter_mut().for_each(|cell| cell.subject = places[cell.subject]);
        let rank = |cell: &Cell| {
            let experiment = experiment::ALL.iter().position(|one| one.name == cell.experiment);
            let settings = experiment.map(|at| plan::settings(experiment::ALL[at], &[])).unwrap_or_default();
            let setting = settings.iter().position(|one| *one == cell.setting).unwrap_or(usize::MAX);
            (experiment, setting, cell.setting.to_string(), cell.subject)
        };
        let (cells, places) = in_order(std::mem::take(&mut self.cells), rank);
        self.cells = cells;
        self.index.values_mut().for_each(|cell| *cell = places[*cell]);
    }

    fn plan(&self) -> Plan {
        let finished = |(index, entry): (usize, &Entry)| {
            let own = self.cells.iter().filter(|cell| cell.subject == index);
            let mut names: Vec<&'static str> = own.map(|cell| cell.experiment).collect();
            names.dedup();
            let needs = names.iter().filter_map(|name| Some(experiment::find(name)?.needs));
            let original = entry.label.strip_suffix(TWIN);
            Entry {
                twin_of: self.subjects.iter().position(|other| Some(other.label.as_str()) == original),
                variant_of: self.variant_of(entry, &names),
                offers: needs.collect(),
                only_in: names,
                ..entry.clone()
            }
        };
        let quota = |(name, rounds): (&&'static str, &BTreeSet<usize>)| {
            (rounds.len() < self.rounds)
                .then(|| Quota { experiment: (*name).to_owned(), rounds: rounds.len() })
        };
        let measured = Plan {
            subjects: self.subjects.iter().enumerate().map(finished).collect(),
            cells: self.cells.clone(),
            rounds: self.rounds,
            warmups: self.warmups,
            quotas: self.visited.iter().filter_map(quota).collect(),
            ..Plan::default()
        };
        if self.shared { again::in_rounds(measured) } else { again::in_blocks(measured) }
    }

    /// The subject that an experiment varied in one of its keys: this one is only in that experiment, and differs only in a value
    /// that the experiment tries automatically.
    fn variant_of(&self, own: &Entry, names: &[&'static str]) -> Option<String> {
        let [name] = names else { return None };
        let varied = experiment::find(name)?.varies;
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
        let found = self.subjects.iter().find(|other| !other.label.ends_with(TWIN) && is_original(other))?;
        (own.label == own.spec.to_string()).then(|| found.label.clone())
    }

    /// The index of a line's round in a run: warm-ups first, from 0.
    fn round(&self, (phase, round): (Phase, usize)) -> usize {
        match phase {
            Phase::Warmup => round - 1,
            Phase::Measure => self.warmups + round - 1,
        }
    }
}

/// Writes the samples, whose lines are consecutive, and returns how many have values and how many do not.
fn write(source: &Source<'_>, known: &Known, plan: &Plan, mut writer: Writer) -> Result<[usize; 2]> {
    for round in 0..known.warmups + known.rounds {
        writer.begin_round(round)?;
    }
    let mut counts = [0, 0];
    let mut finish = |writer: &mut Writer, row: Option<Row<'static>>| -> Result<()> {
        let Some(row) = row else { return Ok(()) };
        counts[usize::from(!matches!(*row.outcome, Outcome::Measured(_)))] += 1;
        writer.sample(&row)
    };
    let mut seen: HashSet<(usize, usize)> = HashSet::new();
    let mut open: Option<Row<'static>> = None;
    each(source, &mut |line| {
        let cell = *known.index.get(&line.key()).context("the file changed while it was read")?;
        let place = (cell, known.round(line.place()));
        if open.as_ref().is_none_or(|open| (open.cell, open.round) != place) {
            finish(&mut writer, open.take())?;
            ensure!(
                seen.insert(place),
                "the lines of this cell and round are not consecutive: keep the order of the exported lines"
            );
        }
        let row = match open.take() {
            Some(row) => row,
            None => begun(line, plan, place)?,
        };
        add(open.insert(row), line, plan)
    })?;
    finish(&mut writer, open)?;
    for (place, flags) in known.flags.iter().filter(|(_, flags)| *flags != "incomplete") {
        let disturbed = (flags == "disturbed").then(|| "marked in the table".to_owned());
        writer.end_round(known.round(*place), &RoundContext { disturbed, ..RoundContext::default() })?;
    }
    Ok(counts)
}

fn begun(line: &Line<'_>, plan: &Plan, (cell, round): (usize, usize)) -> Result<Row<'static>> {
    let before = line.predecessor;
    // The table has the subject of the predecessor, but not the cell.
    let predecessor = (!before.is_empty()).then(|| {
        let mut cells = plan.cells.iter();
        let found = cells.position(|cell| plan.subjects[cell.subject].label == before);
        found.with_context(|| format!("the predecessor `{before}` has no cell"))
    });
    let outcome = match line.outcome {
        "measured" => Outcome::Measured(Sample::default()),
        "skipped" => Outcome::Skipped(line.reason.to_owned()),
        "failed" => {
            let class: FailureClass = line
                .class
                .parse()
                .ok()
                .with_context(|| format!("`{}` is not a class of failures", line.class))?;
            Outcome::Failed(Failure::new(class, line.reason))
        }
        other => bail!("`{other}` is not an outcome: use `measured`, `skipped` or `failed`"),
    };
    Ok(Row {
        cell,
        round,
        position: line.position.checked_sub(1).context("positions start at 1")?,
        predecessor: predecessor.transpose()?,
        started: line.started()?.unwrap_or(0),
        outcome: Cow::Owned(outcome),
    })
}

/// Adds the metric of a line.
fn add(row: &mut Row<'static>, line: &Line<'_>, plan: &Plan) -> Result<()> {
    let Outcome::Measured(sample) = row.outcome.to_mut() else { return Ok(()) };
    ensure!(
        line.outcome == "measured",
        "the sample is `measured` in an earlier line but `{}` here",
        line.outcome
    );
    let cell = &plan.cells[row.cell];
    let name = line.metric;
    let metric = plan.metrics(cell).iter().find(|metric| metric.name == name);
    let metric = metric.with_context(|| format!("`{}` has no metric `{name}`", cell.experiment))?;
    let unit = metric.unit.name();
    ensure!(line.unit == unit, "the unit of `{name}` is `{}` here, but must be `{unit}`", line.unit);
    ensure!(!sample.given.iter().any(|(own, _)| own == name), "`{name}` is given twice for one sample");
    if line.value.is_empty() {
        // Without a reason nothing is missing: a way was refused.
        if !line.reason.is_empty() {
            sample.missing.push((metric.name.into(), line.reason.to_owned()));
        }
        return Ok(());
    }
    let value = line.value.parse::<f64>().ok().filter(|value| value.is_finite());
    sample
        .given
        .push((metric.name.into(), value.with_context(|| format!("`{}` is not a number", line.value))?));
    Ok(())
}
