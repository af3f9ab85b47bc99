//! Which subjects are compared with which, and which settings, and why. A cause can only be named if exactly one thing
//! differs; everything else is compared as installed.

use std::collections::BTreeSet;

use super::{Comparison, Entry, Ladder, Layer, Plan, Relation};
use crate::experiment::{Compared, Controlled, Experiment};
use crate::subject::inherited::differences;
use crate::subject::{Key, Spec, kinds};

impl Plan {
    /// Adds the comparisons of these experiments: of the subjects that have cells in them, and of their settings.
    pub(super) fn compare(&mut self, experiments: &[&'static Experiment]) {
        for experiment in experiments.iter().filter(|one| one.decides()) {
            let own = [self.between_subjects(experiment), self.between_settings(experiment)].concat();
            self.comparisons.extend(own);
        }
    }

    fn between_subjects(&self, experiment: &Experiment) -> Vec<Comparison> {
        let (members, baseline) = (self.members_of(experiment.name), self.baseline_of(experiment.name));
        let is_wanted =
            |relation: &Relation| experiment.compares == Compared::Layers || relation.is_of_one_key();
        let pairs = pairs(&self.subjects, &members, baseline).into_iter();
        let wanted = pairs.filter(|(.., relation)| is_wanted(relation));
        let experiment = experiment.name;
        wanted
            .map(|(subject, against, relation)| Comparison { experiment, subject, against, relation })
            .collect()
    }

    /// The settings that have a control, for every subject with cells in both.
    fn between_settings(&self, experiment: &Experiment) -> Vec<Comparison> {
        let members = self.members_of(experiment.name).into_iter();
        let members: Vec<usize> = members.filter(|member| self.is_original(*member)).collect();
        let all = experiment.controls.iter().flat_map(|one| members.iter().map(move |member| (one, *member)));
        let comparison = |(one, member): (&Controlled, usize)| Comparison {
            experiment: experiment.name,
            subject: member,
            against: member,
            relation: Relation::OneSetting {
                key: one.key.to_owned(),
                value: one.value.to_owned(),
                control: one.control.to_owned(),
            },
        };
        all.map(comparison).filter(|one| !self.cells_of(one).is_empty()).collect()
    }
}

/// The pairs of members to compare, and why; each pair once, with its strongest reason.
fn pairs(subjects: &[Entry], members: &[usize], baseline: usize) -> Vec<(usize, usize, Relation)> {
    let mut pairs = Vec::new();
    for &index in members {
        let entry = &subjects[index];
        if let Some(original) = entry.twin_of {
            pairs.push((index, original, Relation::Twin));
        } else if let Some(original) = &entry.variant_of {
            // A variant only shows the effect of its one key.
            let of = members
                .iter()
                .copied()
                .find(|&other| subjects[other].label == *original && subjects[other].twin_of.is_none());
            let relation = of.and_then(|of| Some((of, in_one_key(entry, &subjects[of])?)));
            pairs.extend(relation.map(|(of, relation)| (index, of, relation)));
        } else if index != baseline {
            let reason = relation(entry, &subjects[baseline]).unwrap_or(Relation::Baseline);
            pairs.push((index, baseline, reason));
        }
    }
    let is_original = |entry: &Entry| entry.twin_of.is_none() && entry.variant_of.is_none();
    let originals: Vec<_> = members.iter().copied().filter(|&index| is_original(&subjects[index])).collect();
    for (position, &first) in originals.iter().enumerate() {
        for &second in &originals[position + 1..] {
            if first == baseline || second == baseline {
                continue;
            }
            if let Some(relation) = relation(&subjects[second], &subjects[first]) {
                pairs.push((second, first, relation));
            }
        }
    }
    pairs
}

/// How the subject `upper` relates to `lower`, which comes before it.
fn relation(upper: &Entry, lower: &Entry) -> Option<Relation> {
    if let Some(relation) = in_one_key(upper, lower) {
        return Some(relation);
    }
    if upper.layer == lower.layer {
        let is_asked = upper.ladder == lower.ladder && choices_between(&upper.spec, &lower.spec) <= 1;
        return is_asked.then_some(Relation::Choice);
    }
    let step = match (lower.layer, upper.layer) {
        (Layer::Floor, Layer::Runtime) => true,
        // An engine is built on the runtime that it calls; what it adds is only shown if neither has a
        // network that the other lacks.
        (Layer::Runtime, Layer::Engine) => {
            upper.ladder == Ladder::Equalised && upper.runtime.as_deref() == Some(&lower.spec.name)
        }
        _ => false,
    };
    step.then_some(Relation::Step)
}

/// In how many things the user chose two subjects to differ. An engine comes with its own runtime, network
/// and log: that is one choice.
fn choices_between(one: &Spec, other: &Spec) -> usize {
    let keys: BTreeSet<&str> = one.keys.iter().chain(&other.keys).map(|(key, _)| key.as_str()).collect();
    usize::from(one.name != other.name)
        + usize::from(one.runtime != other.runtime)
        + keys.into_iter().filter(|key| one.get(key) != other.get(key)).count()
}

/// How two subjects relate that differ in one thing as far as was asked for. Whether that is all, the probe says.
fn in_one_key(one: &Entry, other: &Entry) -> Option<Relation> {
    let key = only_difference(one, other)?;
    let is_all = differences(&key, &one.inherited, &other.inherited).is_empty();
    Some(if is_all { Relation::OneKey { key } } else { Relation::KeyAndMore { key } })
}

/// The one key, runtime, engine or build in which two subjects of a layer differ. The values in force
/// count: a key that is not given has its kind's default, which can differ from another kind's.
fn only_difference(one: &Entry, other: &Entry) -> Option<String> {
    if one.layer != other.layer {
        return None;
    }
    let engine_differs = one.spec.name != other.spec.name;
    let mut differences = Vec::new();
    if engine_differs {
        differences.push(match one.layer {
            Layer::Engine => "engine",
            Layer::Runtime => "runtime",
            Layer::Bare | Layer::Floor | Layer::None => return None,
        });
    }
    if one.layer == Layer::Engine && one.runtime != other.runtime {
        differences.push("runtime");
    }
    let given = one.spec.keys.iter().chain(&other.spec.keys).map(|(key, _)| key.as_str());
    let shared = declared(&one.spec).iter().map(|key| key.name);
    let shared = shared.filter(|name| declared(&other.spec).iter().any(|key| key.name == *name));
    let keys: BTreeSet<_> = given.chain(shared).collect();
    let alike = |key: &str| are_alike(key, in_force(&one.spec, key), in_force(&other.spec, key));
    differences.extend(keys.into_iter().filter(|key| !alike(key)));
    // The defaults of engines are not all known beforehand; the engine itself is the only difference if
    // those that cost time are known to be alike.
    let known = |key: &&str| in_force(&one.spec, key).is_some() && in_force(&other.spec, key).is_some();
    let equal_ground = ["net", "log", "seccomp"].iter().all(known);
    match differences[..] {
        ["engine"] if !equal_ground => None,
        // Another daemon has its own version, storage and age; a process without an image runs the host's files.
        ["host"] => None,
        ["image"] if one.layer == Layer::Bare => None,
        [only] => Some(only.to_owned()),
        _ => None,
    }
}

/// The keys of a subject's kind.
pub(super) fn declared(spec: &Spec) -> &'static [Key] {
    kinds::of(spec).map(|kind| kind.keys).unwrap_or_default()
}

/// Whether two values mean the same. Engines call their own command lines by different names.
pub(super) fn are_alike(key: &str, one: Option<&str>, other: Option<&str>) -> bool {
    let is_command_line = |value: Option<&str>| matches!(value, Some("cli" | "ctr"));
    one == other || (key == "client" && is_command_line(one) && is_command_line(other))
}

/// The value of a key as given, or its kind's default; none if that depends on the engine.
pub(super) fn in_force<'a>(spec: &'a Spec, key: &str) -> Option<&'a str> {
    let default = || declared(spec).iter().find(|known| known.name == key)?.default;
    spec.get(key).or_else(default)
}
