//! From runs to histories: which runs belong together, in which order, which cells they share, and where those change.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, History, Meaning, Point, Run, Series, Value, words};
use crate::compare;
use crate::experiment::{self, Weight};
use crate::report::text::clean;
use crate::stats::{self, Alpha, Family, Rng, Sample};
use crate::units::counted;

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

/// One seed for all: the same runs give the same changes.
const SEED: u64 = 0x6869_7374_6f72_7921;

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
    let summary = run.analysis.cells.get(cell)?.metrics.get(metric)?.as_ref()?;
    let doubts = |one: &crate::verdict::Suspect| {
        one.cells.contains(&cell) && one.metric.is_none_or(|own| own == metric) && one.up_to.is_none()
    };
    Some(Value { median: summary.median, is_suspect: run.analysis.suspects.iter().any(doubts) })
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
                && !own.is_empty()
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
    let shows_the_machine = |entry: &crate::plan::Entry| {
        entry.spec.keys.is_empty() && CONTROLS.contains(&entry.spec.name.as_str())
    };
    Series {
        experiment: key.experiment,
        metric: metric.name,
        unit: metric.unit,
        setting: clean(&key.setting),
        label: clean(&key.label),
        is_control: runs.iter().filter_map(entry).all(|entry| shows_the_machine(&entry)),
        values: runs.iter().map(of_run).collect(),
        changes: Vec::new(),
    }
}

/// What runs on the machine without an engine, and shows what it does by itself.
const CONTROLS: [&str; 2] = ["bare", "floor"];

/// The runs whose values decide.
fn usable(values: &[Option<Value>]) -> Vec<usize> {
    let believed = |index: &usize| {
        values[*index].is_some_and(|value| !value.is_suspect && value.median.value.is_finite())
    };
    (0..values.len()).filter(believed).collect()
}

/// Values as the search takes them: as logarithms, since what moves a value moves it by a share; as they are where one
/// has none.
fn scaled(values: &[Option<Value>], runs: &[usize]) -> Vec<f64> {
    let plain: Vec<f64> =
        runs.iter().filter_map(|&run| values[run]).map(|value| value.median.value).collect();
    let has_logarithms = plain.iter().all(|value| *value > 0.0);
    plain.into_iter().map(|value| if has_logarithms { value.ln() } else { value }).collect()
}

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
            size if size > 0.0 => Meaning::Slower,
            _ => Meaning::Faster,
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

/// Whether a control moved in the same way at the same run: its values on both sides of the change, over the runs of
/// both levels, are as different as few orders make them.
fn moved(control: &Series, values: &[Option<Value>], change: &Change) -> bool {
    let own = usable(values);
    let Some(at) = own.iter().position(|&run| run == change.after) else { return false };
    let stretch = &own[at - change.runs.0..at + change.runs.1];
    let believed: BTreeSet<usize> = usable(&control.values).into_iter().collect();
    let runs: Vec<usize> = stretch.iter().copied().filter(|run| believed.contains(run)).collect();
    let cut = runs.iter().filter(|&&run| run < change.after).count();
    if cut == 0 || cut == runs.len() {
        return false;
    }
    let scaled = scaled(&control.values, &runs);
    let median = |values: &[f64]| Sample::new(values.to_vec()).map_or(f64::NAN, |sample| sample.median());
    let direction = median(&scaled[cut..]) - median(&scaled[..cut]);
    let same_way = direction * (change.levels.1 - change.levels.0) > 0.0;
    let mut rng = Rng::for_stream(SEED, change.after as u64);
    same_way && stats::shifted(&scaled, cut, &mut rng, Alpha::FIVE_PERCENT) <= Alpha::FIVE_PERCENT.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Estimate;
    use crate::units::Unit;

    fn values(of: impl Fn(usize) -> f64) -> Vec<Option<Value>> {
        let value = |run: usize| {
            // A few per cent of noise, the same in every test.
            let noise = 1.0 + 0.02 * Rng::for_stream(9, run as u64).standard_normal();
            let sample = Sample::new(vec![of(run) * noise; 3]).unwrap();
            Some(Value { median: Estimate::of_median(&sample, Alpha::FIVE_PERCENT), is_suspect: false })
        };
        (0..16).map(value).collect()
    }

    fn control(of: impl Fn(usize) -> f64) -> Series {
        Series {
            experiment: "start",
            metric: "returned",
            unit: Unit::Seconds,
            setting: String::new(),
            label: "bare".into(),
            is_control: true,
            values: values(of),
            changes: Vec::new(),
        }
    }

    #[test]
    fn the_machine_is_blamed_only_for_what_moved_the_same_way_at_the_same_run() {
        let step = |run: usize| if run < 8 { 1.0 } else { 1.3 };
        let own = values(step);
        let change = Change {
            before: 7,
            after: 8,
            levels: (1.0, 1.3),
            runs: (8, 8),
            p: 0.001,
            matters: 0.03,
            meaning: Meaning::Slower,
            beside: Vec::new(),
            sentence: String::new(),
        };
        assert!(moved(&control(step), &own, &change));
        assert!(!moved(&control(|_| 1.0), &own, &change));
        assert!(!moved(&control(|run| 2.0 - step(run)), &own, &change), "the other way");
        // Without a value on one side nothing is shown.
        let mut half = control(step);
        half.values[..8].fill(None);
        assert!(!moved(&half, &own, &change));
    }
}
