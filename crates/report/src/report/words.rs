//! What a finding says, as a sentence in two parts: the compared subjects, and the outcome. A sentence names a cause
//! only where exactly one thing differs; all others compare subjects as they are installed.

use std::collections::BTreeSet;

use crate::experiment::{MetricFacts as Metric, Setting};
use crate::plan::{Entry, Ladder, Layer, Plan, Relation};
use crate::report::text::{clean, estimated, in_brackets, listed, percent, with_interval};
use crate::stats::{Goal, NewRun};
use crate::subject::inherited::{differences, shown};
use crate::units::{Better, Unit, counted};
use crate::verdict::{About, Finding, HOPELESS, Verdict};

/// The values of a setting that others of the experiment do not share; all of them if there is no other setting.
pub(super) fn setting_values(plan: &Plan, experiment: &str, setting: &Setting) -> String {
    let is_alone = plan.cells.iter().all(|one| one.experiment != experiment || one.setting == *setting);
    let told = if is_alone { setting.0.clone() } else { plan.telling(experiment, setting) };
    clean(&listed(told.iter().map(|(_, value)| value), ", "))
}

/// How a sentence about a comparison of the plan begins.
pub(super) fn phrase(plan: &Plan, comparison: usize) -> String {
    let comparison = &plan.comparisons[comparison];
    let (subject, against) = (&plan.subjects[comparison.subject], &plan.subjects[comparison.against]);
    clean(&match &comparison.relation {
        Relation::OneKey { key } => one_key(key, subject, against),
        Relation::OneSetting { key, value, control } => {
            format!("{}: {key}={value} instead of {control}", subject.label)
        }
        Relation::Step => {
            let keys = common_keys(subject, against);
            format!("the step from {} to {}{keys}{}", short(against), short(subject), also(subject, against))
        }
        Relation::Baseline
        | Relation::Predicted
        | Relation::Several
        | Relation::Choice
        | Relation::KeyAndMore { .. } => {
            let [subject, against, ground] = by_name(&comparison.relation, subject, against);
            format!("{subject} against {against}{ground}")
        }
        Relation::Twin => format!("{} against itself", against.label),
    })
}

/// What else differs between two subjects that were asked to differ in one key, with both values.
pub fn besides(key: &str, subject: &Entry, against: &Entry) -> String {
    let more = differences(key, &subject.inherited, &against.inherited);
    format!("; no cause is named, since they also differ in {}", shown(&more))
}

/// What a step changes in addition to the layer: an engine's daemon has other limits than the shell that a runtime is called from.
fn also(subject: &Entry, against: &Entry) -> String {
    let more = differences("engine", &subject.inherited, &against.inherited);
    if more.is_empty() { String::new() } else { format!(", which also differ in {}", shown(&more)) }
}

/// Both sides of a finding by name.
pub(super) fn sides(about: &About) -> [String; 2] {
    match &about.relation {
        Relation::OneSetting { key, value, control } => {
            [format!("{} with {key}={value}", about.subject), format!("{key}={control}")]
        }
        _ => [about.subject.clone(), about.against.clone()],
    }
}

/// Both subjects of a comparison that names no cause, and how they are configured.
fn by_name(relation: &Relation, subject: &Entry, against: &Entry) -> [String; 3] {
    let ground = match relation {
        Relation::KeyAndMore { key } => besides(key, subject, against),
        Relation::Choice if subject.ladder == Ladder::Equalised => {
            let ground = format!(", equalised{}", common_keys(subject, against));
            return [short(subject), short(against), ground];
        }
        Relation::Choice => ", as installed".to_owned(),
        _ => String::new(),
    };
    [subject.label.clone(), against.label.clone(), ground]
}

