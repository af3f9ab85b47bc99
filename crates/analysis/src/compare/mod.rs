//! Old runs compared with new ones: what is the same, what changed, and what cannot be decided. A pure
//! function of runs that were read and judged one by one; computed once, rendered everywhere.
//!
//! Cells are matched by experiment, setting and the label of their subject. Each subject gets a verdict in
//! each decisive metric, over all settings together; the rules are in `stats::runs`. The verdicts of an
//! experiment are a family of their own. Nothing is averaged over runs: each is shown, or each is one value.
//!
//! What is serialised is the declared shape of `dunnage compare --format json` (`docs/compare-json.md`).

mod environment;
mod judge;
mod lines;
mod notices;

pub use environment::{Difference, Meaning};
use lines::Ready;
pub use lines::{FailedRounds, InSetting, Line, Scale, Together};
pub(crate) use notices::{in_blocks, scripted};

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::experiment::{self, MetricFacts, Setting};
use crate::group::in_groups;
use crate::plan::{Entry, Layer};
use crate::record::Recorded;
use crate::stats::{Alpha, Basis};
use crate::text::{clean, quoted};
use crate::units::counted;
use crate::verdict::{Kind, Quality};

/// A run that takes part, with its own quality.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// What was recorded.
    pub recorded: &'a Recorded,
    /// What follows from it alone.
    pub quality: &'a Quality,
    /// Its path, as the user would type it.
    pub place: &'a str,
}

/// The whole comparison of old and new runs.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The old runs, then the new ones.
    pub sides: [Vec<Facts>; 2],
    /// What the verdicts are about.
    pub scope: Scope,
    /// How the sides differ, the most important first.
    pub differences: Vec<Difference>,
    /// What a reader must know in addition to the verdicts, each a sentence without a full stop.
    pub notices: Vec<String>,
    /// What only the old runs have, and what only the new ones have.
    pub alone: [Vec<String>; 2],
    /// What both have.
    pub experiments: Vec<Experiment>,
}

/// A run in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Its path.
    pub place: String,
    /// Its name.
    pub run: String,
    /// When it began, RFC 3339, in UTC.
    pub started: String,
    /// The host's name.
    pub host: String,
    /// The user's labels for it.
    pub tags: BTreeMap<String, String>,
    /// Complete rounds, and planned ones.
    pub rounds: (usize, usize),
}

/// What the verdicts are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Scope {
    /// One run on each side: these two runs, and no others.
    #[serde(rename = "these two runs")]
    TwoRuns,
    /// Several, but too few to use each as one value: these runs, and no others.
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
    /// The number of intervals of its decisive metrics, which share the level of 5 %.
    pub family: usize,
    /// The level of each of them.
    pub level: Alpha,
    /// Its metrics.
    pub metrics: Vec<MetricFacts>,
    /// By metric, then by subject in the order of the old plan.
    pub lines: Vec<Line>,
}

