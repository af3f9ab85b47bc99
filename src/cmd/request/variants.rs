//! The subjects that an experiment gets without being asked: the default ones within its scope, and the variants of each
//! subject in the keys that the experiment varies.

use super::named;
use crate::experiment::{Experiment, Scope, Variation, Varied};
use crate::plan::{Ladder, Layer};
use crate::session::Wanted;
use crate::subject::{self, Kind};
use crate::sys::raw;

/// The default subjects, each for the experiments whose scope it is in, or would be in if others did not work; without those
/// that are in none.
pub fn in_company(experiments: &[&'static str], defaults: Vec<Wanted>) -> Vec<Wanted> {
    let all = (0..defaults.len()).filter_map(|index| {
        let in_part = |part: Part| -> Vec<&'static str> {
            let its = |one: &&Experiment| part_in(one.scope, &defaults, index) == Some(part);
            named(experiments).filter(its).map(|one| one.name).collect()
        };
        let (own, spare_in) = (in_part(Part::Own), in_part(Part::Spare));
        if own.len() + spare_in.len() == 0 {
            return None;
        }
        let only_in =
            if own.len() == experiments.len() { Vec::new() } else { [own, spare_in.clone()].concat() };
        Some(Wanted { only_in, spare_in, ..defaults[index].clone() })
    });
    all.collect()
}

/// The part of a subject in an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// It takes part.
    Own,
    /// It takes part if no earlier subject of its layer works.
    Spare,
}

fn part_in(scope: Scope, defaults: &[Wanted], index: usize) -> Option<Part> {
    let wanted = &defaults[index];
    let kind = subject::kind_of(&wanted.spec).ok()?;
    let as_installed = wanted.ladder == Ladder::AsInstalled;
    let is_plain = as_installed && wanted.spec.runtime.is_none();
    let is_another = |other: &Wanted| {
        let layer = subject::kind_of(&other.spec).is_ok_and(|other| other.layer == kind.layer);
        layer && filters(other)
    };
    let after_the_first = if defaults[..index].iter().any(is_another) { Part::Spare } else { Part::Own };
    match (scope, kind.layer) {
        (Scope::All, _) => Some(Part::Own),
        (Scope::AsInstalled, _) => as_installed.then_some(Part::Own),
        (Scope::Engines, Layer::Floor | Layer::Engine) => is_plain.then_some(Part::Own),
        (Scope::Engines, _) => None,
        _ if !is_plain || !filters(wanted) => None,
        (Scope::Few, layer) if layer != Layer::Runtime => Some(Part::Own),
        (Scope::Few | Scope::OneOfEach, _) => Some(after_the_first),
    }
}

/// Whether system calls are filtered by default, if the subject can filter them at all.
fn filters(wanted: &Wanted) -> bool {
    let kind = subject::kind_of(&wanted.spec).ok();
    let key = kind.and_then(|kind| kind.keys.iter().find(|key| key.name == "seccomp"));
    key.is_none_or(|key| key.default == Some("default"))
}

/// The subjects followed by their variants, each for the experiments that vary its key, as some do only if the user asks why.
pub fn varied(experiments: &[&'static str], subjects: Vec<Wanted>, why: bool) -> Vec<Wanted> {
    let mut all = subjects.clone();
    for wanted in &subjects {
        let Ok(kind) = subject::kind_of(&wanted.spec) else { continue };
        for experiment in named(experiments) {
            if !wanted.only_in.is_empty() && !wanted.only_in.contains(&experiment.name) {
                continue;
            }
            let is_varied = |variation: &&Variation| match variation.of {
                Varied::Every => true,
                Varied::Floor => kind.layer == Layer::Floor,
                Varied::Engines => kind.layer == Layer::Engine,
                Varied::OrdinaryUsers => kind.layer == Layer::Engine && is_for_an_ordinary_user(wanted),
                Varied::BelowOthers => {
                    subjects.iter().any(|other| is_above(other, kind.layer, experiment.name))
                }
            };
            let varies = experiment.varies.iter().filter(|one| why || !one.if_asked).filter(is_varied);
            for variant in varies.flat_map(|one| variants(one, kind, wanted)) {
                add(&mut all, variant, experiment.name);
            }
        }
    }
    all
}

/// Whether the engine works for an ordinary user: the one who is named, or the one who started dunnage.
fn is_for_an_ordinary_user(wanted: &Wanted) -> bool {
    wanted.spec.get("rootless").is_some() || raw::user_and_group().0 != 0
}

/// Whether a subject of a layer above takes part in an experiment.
fn is_above(other: &Wanted, layer: Layer, experiment: &str) -> bool {
    let takes_part = other.only_in.is_empty() || other.only_in.contains(&experiment);
    takes_part && subject::kind_of(&other.spec).is_ok_and(|kind| kind.layer > layer)
}

/// A variant for each value of the key, unless the subject sets the key or does not have it.
fn variants(variation: &Variation, kind: &Kind, original: &Wanted) -> Vec<Wanted> {
    let Some(key) = kind.keys.iter().find(|key| key.name == variation.key) else { return Vec::new() };
    if original.spec.get(key.name).is_some() {
        return Vec::new();
    }
    let values =
        variation.values.iter().filter(|value| key.values.allow(value) && key.default != Some(**value));
    let variant = |value: &&'static str| {
        let mut spec = original.spec.with(&[(key.name, value)]);
        spec.label = spec.label.map(|label| format!("{label}-{}-{value}", key.name));
        Wanted { spec, variant_of: Some(original.spec.shown()), ..original.clone() }
    };
    values.map(variant).collect()
}