/// What a decided finding says, in a sentence: "podman takes 29 ms more than docker, as installed".
pub(super) fn claim(plan: &Plan, finding: &Finding) -> String {
    use Relation::{Baseline, Choice, KeyAndMore, Predicted, Several};
    let comparison = &plan.comparisons[finding.comparison];
    let is_by_name =
        matches!(comparison.relation, Baseline | Predicted | Several | Choice | KeyAndMore { .. });
    if !is_by_name || !matches!(finding.verdict, Verdict::More | Verdict::Less) {
        return format!("{} {}", phrase(plan, finding.comparison), predicate(finding));
    }
    let (subject, against) = (&plan.subjects[comparison.subject], &plan.subjects[comparison.against]);
    let [subject, against, ground] = by_name(&comparison.relation, subject, against);
    clean(&format!("{subject} {}", predicate_than(finding, &format!(" than {against}{ground}"))))
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

/// The label, without keys if it was derived from the specification.
fn short(entry: &Entry) -> String {
    if is_named(entry) { entry.label.clone() } else { bare_name(entry) }
}

/// Whether the user gave it a label.
fn is_named(entry: &Entry) -> bool {
    entry.label != entry.spec.to_string()
}

/// The keys that two subjects share, in brackets; for a step those of the upper one, since the lower has none.
fn common_keys(subject: &Entry, against: &Entry) -> String {
    let same_layer = subject.layer == against.layer;
    let common = |pair: &&(String, String)| !same_layer || against.spec.keys.contains(pair);
    let keys = subject.spec.keys.iter().filter(common).map(|(key, value)| format!("{key}={value}"));
    in_brackets(&listed(keys, ", "))
}

/// The words for a finding whose verdict is not a difference.
pub(super) fn undecided(verdict: &Verdict, unit: Unit, shown: &str, matters: f64) -> String {
    match verdict {
        Verdict::Same => {
            let matters = with_interval(unit, matters, None);
            format!("makes no difference that matters: {shown}, within {matters}")
        }
        Verdict::Undecided { smallest_visible, new_run } => {
            let visible = with_interval(unit, *smallest_visible, None);
            let need = how_to_decide(*new_run);
            format!("is undecided: {shown}; smallest visible effect {visible}; {need}")
        }
        // The missing rounds are reported once, in the section of the experiment.
        Verdict::TooFew { .. } => format!("has no verdict; so far {shown}"),
        Verdict::Suspect(index) => format!("is suspect, see suspect {}: {shown}", index + 1),
        Verdict::NoData => NO_DATA.into(),
        Verdict::More | Verdict::Less | Verdict::Context => format!("differs by {shown}"),
    }
}

const NO_DATA: &str = "cannot be compared: no round has values for both";

/// What a new run would need to decide.
fn how_to_decide(new_run: Option<NewRun>) -> String {
    match new_run {
        Some(run) if run.rounds <= HOPELESS => {
            let goal = match run.goal {
                Goal::Same => "that it does not matter",
                Goal::Difference => "a difference",
            };
            format!("a new run of {} rounds might show {goal}", run.rounds)
        }
        _ => "no prediction of how many rounds would decide it".into(),
    }
}

/// What a finding says, in words that continue its comparison's phrase.
pub(super) fn predicate(finding: &Finding) -> String {
    predicate_than(finding, "")
}

/// The same, with words behind "more" and "less".
fn predicate_than(finding: &Finding, than: &str) -> String {
    let unit = finding.about.unit;
    let Some(difference) = finding.difference else {
        return match finding.verdict {
            Verdict::Suspect(index) => format!("is suspect, see suspect {}", index + 1),
            _ => NO_DATA.into(),
        };
    };
    let shown = estimated(unit, &difference);
    let mirrored = || estimated(unit, &difference.map(|value| -value));
    let said = match (&finding.verdict, &finding.about.relation) {
        (Verdict::Undecided { .. }, _) if finding.failed_rounds > 0 => {
            let failed = counted(finding.failed_rounds, "round");
            format!("is undecided: {shown}; {failed} failed and could have shown any difference")
        }
        (Verdict::More, _) if finding.about.better != Better::Less => format!("has {shown} more{than}"),
        (Verdict::Less, _) if finding.about.better != Better::Less => {
            format!("has {} less{than}", mirrored())
        }
        (Verdict::More, relation) if relation.names_a_cause() => format!("costs {shown}"),
        (Verdict::Less, relation) if relation.names_a_cause() => format!("saves {}", mirrored()),
        (Verdict::More, Relation::Step) => format!("adds {shown}"),
        (Verdict::Less, Relation::Step) => format!("removes {}", mirrored()),
        (Verdict::More, _) => format!("takes {shown} more{than}"),
        (Verdict::Less, _) => format!("takes {} less{than}", mirrored()),
        (verdict, _) => undecided(verdict, unit, &shown, finding.matters.unwrap_or(0.0)),
    };
    match finding.noise {
        Some(noise) => {
            format!("{said}, but not above the noise floor of {}", with_interval(unit, noise, None))
        }
        None => said,
    }
}

/// The keys that all of these subjects share.
pub(super) fn shared_keys<'a>(subjects: impl Iterator<Item = &'a Entry>) -> BTreeSet<(String, String)> {
    let keys = |entry: &Entry| entry.spec.keys.iter().cloned().collect::<BTreeSet<_>>();
    subjects.map(keys).reduce(|one, other| &one & &other).unwrap_or_default()
}

/// A label, without the keys shown elsewhere if it was derived from the specification.
pub(super) fn without_keys(entry: &Entry, told: &BTreeSet<(String, String)>) -> String {
    let mut spec = entry.spec.clone();
    spec.keys.retain(|pair| !told.contains(pair));
    clean(&if is_named(entry) { entry.label.clone() } else { spec.to_string() })
}

/// A setting in words, where there are plain ones.
pub(super) fn in_words(values: &str) -> String {
    values.replace("idle", "after a pause").replace("primed", "back to back")
}

/// What subjects with these keys do without, in words.
pub(super) fn done_without(shared: &str) -> Vec<&str> {
    let mut all: Vec<&str> = shared.split(", ").filter_map(|pair| pair.strip_suffix("=none")).collect();
    for key in &mut all {
        if *key == "net" {
            *key = "network";
        }
    }
    all.sort_unstable_by_key(|key| *key != "network");
    all
}

/// The title of engines without what only some have.
pub(super) fn without(shared: &str) -> String {
    match &done_without(shared)[..] {
        [] => "equalised".to_owned(),
        all => format!("without {}", listed(all, ", ")),
    }
}

/// The first metric of a launch, in words.
pub(super) fn called(metric: &str) -> &str {
    match metric {
        "returned" => "until it returns",
        "first_instruction" => "until its program runs",
        "gone" => "until nothing is left",
        "ready" => "until it is ready",
        "verbs" => "all",
        "beyond_start" => "the rest",
        other => other,
    }
}

/// What a list of these metrics is called.
pub(crate) fn insides(metrics: &[Metric]) -> &'static str {
    match metrics.iter().any(|metric| metric.unit == Unit::Seconds) {
        true => "What the timed interval includes",
        false => "What the values are",
    }
}

/// What a metric's interval includes, and the smallest difference that matters.
pub(crate) fn inside(metric: &Metric) -> String {
    let (absolute, relative) = metric.margin;
    let margin = match metric.decisive {
        true => format!(
            "Smallest difference that matters: {} or {}, whichever is larger.",
            with_interval(metric.unit, absolute, None),
            percent(relative)
        ),
        false => "For context: no verdicts.".into(),
    };
    format!("{} ({}). {margin}", metric.meaning, metric.unit.name())
}