/// A setting of an experiment and a subject's label.
pub(crate) type Key = (&'static str, Setting, String);

/// A subject that all runs share.
pub(crate) struct Subject {
    label: String,
    is_control: bool,
    /// The cells that all runs have.
    shared: Vec<Key>,
}

/// Compares old runs with new ones; none if they share no cell. Neither side may be empty.
pub fn compare(old: &[Run<'_>], new: &[Run<'_>]) -> Option<Comparison> {
    let mut left_out = Vec::new();
    let [old, new] = &[old, new].map(|side| {
        let mut runs = each_once(side, &mut left_out);
        let has_rounds = |run: &Run<'_>| run.recorded.complete_rounds() > 0;
        if runs.iter().any(has_rounds) {
            let empty = runs.extract_if(.., |run| !has_rounds(run));
            left_out
                .extend(empty.map(|run| format!("`{}` has no complete round and is left out", run.place)));
        }
        runs
    });
    let runs = [old.as_slice(), new].concat();
    let subjects = subjects(&runs);
    if old.is_empty() || new.is_empty() || subjects.is_empty() {
        return None;
    }
    let sides = [old, new].map(|side| side.iter().map(Ready::of).collect::<Vec<_>>());
    let all = experiment::ALL.iter().filter_map(|one| judge::experiment(one, &sides, &subjects));
    let experiments: Vec<Experiment> = all.collect();
    let differences = environment::differences(old, new, &subjects);
    Some(Comparison {
        sides: [old, new].map(|side| side.iter().map(facts).collect()),
        scope: scope(runs.len(), &experiments),
        notices: [notices::all(old, new, &subjects, &differences), left_out].concat(),
        differences,
        alone: [(old, new), (new, old)].map(|(own, others)| alone(own, others)),
        experiments,
    })
}

/// Each run once, with a notice for each that was named again: a pack next to its run is not a second run.
pub(crate) fn each_once<'a>(runs: &[Run<'a>], notices: &mut Vec<String>) -> Vec<Run<'a>> {
    let mut kept: Vec<Run<'a>> = Vec::new();
    for run in runs {
        match kept.iter().find(|known| known.recorded.run == run.recorded.run) {
            Some(known) => {
                notices
                    .push(format!("`{}` is the same run as `{}`, and counts once", run.place, known.place));
            }
            None => kept.push(*run),
        }
    }
    kept
}

/// How two runs differ apart from their numbers, for the machine and the subject with this label.
pub(crate) fn around(old: &Run<'_>, new: &Run<'_>, label: &str) -> Vec<Difference> {
    let own: Vec<Subject> = subjects(&[*old, *new]).into_iter().filter(|one| one.label == label).collect();
    environment::differences(&[*old], &[*new], &own)
}

/// The cells of a run by key, without twins, which only show how far a subject differs from itself.
pub(crate) fn keys(run: &Run<'_>) -> BTreeMap<Key, usize> {
    let plan = &run.recorded.plan;
    let key = |(index, cell): (usize, &crate::plan::Cell)| {
        let entry = &plan.subjects[cell.subject];
        let key = (cell.experiment, cell.setting.clone(), entry.label.clone());
        entry.twin_of.is_none().then_some((key, index))
    };
    plan.cells.iter().enumerate().filter_map(key).collect()
}

