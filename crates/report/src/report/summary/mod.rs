//! What findings mean for a decision, in sentences: what a layer costs, when that matters, which subject to choose,
//! how slow a launch can get, what is undecided. Every name and number in a sentence comes from a finding that it
//! rests on: nothing is said about a cell that was not measured, and no claim rests on suspect numbers or on noise.
//!
//! Experiments appear here by their declared properties, never by name.

mod choice;
mod cost;
mod failing;
mod meaning;
mod open;
mod otherwise;

use std::collections::BTreeSet;

use serde::Serialize;

pub use meaning::{Meaning, meanings};

use super::words::{claim, in_words, phrase, predicate, setting_values, shared_keys, without_keys};
use crate::distinct;
use crate::experiment::{self, Event, Setting, Weight};
use crate::plan::{Comparison, Ladder, Layer, Plan, Relation};
use crate::record::Recorded;
use crate::report::text::{clean, estimated, joined};
use crate::stats::{Estimate, Interval};
use crate::units::{Better, Unit};
use crate::verdict::{About, Analysis, Finding, Verdict};

/// What findings mean for a decision, as question and answer.
#[derive(Debug, Clone, Serialize)]
pub struct Claim {
    /// The experiment's name.
    pub experiment: &'static str,
    /// What it is about.
    pub topic: Topic,
    /// The question, as a person would ask it.
    pub question: String,
    /// The answer, in a sentence without a full stop.
    pub answer: String,
    /// The findings it rests on, the most important first; none where it rests on a table of the experiment.
    pub rests_on: Vec<About>,
}

/// What a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// What a table of the experiment answers.
    Table,
    /// Which of two fails more often.
    Failures,
    /// What a layer costs.
    Cost,
    /// When that matters.
    Threshold,
    /// Which of several to choose.
    Choice,
    /// Where another metric orders them differently.
    Otherwise,
    /// How much two subjects differ.
    Difference,
    /// How much a setting differs from its control.
    Setting,
    /// How bad it can get.
    Risk,
    /// What is undecided.
    Open,
}

impl Claim {
    /// Question and answer in one sentence.
    pub fn text(&self) -> String {
        format!("{} {}", self.question, self.answer)
    }
}

impl Topic {
    /// The place of a claim where not all can be shown; the least comes first.
    pub fn importance(self) -> usize {
        match self {
            Topic::Table | Topic::Failures | Topic::Choice => 0,
            Topic::Otherwise => 1,
            Topic::Threshold => 2,
            Topic::Setting => 3,
            Topic::Open => 4,
            Topic::Difference => 5,
            Topic::Cost => 6,
            Topic::Risk => 7,
        }
    }

    fn question(self) -> &'static str {
        match self {
            Topic::Failures => "which fails?",
            Topic::Table | Topic::Choice => "which one?",
            Topic::Otherwise => "is it always so?",
            Topic::Threshold => "does it matter?",
            Topic::Setting | Topic::Difference => "what does it cost?",
            Topic::Open => "not decided",
            Topic::Cost => "what is added?",
            Topic::Risk => "how slow can it get?",
        }
    }
}

/// All claims about a run, by experiment in the order of the plan, the most important first.
pub fn claims(run: &Recorded, analysis: &Analysis) -> Vec<Claim> {
    let names = distinct(run.plan.cells.iter().map(|cell| cell.experiment));
    let of = |name: &'static str| {
        let tables = analysis.experiment_tables.iter().filter(|table| table.experiment == name);
        let own = tables.flat_map(|table| &table.answers).map(|one| Claim {
            experiment: name,
            topic: Topic::Table,
            question: one.question.to_owned(),
            answer: one.text.clone(),
            rests_on: Vec::new(),
        });
        let compared = run.plan.comparisons.iter().any(|one| one.experiment == name);
        let rest = One::of(run, analysis, name).filter(|_| compared).map(|one| one.all());
        let mut all: Vec<Claim> = own.chain(rest.unwrap_or_default()).collect();
        all.sort_by_key(|one| one.topic.importance());
        all
    };
    names.into_iter().flat_map(of).collect()
}

