//! The valid words of a command line or plan file: experiments, subjects, settings, tags and margins. An unknown word is a
//! usage error that names the valid ones and the word's place in the file.

use std::collections::BTreeSet;

use anyhow::Result;
use dunnage_analysis::distinct;

use super::super::list;
use super::named;
use crate::exit::usage;
use crate::experiment::{self, Experiment, command};
use crate::plan::{Chosen, FixedMargin, Ladder, again};
use crate::plan_file::{GivenMargin, Typed};
use crate::report::text::{in_shell, meant, quoted};
use crate::session::{Origin, Wanted};
use crate::stats::Margin;
use crate::subject::spec::parse_duration;
use crate::subject::{self, Kind, Spec};
use crate::units::{Unit, parse_percent};

/// The experiments of these names; the default ones if there are none.
pub fn experiments(names: &[Typed]) -> Result<Vec<&'static str>> {
    if names.is_empty() {
        return Ok(experiment::MAIN.to_vec());
    }
    if names.iter().any(|name| name.text == "all") {
        return Ok(experiment::ALL.iter().map(|experiment| experiment.name).collect());
    }
    let known = names.iter().map(|name| Ok(experiment_named(name, names)?.name));
    Ok(distinct(known.collect::<Result<Vec<_>>>()?))
}

/// The experiment of this name; `all` has all given names. A name that resembles no experiment may be meant as a command.
fn experiment_named(name: &Typed, all: &[Typed]) -> Result<&'static Experiment> {
    experiment::find(&name.text).ok_or_else(|| {
        let names = || experiment::ALL.iter().map(|experiment| experiment.name);
        let (text, valid) = (&name.text, quoted(names()));
        let area = experiment::area(&text.to_lowercase());
        let meant = area.map_or_else(|| meant(text, names().chain(["all"])), list::about);
        let words = all.iter().map(|one| one.text.clone()).filter(|one| experiment::find(one).is_none());
        let line = [command::line::join(&words.collect::<Vec<_>>())];
        let own = match meant.is_empty() && !text.trim().is_empty() {
            true => format!(
                "\n\nhint: measure your own command with `dunnage run command --cmd {}`",
                in_shell(line)
            ),
            false => String::new(),
        };
        name.wrong(format!(
            "unknown experiment `{text}`\n\nhint: {meant}experiments are {valid}, or `all` of them{own}"
        ))
    })
}

/// The subjects, each checked against what its kind declares.
pub fn subjects(texts: &[Typed]) -> Result<Vec<Wanted>> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for typed in texts {
        let spec = Spec::parse(&typed.text).map_err(|error| typed.wrong(error))?;
        let kind = subject::kind_of(&spec).map_err(|error| typed.wrong(error))?;
        let (spec, ladder) = on_its_ladder(spec, kind);
        if wanted.iter().any(|other| other.spec.shown() == spec.shown()) {
            return Err(typed.wrong(format!(
                "two subjects are called `{}`\n\nhint: give one a label, as in `other={spec}`; every run already measures one subject of each layer twice",
                spec.shown()
            )));
        }
        wanted.push(Wanted::new(spec, ladder, Origin::Named));
    }
    Ok(wanted)
}

/// The label of a subject in a run, from any way of writing it, if it is a subject.
pub fn canonical(text: &str) -> Option<String> {
    let spec = Spec::parse(text).ok()?;
    let kind = subject::kind_of(&spec).ok()?;
    Some(on_its_ladder(spec, kind).0.shown())
}

/// The canonical form of a subject, and its ladder. On the equalised ladder, network and log are the same for all.
fn on_its_ladder(spec: Spec, kind: &Kind) -> (Spec, Ladder) {
    let ladder = again::ladder_of(&spec, kind.layer);
    // An absolute path, because a run may be resumed from another directory.
    let whole = spec.get("bin").and_then(|path| std::path::absolute(path).ok());
    let spec = match whole.as_deref().and_then(std::path::Path::to_str) {
        Some(path) => spec.with(&[("bin", path)]),
        None => spec,
    };
    let spec = spec.with_plain_numbers(kind.keys).without_defaults(kind.keys);
    match ladder {
        Ladder::Equalised => (spec.with(&[("net", "none"), ("log", "none")]), ladder),
        Ladder::AsInstalled => (spec, ladder),
    }
}

