//! From runs to histories: which runs belong together, in which order, which cells they share, and where they
//! change.

use std::collections::{BTreeMap, BTreeSet};

use super::machine::{is_beyond, moved, scaled, usable};
use super::{Change, History, Point, Run, SEED, Series, Value};
use crate::compare::{self, Key};
use crate::experiment::{self, Experiment, Metric, Weight};
use crate::group::in_groups;
use crate::record::Order;
use crate::stats::{self, Alpha, Rng, Sample};
use crate::text::{listed, quoted};
use crate::units::counted;
use crate::verdict::{Kind, lost_too_many};

/// What the user wants to see.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// `EXPERIMENT.METRIC`; by default the first decisive metric of each experiment.
    pub metrics: Vec<String>,
    /// Labels of subjects; all by default.
    pub subjects: Vec<String>,
    /// The tag that puts runs in order instead of the date.
    pub by: Option<String>,
    /// Whether the user says that all hosts are alike, so that they share one history.
    pub across_hosts: bool,
}

/// Why there is no history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// One run, or none.
    #[error(
        "a history needs at least two runs\n\nhint: name more run directories or packs, or a directory that contains them; \
         `dunnage report` shows a single run"
    )]
    OneRun,
    /// No two runs share a cell.
    #[error(
        "no two of these runs share a cell with values\n\nhint: a cell is an experiment, a setting and a subject's label, \
         on one host; use `--across-hosts` for different hosts that are alike"
    )]
    NothingShared,
    /// No run has the tag.
    #[error("no run has the tag `{0}`\n\nhint: set it with `dunnage run --tag {0}=VALUE`")]
    NoTag(String),
    /// The metric does not exist; with those that do.
    #[error("there is no metric `{0}` in these runs\n\nhint: metrics are {1}")]
    NoMetric(String, String),
    /// No run has the subject; with those that exist.
    #[error("no run has the subject `{0}`\n\nhint: subjects are {1}")]
    NoSubject(String, String),
}

/// The histories of these runs, one for each host.
pub fn of(runs: &[Run<'_>], wanted: &Selection) -> Result<Vec<History>, Problem> {
    let mut notices = Vec::new();
    let mut runs = compare::each_once(runs, &mut notices);
    runs.sort_by_key(|run| &run.recorded.environment.started);
    if let Some(tag) = &wanted.by {
        runs = by_tag(runs, tag, &mut notices)?;
    }
    if runs.len() < 2 {
        return Err(Problem::OneRun);
    }
    let metrics = metrics(&runs, wanted)?;
    check_subjects(&runs, wanted)?;
    let groups = in_groups(runs, |run| machine(run, wanted));
    let series: Vec<_> = groups.iter().map(|(_, group)| series(group, &metrics, wanted)).collect();
    let tested = series.iter().flatten().filter(|one| is_shared(one)).count();
    if tested == 0 {
        return Err(Problem::NothingShared);
    }
    let level = Alpha::shared_by(tested);
    let all = groups.into_iter().zip(series);
    Ok(all
        .map(|((machine, runs), own)| history(machine, &runs, own, wanted, level, notices.clone()))
        .collect())
}

/// The runs that have a tag: those with the same value together, values in order of first appearance.
fn by_tag<'a>(runs: Vec<Run<'a>>, tag: &str, notices: &mut Vec<String>) -> Result<Vec<Run<'a>>, Problem> {
    let value = |run: &Run<'a>| run.recorded.environment.tags.get(tag);
    let (runs, without): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| value(run).is_some());
    if runs.is_empty() && !without.is_empty() {
        return Err(Problem::NoTag(tag.to_owned()));
    }
    if !without.is_empty() {
        notices.push(format!("left out {} without the tag `{tag}`", counted(without.len(), "run")));
    }
    Ok(in_groups(runs, value).into_iter().flat_map(|(_, group)| group).collect())
}

/// What a history is about: the host, its processor, and the number of CPUs.
fn machine(run: &Run<'_>, wanted: &Selection) -> String {
    if wanted.across_hosts {
        return "all hosts".to_owned();
    }
    let environment = &run.recorded.environment;
    let fact = |name: &str| environment.machine.get(name).cloned();
    let cpus = fact("cpu_usable").map(|count| format!("{count} CPUs"));
    let parts = [Some(environment.host.clone()), fact("cpu"), cpus].into_iter().flatten();
    listed(parts.filter(|part| !part.is_empty()), " · ")
}

