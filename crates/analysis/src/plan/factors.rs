//! Complete factorials: every combination of the two levels of some factors exactly once, and no other
//! difference. Next to pairs that differ in one key, they are what a cause can be named from, including the
//! factors' interactions. Anything but a complete factorial is refused with the reason.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::pairs::{are_alike, declared, in_force};
use super::{Layer, Plan};
use crate::experiment::Weight;
use crate::share;
use crate::subject::Spec;
use crate::text::{listed, quoted};
use crate::units::counted;

/// Something with two levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// `engine`, `runtime`, or a key of the subjects.
    pub name: String,
    /// Its levels; the first is the first subject's.
    #[serde(serialize_with = "share::levels")]
    pub levels: [String; 2],
}

/// A complete factorial among the subjects of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factorial {
    /// The factors.
    pub factors: Vec<Factor>,
    /// The subject of each combination: bit i of the index means the second level of factor i.
    pub subjects: Vec<usize>,
}

/// How many factors a factorial can have: one is a pair, and the interactions of more than four are
/// unreadable.
const FEWEST: usize = 2;
const MOST: usize = 4;
/// Keys that change more than themselves: another daemon has its own version and storage,
/// another image its own mount, another user and another build their own everything.
const NO_FACTORS: [&str; 4] = ["host", "image", "bin", "rootless"];

impl Factorial {
    /// All effects: main effects first, then interactions of two, of three. Bit i stands for factor i.
    pub fn effects(&self) -> Vec<usize> {
        let mut all: Vec<usize> = (1..1 << self.factors.len()).collect();
        all.sort_by_key(|effect| effect.count_ones());
        all
    }
}

impl Plan {
    /// The cells of the factorial in each experiment and setting in which all of them are planned, by
    /// combination.
    pub fn factorial_cells(&self) -> Vec<Vec<usize>> {
        let Some(factorial) = &self.factorial else { return Vec::new() };
        let first = factorial.subjects[0];
        let starts = (0..self.cells.len()).filter(|&cell| self.cells[cell].subject == first);
        let all = |start: usize| {
            let own = &self.cells[start];
            let of = |subject: &usize| self.cell_of(own.experiment, &own.setting, *subject);
            factorial.subjects.iter().map(of).collect::<Option<Vec<_>>>()
        };
        starts.filter_map(all).collect()
    }

    /// The number of verdicts of the factorial in an experiment: effects × settings × decisive metrics.
    pub(super) fn factorial_verdicts(&self, experiment: &str) -> usize {
        let effects = self.factorial.as_ref().map_or(0, |one| (1 << one.factors.len()) - 1);
        let decisive = |cells: &Vec<usize>| {
            let metrics = self.metrics(&self.cells[cells[0]]);
            metrics.iter().filter(|metric| metric.weight == Weight::Verdict).count()
        };
        let all = self.factorial_cells();
        let own = all.iter().filter(|cells| self.cells[cells[0]].experiment == experiment);
        effects * own.map(decisive).sum::<usize>()
    }
}

/// The factorial of these factors among the subjects, each with its layer: the subjects of the highest layer
/// are its combinations, those below are controls. Otherwise the reason why there is none.
pub fn complete(names: &[String], subjects: &[(&Spec, Layer)]) -> Result<Factorial, String> {
    if !(FEWEST..=MOST).contains(&names.len()) {
        return Err(format!(
            "{} declared, but a factorial has {FEWEST} to {MOST}",
            counted(names.len(), "factor")
        ));
    }
    if let Some(twice) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
        return Err(format!("the factor `{}` is named twice", twice.1));
    }
    let highest = subjects.iter().map(|(_, layer)| *layer).max();
    let members: Vec<(usize, &Spec)> = subjects
        .iter()
        .enumerate()
        .filter(|(_, (_, layer))| Some(*layer) == highest)
        .map(|(index, (spec, _))| (index, *spec))
        .collect();
    let layer = highest.unwrap_or(Layer::Engine);
    let factors = names.iter().map(|name| factor(name, layer, &members));
    let factors: Vec<Factor> = factors.collect::<Result<_, _>>()?;
    let mut places: Vec<Option<usize>> = vec![None; 1 << factors.len()];
    for (index, spec) in &members {
        let bit = |(position, factor): (usize, &Factor)| {
            usize::from(level(&factor.name, layer, spec).as_deref() == Some(&factor.levels[1])) << position
        };
        let place = factors.iter().enumerate().map(bit).sum::<usize>();
        if let Some(other) = places[place].replace(*index) {
            let (one, other) = (subjects[other].0.shown(), spec.shown());
            let shared = combination(&factors, place);
            return Err(format!("`{one}` and `{other}` are the same combination ({shared})"));
        }
    }
    if let Some(missing) = places.iter().position(Option::is_none) {
        let (missing, factors, subjects) = (combination(&factors, missing), factors.len(), places.len());
        return Err(format!(
            "no subject has {missing}; a complete factorial of {factors} factors needs {subjects} subjects in its layer, one for each combination"
        ));
    }
    nothing_else_differs(&factors, &members)?;
    Ok(Factorial { factors, subjects: places.into_iter().flatten().collect() })
}