/// Whether one of the experiments has the key of this pair.
pub fn is_setting_of(pair: &str, experiments: &[&'static str]) -> bool {
    let Some((key, _)) = pair.split_once('=') else { return true };
    named(experiments).flat_map(Experiment::all_keys).any(|known| known.name == key)
}

/// `key=value` pairs, checked against the keys of the experiments; a key may be given several times.
pub fn settings(pairs: &[Typed], experiments: &[&'static str], caches: Caches) -> Result<Vec<Chosen>> {
    let mut chosen: Vec<Chosen> = Vec::new();
    for pair in pairs {
        let Some((key, value)) = pair.text.split_once('=') else {
            let text = &pair.text;
            return Err(
                pair.wrong(format!("`{text}` is not a setting\n\nhint: use the form `--set key=value`"))
            );
        };
        let keys = || named(experiments).flat_map(|one| one.all_keys());
        let Some(known) = keys().find(|known| known.name == key) else {
            let names: BTreeSet<_> = keys().map(|key| key.name).collect();
            let hint = match names.is_empty() {
                true => format!("{} has no settings", experiments.join(", ")),
                false => format!("{}settings are {}", meant(key, names.iter().copied()), quoted(names)),
            };
            return Err(pair.wrong(format!("unknown setting `{key}`\n\nhint: {hint}")));
        };
        if let Err(valid) = known.take(value) {
            return Err(pair.wrong(format!("invalid setting `{key}={value}`\n\nhint: `{key}` takes {valid}")));
        }
        if key == CACHE && caches == Caches::Kept {
            // The default value is not a setting of its own.
            if value == known.values[0] {
                continue;
            }
            return Err(pair.wrong(format!(
                "`{key}={value}` empties the page cache of the whole machine\n\nhint: allow it with `--drop-caches` if that disturbs no other work"
            )));
        }
        match chosen.iter_mut().find(|(own, _)| own == key) {
            Some((_, values)) if values.iter().any(|own| own == value) => {
                return Err(pair.wrong(format!(
                    "`{key}={value}` is given twice\n\nhint: give it once: every value is measured in every round"
                )));
            }
            Some((_, values)) => values.push(value.to_owned()),
            None => chosen.push((key.to_owned(), vec![value.to_owned()])),
        }
    }
    Ok(chosen)
}

/// The setting that needs `--drop-caches`.
pub const CACHE: &str = "cache";

/// Whether the user allowed dunnage to empty the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caches {
    /// It stays as it is.
    Kept,
    /// Every value of the setting is allowed.
    Dropped,
}

/// The run's labels; each key once.
pub fn tags(pairs: &[Typed]) -> Result<Vec<(String, String)>> {
    let mut tags: Vec<(String, String)> = Vec::new();
    for pair in pairs {
        let Some((key, value)) = pair.text.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            let text = &pair.text;
            return Err(pair.wrong(format!("`{text}` is not a tag\n\nhint: use the form `--tag key=value`")));
        };
        if tags.iter().any(|(own, _)| own == key) {
            return Err(pair.wrong(format!("the tag `{key}` is given twice")));
        }
        tags.push((key.to_owned(), value.to_owned()));
    }
    Ok(tags)
}

/// A precision as a share, at least 0.01 %.
pub fn precision(typed: &Typed) -> Result<f64> {
    parse_percent(&typed.text).filter(|share| (0.0001..1.0).contains(share)).ok_or_else(|| {
        let text = &typed.text;
        typed.wrong(format!(
            "`{text}` is not a precision\n\nhint: write a percentage from 0.01% to 99%, as in `5%`"
        ))
    })
}

/// The margins as numbers.
pub fn margins(given: &[GivenMargin]) -> Result<Vec<FixedMargin>> {
    given.iter().map(margin).collect()
}

fn margin(given: &GivenMargin) -> Result<FixedMargin> {
    let experiment = experiment_named(&given.experiment, &[])?;
    let name = &given.metric.text;
    let Some(metric) = experiment.metrics.iter().find(|metric| metric.name == name) else {
        let names = || experiment.metrics.iter().map(|metric| metric.name);
        let (of, meant, valid) = (experiment.name, meant(name, names()), quoted(names()));
        return Err(given
            .metric
            .wrong(format!("`{of}` has no metric `{name}`\n\nhint: {meant}its metrics are {valid}")));
    };
    let absolute = given.absolute.as_ref().map_or(Ok(0.0), |typed| {
        let number = typed.text.parse().ok();
        let value = number.or_else(|| (metric.unit == Unit::Seconds).then(|| parse_duration(&typed.text))?);
        value.ok_or_else(|| {
            let unit = metric.unit.name();
            let text = &typed.text;
            typed.wrong(format!(
                "`{text}` is not a value of `{name}`\n\nhint: write a number in {unit}, or a time with its unit, as in \"1ms\""
            ))
        })
    })?;
    let relative = given.relative.as_ref().map_or(Ok(0.0), |typed| {
        parse_percent(&typed.text).ok_or_else(|| {
            let text = &typed.text;
            typed.wrong(format!("`{text}` is not a percentage\n\nhint: write it as in \"5%\""))
        })
    })?;
    let margin = Margin::new(absolute, relative).map_err(|error| match &given.absolute {
        Some(typed) => typed.wrong(error),
        None => usage(error),
    })?;
    Ok(FixedMargin { experiment: experiment.name.to_owned(), metric: name.clone(), margin })
}
