//! What comparisons say, as sentences. A sentence names a cause only where exactly one thing
//! differs; all others speak of things as they were installed.

use super::{Change, Metric, Pair, PairKind, Place};
use crate::experiment;
use crate::plan::{Entry, Ladder, Layer, Plan, Relation};
use crate::report::text::{clean, with_interval};
use crate::stats::{Estimate, Goal, NewRun};
use crate::units::{Better, Unit};
use crate::verdict::{Analysis, Finding, HOPELESS, Verdict};

/// One experiment's comparisons, to be put into words.
pub(super) struct Compared<'a> {
    pub plan: &'a Plan,
    pub analysis: &'a Analysis,
    pub name: &'static str,
    pub metrics: &'a [Metric],
    pub settings: &'a [experiment::Setting],
}

impl Compared<'_> {
    /// A setting and a metric by name.
    pub fn place(&self, setting: usize, metric: usize) -> Place {
        let Metric { name, unit, .. } = self.metrics[metric];
        Place { setting: self.settings[setting].to_string(), metric: name, unit }
    }

    /// What is said of a subject against the baseline in a setting, by metric.
    pub fn with_baseline(&self, subject: usize, setting: usize) -> Vec<Option<Change>> {
        let fits = |finding: &&Finding| {
            let comparison = &self.plan.comparisons[finding.comparison];
            let cell = &self.plan.cells[finding.cell];
            // Of a pair with several reasons the plan keeps one; what counts here is the baseline.
            comparison.against == self.plan.baseline_of(self.name)
                && comparison.subject == subject
                && cell.experiment == self.name
                && cell.setting == self.settings[setting]
        };
        let found: Vec<_> = self.analysis.findings.iter().filter(fits).collect();
        let of_metric = |metric| found.iter().find(|finding| finding.metric == metric);
        (0..self.metrics.len())
            .map(|metric| of_metric(metric).map(|finding| self.change(finding, &PairKind::Choice)))
            .collect()
    }

    /// All comparisons, those of twins apart; the most telling first.
    pub fn pairs(&self) -> (Vec<Pair>, Vec<Pair>) {
        let mut pairs: Vec<Pair> = Vec::new();
        for (index, comparison) in self.plan.comparisons.iter().enumerate() {
            let kind = kind_of(&comparison.relation);
            if comparison.experiment != self.name {
                continue;
            }
            let (subject, against) =
                (&self.plan.subjects[comparison.subject], &self.plan.subjects[comparison.against]);
            let findings = self.analysis.findings.iter().filter(|finding| finding.comparison == index);
            let mut changes: Vec<_> = findings.map(|finding| self.change(finding, &kind)).collect();
            changes.sort_by_key(|change| (change.setting, change.metric));
            pairs.push(Pair {
                subject: clean(&subject.label),
                against: clean(&against.label),
                same_layer: subject.layer == against.layer,
                phrase: clean(&phrase(&kind, subject, against)),
                changes,
                kind,
            });
        }
        pairs.sort_by(|one, other| rank(one).cmp(&rank(other)).then(weight(other).total_cmp(&weight(one))));
        pairs.into_iter().partition(|pair| pair.kind != PairKind::Twin)
    }

    fn change(&self, finding: &Finding, kind: &PairKind) -> Change {
        let cell = &self.plan.cells[finding.cell];
        let unit = self.metrics[finding.metric].unit;
        let difference = finding.numbers.map(|numbers| numbers.difference);
        let noise = finding.noise;
        let matters = finding.numbers.map(|numbers| numbers.matters);
        let mut predicate =
            predicate(kind, (unit, finding.about.better), difference, matters, &finding.verdict);
        if let Some(noise) = noise {
            let noise = with_interval(unit, noise, None);
            predicate.push_str(&format!(", but not above the noise floor of {noise}"));
        }
        let setting = self.settings.iter().position(|setting| *setting == cell.setting).unwrap_or(0);
        Change {
            setting,
            metric: finding.metric,
            place: self.place(setting, finding.metric),
            difference,
            ratio: finding.numbers.and_then(|numbers| numbers.ratio),
            matters,
            verdict: finding.verdict.clone(),
            kind: finding.kind(),
            hidden_by_noise: noise,
            predicate,
        }
    }
}

