//! What findings mean for a decision, in sentences: what costs what, when that matters, how far the rounds bound the risk,
//! which choice is open, what was not resolved. A sentence is made of decided findings, and of nothing else: every name and
//! number in it is that of a finding on which it rests, and nothing can be said of a cell that was not measured, nor of
//! numbers that are suspect or drown in the noise.
//!
//! Experiments appear here by what they declare of themselves, none by name.

mod choice;
mod cost;
mod meaning;
mod open;
mod otherwise;

use std::collections::BTreeSet;

use serde::Serialize;

pub use meaning::{Meaning, meanings};

use super::words::{phrase, predicate, shared_keys, without_keys};
use crate::distinct;
use crate::experiment::{self, Event, Setting, Weight};
use crate::plan::{Comparison, Ladder, Layer, Plan, Relation};
use crate::record::Recorded;
use crate::report::text::{clean, estimated, joined};
use crate::stats::{Estimate, Interval};
use crate::units::{Better, Unit};
use crate::verdict::{About, Analysis, Finding, Verdict};

/// What findings mean for a decision, in a sentence without its end.
#[derive(Debug, Clone, Serialize)]
pub struct Sentence {
    /// The experiment's name.
    pub experiment: &'static str,
    /// What it is about.
    pub topic: Topic,
    /// In plain words.
    #[serde(rename = "sentence")]
    pub text: String,
    /// What the findings are about that it rests on, the most telling first; there is at least one.
    pub rests_on: Vec<About>,
}

/// What a sentence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// What a layer costs.
    Cost,
    /// When that matters.
    Threshold,
    /// Which of several to take.
    Choice,
    /// What two of them differ by.
    Difference,
    /// How bad it can get.
    Risk,
    /// What was not resolved.
    Open,
}

/// Everything that the findings of a run mean, by experiment in the order of the plan.
pub fn sentences(run: &Recorded, analysis: &Analysis) -> Vec<Sentence> {
    let names = distinct(run.plan.comparisons.iter().map(|comparison| comparison.experiment));
    names.into_iter().filter_map(|name| One::of(run, analysis, name)).flat_map(|one| one.all()).collect()
}

/// A finding that says something, so that a claim can be made of it, and of nothing else.
#[derive(Clone, Copy)]
pub(super) struct Decided<'a> {
    /// Its verdict is that there is more, less, or the same.
    pub finding: &'a Finding,
    /// Median of the paired differences.
    pub difference: Estimate,
    /// The interval of the difference.
    pub interval: Interval,
}

impl<'a> Decided<'a> {
    /// The finding, if it is decided, not suspect, and rises above the noise floor.
    pub fn of(finding: &'a Finding) -> Option<Decided<'a>> {
        let is_decided = matches!(finding.verdict, Verdict::Less | Verdict::Same | Verdict::More);
        let difference = finding.difference.filter(|_| is_decided && finding.noise.is_none())?;
        Some(Decided { finding, difference, interval: difference.interval? })
    }

    /// The difference told as what the larger side has more.
    fn absolute(&self) -> String {
        let turned = if self.difference.value < 0.0 { -1.0 } else { 1.0 };
        estimated(self.finding.about.unit, &self.difference.map(|value| turned * value))
    }
}

fn findings<'a>(decided: &[Decided<'a>]) -> Vec<&'a Finding> {
    decided.iter().map(|one| one.finding).collect()
}

/// The findings of one experiment.
struct One<'a> {
    plan: &'a Plan,
    analysis: &'a Analysis,
    name: &'static str,
    event: Event,
    /// Which values of the first metric a person wishes for.
    better: Better,
    /// Whether a cell's setting must be told.
    has_settings: bool,
    /// Of decisive metrics, and of subjects that were asked for: no twins, no variants.
    findings: Vec<&'a Finding>,
}

impl<'a> One<'a> {
    fn of(run: &'a Recorded, analysis: &'a Analysis, name: &'static str) -> Option<One<'a>> {
        let about = experiment::find(name)?;
        let plan = &run.plan;
        let is_meant = |finding: &&Finding| {
            let comparison = &plan.comparisons[finding.comparison];
            let is_decisive =
                plan.metrics(&plan.cells[finding.cell])[finding.metric].weight == Weight::Verdict;
            comparison.experiment == name
                && comparison.relation != Relation::Several
                && is_decisive
                && (finding.metric == 0 || !about.event.has_one_answer())
                && [comparison.subject, comparison.against].iter().all(|one| plan.is_original(*one))
        };
        let mut settings = plan.cells.iter().filter(|cell| cell.experiment == name).map(|cell| &cell.setting);
        let first = settings.next();
        Some(One {
            plan,
            analysis,
            name,
            event: about.event,
            better: about.metrics[0].better,
            has_settings: settings.any(|other| Some(other) != first),
            findings: analysis.findings.iter().filter(is_meant).collect(),
        })
    }

    fn all(&self) -> Vec<Sentence> {
        let mut all = Vec::new();
        for layer in self.above_the_baseline() {
            all.extend(if self.is_a_cost() { self.costs(layer) } else { self.ranks(layer) });
        }
        if self.is_a_cost() {
            all.extend(self.matters());
        }
        if self.event.has_one_answer() {
            all.extend(self.choices());
            all.extend(self.otherwise());
        }
        all.extend(self.pairs());
        if self.better == Better::Less {
            all.extend(self.tail());
        }
        all.extend(self.too_few());
        all.extend(self.open());
        all.extend(self.void());
        all
    }

    fn sentence(&self, topic: Topic, text: String, rests_on: Vec<&Finding>) -> Sentence {
        let rests_on = rests_on.into_iter().map(|finding| finding.about.clone()).collect();
        Sentence { experiment: self.name, topic, text, rests_on }
    }

    /// Whether the first metric is what a person waits for or pays.
    fn is_a_cost(&self) -> bool {
        self.event.has_one_answer() && self.better == Better::Less
    }

    fn comparison(&self, finding: &Finding) -> &'a Comparison {
        &self.plan.comparisons[finding.comparison]
    }

