//! Old runs against new ones: what is the same in both, what is not, and what nobody can say. A pure
//! function of runs that were read and judged each by itself; computed once, rendered everywhere.
//!
//! Cells are matched by experiment, setting and the label of their subject. A verdict is given for each subject in
//! each decisive metric, over all settings together; the rules stand in `stats::runs`. Nothing is averaged over
//! runs: they stand beside each other, or each is one value.

mod document;
mod environment;
mod lines;
mod picture;
mod summary;
mod words;

use std::collections::{BTreeMap, BTreeSet};

pub use environment::{Difference, Meaning};
pub use lines::{InSetting, Line, Together, Verdict};
pub(crate) use words::in_blocks;

use serde::Serialize;

use crate::experiment::{self, Setting, Weight};
use crate::plan::{Layer, Plan};
use crate::record::Recorded;
use crate::report::text::clean;
use crate::stats::{Alpha, Basis, Family};
use crate::units::{Unit, counted};
use crate::verdict::Doubts;

/// A run that takes part, with what was said of it alone.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// What was recorded.
    pub recorded: &'a Recorded,
    /// What follows from it.
    pub doubts: &'a Doubts,
    /// Where it lies, as the person would type it.
    pub place: &'a str,
}

/// Everything that can be said about old and new runs.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The old runs, then the new ones.
    pub sides: [Vec<Facts>; 2],
    /// What the verdicts are about.
    pub scope: Scope,
    /// The level of every interval.
    pub level: Alpha,
    /// How many intervals of decisive metrics share the level of 5 %.
    pub family: usize,
    /// In what the sides differ, what weighs most first.
    pub differences: Vec<Difference>,
    /// What a reader must know beside the verdicts, each a sentence without its end.
    pub notices: Vec<String>,
    /// What only the old runs have, and what only the new ones have.
    pub alone: [Vec<String>; 2],
    /// What both have.
    pub experiments: Vec<Experiment>,
    /// What it comes to, each a sentence without its end.
    pub summary: Vec<String>,
}

/// A run in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Where it lies.
    pub place: String,
    /// Its name.
    pub run: String,
    /// When it began, RFC 3339, in UTC.
    pub started: String,
    /// The host's name.
    pub host: String,
    /// Labels that the person gave it.
    #[serde(serialize_with = "crate::document::json::by_name")]
    pub tags: Vec<(String, String)>,
    /// Complete rounds, and planned ones.
    pub rounds: (usize, usize),
}

/// What the verdicts are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Scope {
    /// One run on each side: these two runs, and no others.
    #[serde(rename = "these two runs")]
    TwoRuns,
    /// Several, but too few for each to be one value: these runs, and no others.
    #[serde(rename = "these runs")]
    TheseRuns,
    /// Runs like these.
    #[serde(rename = "runs like these")]
    RunsLikeThese,
}

/// An experiment that both sides have.
#[derive(Debug, Clone, Serialize)]
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// Its question.
    pub question: &'static str,
    /// Its metrics.
    pub metrics: Vec<Metric>,
    /// By metric, then by subject in the order of the old plan.
    pub lines: Vec<Line>,
}

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its base unit.
    pub unit: Unit,
    /// Whether it gets verdicts.
    pub is_decisive: bool,
    /// What lies inside.
    pub meaning: &'static str,
    /// The smallest difference that matters: absolute in the unit, and as a share of the old median.
    pub margin: (f64, f64),
}