/// Sentences with a cause first, then steps, then the rest.
fn rank(pair: &Pair) -> usize {
    match pair.kind {
        PairKind::OneKey(_) => 0,
        PairKind::Step => 1,
        PairKind::Choice => 2,
        PairKind::Baseline => 3,
        PairKind::Predicted => 4,
        PairKind::Several => 5,
        PairKind::Twin => 6,
    }
}

/// How much a pair has to tell: decided differences by their size, then what is open, then what is
/// the same.
fn weight(pair: &Pair) -> f64 {
    let of_change = |change: &Change| {
        let ratio = change.ratio.map_or(0.0, |ratio| ratio.value.ln().abs());
        match change.verdict {
            Verdict::Suspect(_) => 3e6,
            Verdict::More | Verdict::Less if change.hidden_by_noise.is_none() => 2e6 + ratio,
            Verdict::More | Verdict::Less | Verdict::Undecided { .. } => 1e6 + ratio,
            Verdict::Same | Verdict::Context => 1.0 + ratio,
            Verdict::TooFew { .. } | Verdict::NoData => 0.0,
        }
    };
    let first_metric = pair.changes.iter().filter(|change| change.metric == 0);
    first_metric.map(of_change).fold(0.0, f64::max)
}

/// How a sentence about a pair begins.
fn phrase(kind: &PairKind, subject: &Entry, against: &Entry) -> String {
    match kind {
        PairKind::OneKey(key) => one_key(key, subject, against),
        PairKind::Step => {
            format!("the step from {} to {}{}", short(against), short(subject), common_keys(subject, against))
        }
        PairKind::Baseline | PairKind::Predicted | PairKind::Several => {
            format!("{} against {}", subject.label, against.label)
        }
        PairKind::Choice => {
            let ground = match subject.ladder {
                Ladder::AsInstalled => ", as installed".to_owned(),
                Ladder::Equalised => format!(", equalised{}", common_keys(subject, against)),
            };
            let shown = |entry: &Entry| match entry.ladder {
                Ladder::AsInstalled => entry.label.clone(),
                Ladder::Equalised => short(entry),
            };
            format!("{} against {}{ground}", shown(subject), shown(against))
        }
        PairKind::Twin => format!("{} against itself", against.label),
    }
}

/// The one thing that differs, and under what.
fn one_key(key: &str, subject: &Entry, against: &Entry) -> String {
    let unknown = || "the default".to_owned();
    let runtime = |entry: &Entry| entry.runtime.clone().unwrap_or_else(unknown);
    let keys = common_keys(subject, against);
    match key {
        "runtime" if subject.layer == Layer::Runtime => {
            format!("choosing {} instead of {}{keys}", short(subject), short(against))
        }
        "runtime" => format!(
            "choosing {} instead of {} under {}{keys}",
            runtime(subject),
            runtime(against),
            subject.spec.name
        ),
        "engine" => {
            let under = subject.runtime.as_ref().map_or(String::new(), |name| format!(" with {name}"));
            format!("choosing {} instead of {}{under}{keys}", subject.spec.name, against.spec.name)
        }
        key => {
            let value = |entry: &Entry| match entry.spec.get(key) {
                Some(value) => format!("{key}={value}"),
                None => format!("the default {key}"),
            };
            if is_named(subject) || is_named(against) {
                let shown = |entry: &Entry| format!("{} ({})", short(entry), value(entry));
                return format!("choosing {} instead of {}{keys}", shown(subject), shown(against));
            }
            let (one, other) = (value(subject), value(against));
            format!("choosing {one} instead of {other} for {}{keys}", bare_name(subject))
        }
    }
}

/// The subject without its keys.
fn bare_name(entry: &Entry) -> String {
    match &entry.spec.runtime {
        Some(runtime) => format!("{}+{runtime}", entry.spec.name),
        None => entry.spec.name.clone(),
    }
}

/// The label, without keys where it was made of the specification.
fn short(entry: &Entry) -> String {
    if is_named(entry) { entry.label.clone() } else { bare_name(entry) }
}

/// Whether the person gave it a label.
fn is_named(entry: &Entry) -> bool {
    entry.label != entry.spec.to_string()
}

