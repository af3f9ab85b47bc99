//! Medians with their intervals over the values of single rounds, a row for each subject, from the lowest layer up:
//! how large is it, how precise, and what data are behind it?

use super::rows::{Layout, Mark, Panel, Row, Rows};
use super::svg::End;
use super::{Picture, colour_of_layer};
use crate::axis::Range;
use crate::report::model::{Experiment, Ladder, Report, Row as Subject, Setting};
use crate::report::text::{clean, decimals, estimated, in_brackets, number};
use crate::units::counted;
use crate::verdict::{Finding, Verdict};

/// With more rows than this, variants are left out of a picture.
const CROWDED: usize = 24;
/// Up to so many metrics have their own pictures.
const FEW_METRICS: usize = 4;

static LAYOUT: Layout = Layout {
    names: 178.0,
    beside: 206.0,
    row: 23.0,
    bar: 12.0,
    columns: &[("median", 132.0, End::Last), ("multiple", 72.0, End::Last), ("", 62.0, End::Start)],
};
const HEADS: [&str; 6] = ["median [interval]", "quartiles", "range", "rounds", "multiple", "verdict"];

/// Pictures of these metrics.
pub(super) fn pictures(report: &Report, experiment: &Experiment, metrics: &[usize]) -> Vec<Picture> {
    let is_few = metrics.len() <= FEW_METRICS;
    let all = metrics.iter().flat_map(|&metric| {
        experiment.settings.iter().flat_map(move |setting| panels(experiment, setting, metric))
    });
    let belong =
        |group: &Panel, panel: &Panel| group.unit == panel.unit && (group.axis == panel.axis || !is_few);
    Panel::pages(all.collect(), belong).into_iter().map(|page| picture(report, experiment, page)).collect()
}

/// A panel for each ladder; subjects below the engines are shown once. Panels of a metric share an axis.
fn panels(experiment: &Experiment, setting: &Setting, metric: usize) -> Vec<Panel> {
    let of_ladder = |(index, ladder): (usize, &Ladder)| {
        let mut rows: Vec<&Subject> =
            ladder.rows.iter().filter(|row| index == 0 || row.layer == "engine").collect();
        if rows.len() > CROWDED {
            rows.retain(|row| row.variant_of.is_none());
        }
        Panel {
            title: title_of(experiment, setting, ladder, metric),
            unit: experiment.metrics[metric].unit,
            range: Range::Ratio,
            axis: metric,
            rows: rows.into_iter().map(|one| row(experiment, metric, one)).collect(),
        }
    };
    let has_value = |panel: &Panel| panel.rows.iter().any(|row| row.size.is_some());
    setting.ladders.iter().enumerate().map(of_ladder).filter(has_value).collect()
}

fn title_of(experiment: &Experiment, setting: &Setting, ladder: &Ladder, metric: usize) -> String {
    let is_few = experiment.metrics.iter().filter(|metric| metric.decisive).count() <= FEW_METRICS;
    let mut parts = Vec::new();
    if !is_few {
        parts.push(experiment.metrics[metric].name.to_owned());
    }
    if !setting.text.is_empty() && (experiment.settings.len() > 1 || is_few) {
        parts.push(clean(&setting.text));
    }
    if ladder.equalised || setting.ladders.len() > 1 {
        parts.push(format!("{}{}", ladder.name, in_brackets(&ladder.shared_keys)));
    }
    parts.join(", ")
}

/// Whether subjects are compared with a baseline; settings of one subject are not.
fn has_multiples(experiment: &Experiment, metric: usize) -> bool {
    experiment.rows().any(|(_, _, row)| row.found(metric).is_some())
}

fn row(experiment: &Experiment, index: usize, row: &Subject) -> Row {
    let metric = &experiment.metrics[index];
    let (value, change) = (row.value(index), row.found(index));
    let is_suspect = row.is_suspect(index);
    let word = change.map_or("", Finding::word).to_owned();
    let multiple = match change.and_then(|change| change.ratio) {
        _ if row.is_baseline && has_multiples(experiment, index) => "1×".into(),
        Some(ratio) => format!("{}×", number(ratio.value, decimals(ratio.value).min(2))),
        None => String::new(),
    };
    let pair =
        |(low, high): (f64, f64)| format!("{} to {}", metric.unit.format(low), metric.unit.format(high));
    let (marks, median, cells) = match value {
        None => {
            let why = if row.lost > 0 { "no sample, see failures" } else { "no value" };
            (vec![Mark::Nothing("no sample")], String::new(), vec![why.to_owned()])
        }
        Some(value) => {
            let interval = value.summary.median.interval.map(|one| Mark::Interval((one.low, one.high)));
            let marks = [Mark::Dots(value.shape.steps.clone())].into_iter().chain(interval);
            let cells = vec![
                estimated(metric.unit, &value.summary.median),
                pair(value.shape.quartiles),
                pair(value.summary.range),
                value.summary.median.rounds.to_string(),
                multiple.clone(),
                word.clone(),
            ];
            let marks = marks.chain([Mark::Value(value.summary.median.value)]).collect();
            (marks, metric.unit.format(value.summary.median.value), cells)
        }
    };
    let verdict = match change.map(|change| &change.verdict) {
        None | Some(Verdict::Context) => String::new(),
        Some(_) => word,
    };
    let light = if row.variant_of.is_some() { " light" } else { "" };
    let hollow = if is_suspect { " hollow" } else { "" };
    Row {
        subject: row.label.clone(),
        name: row.short.clone(),
        layer: row.layer,
        class: format!("k{}{light}{hollow}", colour_of_layer(row.layer)),
        size: value.map(|value| value.summary.median.value),
        marks,
        texts: vec![
            ("ink", median),
            ("faint", multiple),
            (if is_suspect { "alarm" } else { "ink" }, verdict),
        ],
        cells,
    }
}

fn picture(report: &Report, experiment: &Experiment, panels: Vec<Panel>) -> Picture {
    let first = panels[0].axis;
    let what = match panels.iter().all(|panel| panel.axis == first) {
        true => experiment.metrics[first].name,
        false => "medians",
    };
    let rounds = experiment.rounds.unwrap_or(report.rounds.complete).min(report.rounds.complete);
    let baseline = experiment.settings.first().and_then(|setting| setting.ladders.first());
    let mut caption = vec![
        "A mark is the median over rounds, in the shape and colour of its layer; a line is its 95 % interval, if there are \
         enough rounds for one; pale dots are single rounds, or an even choice of them if there are many."
            .to_owned(),
    ];
    let baseline = baseline.filter(|_| has_multiples(experiment, first));
    caption.extend(baseline.map(|one| format!("Multiples and verdicts are against {}.", one.baseline)));
    let shown = |label: &String| panels.iter().flat_map(|panel| &panel.rows).any(|row| row.subject == *label);
    if experiment.rows().any(|(_, _, row)| row.variant_of.is_some() && !shown(&row.label)) {
        caption.push("Variants that the experiment added are left out.".into());
    }
    let title = format!("{}: {what} in {}", experiment.name, counted(rounds, "round"));
    let rows = Rows { layout: &LAYOUT, legend: &[], heads: HEADS.to_vec(), panels };
    rows.picture(&[experiment.name, what], title, caption, "Interval plot")
}