/// A subject that both sides have.
struct Subject {
    label: String,
    is_control: bool,
    /// The experiments and settings in which both sides have it.
    shared: BTreeSet<(&'static str, Setting)>,
}

/// A setting of an experiment and a subject's label.
type Key = (&'static str, Setting, String);

/// Compares old runs with new ones; none where they share no cell. Neither side may be empty.
pub fn compare(old: &[Run<'_>], new: &[Run<'_>]) -> Option<Comparison> {
    let ([old, new], twice) = each_once([old, new]);
    let (old, new) = (old.as_slice(), new.as_slice());
    let plan = &old.first()?.recorded.plan;
    new.first()?;
    let everyone: Vec<_> = old.iter().chain(new).map(keys).collect();
    let is_shared = |key: &Key| everyone.iter().all(|keys| keys.contains_key(key));
    let shared: Vec<Key> = plan.cells.iter().filter_map(|cell| key(plan, cell)).filter(is_shared).collect();
    if shared.is_empty() {
        return None;
    }
    let runs: Vec<&Run<'_>> = old.iter().chain(new).collect();
    let subjects = subjects(&runs, &shared);
    let family = Family::of(lines::family(plan, &shared));
    let context =
        lines::Context { old, new, subjects: &subjects, shared: &shared, alpha: family.per_comparison() };
    let experiments: Vec<Experiment> =
        in_order(&shared).filter_map(|name| of_experiment(name, plan, &context)).collect();
    let scope = scope(old, new, &experiments);
    let differences = environment::differences(old, new, &subjects);
    let mut comparison = Comparison {
        sides: [old, new].map(|side| side.iter().map(facts).collect()),
        scope,
        level: family.per_comparison(),
        family: family.comparisons,
        notices: [words::notices(old, new, &subjects, &differences), twice].concat(),
        differences,
        alone: [(old, new), (new, old)].map(|(own, others)| alone(own, others)),
        experiments,
        summary: Vec::new(),
    };
    words::speak(&mut comparison);
    comparison.summary = summary::summary(&comparison);
    Some(comparison)
}

/// Each run of a side once, and in words those that were named again there: a pack beside its run is no second run.
fn each_once<'a>(sides: [&[Run<'a>]; 2]) -> ([Vec<Run<'a>>; 2], Vec<String>) {
    let mut twice = Vec::new();
    let kept = sides.map(|side| {
        let mut kept: Vec<Run<'a>> = Vec::new();
        for run in side {
            match kept.iter().find(|known| known.recorded.run == run.recorded.run) {
                Some(known) => {
                    let (place, first) = (clean(run.place), clean(known.place));
                    twice.push(format!("`{place}` is the run of `{first}`, and counts once"));
                }
                None => kept.push(*run),
            }
        }
        kept
    });
    (kept, twice)
}

/// In what two runs differ besides their numbers, as far as it concerns the machine and the subject with this label.
pub fn around(old: &Run<'_>, new: &Run<'_>, label: &str) -> Vec<Difference> {
    let (known, others) = (keys(old), keys(new));
    let shared: Vec<Key> =
        known.into_keys().filter(|key| key.2 == label && others.contains_key(key)).collect();
    environment::differences(&[*old], &[*new], &subjects(&[old, new], &shared))
}

/// The key of a cell; none of a twin, which only says how far a subject differs from itself.
fn key(plan: &Plan, cell: &crate::plan::Cell) -> Option<Key> {
    let entry = &plan.subjects[cell.subject];
    entry.twin_of.is_none().then(|| (cell.experiment, cell.setting.clone(), entry.label.clone()))
}

/// The cells of a run by key.
fn keys(run: &Run<'_>) -> BTreeMap<Key, usize> {
    let plan = &run.recorded.plan;
    plan.cells.iter().enumerate().filter_map(|(index, cell)| Some((key(plan, cell)?, index))).collect()
}

/// The subjects of some cells that all runs share, in the order of the first.
fn subjects(runs: &[&Run<'_>], shared: &[Key]) -> Vec<Subject> {
    // Who measured in blocks measured programs of his own, whatever starts them.
    let is_machine = |run: &&Run<'_>, label: &str| {
        let mut entries = run.recorded.plan.subjects.iter();
        let entry = entries.find(|entry| entry.label == label);
        !run.recorded.is_in_blocks() && entry.is_some_and(shows_the_machine)
    };
    let of = |entry: &crate::plan::Entry| {
        let own = shared.iter().filter(|(_, _, label)| *label == entry.label);
        let shared: BTreeSet<_> = own.map(|(name, setting, _)| (*name, setting.clone())).collect();
        let is_control = runs.iter().all(|run| is_machine(run, &entry.label));
        Subject { label: entry.label.clone(), is_control, shared }
    };
    let first = runs.first().map_or(&[][..], |run| &run.recorded.plan.subjects);
    let own = first.iter().filter(|entry| entry.twin_of.is_none());
    own.map(of).filter(|subject| !subject.shared.is_empty()).collect()
}

/// Whether it is plain `bare` or `floor`, with nothing asked for that could be what changed.
fn shows_the_machine(entry: &crate::plan::Entry) -> bool {
    let is_plain = entry.spec.keys.is_empty() && entry.spec.runtime.is_none();
    is_plain && matches!(entry.layer, Layer::Bare | Layer::Floor)
}

/// The experiments of some cells, each once.
fn in_order(shared: &[Key]) -> impl Iterator<Item = &'static str> {
    let mut seen = BTreeSet::new();
    shared.iter().map(|(name, ..)| *name).filter(move |name| seen.insert(*name))
}

fn of_experiment(name: &'static str, plan: &Plan, context: &lines::Context<'_>) -> Option<Experiment> {
    let about = experiment::find(name)?.about();
    let metric = |metric: &experiment::Metric| Metric {
        name: metric.name,
        unit: metric.unit,
        is_decisive: metric.weight == Weight::Verdict,
        meaning: metric.meaning,
        margin: plan.margin_of(name, metric).parts(),
    };
    Some(Experiment {
        name,
        question: about.question,
        metrics: about.metrics.iter().map(metric).collect(),
        lines: lines::lines(name, about.metrics, context),
    })
}

