//! Histories as one JSON object. The form is a struct of its own, so that no inner type is promised by accident.

use serde::Serialize;

use super::{Change, History, Look, Point, Series, Value};

#[derive(Serialize)]
struct File<'a> {
    schema: &'static str,
    histories: Vec<Machine<'a>>,
}

#[derive(Serialize)]
struct Machine<'a> {
    machine: &'a str,
    by: Option<&'a str>,
    level: f64,
    runs_needed: usize,
    notices: &'a [String],
    runs: Vec<Run<'a>>,
    series: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    name: &'a str,
    run: &'a str,
    started: &'a str,
    place: &'a str,
    rounds: usize,
    order: &'a str,
}

#[derive(Serialize)]
struct Line<'a> {
    experiment: &'a str,
    metric: &'a str,
    unit: &'a str,
    setting: &'a str,
    label: &'a str,
    shows_the_machine: bool,
    values: Vec<Option<Median>>,
    changes: Vec<Step<'a>>,
}

#[derive(Serialize)]
struct Median {
    estimate: f64,
    low: Option<f64>,
    high: Option<f64>,
    rounds: usize,
    suspect: bool,
}

#[derive(Serialize)]
struct Step<'a> {
    last_before: usize,
    first_after: usize,
    level_before: f64,
    level_after: f64,
    runs_before: usize,
    runs_after: usize,
    p: f64,
    matters: f64,
    meaning: &'a str,
    at_the_same_time: &'a [String],
    sentence: &'a str,
}

/// The object as text.
pub(super) fn render(histories: &[History], _: &Look) -> String {
    let file = File { schema: "dunnage-history/1", histories: histories.iter().map(machine).collect() };
    let mut text = serde_json::to_string_pretty(&file).expect("plain data becomes JSON");
    text.push('\n');
    text
}

fn machine(history: &History) -> Machine<'_> {
    Machine {
        machine: &history.machine,
        by: history.by.as_deref(),
        level: history.level.get(),
        runs_needed: history.needed,
        notices: &history.notices,
        runs: history.points.iter().map(run).collect(),
        series: history.series.iter().map(line).collect(),
    }
}

fn run(point: &Point) -> Run<'_> {
    let Point { name, run, started, place, rounds, .. } = point;
    Run { name, run, started, place, rounds: *rounds, order: point.order_name() }
}

fn line(series: &Series) -> Line<'_> {
    let value = |value: &Option<Value>| {
        value.map(|value| Median {
            estimate: value.median.value,
            low: value.median.interval.map(|one| one.low),
            high: value.median.interval.map(|one| one.high),
            rounds: value.median.rounds,
            suspect: value.is_suspect,
        })
    };
    Line {
        experiment: series.experiment,
        metric: series.metric,
        unit: series.unit.name(),
        setting: &series.setting,
        label: &series.label,
        shows_the_machine: series.is_control,
        values: series.values.iter().map(value).collect(),
        changes: series.changes.iter().map(step).collect(),
    }
}

fn step(change: &Change) -> Step<'_> {
    Step {
        last_before: change.before,
        first_after: change.after,
        level_before: change.levels.0,
        level_after: change.levels.1,
        runs_before: change.runs.0,
        runs_after: change.runs.1,
        p: change.p,
        matters: change.matters,
        meaning: change.meaning.name(),
        at_the_same_time: &change.beside,
        sentence: &change.sentence,
    }
}
