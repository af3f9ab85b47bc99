//! From runs to histories: which runs belong together, in which order, which cells they share, and where those change.

use std::collections::{BTreeMap, BTreeSet};

use super::machine::{is_beyond, moved, scaled, usable};
use super::{Change, History, Meaning, Point, Run, SEED, Series, Value, words};
use crate::compare;
use crate::experiment::{self, Weight};
use crate::record::Order;
use crate::report::text::clean;
use crate::stats::{self, Alpha, Family, Rng, Sample};
use crate::units::counted;
use crate::verdict::Kind;

/// Whether hosts stand apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hosts {
    /// A history of each.
    #[default]
    Apart,
    /// One history of all, because the person says that they are alike.
    Together,
}

/// What a person wants to see.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// `EXPERIMENT.METRIC`; the first decisive metric of each experiment where none is named.
    pub metrics: Vec<String>,
    /// Labels of subjects; all where none is named.
    pub subjects: Vec<String>,
    /// The tag that puts runs in order instead of the date.
    pub by: Option<String>,
    /// Whether hosts stand apart.
    pub hosts: Hosts,
}

/// Why there is no history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// One run, or none.
    OneRun,
    /// Nothing in one run is in another one too.
    NothingShared,
    /// No run has the tag.
    NoTag(String),
    /// There is no such metric; with those that there are.
    NoMetric(String, Vec<String>),
    /// No run has the subject; with those that there are.
    NoSubject(String, Vec<String>),
}

/// What tells a cell from others over all runs. A subject is the same where its label is: which build of a runtime
/// `new` names in each run is what a history is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    experiment: &'static str,
    metric: usize,
    setting: String,
    label: String,
}