/// Adds a variant for an experiment, unless the same subject is already there.
fn add(all: &mut Vec<Wanted>, variant: Wanted, experiment: &'static str) {
    match all.iter_mut().find(|other| other.spec.shown() == variant.spec.shown()) {
        Some(other) if other.variant_of.is_some() && !other.only_in.contains(&experiment) => {
            other.only_in.push(experiment);
        }
        Some(_) => {}
        None => all.push(Wanted { only_in: vec![experiment], ..variant }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Origin;
    use crate::subject::Spec;

    fn wanted(text: &str) -> Wanted {
        Wanted::new(Spec::parse(text).unwrap(), Ladder::AsInstalled, Origin::Named)
    }

    #[test]
    fn a_key_is_varied_where_the_kind_knows_it_and_nobody_gave_it() {
        let variation = Variation::of("seccomp", &["off", "default"]);
        let shown = |text: &str| -> Vec<String> {
            let original = wanted(text);
            let kind = subject::kind_of(&original.spec).unwrap();
            variants(&variation, kind, &original).iter().map(|one| one.spec.shown()).collect()
        };
        assert_eq!(shown("crun"), ["crun:seccomp=off"]);
        assert_eq!(shown("own=crun"), ["own-seccomp-off"]);
        assert_eq!(shown("crun:seccomp=off"), [""; 0]);
        assert_eq!(shown("bare"), [""; 0]);
    }

    #[test]
    fn engines_lack_one_thing_at_a_time_only_if_it_is_asked_why() {
        let all = |why: bool| -> Vec<String> {
            let subjects = vec![wanted("crun"), wanted("docker:net=none")];
            varied(&["density"], subjects, why).iter().map(|one| one.spec.shown()).collect()
        };
        assert_eq!(all(false), ["crun", "docker:net=none"]);
        assert_eq!(all(true)[2..], ["docker:log=none,net=none", "docker:client=api,net=none"]);
    }

    #[test]
    fn what_only_a_layer_above_needs_is_made_beneath_one() {
        let all = |texts: &[&str]| -> Vec<String> {
            let subjects = texts.iter().map(|text| wanted(text)).collect();
            varied(&["start"], subjects, false).iter().map(|one| one.spec.shown()).collect()
        };
        assert_eq!(all(&["bare", "floor"]), ["bare", "floor"]);
        assert_eq!(all(&["floor", "crun"]), ["floor", "crun", "floor:cgroup=procs"]);
    }

    #[test]
    fn root_is_not_mapped_to_itself_to_see_what_mapping_costs() {
        let all: Vec<_> = varied(&["owners"], vec![wanted("podman"), wanted("podman:rootless=ann")], false)
            .iter()
            .map(|one| one.spec.shown())
            .collect();
        let is_there = |shown: &str| all.iter().any(|one| one == shown);
        assert_eq!(is_there("podman:userns=keep-id"), raw::user_and_group().0 != 0, "{all:?}");
        assert!(is_there("podman:userns=auto") && is_there("podman:rootless=ann,userns=keep-id"), "{all:?}");
    }

    #[test]
    fn a_variant_that_is_named_already_is_not_made() {
        let mut all = vec![wanted("crun"), wanted("crun:seccomp=off")];
        let variant = Wanted { variant_of: Some("crun".into()), ..wanted("crun:seccomp=off") };
        add(&mut all, variant.clone(), "start");
        assert_eq!(all.len(), 2);
        assert!(all[1].variant_of.is_none());
        let mut all = vec![wanted("crun")];
        add(&mut all, variant.clone(), "start");
        add(&mut all, variant, "exec");
        assert_eq!((all.len(), &all[1].only_in), (2, &vec!["start", "exec"]));
    }

    #[test]
    fn a_small_company_has_one_runtime_and_no_engine_with_one_of_choice() {
        let mut defaults: Vec<_> = [
            "bare",
            "floor",
            "crun",
            "runc",
            "containerd",
            "docker",
            "docker+crun",
            "docker:net=none",
            "podman",
        ]
        .map(wanted)
        .to_vec();
        defaults[7].ladder = Ladder::Equalised;
        let in_part = |scope, part| -> Vec<String> {
            let all = (0..defaults.len()).filter(|&index| part_in(scope, &defaults, index) == Some(part));
            all.map(|index| defaults[index].spec.to_string()).collect()
        };
        let members = |scope| in_part(scope, Part::Own);
        // If the first is not installed, another takes its place.
        assert_eq!(in_part(Scope::Few, Part::Spare), ["runc"]);
        assert_eq!(in_part(Scope::OneOfEach, Part::Spare), ["runc", "podman"]);
        assert_eq!(members(Scope::Few), ["bare", "floor", "crun", "docker", "podman"]);
        assert_eq!(members(Scope::OneOfEach), ["bare", "floor", "crun", "docker"]);
        assert_eq!(members(Scope::Engines), ["floor", "containerd", "docker", "podman"]);
        assert_eq!(members(Scope::AsInstalled).len(), 8);
        assert_eq!(members(Scope::All).len(), 9);
    }
}