fn scope(old: &[Run<'_>], new: &[Run<'_>], experiments: &[Experiment]) -> Scope {
    let known: Vec<_> =
        experiments.iter().flat_map(|one| &one.lines).filter_map(|line| line.together).collect();
    match () {
        () if old.len() == 1 && new.len() == 1 => Scope::TwoRuns,
        () if !known.is_empty() && known.iter().all(|together| together.basis == Basis::Runs) => {
            Scope::RunsLikeThese
        }
        () => Scope::TheseRuns,
    }
}

fn facts(run: &Run<'_>) -> Facts {
    let environment = &run.recorded.environment;
    Facts {
        place: clean(run.place),
        run: clean(&run.recorded.run),
        started: clean(&environment.started),
        host: clean(&environment.host),
        tags: environment.tags.iter().map(|(key, value)| (clean(key), clean(value))).collect(),
        rounds: (run.recorded.complete_rounds(), run.recorded.plan.rounds),
    }
}

/// What none of the other runs has, or not all of these: by experiment the subjects, with how many cells.
fn alone(own: &[Run<'_>], others: &[Run<'_>]) -> Vec<String> {
    let others: Vec<_> = others.iter().map(keys).collect();
    let all: BTreeSet<Key> = own.iter().flat_map(|run| keys(run).into_keys()).collect();
    let mut known: BTreeMap<&str, (BTreeSet<String>, usize)> = BTreeMap::new();
    for (name, _, label) in all.into_iter().filter(|key| !others.iter().all(|keys| keys.contains_key(key))) {
        let (labels, count) = known.entry(name).or_default();
        labels.insert(format!("`{}`", clean(&label)));
        *count += 1;
    }
    let told = |(name, (labels, count)): (&&str, &(BTreeSet<String>, usize))| {
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        format!("{name} of {} ({})", labels.join(", "), counted(*count, "cell"))
    };
    known.iter().map(told).collect()
}

/// What counts as a regression: a subject that is slower, by at least this share as estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailOn {
    /// The share.
    pub least: f64,
}

impl Comparison {
    /// The lines that get verdicts, controls aside.
    fn judged(&self) -> impl Iterator<Item = &Line> {
        let of = |one: &'_ Experiment| {
            let is_decisive: Vec<bool> = one.metrics.iter().map(|metric| metric.is_decisive).collect();
            move |line: &&Line| is_decisive[line.metric] && !line.is_control
        };
        self.experiments.iter().flat_map(move |one| one.lines.iter().filter(of(one)))
    }

    /// Whether any cell has values on both sides.
    pub fn has_values(&self) -> bool {
        let lines = self.experiments.iter().flat_map(|one| &one.lines);
        lines.flat_map(|line| &line.settings).any(|one| one.difference.is_some())
    }

    /// The sentences of what counts as a regression. A change that cannot be told as a ratio counts whatever its size.
    pub fn failing(&self, on: FailOn) -> Vec<&str> {
        let is_large = |line: &&Line| match line.together {
            Some(all) if all.scale == lines::Scale::Ratio => {
                all.change.value.max(1.0 / all.change.value) - 1.0 >= on.least
            }
            _ => true,
        };
        let worse = self.judged().filter(|line| line.verdict.kind().is_worse());
        worse.filter(is_large).map(|line| line.sentence.as_str()).collect()
    }

    /// The sentences of lines that cannot be judged at all, or no longer in a setting, or that a regression in one setting
    /// and none in another make, so that nobody takes silence for an answer.
    pub fn unanswered(&self) -> Vec<&str> {
        let is_lost = |one: &InSetting| one.medians[0].is_some() && one.medians[1].is_none();
        let is_open = |line: &&Line| {
            let is_judged = match line.verdict {
                Verdict::TooFew { .. } | Verdict::Suspect(_) | Verdict::NoData | Verdict::Mixed => false,
                _ => !line.settings.iter().any(is_lost),
            };
            !is_judged
        };
        self.judged().filter(is_open).map(|line| line.sentence.as_str()).collect()
    }

    /// Where none is a regression, how many verdicts leave one open, of how many: those that are not decided, and those
    /// where the machine changed too.
    pub fn left_open(&self) -> (usize, usize) {
        let is_closed = |line: &&Line| matches!(line.verdict, Verdict::Same | Verdict::Changed(_));
        let all = self.judged().count();
        (all - self.judged().filter(is_closed).count(), all)
    }
}