/// A finding that supports a claim.
#[derive(Clone, Copy)]
pub(super) struct Decided<'a> {
    /// Its verdict is more, less, or the same.
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

    /// The size of the difference, without its sign.
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
    /// Which values of the first metric are better.
    better: Better,
    /// Whether sentences must name the setting of a cell.
    has_settings: bool,
    /// Those about decisive metrics and requested subjects, without twins and variants.
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

    fn all(&self) -> Vec<Claim> {
        let mut all = self.failing();
        for layer in self.above_the_baseline() {
            all.extend(if self.is_a_cost() { self.costs(layer) } else { self.ranks(layer) });
        }
        if self.is_a_cost() {
            all.extend(self.matters());
        }
        let mut pairs = self.pairs();
        if self.event.has_one_answer() {
            let choices = self.choices();
            // "X, by 5 ms over Y" also says what Y costs; not, that more differs than the choice.
            let told: Vec<About> = choices.iter().flat_map(|one| one.rests_on.iter().cloned()).collect();
            let is_told = |about: &About| {
                told.contains(about) && !matches!(about.relation, Relation::KeyAndMore { .. })
            };
            pairs.retain(|one| one.topic != Topic::Difference || !one.rests_on.iter().all(is_told));
            all.extend(choices);
            all.extend(self.otherwise());
        }
        all.extend(pairs);
        if self.better == Better::Less {
            all.extend(self.tail());
        }
        all.extend(self.too_few());
        all.extend(self.open());
        all.extend(self.void());
        all
    }

    fn claim(&self, topic: Topic, answer: String, rests_on: Vec<&Finding>) -> Claim {
        let rests_on = rests_on.into_iter().map(|finding| finding.about.clone()).collect();
        Claim { experiment: self.name, topic, question: topic.question().to_owned(), answer, rests_on }
    }

    /// Whether the first metric is a cost: a time to wait, or an amount to pay.
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

    /// The findings that fit.
    fn such(&self, fits: impl Fn(&Finding) -> bool) -> Vec<&'a Finding> {
        self.findings.iter().copied().filter(|finding| fits(finding)).collect()
    }

    /// Those of them that compare subjects.
    fn between_subjects(&self, fits: impl Fn(&Finding) -> bool) -> Vec<&'a Finding> {
        self.such(|finding| !finding.about.relation.is_of_settings() && fits(finding))
    }

    /// The findings that compare a layer with the baseline.
    fn against_baseline(&self, layer: Layer) -> Vec<&'a Finding> {
        let baseline = self.plan.baseline_of(self.name);
        self.between_subjects(|finding| {
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

    /// The labels of subjects to choose from, without the keys that all of them share.
    fn names(&self, layer: Layer, ladder: Ladder, subjects: &[usize]) -> Vec<String> {
        let all = self.plan.subjects.iter().filter(|one| one.layer == layer && one.ladder == ladder);
        let shared = if ladder == Ladder::Equalised { shared_keys(all) } else { BTreeSet::new() };
        subjects.iter().map(|subject| without_keys(&self.plan.subjects[*subject], &shared)).collect()
    }

    /// The values of a setting, if there are several settings.
    fn values(&self, setting: &Setting) -> Option<String> {
        let values = in_words(&setting_values(self.plan, self.name, setting));
        Some(values).filter(|one| self.has_settings && !one.is_empty())
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

    /// Pairs that differ in one thing, settings with a control, and pairs in the layer of the baseline: how much each
    /// differs, by setting. In experiments with many metrics, those without a difference that matters are listed by name
    /// alone.
    fn pairs(&self) -> Vec<Claim> {
        let baseline = self.plan.baseline_of(self.name);
        let is_told = |finding: &&&Finding| {
            let comparison = self.comparison(finding);
            let is_beside = comparison.against == baseline
                && self.layer(comparison.subject) == self.layer(comparison.against);
            let relation = &comparison.relation;
            is_beside || relation.names_a_cause() || matches!(relation, Relation::KeyAndMore { .. })
        };
        let decided = self.findings.iter().filter(is_told).filter_map(|finding| Decided::of(finding));
        let decided: Vec<Decided<'_>> = decided.collect();
        let place = |one: &Decided<'_>| {
            let metric = match self.event.has_one_answer() {
                true => String::new(),
                false => format!(" in `{}`", one.finding.about.metric),
            };
            let setting = one.finding.about.relation.shared(self.setting_of(one.finding));
            format!("{metric}{}", self.in_setting(&setting))
        };
        let of_pair = |comparison: usize| {
            let own = decided.iter().copied().filter(|one| one.finding.comparison == comparison);
            let own: Vec<Decided<'_>> = own.collect();
            let is_listed =
                |one: &Decided<'_>| !self.event.has_one_answer() && one.finding.verdict == Verdict::Same;
            let (same, told): (Vec<Decided<'_>>, Vec<Decided<'_>>) = own.iter().copied().partition(is_listed);
            // The verb appears once: "saves 10.9 ms (idle) and 10.5 ms (primed)".
            let verb = told.first().map(|one| format!("{} ", first_word(&predicate(one.finding))));
            let pieces = told.iter().enumerate().map(|(index, one)| match index {
                0 => format!("{}{}", claim(self.plan, one.finding), place(one)),
                _ => {
                    let said = predicate(one.finding);
                    let verb = verb.as_deref().filter(|_| one.finding.verdict != Verdict::Same);
                    let rest = verb.and_then(|verb| said.strip_prefix(verb)).unwrap_or(&said);
                    format!("{rest}{}", place(one))
                }
            });
            let pieces: Vec<String> = pieces.collect();
            let same: Vec<String> = same.iter().map(|one| place(one).replacen(" in ", "", 1)).collect();
            let same = joined(&same, "and");
            let text = match (pieces.is_empty(), same.is_empty()) {
                (false, true) => joined(&pieces, "and"),
                (false, false) => format!("{}; no difference that matters in {same}", joined(&pieces, "and")),
                (true, _) => {
                    format!("{} makes no difference that matters in {same}", phrase(self.plan, comparison))
                }
            };
            let is_of_settings = self.plan.comparisons[comparison].relation.is_of_settings();
            let topic = if is_of_settings { Topic::Setting } else { Topic::Difference };
            self.claim(topic, text, findings(&own))
        };
        distinct(decided.iter().map(|one| one.finding.comparison)).into_iter().map(of_pair).collect()
    }
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

/// A difference that does not rise above the noise floor.
fn is_hidden(finding: &Finding) -> bool {
    finding.noise.is_some()
}

fn is_open(finding: &Finding) -> bool {
    matches!(finding.verdict, Verdict::Undecided { .. })
}

/// Words for a finding's metric: for a time, for an amount where less is better, and for one where more is better.
fn takes<T>(finding: &Finding, [time, less, more]: [T; 3]) -> T {
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