/// The keys in which two subjects agree, in brackets; of a step the keys of the upper one, since
/// the lower has none.
fn common_keys(subject: &Entry, against: &Entry) -> String {
    let same_layer = subject.layer == against.layer;
    let common = |pair: &&(String, String)| !same_layer || against.spec.keys.contains(pair);
    let keys: Vec<_> =
        subject.spec.keys.iter().filter(common).map(|(key, value)| format!("{key}={value}")).collect();
    if keys.is_empty() { String::new() } else { format!(" ({})", keys.join(", ")) }
}

/// How a sentence about a comparison of the plan begins.
pub(super) fn phrase_of(plan: &Plan, comparison: usize) -> String {
    let one = &plan.comparisons[comparison];
    clean(&phrase(&kind_of(&one.relation), &plan.subjects[one.subject], &plan.subjects[one.against]))
}

/// What a finding says, in a sentence that begins with its comparison's phrase.
pub(super) fn predicate_of(relation: &Relation, unit: Unit, finding: &Finding) -> String {
    let difference = finding.numbers.map(|numbers| numbers.difference);
    let matters = finding.numbers.map(|numbers| numbers.matters);
    predicate(&kind_of(relation), (unit, finding.about.better), difference, matters, &finding.verdict)
}

fn kind_of(relation: &Relation) -> PairKind {
    match relation {
        Relation::Baseline => PairKind::Baseline,
        Relation::Twin => PairKind::Twin,
        Relation::Choice => PairKind::Choice,
        Relation::Step => PairKind::Step,
        Relation::OneKey(key) => PairKind::OneKey(key.clone()),
        Relation::Predicted => PairKind::Predicted,
        Relation::Several => PairKind::Several,
    }
}

/// What a new run would need to decide.
pub(super) fn how_to_decide(new_run: Option<NewRun>) -> String {
    match new_run {
        Some(run) if run.rounds <= HOPELESS => {
            let goal = match run.goal {
                Goal::Same => "that it does not matter",
                Goal::Difference => "that there is a difference",
            };
            format!("a new run of {} rounds might show {goal}", run.rounds)
        }
        _ => "no number of rounds can be foretold to decide it".into(),
    }
}

fn predicate(
    kind: &PairKind,
    (unit, better): (Unit, Better),
    difference: Option<Estimate>,
    matters: Option<f64>,
    verdict: &Verdict,
) -> String {
    let Some(difference) = difference else {
        return match verdict {
            Verdict::Suspect(index) => format!("is suspect, see suspect {}", index + 1),
            _ => "cannot be compared: no round has values of both".into(),
        };
    };
    let interval = difference.interval.map(|interval| (interval.low, interval.high));
    let shown = with_interval(unit, difference.value, interval);
    let mirrored = || with_interval(unit, -difference.value, interval.map(|(low, high)| (-high, -low)));
    match (verdict, kind) {
        (Verdict::More, _) if better != Better::Less => format!("has {shown} more"),
        (Verdict::Less, _) if better != Better::Less => format!("has {} less", mirrored()),
        (Verdict::More, PairKind::OneKey(_)) => format!("costs {shown}"),
        (Verdict::Less, PairKind::OneKey(_)) => format!("saves {}", mirrored()),
        (Verdict::More, PairKind::Step) => format!("adds {shown}"),
        (Verdict::Less, PairKind::Step) => format!("takes away {}", mirrored()),
        (Verdict::More, _) => format!("takes {shown} more"),
        (Verdict::Less, _) => format!("takes {} less", mirrored()),
        (Verdict::Same, _) => {
            let matters = with_interval(unit, matters.unwrap_or(0.0), None);
            format!("makes no difference that matters: {shown}, nowhere beyond {matters}")
        }
        (Verdict::Undecided { smallest_visible, new_run }, _) => {
            let visible = with_interval(unit, *smallest_visible, None);
            let need = how_to_decide(*new_run);
            format!("is undecided: {shown}; smallest visible effect {visible}; {need}")
        }
        // How many rounds are wanting is said once, under the ladders.
        (Verdict::TooFew { .. }, _) => format!("has no verdict; so far {shown}"),
        (Verdict::Suspect(index), _) => format!("is suspect, see suspect {}: {shown}", index + 1),
        (Verdict::NoData, _) => "cannot be compared: no round has values of both".into(),
        (Verdict::Context, _) => format!("differs by {shown}"),
    }
}
