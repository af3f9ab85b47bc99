//! The statements of `verdict::summary` as sentences: what costs what, when that matters, what was not resolved.
//! Every name and number in a sentence is that of a finding on which it rests.

mod otherwise;

use std::collections::BTreeSet;

use serde::Serialize;

use super::compared::{phrase_of, predicate_of};
use crate::experiment::{self, Occasion, Setting};
use crate::plan::{Ladder, Layer, Plan};
use crate::record::Recorded;
use crate::report::text::{clean, in_percent, joined, percent, with_interval};
use crate::stats::Estimate;
use crate::units::{Better, Unit, counted, three_digits};
use crate::verdict::Analysis;
use crate::verdict::summary::{Decided, Says, Statement, Threshold, statements};

/// What findings mean for a decision, in a sentence without its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sentence {
    /// The experiment's name.
    pub experiment: &'static str,
    /// What it is about.
    pub topic: Topic,
    /// In plain words.
    #[serde(rename = "sentence")]
    pub text: String,
    /// The findings that it rests on, the most telling first; there is at least one.
    pub rests_on: Vec<Ground>,
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

/// A finding on which a sentence rests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ground {
    /// The setting as `key=value` joined by `;`.
    pub setting: String,
    /// The metric's name.
    pub metric: &'static str,
    /// The label of the subject.
    pub subject: String,
    /// The label of what it is compared with.
    pub against: String,
}

/// Pairs that are named as examples of what is open.
const EXAMPLES: usize = 3;

/// All sentences of a run.
pub(super) fn sentences(run: &Recorded, analysis: &Analysis) -> Vec<Sentence> {
    let plan = &run.plan;
    let ground = |index: usize| {
        let finding = &analysis.findings[index];
        let [own, other] = [finding.cell, finding.against].map(|cell| &plan.cells[cell]);
        Ground {
            setting: own.setting.to_string(),
            metric: plan.metrics(own)[finding.metric].name,
            subject: clean(&plan.subjects[own.subject].label),
            against: clean(&plan.subjects[other.subject].label),
        }
    };
    let sentence = |statement: Statement| {
        let words = Words::of(plan, analysis, statement.experiment);
        let (topic, text) = words.say(&statement.says);
        let rests_on = statement.says.rests_on().into_iter().map(ground).collect();
        Sentence { experiment: statement.experiment, topic, text, rests_on }
    };
    statements(run, analysis).into_iter().map(sentence).collect()
}

/// Names and numbers of one experiment.
struct Words<'a> {
    plan: &'a Plan,
    analysis: &'a Analysis,
    name: &'static str,
    occasion: Occasion,
    /// Whether a cell's setting must be told.
    has_settings: bool,
}