    fn setting_of(&self, finding: &Finding) -> &'a Setting {
        &self.plan.cells[finding.cell].setting
    }

    fn layer(&self, subject: usize) -> Layer {
        self.plan.subjects[subject].layer
    }

    /// Those of its findings that fit.
    fn such(&self, fits: impl Fn(&Finding) -> bool) -> Vec<&'a Finding> {
        self.findings.iter().copied().filter(|finding| fits(finding)).collect()
    }

    /// The findings that compare a layer with the baseline.
    fn against_baseline(&self, layer: Layer) -> Vec<&'a Finding> {
        let baseline = self.plan.baseline_of(self.name);
        self.such(|finding| {
            let comparison = self.comparison(finding);
            comparison.against == baseline && self.layer(comparison.subject) == layer
        })
    }

    fn above_the_baseline(&self) -> impl Iterator<Item = Layer> + use<> {
        let baseline = self.layer(self.plan.baseline_of(self.name));
        [Layer::Floor, Layer::Runtime, Layer::Engine].into_iter().filter(move |layer| *layer > baseline)
    }

    fn label(&self, subject: usize) -> String {
        clean(&self.plan.subjects[subject].label)
    }

    fn baseline(&self) -> String {
        self.label(self.plan.baseline_of(self.name))
    }

    /// The labels of subjects that can be chosen among, without the keys that all of them share.
    fn names(&self, layer: Layer, ladder: Ladder, subjects: &[usize]) -> Vec<String> {
        let all = self.plan.subjects.iter().filter(|one| one.layer == layer && one.ladder == ladder);
        let shared = if ladder == Ladder::Equalised { shared_keys(all) } else { BTreeSet::new() };
        subjects.iter().map(|subject| without_keys(&self.plan.subjects[*subject], &shared)).collect()
    }

    /// The values of a setting, where there are several settings.
    fn values(&self, setting: &Setting) -> Option<String> {
        (self.has_settings && !setting.0.is_empty()).then(|| clean(&setting.values()))
    }

    /// The same in brackets.
    fn in_setting(&self, setting: &Setting) -> String {
        self.values(setting).map_or(String::new(), |values| format!(" ({values})"))
    }

    /// Subject and setting of a finding.
    fn place(&self, one: &Decided<'_>) -> String {
        let subject = &one.finding.about.subject;
        match self.values(self.setting_of(one.finding)) {
            Some(values) => format!("{subject}, {values}"),
            None => subject.clone(),
        }
    }

    /// Pairs that differ in one thing, and pairs of the baseline's own layer: what each comes to, by setting.
    fn pairs(&self) -> Vec<Sentence> {
        let baseline = self.plan.baseline_of(self.name);
        let is_told = |finding: &&&Finding| {
            let comparison = self.comparison(finding);
            let is_beside = comparison.against == baseline
                && self.layer(comparison.subject) == self.layer(comparison.against);
            is_beside || matches!(comparison.relation, Relation::OneKey(_))
        };
        let decided = self.findings.iter().filter(is_told).filter_map(|finding| Decided::of(finding));
        let decided: Vec<Decided<'_>> = decided.collect();
        let of_pair = |comparison: usize| {
            let own = decided.iter().copied().filter(|one| one.finding.comparison == comparison);
            let own: Vec<Decided<'_>> = own.collect();
            let told = own.iter().map(|one| {
                let Finding { about, .. } = one.finding;
                let metric =
                    if self.event.has_one_answer() { String::new() } else { format!("{} ", about.metric) };
                let setting = self.in_setting(self.setting_of(one.finding));
                format!("{metric}{}{setting}", predicate(one.finding))
            });
            let told: Vec<String> = told.collect();
            let text = format!("{} {}", phrase(self.plan, comparison), joined(&told, "and"));
            self.sentence(Topic::Difference, text, findings(&own))
        };
        distinct(decided.iter().map(|one| one.finding.comparison)).into_iter().map(of_pair).collect()
    }
}

/// A difference that does not rise above the noise floor.
fn is_hidden(finding: &Finding) -> bool {
    finding.noise.is_some()
}

fn is_open(finding: &Finding) -> bool {
    matches!(finding.verdict, Verdict::Undecided { .. })
}

/// Words by what a person wishes for of a finding's metric: for less time, for less of something else, or for more.
fn takes<'a>(finding: &Finding, [time, less, more]: [&'a str; 3]) -> &'a str {
    match (finding.about.better, finding.about.unit) {
        (Better::More, _) => more,
        (_, Unit::Seconds) => time,
        _ => less,
    }
}

/// A layer as the subject of a sentence.
fn a(layer: Layer) -> &'static str {
    match layer {
        Layer::Bare => "a process",
        Layer::Floor => "the floor",
        Layer::Runtime => "a runtime",
        Layer::Engine => "an engine",
        Layer::None => "a command",
    }
}

/// The subjects of a layer that can be chosen among.
fn group(layer: Layer, ladder: Ladder) -> String {
    match (layer, ladder) {
        (Layer::Engine, Ladder::Equalised) => "engines, equalised".into(),
        (Layer::Engine, Ladder::AsInstalled) => "engines as installed".into(),
        (layer, _) => format!("{}s", layer.name()),
    }
}