/// The histories of these runs, one of each host.
pub fn of(runs: &[Run<'_>], wish: &Wish) -> Result<Vec<History>, Problem> {
    let mut notices = Vec::new();
    let mut known = BTreeSet::new();
    let mut kept: Vec<Run<'_>> = Vec::new();
    for run in runs {
        match known.insert(run.recorded.run.as_str()) {
            true => kept.push(*run),
            false => notices
                .push(format!("`{}` is a run that was named before, and counts once", clean(run.place))),
        }
    }
    if kept.len() < 2 {
        return Err(Problem::OneRun);
    }
    kept.sort_by(|one, other| one.recorded.environment.started.cmp(&other.recorded.environment.started));
    if let Some(tag) = &wish.by {
        kept = by_tag(kept, tag, &mut notices)?;
    }
    let metrics = metrics(&kept, wish)?;
    check_subjects(&kept, wish)?;
    let mut groups: Vec<(String, Vec<Run<'_>>)> = Vec::new();
    for run in kept {
        let machine = machine(&run, wish.hosts);
        match groups.iter_mut().find(|(own, _)| *own == machine) {
            Some((_, group)) => group.push(run),
            None => groups.push((machine, vec![run])),
        }
    }
    let keyed: Vec<_> = groups.iter().map(|(_, group)| keys(group, &metrics, wish)).collect();
    let tested = keyed.iter().map(|keys| keys.values().filter(|shared| **shared > 1).count()).sum::<usize>();
    if tested == 0 {
        return Err(Problem::NothingShared);
    }
    let level = Family::of(tested).per_comparison();
    let histories = groups
        .into_iter()
        .zip(keyed)
        .map(|((machine, group), keys)| history(machine, &group, keys, wish, level, notices.clone()));
    Ok(histories.collect())
}

/// The runs that have a tag: those with one value together, values in the order in which they appeared.
fn by_tag<'a>(runs: Vec<Run<'a>>, tag: &str, notices: &mut Vec<String>) -> Result<Vec<Run<'a>>, Problem> {
    let mut groups: Vec<(&str, Vec<Run<'a>>)> = Vec::new();
    let mut without = 0;
    for run in runs {
        let Some(value) = run.recorded.environment.tags.get(tag) else {
            without += 1;
            continue;
        };
        match groups.iter_mut().find(|(own, _)| own == value) {
            Some((_, group)) => group.push(run),
            None => groups.push((value, vec![run])),
        }
    }
    if without > 0 {
        notices.push(format!("{} without the tag `{}` left out", counted(without, "run"), clean(tag)));
    }
    match groups.iter().map(|(_, group)| group.len()).sum::<usize>() {
        0 => Err(Problem::NoTag(tag.to_owned())),
        1 => Err(Problem::OneRun),
        _ => Ok(groups.into_iter().flat_map(|(_, group)| group).collect()),
    }
}

fn machine(run: &Run<'_>, hosts: Hosts) -> String {
    let environment = &run.recorded.environment;
    let fact = |name: &str| environment.machine.get(name).map(|fact| clean(fact));
    let cpus = fact("cpu_usable").map(|count| format!("{count} CPUs"));
    let host = match hosts {
        Hosts::Apart => Some(clean(&environment.host)),
        Hosts::Together => Some("all hosts".to_owned()),
    };
    let parts = match hosts {
        Hosts::Apart => [host, fact("cpu"), cpus],
        Hosts::Together => [host, None, None],
    };
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join(" · ")
}

/// The metrics that are wished for, as experiments and indices.
fn metrics(runs: &[Run<'_>], wish: &Wish) -> Result<Vec<(&'static str, usize)>, Problem> {
    let measured: BTreeSet<&'static str> =
        runs.iter().flat_map(|run| &run.recorded.plan.cells).map(|cell| cell.experiment).collect();
    let of = |name: &&'static str| experiment::find(name).map(|one| (*name, one.about().metrics));
    let all: Vec<_> = measured.iter().filter_map(of).collect();
    if wish.metrics.is_empty() {
        let first = |metrics: &[experiment::Metric]| {
            metrics.iter().position(|metric| metric.weight == Weight::Verdict).unwrap_or(0)
        };
        return Ok(all.into_iter().map(|(name, metrics)| (name, first(metrics))).collect());
    }
    let find = |wanted: &String| {
        let (own, name) = wanted.split_once('.')?;
        let (experiment, metrics) = all.iter().find(|(one, _)| *one == own)?;
        Some((*experiment, metrics.iter().position(|metric| metric.name == name)?))
    };
    let names = || {
        let of = |(name, metrics): &(&str, &[experiment::Metric])| {
            metrics.iter().map(|metric| format!("{name}.{}", metric.name)).collect::<Vec<_>>()
        };
        all.iter().flat_map(|(name, metrics)| of(&(name, metrics))).collect::<Vec<_>>()
    };
    wish.metrics
        .iter()
        .map(|wanted| find(wanted).ok_or_else(|| Problem::NoMetric(wanted.clone(), names())))
        .collect()
}

fn check_subjects(runs: &[Run<'_>], wish: &Wish) -> Result<(), Problem> {
    let entries = runs.iter().flat_map(|run| &run.recorded.plan.subjects);
    let known: BTreeSet<&str> =
        entries.filter(|entry| entry.twin_of.is_none()).map(|entry| entry.label.as_str()).collect();
    match wish.subjects.iter().find(|label| !known.contains(label.as_str())) {
        None => Ok(()),
        Some(label) => Err(Problem::NoSubject(label.clone(), known.into_iter().map(str::to_owned).collect())),
    }
}

/// The cells that runs have, each with in how many.
fn keys(runs: &[Run<'_>], metrics: &[(&'static str, usize)], wish: &Wish) -> BTreeMap<Key, usize> {
    let mut counts = BTreeMap::new();
    for run in runs {
        for (index, cell) in run.recorded.plan.cells.iter().enumerate() {
            for &(_, metric) in metrics.iter().filter(|(name, _)| *name == cell.experiment) {
                let Some(key) = key(run, index, metric) else { continue };
                let is_wanted = wish.subjects.is_empty() || wish.subjects.contains(&key.label);
                if is_wanted && value(run, index, metric).is_some() {
                    *counts.entry(key).or_default() += 1;
                }
            }
        }
    }
    counts
}

/// The key of a cell; none of a twin, which says how far a subject differs from itself within a run.
fn key(run: &Run<'_>, cell: usize, metric: usize) -> Option<Key> {
    let plan = &run.recorded.plan;
    let planned = &plan.cells[cell];
    let entry = &plan.subjects[planned.subject];
    entry.twin_of.is_none().then(|| Key {
        experiment: planned.experiment,
        metric,
        setting: planned.setting.to_string(),
        label: entry.label.clone(),
    })
}

fn value(run: &Run<'_>, cell: usize, metric: usize) -> Option<Value> {
    let summary = run.doubts.cells.get(cell)?.metrics.get(metric)?.as_ref()?;
    let doubts = |one: &crate::verdict::Suspect| {
        one.cells.contains(&cell) && one.metric.is_none_or(|own| own == metric) && one.up_to.is_none()
    };
    Some(Value { median: summary.median, is_suspect: run.doubts.suspects.iter().any(doubts) })
}

fn history(
    machine: String,
    runs: &[Run<'_>],
    keys: BTreeMap<Key, usize>,
    wish: &Wish,
    level: Alpha,
    mut notices: Vec<String>,
) -> History {
    let mut points: Vec<Point> = runs.iter().map(|run| point(run, wish)).collect();
    // Runs within a minute are told apart by their seconds.
    if wish.by.is_none() && points.windows(2).any(|pair| pair[0].name == pair[1].name) {
        for point in &mut points {
            point.name = point.started.get(..19).unwrap_or(&point.started).replace('T', " ");
        }
    }
    let lacking = points.iter().filter(|point| point.rounds == 0).count();
    if lacking > 0 {
        notices.push(format!("{} without one complete round", counted(lacking, "run")));
    }
    notices.extend(compare::in_blocks(runs.iter()));
    let in_order = |key: &Key| {
        let about = experiment::ALL.iter().position(|one| one.about().name == key.experiment);
        (about, key.metric, key.setting.clone())
    };
    let mut all: Vec<(Key, usize)> = keys.into_iter().collect();
    // As the latest run has its subjects: bare first.
    let plan = runs.last().map(|run| &run.recorded.plan);
    let place =
        |label: &str| plan.and_then(|plan| plan.subjects.iter().position(|entry| entry.label == label));
    all.sort_by_key(|(key, _)| (in_order(key), place(&key.label).unwrap_or(usize::MAX)));
    let alone = all.iter().filter(|(_, count)| *count < 2).count();
    if alone > 0 {
        notices.push(format!("{} in one run only left out", counted(alone, "cell")));
    }
    all.retain(|(_, count)| *count > 1);
    let mut series: Vec<Series> = all.iter().map(|(key, _)| one_series(key, runs)).collect();
    let needed = stats::fewest(level);
    let groups: Vec<&str> = points.iter().map(|point| point.name.as_str()).collect();
    let cuts = if wish.by.is_some() { Some(groups.as_slice()) } else { None };
    for (index, (key, _)) in all.iter().enumerate() {
        let found = changes(&series[index], key, runs, cuts, level, index as u64);
        series[index].changes = found;
    }
    let controls: Vec<Series> = series.iter().filter(|one| one.is_control).cloned().collect();
    for one in &mut series {
        let own = controls.iter().filter(|control| {
            (control.experiment, control.metric, &control.setting)
                == (one.experiment, one.metric, &one.setting)
        });
        let own: Vec<&Series> = own.collect();
        let values = one.values.clone();
        for change in &mut one.changes {
            if change.meaning != Meaning::TooSmall
                && own.iter().all(|control| moved(control, &values, change))
                && own.iter().any(|control| !is_beyond(control, &values, change))
            {
                change.meaning = Meaning::Machine;
            }
        }
        let told = one.clone();
        for change in &mut one.changes {
            change.sentence = words::sentence(&told, change, &points);
        }
    }
    let most = series.iter().map(|one| usable(&one.values).len()).max().unwrap_or(0);
    if most < needed {
        notices.push(format!(
            "no change can be found yet: {needed} runs are needed at least, for {} at 5 % together",
            counted((Alpha::FIVE_PERCENT.get() / level.get()).round() as usize, "cell")
        ));
    }
    History { machine, by: wish.by.clone(), points, series, level, needed, notices }
}

fn point(run: &Run<'_>, wish: &Wish) -> Point {
    let environment = &run.recorded.environment;
    let started = clean(&environment.started);
    let minute = started.get(..16).map_or(started.clone(), |text| text.replace('T', " "));
    let tag = wish.by.as_ref().and_then(|tag| environment.tags.get(tag)).map(|value| clean(value));
    Point {
        name: tag.unwrap_or(minute),
        run: clean(&run.recorded.run),
        started,
        place: clean(run.place),
        rounds: run.recorded.complete_rounds(),
        order: if run.recorded.is_in_blocks() { Order::Blocks } else { Order::Rounds },
    }
}

fn one_series(key: &Key, runs: &[Run<'_>]) -> Series {
    let metric =
        &experiment::find(key.experiment).expect("an experiment of a plan that was read").about().metrics
            [key.metric];
    let of_run = |run: &Run<'_>| {
        let cells = 0..run.recorded.plan.cells.len();
        let own = cells.into_iter().find(|&cell| self::key(run, cell, key.metric).as_ref() == Some(key))?;
        value(run, own, key.metric)
    };
    let entry =
        |run: &Run<'_>| run.recorded.plan.subjects.iter().find(|entry| entry.label == key.label).cloned();
    // Who measured in blocks measured programs of his own, whatever starts them.
    let shows_the_machine = |run: &Run<'_>| {
        let is_plain = |entry: crate::plan::Entry| {
            entry.spec.keys.is_empty() && CONTROLS.contains(&entry.spec.name.as_str())
        };
        entry(run).is_none_or(is_plain) && !run.recorded.is_in_blocks()
    };
    Series {
        experiment: key.experiment,
        metric: metric.name,
        unit: metric.unit,
        setting: clean(&key.setting),
        label: clean(&key.label),
        is_control: runs.iter().all(shows_the_machine),
        values: runs.iter().map(of_run).collect(),
        changes: Vec::new(),
    }
}

/// What runs on the machine without an engine, and shows what it does by itself.
const CONTROLS: [&str; 2] = ["bare", "floor"];

fn changes(
    series: &Series,
    key: &Key,
    runs: &[Run<'_>],
    groups: Option<&[&str]>,
    level: Alpha,
    stream: u64,
) -> Vec<Change> {
    let own = usable(&series.values);
    let between_groups: Option<Vec<usize>> =
        groups.map(|names| (1..own.len()).filter(|&at| names[own[at]] != names[own[at - 1]]).collect());
    let mut rng = Rng::for_stream(SEED, stream);
    let scaled = scaled(&series.values, &own);
    let found = stats::changes(&scaled, between_groups.as_deref(), level, &mut rng);
    // A level lasts from one change to the next.
    let ends = |index: usize| {
        let first = index.checked_sub(1).map_or(0, |before| found[before].at);
        let last = found.get(index + 1).map_or(own.len(), |next| next.at);
        (first, last)
    };
    let of_level = |from: usize, to: usize| {
        let values =
            own[from..to].iter().filter_map(|&run| series.values[run]).map(|value| value.median.value);
        Sample::new(values.collect::<Vec<_>>()).map_or(f64::NAN, |sample| sample.median())
    };
    let one = |(index, change): (usize, &stats::Change)| {
        let (first, last) = ends(index);
        let levels = (of_level(first, change.at), of_level(change.at, last));
        let (before, after) = (own[change.at - 1], own[change.at]);
        let metric = &experiment::find(key.experiment)?.about().metrics[key.metric];
        let matters = runs[after].recorded.plan.margin_of(key.experiment, metric).at(levels.0);
        let difference = levels.1 - levels.0;
        let meaning = match difference {
            size if size.abs() <= matters => Meaning::TooSmall,
            size => Meaning::Changed(Kind::of_difference(size > 0.0, metric.unit, metric.better)),
        };
        let beside = compare::around(&runs[before], &runs[after], &key.label);
        Some(Change {
            before,
            after,
            levels,
            runs: (change.at - first, last - change.at),
            p: change.p,
            matters,
            meaning,
            beside: beside.iter().map(words::beside).collect(),
            sentence: String::new(),
        })
    };
    found.iter().enumerate().filter_map(one).collect()
}