impl<'a> Words<'a> {
    fn of(plan: &'a Plan, analysis: &'a Analysis, name: &'static str) -> Words<'a> {
        let mut settings = plan.cells.iter().filter(|cell| cell.experiment == name).map(|cell| &cell.setting);
        let first = settings.next();
        let occasion = experiment::find(name).map_or(Occasion::Works, |one| one.about().occasion);
        Words { plan, analysis, name, occasion, has_settings: settings.any(|other| Some(other) != first) }
    }

    fn say(&self, says: &Says) -> (Topic, String) {
        match says {
            Says::Costs { layer, more } => (Topic::Cost, self.costs(*layer, more)),
            Says::Matters { share, layers, .. } => (Topic::Threshold, self.matters(*share, layers)),
            Says::Ranks { layer, more, less, same, hidden, open } => {
                (Topic::Cost, self.ranks(*layer, [more, less, same], [hidden, open]))
            }
            Says::Least { layer, ladder, subject, leads } => {
                (Topic::Choice, self.least(*layer, *ladder, *subject, leads))
            }
            Says::Among { layer, ladder, setting, subjects, over, .. } => {
                (Topic::Choice, self.among(*layer, *ladder, setting, subjects, over))
            }
            Says::Otherwise { layer, ladder, turned } => {
                (Topic::Choice, self.otherwise(*layer, *ladder, turned))
            }
            Says::Pair { comparison, decided } => (Topic::Difference, self.pair(*comparison, decided)),
            Says::Tail { multiple, beyond, rests_on, .. } => {
                (Topic::Risk, self.tail(rests_on, *multiple, *beyond))
            }
            Says::Open { open, hidden, all, new_run } => {
                (Topic::Open, self.open(open, hidden.len(), *all, *new_run))
            }
            Says::TooFew { have, need, .. } => {
                let have = counted(*have, "round");
                (
                    Topic::Open,
                    format!(
                        "nothing is decided about {}: {have}, and this many comparisons need {need}",
                        self.name
                    ),
                )
            }
            Says::Void(open) => {
                let many = counted(open.len(), "comparison");
                (
                    Topic::Open,
                    format!(
                        "{many} of {} rest on numbers that are suspect, and nothing is concluded from them",
                        self.name
                    ),
                )
            }
        }
    }

    fn label(&self, subject: usize) -> String {
        clean(&self.plan.subjects[subject].label)
    }

    /// The labels of subjects that can be chosen among, without the keys that all of them share.
    fn names(&self, layer: Layer, ladder: Ladder, subjects: &[usize]) -> Vec<String> {
        let all = self.plan.subjects.iter().filter(|one| one.layer == layer && one.ladder == ladder);
        let shared = match ladder {
            Ladder::Equalised => all
                .map(|one| one.spec.keys.iter().cloned().collect::<BTreeSet<_>>())
                .reduce(|one, other| &one & &other)
                .unwrap_or_default(),
            Ladder::AsInstalled => BTreeSet::new(),
        };
        let short = |&subject: &usize| {
            let entry = &self.plan.subjects[subject];
            let mut spec = entry.spec.clone();
            spec.keys.retain(|pair| !shared.contains(pair));
            let is_derived = entry.label == entry.spec.to_string();
            clean(&if is_derived { spec.to_string() } else { entry.label.clone() })
        };
        subjects.iter().map(short).collect()
    }

    fn metric(&self, finding: usize) -> &'static experiment::Metric {
        let finding = &self.analysis.findings[finding];
        &self.plan.metrics(&self.plan.cells[finding.cell])[finding.metric]
    }

    fn subject_of(&self, one: &Decided) -> String {
        self.label(self.plan.cells[self.analysis.findings[one.finding()].cell].subject)
    }

    /// The values of a setting, where there are several settings.
    fn setting(&self, setting: &Setting) -> Option<String> {
        let values: Vec<_> = setting.0.iter().map(|(_, value)| *value).collect();
        (self.has_settings && !values.is_empty()).then(|| clean(&values.join(", ")))
    }

    fn setting_of(&self, finding: usize) -> Option<String> {
        self.setting(&self.plan.cells[self.analysis.findings[finding].cell].setting)
    }

    /// Subject and setting of a finding.
    fn place(&self, one: &Decided) -> String {
        match self.setting_of(one.finding()) {
            Some(setting) => format!("{}, {setting}", self.subject_of(one)),
            None => self.subject_of(one),
        }
    }

    fn size(&self, one: &Decided) -> String {
        shown(self.metric(one.finding()).unit, one.difference())
    }

    fn baseline(&self) -> String {
        self.label(self.plan.baseline_of(self.name))
    }

    /// What the first metric is of.
    fn of_what(&self) -> String {
        match self.occasion {
            Occasion::Once(what) => format!("each {what}"),
            _ => self.name.to_owned(),
        }
    }

    fn costs(&self, layer: Layer, more: &[Decided]) -> String {
        let (Some(least), Some(most)) = (more.first(), more.last()) else { return String::new() };
        let metric = self.metric(least.finding()).name;
        let start = format!(
            "{} adds to {} (`{metric}`), compared with {}:",
            a(layer),
            self.of_what(),
            self.baseline()
        );
        if more.len() == 1 {
            return format!("{start} {} ({})", self.size(least), self.place(least));
        }
        format!(
            "{start} from {} ({}) to {} ({})",
            self.size(least),
            self.place(least),
            self.size(most),
            self.place(most)
        )
    }

