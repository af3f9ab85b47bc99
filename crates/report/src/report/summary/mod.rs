//! What findings mean for a decision, in sentences: what costs what, when that matters, how far the rounds bound the risk,
//! which choice is open, what was not resolved. A sentence is made of decided findings, and of nothing else: every name and
//! number in it is that of a finding on which it rests, and nothing can be said of a cell that was not measured, nor of
//! numbers that are suspect or drown in the noise.
//!
//! Experiments appear here by what they declare of themselves, none by name.

// long: one function for each kind of sentence.

mod choice;
mod otherwise;

use std::collections::BTreeSet;

use serde::Serialize;

use super::words::{phrase, predicate, shared_keys, without_keys};
use crate::distinct;
use crate::experiment::{self, Event, Setting, Weight};
use crate::plan::{Comparison, Ladder, Layer, Plan, Relation};
use crate::record::Recorded;
use crate::report::text::{clean, estimated, in_percent, joined, percent};
use crate::stats::{Alpha, Estimate, Interval};
use crate::units::{Better, Unit, counted, three_digits};
use crate::verdict::{About, Analysis, Finding, HOPELESS, Verdict};

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

/// Pairs that are named as examples of what is open.
const EXAMPLES: usize = 3;

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

    /// What a layer takes more than the baseline, the least first.
    fn more(&self, layer: Layer) -> Vec<Decided<'a>> {
        let decided = self.against_baseline(layer).into_iter().filter_map(Decided::of);
        let mut more: Vec<_> = decided.filter(|one| one.finding.verdict == Verdict::More).collect();
        more.sort_by(|one, other| one.difference.value.total_cmp(&other.difference.value));
        more
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

    fn costs(&self, layer: Layer) -> Option<Sentence> {
        let more = self.more(layer);
        let (least, most) = (more.first()?, more.last()?);
        let told = |one: &Decided<'_>| {
            format!("{} ({})", estimated(one.finding.about.unit, &one.difference), self.place(one))
        };
        let range = match more.len() {
            1 => told(least),
            _ => format!("from {} to {}", told(least), told(most)),
        };
        let what = match self.event {
            Event::Once(what) => format!("each {what}"),
            _ => self.name.to_owned(),
        };
        let metric = least.finding.about.metric;
        let text =
            format!("{} adds to {what} (`{metric}`), compared with {}: {range}", a(layer), self.baseline());
        Some(self.sentence(Topic::Cost, text, findings(&more)))
    }

    /// When what layers take more matters to whoever it happens to. A difference is a share of the time from one event
    /// to the next. Every interval holds at once, so from the largest upper end on none reaches the share, and up to the
    /// smallest lower end all exceed it. So all of a layer must be decided: of one that is not, nobody knows from which
    /// length on it matters.
    fn matters(&self) -> Option<Sentence> {
        let metric = &experiment::find(self.name)?.metrics[0];
        let (_, share) = self.plan.margin_of(self.name, metric).parts();
        let mut rests_on = Vec::new();
        let (mut always, mut never) = (Vec::new(), Vec::new());
        for layer in self.above_the_baseline() {
            // Of many kinds of calls the first stands for those that do the least.
            let asked = self.against_baseline(layer).iter().filter(|finding| finding.metric == 0).count();
            let mut more = self.more(layer);
            more.retain(|one| one.finding.metric == 0);
            if more.is_empty() || more.len() < asked {
                continue;
            }
            let low = more.iter().map(|one| one.interval.low).fold(f64::INFINITY, f64::min);
            let high = more.iter().map(|one| one.interval.high).fold(f64::NEG_INFINITY, f64::max);
            let told = |end: f64| format!("{} ({})", Unit::Seconds.format(end / share), a(layer));
            always.push(told(low));
            never.push(told(high));
            rests_on.extend(findings(&more));
        }
        if share <= 0.0 || always.is_empty() {
            return None;
        }
        let (share, always, never) = (percent(share), always.join(", "), never.join(", "));
        let text = match self.event {
            Event::Often(what) => format!(
                "what a layer adds is more than {share} of the time of a program that makes the first of these {what}s every {always} or more often, and less than {share} where it makes one every {never} or more rarely, as long as the {what} itself is all that changes"
            ),
            Event::Once(what) => format!(
                "what a layer adds is more than {share} of a job of up to {always} for each {what}, and less than {share} of one of {never} and more, as long as jobs wait for each {what}, one after the other, and compute inside as fast as outside"
            ),
            Event::Whole | Event::Works => return None,
        };
        Some(self.sentence(Topic::Threshold, text, rests_on))
    }

    /// How a layer compares with the baseline in all decisive metrics.
    fn ranks(&self, layer: Layer) -> Option<Sentence> {
        let all = self.against_baseline(layer);
        let of = |verdict: Verdict| -> Vec<Decided<'_>> {
            let decided = all.iter().filter_map(|finding| Decided::of(finding));
            let mut decided: Vec<_> = decided.filter(|one| one.finding.verdict == verdict).collect();
            let ratio = |one: &Decided<'_>| one.finding.ratio.map_or(0.0, |ratio| ratio.value);
            decided.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
            decided
        };
        let (more, less, same) = (of(Verdict::More), of(Verdict::Less), of(Verdict::Same));
        let hidden: Vec<&Finding> = all.iter().copied().filter(|finding| is_hidden(finding)).collect();
        let open: Vec<&Finding> = all.iter().copied().filter(|finding| is_open(finding)).collect();
        if more.is_empty() && less.is_empty() && same.is_empty() && hidden.is_empty() {
            return None;
        }
        let far = |all: &[Decided<'_>], which: Option<&Decided<'_>>| {
            let Some(one) = which else { return String::new() };
            let about = &one.finding.about;
            let size = match one.finding.ratio {
                Some(ratio) => in_percent(&ratio),
                None => estimated(about.unit, &one.difference),
            };
            let most = if all.len() > 1 { "at most " } else { "" };
            format!(" ({most}{size}: `{}`, {})", about.metric, self.place(one))
        };
        let parts = [
            (more.len(), "higher", far(&more, more.last())),
            (less.len(), "lower", far(&less, less.first())),
            (same.len(), "without a difference that matters", String::new()),
            (hidden.len(), "with a difference that does not rise above the noise floor", String::new()),
            (open.len(), "not decided", String::new()),
        ];
        let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what, far)| format!("{count} {what}{far}")).collect();
        let rests_on = [findings(&more), findings(&less), findings(&same), hidden, open].concat();
        let metrics: BTreeSet<&str> = rests_on.iter().map(|finding| finding.about.metric).collect();
        let text = format!(
            "{} compared with {} in {} of {}: of {}, {}",
            a(layer),
            self.baseline(),
            counted(metrics.len(), "metric"),
            self.name,
            counted(rests_on.len(), "comparison"),
            joined(&parts, "and")
        );
        Some(self.sentence(Topic::Cost, text, rests_on))
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

    /// Of the highest layer that was compared, the cell whose slowest value is farthest from its median. With
    /// n values, the largest exceeds the quantile q with probability 1 − qⁿ, whatever the distribution.
    fn tail(&self) -> Option<Sentence> {
        let layers = [Layer::Engine, Layer::Runtime, Layer::Floor].into_iter();
        let decided = |layer| self.against_baseline(layer).into_iter().filter_map(Decided::of).collect();
        let all: Vec<Decided<'_>> = layers.map(decided).find(|all: &Vec<_>| !all.is_empty())?;
        let tail = |one: &Decided<'a>| {
            let values = self.analysis.cells[one.finding.cell].metrics[one.finding.metric].as_ref()?;
            let multiple = values.range.1 / values.median.value;
            multiple.is_finite().then_some((*one, multiple, values.median.rounds))
        };
        let (one, multiple, rounds) =
            all.iter().filter_map(tail).max_by(|(_, one, _), (_, other, _)| one.total_cmp(other))?;
        let what = match self.event {
            Event::Once(what) => what.to_owned(),
            Event::Whole => "sample".to_owned(),
            _ => format!("`{}`", one.finding.about.metric),
        };
        let text = format!(
            "the slowest {what} of {} ({}) took {} times the median; these rounds cannot rule out that {} take even longer, at 95 %",
            counted(rounds, "round"),
            self.place(&one),
            three_digits(multiple),
            percent(1.0 - Alpha::FIVE_PERCENT.get().powf(1.0 / rounds as f64))
        );
        Some(self.sentence(Topic::Risk, text, vec![one.finding]))
    }

    /// That there are too few rounds.
    fn too_few(&self) -> Option<Sentence> {
        let few = self.such(|finding| matches!(finding.verdict, Verdict::TooFew { .. }));
        let Verdict::TooFew { have, need } = few.first()?.verdict else { return None };
        let have = counted(have, "round");
        let text =
            format!("nothing is decided about {}: {have}, and this many comparisons need {need}", self.name);
        Some(self.sentence(Topic::Open, text, few))
    }

    /// What was not resolved, the largest differences first.
    fn open(&self) -> Option<Sentence> {
        let (mut open, hidden) = (self.such(is_open), self.such(is_hidden));
        if open.is_empty() && hidden.is_empty() {
            return None;
        }
        let rounds = |finding: &&Finding| match finding.verdict {
            Verdict::Undecided { new_run, .. } => Some(new_run?.rounds).filter(|one| *one <= HOPELESS),
            _ => None,
        };
        let mut needed: Vec<usize> = open.iter().filter_map(rounds).collect();
        needed.sort_unstable();
        let size = |finding: &Finding| finding.difference.map_or(0.0, |one| one.value.abs());
        open.sort_by(|one, other| size(other).total_cmp(&size(one)));
        let name = |finding: &&Finding| {
            let about = &finding.about;
            let metric = (!self.event.has_one_answer()).then(|| format!("`{}`", about.metric));
            let place: Vec<String> =
                metric.into_iter().chain(self.values(self.setting_of(finding))).collect();
            let place = if place.is_empty() { String::new() } else { format!(" ({})", place.join(", ")) };
            format!("{} against {}{place}", about.subject, about.against)
        };
        let mut text =
            format!("not resolved in {}, of {}:", self.name, counted(self.findings.len(), "comparison"));
        if !open.is_empty() {
            let named: Vec<String> = open.iter().take(EXAMPLES).map(name).collect();
            let such = if open.len() > EXAMPLES { "such as " } else { "" };
            text.push_str(&format!(" {} not decided, {such}{}", open.len(), joined(&named, "and")));
        }
        // As many as half of them need: what it takes to decide the last one would frighten off.
        if let Some(rounds) = needed.get(needed.len() / 2) {
            let decided = match needed.len() / 2 + 1 {
                all if all == open.len() => "that".to_owned(),
                some => format!("{some} of them"),
            };
            text.push_str(&format!("; a new run of {} might decide {decided}", counted(*rounds, "round")));
        }
        if !hidden.is_empty() {
            let and = if open.is_empty() { "" } else { "; and" };
            text.push_str(&format!(
                "{and} {} with a difference that does not rise above the noise floor",
                hidden.len()
            ));
        }
        Some(self.sentence(Topic::Open, text, [open, hidden].concat()))
    }

    /// What rests on numbers that must not be believed.
    fn void(&self) -> Option<Sentence> {
        let void = self.such(|finding| matches!(finding.verdict, Verdict::Suspect(_)));
        let many = counted(void.len(), "comparison");
        let text = format!(
            "{many} of {} rest on numbers that are suspect, and nothing is concluded from them",
            self.name
        );
        (!void.is_empty()).then(|| self.sentence(Topic::Open, text, void))
    }
}

/// A difference that does not rise above the noise floor.
fn is_hidden(finding: &Finding) -> bool {
    finding.noise.is_some()
}

fn is_open(finding: &Finding) -> bool {
    matches!(finding.verdict, Verdict::Undecided { .. })
}

/// Words by what a person wishes for of a finding's metric: for less of it, or for more.
fn takes<'a>(finding: &Finding, less: &'a str, more: &'a str) -> &'a str {
    if finding.about.better == Better::More { more } else { less }
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