/// The subjects of the cells that all runs share, and these cells, in the order of the first run.
fn subjects(runs: &[Run<'_>]) -> Vec<Subject> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let others: Vec<_> = others.iter().map(keys).collect();
    let mut shared: Vec<(Key, usize)> = keys(first).into_iter().collect();
    shared.retain(|(key, _)| others.iter().all(|keys| keys.contains_key(key)));
    shared.sort_by_key(|(_, cell)| *cell);
    let of = |entry: &Entry| {
        let own = shared.iter().filter(|((_, _, label), _)| *label == entry.label);
        let shared: Vec<Key> = own.map(|(key, _)| key.clone()).collect();
        let label = entry.label.clone();
        (!shared.is_empty()).then(|| Subject { is_control: is_control(runs, &label), label, shared })
    };
    first.recorded.plan.subjects.iter().filter_map(of).collect()
}

/// Whether a label means plain `bare` or `floor` in all runs, without options that could be what changed:
/// then it shows the machine. Runs measured in blocks measured programs of their own and no controls.
pub(crate) fn is_control(runs: &[Run<'_>], label: &str) -> bool {
    let is_plain = |entry: &Entry| {
        let layer = matches!(entry.layer, Layer::Bare | Layer::Floor);
        layer && entry.spec.keys.is_empty() && entry.spec.runtime.is_none()
    };
    let shows_it = |run: &Run<'_>| {
        let mut entries = run.recorded.plan.subjects.iter().filter(|entry| entry.label == label);
        !run.recorded.is_in_blocks() && entries.all(is_plain)
    };
    runs.iter().all(shows_it)
}

fn scope(runs: usize, experiments: &[Experiment]) -> Scope {
    let mut known = experiments.iter().flat_map(|one| &one.lines).filter_map(|line| line.together).peekable();
    match runs {
        2 => Scope::TwoRuns,
        _ if known.peek().is_some() && known.all(|together| together.basis == Basis::Runs) => {
            Scope::RunsLikeThese
        }
        _ => Scope::TheseRuns,
    }
}

fn facts(run: &Run<'_>) -> Facts {
    let environment = &run.recorded.environment;
    Facts {
        place: run.place.to_owned(),
        run: clean(&run.recorded.run),
        started: clean(&environment.started),
        host: clean(&environment.host),
        tags: environment.tags.iter().map(|(name, tag)| (clean(name), clean(tag))).collect(),
        rounds: (run.recorded.complete_rounds(), run.recorded.plan.rounds),
    }
}

/// What none, or not all, of the other runs have: by experiment the subjects, with the number of cells.
fn alone(own: &[Run<'_>], others: &[Run<'_>]) -> Vec<String> {
    let others: Vec<_> = others.iter().map(keys).collect();
    let all: BTreeSet<Key> = own.iter().flat_map(|run| keys(run).into_keys()).collect();
    let missing = all.iter().filter(|key| !others.iter().all(|keys| keys.contains_key(key)));
    let told = in_groups(missing, |(name, ..)| *name).into_iter().map(|(name, cells)| {
        let labels: BTreeSet<&String> = cells.iter().map(|(_, _, label)| label).collect();
        format!("{name} of {} ({})", quoted(labels), counted(cells.len(), "cell"))
    });
    told.collect()
}

impl Comparison {
    /// All lines, each with its experiment.
    pub fn lines(&self) -> impl Iterator<Item = (&Experiment, &Line)> {
        self.experiments.iter().flat_map(|one| one.lines.iter().map(move |line| (one, line)))
    }

    /// The lines that get verdicts, controls aside.
    pub fn judged(&self) -> impl Iterator<Item = (&Experiment, &Line)> {
        self.lines().filter(|(_, line)| line.verdict != Kind::Context && !line.is_control)
    }

    /// Whether any cell has values on both sides.
    pub fn has_values(&self) -> bool {
        self.lines().flat_map(|(_, line)| &line.settings).any(|one| one.numbers.is_some())
    }

    /// The lines that are a regression: slower by at least this share, as estimated. A change that has no
    /// ratio counts at any size.
    pub fn failing(&self, least: f64) -> Vec<(&Experiment, &Line)> {
        let is_large = |line: &Line| match line.together {
            Some(all) if all.scale == Scale::Ratio => {
                all.change.value.max(1.0 / all.change.value) - 1.0 >= least
            }
            _ => true,
        };
        self.judged().filter(|(_, line)| line.verdict.is_worse() && is_large(line)).collect()
    }

    /// Where rounds failed, with the line of each.
    pub fn failures(&self) -> impl Iterator<Item = (&Experiment, &Line, &FailedRounds)> {
        self.lines().flat_map(|(one, line)| line.failures.iter().map(move |failed| (one, line, failed)))
    }

    /// The lines that cannot be judged at all, or no longer in some setting, or that are a regression in one
    /// setting but not in another: they are reported, so that silence is not taken for an answer.
    pub fn unanswered(&self) -> Vec<(&Experiment, &Line)> {
        let is_open = |line: &Line| match line.verdict {
            Kind::TooFew | Kind::Suspect | Kind::NoData | Kind::Mixed => true,
            _ => line.lost().next().is_some(),
        };
        self.judged().filter(|(_, line)| is_open(line)).collect()
    }

    /// Whether an experiment has verdicts but no control that shows what the machine did.
    pub fn is_uncorrected(&self) -> bool {
        self.experiments.iter().any(|one| {
            let mut decisive = one.lines.iter().filter(|line| line.verdict != Kind::Context).peekable();
            decisive.peek().is_some() && decisive.all(|line| !line.is_control)
        })
    }

    /// If there is no regression: how many verdicts leave one open, of how many. Those are the undecided ones
    /// and those where the machine changed too.
    pub fn left_open(&self) -> (usize, usize) {
        let is_closed = |verdict: Kind| verdict == Kind::Same || verdict.is_difference();
        (self.judged().filter(|(_, line)| !is_closed(line.verdict)).count(), self.judged().count())
    }
}
