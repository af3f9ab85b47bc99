//! Which subjects are compared with which, and why. A cause may be named only where exactly one
//! thing differs; everything else is compared as it was installed.

use std::collections::BTreeSet;

use super::{Entry, Ladder, Layer, Relation};

/// Which of the members are compared with which, and why; each pair once, under its strongest reason.
pub fn of(subjects: &[Entry], members: &[usize], baseline: usize) -> Vec<(usize, usize, Relation)> {
    let mut pairs = Vec::new();
    for &index in members {
        let entry = &subjects[index];
        if let Some(original) = entry.twin_of {
            pairs.push((index, original, Relation::Twin));
        } else if index != baseline {
            let reason = relation(entry, &subjects[baseline]).unwrap_or(Relation::Baseline);
            pairs.push((index, baseline, reason));
        }
    }
    let originals: Vec<_> =
        members.iter().copied().filter(|&index| subjects[index].twin_of.is_none()).collect();
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

/// How the subject `upper` relates to `lower`, which was named before it.
fn relation(upper: &Entry, lower: &Entry) -> Option<Relation> {
    if let Some(key) = only_difference(upper, lower) {
        return Some(Relation::OneKey(key));
    }
    if upper.layer == lower.layer {
        return (upper.ladder == lower.ladder).then_some(Relation::Layer);
    }
    let step = match (lower.layer, upper.layer) {
        (Layer::Floor, Layer::Runtime) => true,
        // An engine stands on the runtime that it calls; what it adds is told where neither has a
        // network that the other lacks.
        (Layer::Runtime, Layer::Engine) => {
            upper.ladder == Ladder::Equalised && upper.runtime.as_deref() == Some(&lower.spec.name)
        }
        _ => false,
    };
    step.then_some(Relation::Step)
}

/// The one key, runtime, engine or build in which two subjects of a layer differ.
fn only_difference(one: &Entry, other: &Entry) -> Option<String> {
    if one.layer != other.layer {
        return None;
    }
    let mut differences = Vec::new();
    if one.spec.name != other.spec.name {
        differences.push(if one.layer == Layer::Engine { "engine" } else { return None });
    }
    if one.layer == Layer::Engine && one.runtime != other.runtime {
        differences.push("runtime");
    }
    let keys: BTreeSet<_> =
        one.spec.keys.iter().chain(&other.spec.keys).map(|(key, _)| key.as_str()).collect();
    differences.extend(keys.into_iter().filter(|key| one.spec.get(key) != other.spec.get(key)));
    // Engines differ in defaults that are not keys; only where these are set alike is the engine
    // itself the one difference.
    let equal_ground = one.spec.get("net").is_some() && one.spec.get("log").is_some();
    match differences[..] {
        ["engine"] if !equal_ground => None,
        // Another daemon has its own version, storage and age; another image its own mount.
        ["host" | "image"] => None,
        [only] => Some(only.to_owned()),
        _ => None,
    }
}
