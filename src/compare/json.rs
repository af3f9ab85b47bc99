//! A comparison for other programs, in base units with full precision. The wire format stands apart from the
//! model, and is described in `docs/compare-json.md`.

use serde::Serialize;

use super::lines::Scale;
use super::{Comparison, Experiment, Facts, InSetting, Line, Scope};
use crate::report::Look;
use crate::stats::{Basis, Estimate};

/// The name of the format with its version.
const SCHEMA: &str = "dunnage-compare/1";

#[derive(Serialize)]
struct File<'a> {
    schema: &'static str,
    old: Vec<RunFile<'a>>,
    new: Vec<RunFile<'a>>,
    scope: &'static str,
    level: f64,
    intervals_in_family: usize,
    differences: Vec<DifferenceFile<'a>>,
    notices: &'a [String],
    only_old: &'a [String],
    only_new: &'a [String],
    experiments: Vec<ExperimentFile<'a>>,
    summary: &'a [String],
}

#[derive(Serialize)]
struct RunFile<'a> {
    place: &'a str,
    run: &'a str,
    started: &'a str,
    host: &'a str,
    tags: std::collections::BTreeMap<&'a str, &'a str>,
    rounds_complete: usize,
    rounds_planned: usize,
}

#[derive(Serialize)]
struct DifferenceFile<'a> {
    kind: &'static str,
    apples_and_oranges: bool,
    what: &'a str,
    subjects: &'a [String],
    old: &'a str,
    new: &'a str,
}

#[derive(Serialize)]
struct ExperimentFile<'a> {
    name: &'static str,
    question: &'static str,
    metrics: Vec<MetricFile>,
    lines: Vec<LineFile<'a>>,
}

#[derive(Serialize)]
struct MetricFile {
    name: &'static str,
    unit: &'static str,
    decisive: bool,
    meaning: &'static str,
    margin_absolute: f64,
    margin_relative: f64,
}

#[derive(Serialize)]
struct LineFile<'a> {
    subject: &'a str,
    control: bool,
    metric: &'static str,
    verdict: &'static str,
    sentence: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    together: Option<TogetherFile>,
    settings: Vec<SettingFile<'a>>,
}

#[derive(Serialize)]
struct TogetherFile {
    scale: &'static str,
    basis: &'static str,
    matters: f64,
    #[serde(flatten)]
    change: EstimateFile,
}

#[derive(Serialize)]
struct SettingFile<'a> {
    setting: &'a str,
    old_median: Option<f64>,
    new_median: Option<f64>,
    matters: f64,
    difference: Option<EstimateFile>,
    ratio: Option<EstimateFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_failure: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_failure: Option<&'a str>,
}

#[derive(Serialize)]
struct EstimateFile {
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
    coverage: Option<f64>,
    values: usize,
}

/// The comparison as JSON.
pub(super) fn render(comparison: &Comparison, _: &Look) -> String {
    let [old, new] = comparison.sides.each_ref().map(|side| side.iter().map(run).collect());
    let file = File {
        schema: SCHEMA,
        old,
        new,
        scope: match comparison.scope {
            Scope::TwoRuns => "these two runs",
            Scope::TheseRuns => "these runs",
            Scope::RunsLikeThese => "runs like these",
        },
        level: comparison.level.get(),
        intervals_in_family: comparison.family,
        differences: comparison
            .differences
            .iter()
            .map(|one| DifferenceFile {
                kind: one.meaning.name(),
                apples_and_oranges: one.meaning.is_another_fruit(),
                what: &one.what,
                subjects: &one.subjects,
                old: &one.old,
                new: &one.new,
            })
            .collect(),
        notices: &comparison.notices,
        only_old: &comparison.alone[0],
        only_new: &comparison.alone[1],
        experiments: comparison.experiments.iter().map(experiment).collect(),
        summary: &comparison.summary,
    };
    let mut text = serde_json::to_string_pretty(&file).expect("plain data with text keys has a JSON form");
    text.push('\n');
    text
}

fn run(facts: &Facts) -> RunFile<'_> {
    RunFile {
        place: &facts.place,
        run: &facts.run,
        started: &facts.started,
        host: &facts.host,
        tags: facts.tags.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect(),
        rounds_complete: facts.rounds.0,
        rounds_planned: facts.rounds.1,
    }
}

fn experiment(one: &Experiment) -> ExperimentFile<'_> {
    let metrics = one.metrics.iter().map(|metric| MetricFile {
        name: metric.name,
        unit: metric.unit.name(),
        decisive: metric.is_decisive,
        meaning: metric.meaning,
        margin_absolute: metric.margin.0,
        margin_relative: metric.margin.1,
    });
    ExperimentFile {
        name: one.name,
        question: one.question,
        metrics: metrics.collect(),
        lines: one.lines.iter().map(|line| self::line(one, line)).collect(),
    }
}

fn line<'a>(experiment: &Experiment, line: &'a Line) -> LineFile<'a> {
    LineFile {
        subject: &line.label,
        control: line.is_control,
        metric: experiment.metrics[line.metric].name,
        verdict: line.verdict.word(),
        sentence: &line.sentence,
        together: line.together.map(|all| TogetherFile {
            scale: match all.scale {
                Scale::Ratio => "new / old",
                Scale::Margins => "what matters",
            },
            basis: match all.basis {
                Basis::Rounds => "rounds",
                Basis::Pairs => "rounds of every pair of runs",
                Basis::Runs => "runs",
            },
            matters: all.matters,
            change: estimate(&all.change),
        }),
        settings: line.settings.iter().map(setting).collect(),
    }
}

fn setting(one: &InSetting) -> SettingFile<'_> {
    SettingFile {
        setting: &one.text,
        old_median: one.medians[0],
        new_median: one.medians[1],
        matters: one.matters,
        difference: one.difference.as_ref().map(estimate),
        ratio: one.ratio.as_ref().map(estimate),
        old_failure: one.failure[0].as_deref(),
        new_failure: one.failure[1].as_deref(),
    }
}

fn estimate(one: &Estimate) -> EstimateFile {
    let interval = one.interval;
    EstimateFile {
        value: one.value,
        low: interval.map(|one| one.low),
        high: interval.map(|one| one.high),
        coverage: interval.map(|one| one.coverage),
        values: one.rounds,
    }
}