/// The metrics asked for, as experiments and indices.
fn metrics(runs: &[Run<'_>], wanted: &Selection) -> Result<Vec<(&'static Experiment, usize)>, Problem> {
    let measured: BTreeSet<&'static str> =
        runs.iter().flat_map(|run| &run.recorded.plan.cells).map(|cell| cell.experiment).collect();
    let all: Vec<_> = measured.iter().filter_map(|name| experiment::find(name)).collect();
    if wanted.metrics.is_empty() {
        let is_decisive = |metric: &Metric| metric.weight == Weight::Verdict;
        return Ok(all
            .iter()
            .map(|one| (*one, one.metrics.iter().position(is_decisive).unwrap_or(0)))
            .collect());
    }
    let names: BTreeMap<String, (&Experiment, usize)> = all
        .iter()
        .flat_map(|one| one.metrics.iter().enumerate().map(move |(at, metric)| (*one, at, metric.name)))
        .map(|(one, at, name)| (format!("{}.{name}", one.name), (one, at)))
        .collect();
    let unknown = |wanted: &String| Problem::NoMetric(wanted.clone(), quoted(names.keys()));
    wanted.metrics.iter().map(|wanted| names.get(wanted).copied().ok_or_else(|| unknown(wanted))).collect()
}

fn check_subjects(runs: &[Run<'_>], wanted: &Selection) -> Result<(), Problem> {
    let entries = runs.iter().flat_map(|run| &run.recorded.plan.subjects);
    let known: BTreeSet<&str> =
        entries.filter(|entry| entry.twin_of.is_none()).map(|entry| entry.label.as_str()).collect();
    match wanted.subjects.iter().find(|label| !known.contains(label.as_str())) {
        None => Ok(()),
        Some(label) => Err(Problem::NoSubject(label.clone(), quoted(known))),
    }
}

/// The cells in which a run has a value, without their changes. Subjects are matched by label: the build of a
/// runtime that `new` means in each run is what a history is about.
fn series(runs: &[Run<'_>], metrics: &[(&'static Experiment, usize)], wanted: &Selection) -> Vec<Series> {
    let cells: Vec<_> = runs.iter().map(compare::keys).collect();
    let is_wanted = |(_, _, label): &&Key| wanted.subjects.is_empty() || wanted.subjects.contains(label);
    let keys: BTreeSet<&Key> = cells.iter().flat_map(BTreeMap::keys).filter(is_wanted).collect();
    let mut all = Vec::new();
    for key @ (name, setting, label) in keys {
        for &(about, at) in metrics.iter().filter(|(about, _)| about.name == *name) {
            let of_run = |(run, cells): (&Run<'_>, &BTreeMap<Key, usize>)| value(run, *cells.get(key)?, at);
            let metric = &about.metrics[at];
            all.push(Series {
                experiment: about.name,
                metric: metric.name,
                unit: metric.unit,
                setting: setting.to_string(),
                label: label.clone(),
                is_control: compare::is_control(runs, label),
                values: runs.iter().zip(&cells).map(of_run).collect(),
                changes: Vec::new(),
            });
        }
    }
    all.retain(|one| one.values.iter().any(Option::is_some));
    // In the latest run's order of subjects: bare first.
    let latest = runs.last().map_or(&[][..], |run| &run.recorded.plan.subjects);
    all.sort_by_key(|one| {
        let about = experiment::ALL.iter().position(|own| own.name == one.experiment);
        let metrics = about.map_or(&[][..], |at| experiment::ALL[at].metrics);
        let metric = metrics.iter().position(|metric| metric.name == one.metric);
        let subject = latest.iter().position(|entry| entry.label == one.label);
        (about, metric, one.setting.clone(), subject.unwrap_or(usize::MAX))
    });
    all
}

/// Whether a second run has a value of it.
fn is_shared(series: &Series) -> bool {
    series.values.iter().flatten().nth(1).is_some()
}

fn value(run: &Run<'_>, cell: usize, metric: usize) -> Option<Value> {
    let summary = run.quality.cells.get(cell)?.metrics.get(metric)?.as_ref()?;
    // A suspect that is only about small differences leaves the value as it is.
    let is_told = run.quality.suspects.iter().any(|one| one.concerns(&[cell], metric, f64::INFINITY));
    // The rounds that are left need not be like those that failed.
    let is_suspect = is_told || lost_too_many(run.recorded, cell).is_some();
    Some(Value { median: summary.median, is_suspect })
}

fn history(
    machine: String,
    runs: &[Run<'_>],
    mut series: Vec<Series>,
    wanted: &Selection,
    level: Alpha,
    mut notices: Vec<String>,
) -> History {
    let mut points: Vec<Point> = runs.iter().map(|run| point(run, wanted)).collect();
    // Names of runs within the same minute need seconds.
    if wanted.by.is_none() && points.windows(2).any(|pair| pair[0].name == pair[1].name) {
        for point in &mut points {
            point.name = point.started.get(..19).unwrap_or(&point.started).replace('T', " ");
        }
    }
    let lacking = points.iter().filter(|point| point.rounds == 0).count();
    if lacking > 0 {
        notices.push(format!("{} without a complete round", counted(lacking, "run")));
    }
    notices.extend(compare::scripted(runs.iter()));
    notices.extend(compare::in_blocks(runs.iter()));
    let alone = series.iter().filter(|one| !is_shared(one)).count();
    if alone > 0 {
        notices.push(format!("left out {} that only one run has", counted(alone, "cell")));
    }
    series.retain(is_shared);
    let needed = stats::fewest(level);
    let groups: Vec<&str> = points.iter().map(|point| point.name.as_str()).collect();
    let cuts = wanted.by.is_some().then_some(groups.as_slice());
    for (index, one) in series.iter_mut().enumerate() {
        one.changes = changes(one, runs, cuts, level, index as u64);
    }
    let controls: Vec<Series> = series.iter().filter(|one| one.is_control).cloned().collect();
    for one in &mut series {
        let cell = (one.experiment, one.metric, one.setting.as_str());
        let is_own =
            |control: &&Series| (control.experiment, control.metric, control.setting.as_str()) == cell;
        let own: Vec<&Series> = controls.iter().filter(is_own).collect();
        for change in one.changes.iter_mut().filter(|change| change.verdict != Kind::Same) {
            if own.iter().all(|control| moved(control, &one.values, change))
                && own.iter().any(|control| !is_beyond(control, &one.values, change))
            {
                change.verdict = Kind::Machine;
            }
        }
    }
    let most = series.iter().map(|one| usable(&one.values).len()).max().unwrap_or(0);
    if most < needed {
        notices.push(format!(
            "no change can be found yet: at least {needed} runs are needed for {} at 5 % together",
            counted((Alpha::FIVE_PERCENT.get() / level.get()).round() as usize, "cell")
        ));
    }
    History { machine, by: wanted.by.clone(), points, series, level, needed, notices }
}

fn point(run: &Run<'_>, wanted: &Selection) -> Point {
    let environment = &run.recorded.environment;
    let started = environment.started.clone();
    let minute = started.get(..16).map_or(started.clone(), |text| text.replace('T', " "));
    let tag = wanted.by.as_ref().and_then(|tag| environment.tags.get(tag)).cloned();
    Point {
        name: tag.unwrap_or(minute),
        run: run.recorded.run.clone(),
        started,
        place: run.place.to_owned(),
        rounds: run.recorded.complete_rounds(),
        order: if run.recorded.is_in_blocks() { Order::Blocks } else { Order::Rounds },
    }
}

/// The changes of a series. If runs are grouped by a tag, it only changes between two values of the tag.
fn changes(
    series: &Series,
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
    let metrics = experiment::find(series.experiment).map_or(&[][..], |one| one.metrics);
    let of_level = |from: usize, to: usize| {
        let values =
            own[from..to].iter().filter_map(|&run| series.values[run]).map(|value| value.median.value);
        Sample::new(values.collect::<Vec<_>>()).map_or(f64::NAN, |sample| sample.median())
    };
    let one = |(index, change): (usize, &stats::Change)| {
        // A level lasts from one change to the next.
        let first = index.checked_sub(1).map_or(0, |before| found[before].at);
        let last = found.get(index + 1).map_or(own.len(), |next| next.at);
        let levels = (of_level(first, change.at), of_level(change.at, last));
        let (before, after) = (own[change.at - 1], own[change.at]);
        let metric = metrics.iter().find(|metric| metric.name == series.metric)?;
        let matters = runs[after].recorded.plan.margin_of(series.experiment, metric).at(levels.0);
        let verdict = match levels.1 - levels.0 {
            size if size.abs() <= matters => Kind::Same,
            size => Kind::of_difference(size > 0.0, metric.unit, metric.better),
        };
        Some(Change {
            before,
            after,
            levels,
            runs: (change.at - first, last - change.at),
            p: change.p,
            matters,
            verdict,
            beside: compare::around(&runs[before], &runs[after], &series.label),
        })
    };
    found.iter().enumerate().filter_map(one).collect()
}