    fn matters(&self, share: f64, layers: &[Threshold]) -> String {
        let share = percent(share);
        let each = |time: fn(&Threshold) -> f64| {
            let one = |one: &Threshold| format!("{} ({})", Unit::Seconds.format(time(one)), a(one.layer));
            layers.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let (always, never) = (each(|one| one.always), each(|one| one.never));
        match self.occasion {
            Occasion::Often(what) => format!(
                "what a layer adds is more than {share} of the time of a program that makes the first of these {what}s every {always} or more often, and less than {share} where it makes one every {never} or more rarely, as long as the {what} itself is all that changes"
            ),
            Occasion::Once(what) => format!(
                "what a layer adds is more than {share} of a job of up to {always} for each {what}, and less than {share} of one of {never} and more, as long as jobs wait for each {what}, one after the other, and compute inside as fast as outside"
            ),
            Occasion::Whole | Occasion::Works => String::new(),
        }
    }

    fn ranks(
        &self,
        layer: Layer,
        [more, less, same]: [&[Decided]; 3],
        [hidden, open]: [&[usize]; 2],
    ) -> String {
        let decided = [more, less, same].into_iter().flatten().map(Decided::finding);
        let findings: Vec<usize> = decided.chain(hidden.iter().chain(open).copied()).collect();
        let metrics: BTreeSet<_> = findings.iter().map(|finding| self.metric(*finding).name).collect();
        let far = |all: &[Decided], which: Option<&Decided>| {
            let Some(one) = which else { return String::new() };
            let size = one.ratio().map_or_else(|| self.size(one), |ratio| in_percent(&ratio));
            let most = if all.len() > 1 { "at most " } else { "" };
            format!(" ({most}{size}: `{}`, {})", self.metric(one.finding()).name, self.place(one))
        };
        let parts = [
            (more.len(), "higher", far(more, more.last())),
            (less.len(), "lower", far(less, less.first())),
            (same.len(), "without a difference that matters", String::new()),
            (hidden.len(), "with a difference that does not rise above the noise floor", String::new()),
            (open.len(), "not decided", String::new()),
        ];
        let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what, far)| format!("{count} {what}{far}")).collect();
        format!(
            "{} compared with {} in {} of {}: of {}, {}",
            a(layer),
            self.baseline(),
            counted(metrics.len(), "metric"),
            self.name,
            counted(findings.len(), "comparison"),
            joined(&parts, "and")
        )
    }

    /// Words by what a person wishes for of a finding's metric: for less of it, or for more.
    fn takes(&self, finding: usize, less: &'static str, more: &'static str) -> &'static str {
        if self.metric(finding).better == Better::More { more } else { less }
    }

    fn least(&self, layer: Layer, ladder: Ladder, subject: usize, leads: &[Vec<Decided>]) -> String {
        let Some(first) = leads.first().and_then(|lead| lead.first()) else { return String::new() };
        let lead = |over: &Vec<Decided>| {
            let pair = |one: &&Decided| {
                let one = &self.plan.comparisons[self.analysis.findings[one.finding()].comparison];
                let is_of_layer = |index: usize| self.plan.subjects[index].layer == layer;
                (one.subject == subject || one.against == subject)
                    && is_of_layer(one.subject)
                    && is_of_layer(one.against)
            };
            let next = over.iter().find(pair)?;
            let size = absolute(self.metric(next.finding()).unit, next);
            let comparison = &self.plan.comparisons[self.analysis.findings[next.finding()].comparison];
            let other = if comparison.subject == subject { comparison.against } else { comparison.subject };
            // Of those that are compared with others alone nobody knows how far behind they are.
            let is_next = over.len() > 1 && over.iter().filter(pair).count() == over.len();
            let next_one = if is_next { ", the next" } else { "" };
            let setting =
                self.setting_of(next.finding()).map_or(String::new(), |setting| format!(" ({setting})"));
            let other = self.names(layer, ladder, &[other]).concat();
            Some(format!("by {size} before {other}{next_one}{setting}"))
        };
        let leads: Vec<String> = leads.iter().filter_map(lead).collect();
        let by = if leads.is_empty() { String::new() } else { format!(": {}", joined(&leads, "and")) };
        format!(
            "of the {}, {} {} (`{}`){by}",
            group(layer, ladder),
            self.names(layer, ladder, &[subject]).concat(),
            self.takes(first.finding(), "takes the least", "has the most"),
            self.metric(first.finding()).name
        )
    }

    fn among(
        &self,
        layer: Layer,
        ladder: Ladder,
        setting: &Setting,
        subjects: &[usize],
        over: &[Decided],
    ) -> String {
        let names = self.names(layer, ladder, subjects);
        let where_ = self.setting(setting).map_or(String::new(), |setting| format!(" ({setting})"));
        let losers: BTreeSet<usize> = over
            .iter()
            .map(|one| {
                let comparison = &self.plan.comparisons[self.analysis.findings[one.finding()].comparison];
                if one.is_worse() { comparison.subject } else { comparison.against }
            })
            .collect();
        let losers = self.names(layer, ladder, &losers.into_iter().collect::<Vec<_>>());
        let takes = |less, more| over.first().map_or(less, |one| self.takes(one.finding(), less, more));
        format!(
            "of the {}{where_}, which of {} {} is not decided; {} {} than at least one of them",
            group(layer, ladder),
            joined(&names, "and"),
            takes("takes the least", "has the most"),
            joined(&losers, "and"),
            if losers.len() == 1 { takes("takes more", "has less") } else { takes("take more", "have less") }
        )
    }

    fn pair(&self, comparison: usize, decided: &[Decided]) -> String {
        let told = |one: &Decided| {
            let finding = &self.analysis.findings[one.finding()];
            let comparison = &self.plan.comparisons[finding.comparison];
            let unit = self.metric(one.finding()).unit;
            let predicate = predicate_of(&comparison.relation, unit, finding);
            let metric = if self.occasion.has_one_answer() {
                String::new()
            } else {
                format!("{} ", self.metric(one.finding()).name)
            };
            match self.setting_of(one.finding()) {
                Some(setting) => format!("{metric}{predicate} ({setting})"),
                None => format!("{metric}{predicate}"),
            }
        };
        let told: Vec<String> = decided.iter().map(told).collect();
        format!("{} {}", phrase_of(self.plan, comparison), joined(&told, "and"))
    }

    fn tail(&self, rests_on: &Decided, multiple: f64, beyond: f64) -> String {
        let finding = &self.analysis.findings[rests_on.finding()];
        let what = match self.occasion {
            Occasion::Once(what) => what.to_owned(),
            Occasion::Whole => "sample".to_owned(),
            _ => format!("`{}`", self.metric(rests_on.finding()).name),
        };
        let values = self.analysis.cells[finding.cell].metrics[finding.metric].as_ref();
        format!(
            "the slowest {what} of {} ({}) took {} times the median; these rounds cannot rule out that {} take even longer, at 95 %",
            counted(values.map_or(0, |one| one.median.rounds), "round"),
            self.place(rests_on),
            three_digits(multiple),
            percent(beyond)
        )
    }

    fn open(&self, open: &[usize], hidden: usize, all: usize, new_run: Option<(usize, usize)>) -> String {
        let name = |index: &usize| {
            let finding = &self.analysis.findings[*index];
            let pair = &self.plan.comparisons[finding.comparison];
            let metric = (!self.occasion.has_one_answer()).then(|| format!("`{}`", self.metric(*index).name));
            let place: Vec<String> = metric.into_iter().chain(self.setting_of(*index)).collect();
            let place = if place.is_empty() { String::new() } else { format!(" ({})", place.join(", ")) };
            format!("{} against {}{place}", self.label(pair.subject), self.label(pair.against))
        };
        let mut text = format!("not resolved in {}, of {}:", self.name, counted(all, "comparison"));
        if !open.is_empty() {
            let named: Vec<String> = open.iter().take(EXAMPLES).map(name).collect();
            let such = if open.len() > EXAMPLES { "such as " } else { "" };
            text.push_str(&format!(" {} not decided, {such}{}", open.len(), joined(&named, "and")));
        }
        if let Some((rounds, decided)) = new_run {
            let decided =
                if decided == open.len() { "that".to_owned() } else { format!("{decided} of them") };
            text.push_str(&format!("; a new run of {} might decide {decided}", counted(rounds, "round")));
        }
        if hidden > 0 {
            let and = if open.is_empty() { "" } else { "; and" };
            text.push_str(&format!(
                "{and} {hidden} with a difference that does not rise above the noise floor"
            ));
        }
        text
    }
}

/// A difference with its interval.
fn shown(unit: Unit, difference: Estimate) -> String {
    with_interval(unit, difference.value, difference.interval.map(|one| (one.low, one.high)))
}

/// The same, told as what the larger side has more.
fn absolute(unit: Unit, one: &Decided) -> String {
    let (value, interval) = (one.difference().value, one.interval());
    match value < 0.0 {
        true => with_interval(unit, -value, Some((-interval.high, -interval.low))),
        false => with_interval(unit, value, Some((interval.low, interval.high))),
    }
}

/// A layer as the subject of a sentence.
fn a(layer: Layer) -> &'static str {
    match layer {
        Layer::Bare => "a process",
        Layer::Floor => "the floor",
        Layer::Runtime => "a runtime",
        Layer::Engine => "an engine",
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