/// A factor with its two levels.
fn factor(name: &str, layer: Layer, members: &[(usize, &Spec)]) -> Result<Factor, String> {
    let is_key = |spec: &Spec| declared(spec).iter().any(|key| key.name == name);
    let is_possible = match name {
        "engine" => layer == Layer::Engine,
        "runtime" => layer >= Layer::Runtime,
        name => !NO_FACTORS.contains(&name) && members.iter().any(|(_, spec)| is_key(spec)),
    };
    if !is_possible {
        let keys: BTreeSet<&str> =
            members.iter().flat_map(|(_, spec)| declared(spec)).map(|key| key.name).collect();
        let keys = keys.into_iter().filter(|key| !NO_FACTORS.contains(key));
        let valid = quoted(["engine", "runtime"].into_iter().chain(keys));
        return Err(format!("there is no factor `{name}` here\n\nhint: factors are {valid}"));
    }
    let mut levels: Vec<String> = Vec::new();
    for (_, spec) in members {
        let Some(level) = level(name, layer, spec) else {
            return Err(format!("`{}` does not set `{name}`, which is a factor", spec.shown()));
        };
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    let shown = levels.join(", ");
    let levels = <[String; 2]>::try_from(levels);
    levels
        .map(|levels| Factor { name: name.to_owned(), levels })
        .map_err(|_| format!("the factor `{name}` must have two levels among the subjects, but has: {shown}"))
}

fn level(name: &str, layer: Layer, spec: &Spec) -> Option<String> {
    match name {
        "engine" => Some(spec.name.clone()),
        "runtime" if layer == Layer::Runtime => Some(spec.name.clone()),
        "runtime" => spec.runtime.clone(),
        key => in_force(spec, key).map(str::to_owned),
    }
}

fn combination(factors: &[Factor], place: usize) -> String {
    let level = |(position, factor): (usize, &Factor)| {
        format!("{}={}", factor.name, factor.levels[place >> position & 1])
    };
    listed(factors.iter().enumerate().map(level), ", ")
}

/// Any other difference would be mistaken for the effect of a factor.
fn nothing_else_differs(factors: &[Factor], members: &[(usize, &Spec)]) -> Result<(), String> {
    let is_factor = |name: &str| factors.iter().any(|factor| factor.name == name);
    let (_, first) = members[0];
    for (_, spec) in members {
        let (one, other) = (first.shown(), spec.shown());
        let refused =
            |what: &str| Err(format!("`{one}` and `{other}` also differ in {what}, which is not a factor"));
        let is_named = is_factor("engine") || (is_factor("runtime") && spec.runtime.is_none());
        if spec.name != first.name && !is_named {
            return refused("their kind");
        }
        if spec.runtime != first.runtime && !is_factor("runtime") {
            return refused("their `runtime`");
        }
        let keys: BTreeSet<&str> = [first, *spec]
            .into_iter()
            .flat_map(|one| {
                one.keys.iter().map(|(key, _)| key.as_str()).chain(declared(one).iter().map(|key| key.name))
            })
            .collect();
        let differs =
            |key: &&str| !is_factor(key) && !are_alike(key, in_force(first, key), in_force(spec, key));
        let known_to_both = |key: &str| {
            first.get(key).is_some()
                || spec.get(key).is_some()
                || [first, *spec].iter().all(|one| declared(one).iter().any(|known| known.name == key))
        };
        if let Some(key) = keys.into_iter().filter(|key| known_to_both(key)).find(differs) {
            return refused(&format!("`{key}`"));
        }
        // The engines' own defaults are not known here, so if the engine is a factor these keys must be set.
        let unsaid = ["net", "log", "seccomp"].into_iter().find(|key| in_force(spec, key).is_none());
        if let (true, Some(key)) = (is_factor("engine"), unsaid) {
            return Err(format!("`{other}` does not set `{key}`, for which engines have different defaults"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &str, subjects: &[&str]) -> Result<Factorial, String> {
        let names: Vec<String> = names.split(' ').map(str::to_owned).collect();
        let specs: Vec<Spec> = subjects.iter().map(|text| Spec::parse(text).unwrap()).collect();
        let layer = |spec: &Spec| crate::subject::kinds::of(spec).unwrap().layer;
        complete(&names, &specs.iter().map(|spec| (spec, layer(spec))).collect::<Vec<_>>())
    }

    const FOUR: [&str; 5] = [
        "bare",
        "docker+runc:log=none,net=none",
        "docker+crun:log=none,net=none",
        "podman+runc:log=none,net=none",
        "podman+crun:log=none,net=none",
    ];

    #[test]
    fn combinations_are_in_order_and_lower_layers_are_controls() {
        let factorial = found("engine runtime", &FOUR).unwrap();
        assert_eq!(factorial.factors[1].levels, ["runc", "crun"]);
        assert_eq!(factorial.subjects, [1, 3, 2, 4]);
        assert_eq!(factorial.effects(), [1, 2, 3]);
        let fakes = ["fake:a=low,b=low", "fake:a=high,b=low", "fake:a=low,b=high", "fake:a=high,b=high"];
        assert_eq!(found("a b", &fakes).unwrap().subjects, [0, 1, 2, 3]);
        let defaults = ["crun", "runc", "crun:seccomp=off", "runc:seccomp=off"];
        assert_eq!(found("runtime seccomp", &defaults).unwrap().factors[1].levels, ["default", "off"]);
    }

    #[test]
    fn what_is_not_complete_is_refused_with_the_reason() {
        let mut other_log = FOUR;
        other_log[4] = "podman+crun:net=none";
        let mut other_level = FOUR;
        other_level[4] = "podman+youki:log=none,net=none";
        let unsaid = FOUR.map(|text| text.split(',').next().unwrap());
        for (names, subjects, words) in [
            ("engine", &FOUR[..], "1 factor declared, but a factorial has 2 to 4"),
            ("engine engine", &FOUR[..], "the factor `engine` is named twice"),
            (
                "engine nett",
                &FOUR[..],
                "there is no factor `nett` here\n\nhint: factors are `engine`, `runtime`, ",
            ),
            ("engine image", &FOUR[..], "there is no factor `image`"),
            (
                "engine runtime",
                &FOUR[..4],
                "no subject has engine=podman, runtime=crun; a complete factorial of 2 factors needs 4",
            ),
            (
                "engine runtime net",
                &FOUR[..],
                "the factor `net` must have two levels among the subjects, but has: none",
            ),
            ("engine runtime", &other_log[..], "also differ in `log`, which is not a factor"),
            (
                "engine runtime",
                &other_level[..],
                "must have two levels among the subjects, but has: runc, crun, youki",
            ),
            ("engine memory", &FOUR[..], "does not set `memory`, which is a factor"),
            ("engine runtime", &unsaid[..], "does not set `net`, for which engines have different defaults"),
        ] {
            let why = found(names, subjects).expect_err(words);
            assert!(why.contains(words), "{words}: {why}");
        }
        let twice = ["a=fake:a=low,b=low", "fake:a=high,b=low", "fake:a=low,b=high", "c=fake:a=low,b=low"];
        assert_eq!(found("a b", &twice).unwrap_err(), "`a` and `c` are the same combination (a=low, b=low)");
    }
}
