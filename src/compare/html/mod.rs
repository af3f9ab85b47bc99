//! A comparison as one page for a browser, of the same make as the report: its frame, style, script, tables and
//! pictures are the report's, and so is its policy. It says the same as the terminal, with all metrics.

mod picture;

use askama::Template;

use super::rows::{self, Row};
use super::summary::in_words;
use super::{Comparison, Experiment, Metric};
use crate::document::html::frame::Frame;
use crate::document::html::prose::{prose, question};
use crate::report::Look;
use crate::report::html::figure::{Figure, figure};
use crate::report::html::table::{Cell, Head, Line, Table, tone};
use crate::report::text::{percent, with_interval};
use crate::units::counted;
use crate::verdict::Kind;

/// The comparison as a page.
pub(super) fn render(comparison: &Comparison, _: &Look) -> String {
    Page::of(comparison).render().expect("a string takes any text")
}

/// All that the page shows.
#[derive(Template)]
#[template(path = "comparison.html")]
struct Page<'a> {
    frame: Frame,
    /// Each run with its side, in pieces.
    runs: Vec<(&'static str, Vec<String>)>,
    how: String,
    summary: Vec<String>,
    notices: Vec<String>,
    differences: Table,
    sections: Vec<Section<'a>>,
    alone: Vec<(&'static str, &'a [String])>,
}

/// An experiment.
struct Section<'a> {
    experiment: &'a Experiment,
    /// The verdicts of all metrics, a line a subject.
    glance: Table,
    /// The first picture stands with the answer.
    first: Option<Figure>,
    figures: Vec<Figure>,
    metrics: Vec<(&'a Metric, String)>,
    tables: Vec<Table>,
    context: Vec<Table>,
    words: Vec<String>,
}

impl<'a> Page<'a> {
    fn of(comparison: &'a Comparison) -> Page<'a> {
        let names = comparison
            .sides
            .each_ref()
            .map(|side| side.iter().map(|run| run.place.as_str()).collect::<Vec<_>>());
        let title = format!("{} and {}", names[0].join(", "), names[1].join(", "));
        let labels = labels(comparison);
        let sides = ["old", "new"].into_iter().zip(&comparison.sides);
        let level = format!("{:.4}", (1.0 - comparison.level.get()) * 100.0);
        let level = level.trim_end_matches('0').trim_end_matches('.');
        Page {
            runs: sides.flat_map(|(side, runs)| runs.iter().map(move |run| (side, run.in_short()))).collect(),
            how: format!(
                "{} at {level} %, so that all together hold at 95 %",
                counted(comparison.family, "interval")
            ),
            summary: comparison.summary.iter().map(|text| question(text)).collect(),
            notices: comparison.notices.iter().map(|text| question(text)).collect(),
            differences: differences(comparison),
            sections: comparison.experiments.iter().map(|one| section(one, &labels)).collect(),
            alone: ["old", "new"]
                .into_iter()
                .zip(comparison.alone.iter().map(Vec::as_slice))
                .filter(|(_, alone)| !alone.is_empty())
                .collect(),
            frame: Frame::of(title, env!("CARGO_PKG_VERSION"), labels),
        }
    }
}

/// The subjects of all experiments, each once.
fn labels(comparison: &Comparison) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for line in comparison.experiments.iter().flat_map(|one| &one.lines) {
        if !labels.contains(&line.label) {
            labels.push(line.label.clone());
        }
    }
    labels
}

fn differences(comparison: &Comparison) -> Table {
    let line = |one: &super::Difference| {
        let kind = Cell::text(one.meaning.name());
        let kind = if one.meaning.is_another_fruit() { Cell { tone: "alarm", ..kind } } else { kind };
        let cells = [&one.what, &one.subjects.join(", "), &one.old, &one.new].map(Cell::text);
        let [what, of, old, new] = cells;
        Line { subjects: Vec::new(), cells: vec![what, kind, of, old, new] }
    };
    Table {
        caption: "Not the same on both sides".into(),
        heads: ["what", "kind", "of", "old", "new"].map(Head::text).into(),
        lines: comparison.differences.iter().map(line).collect(),
        ..Table::default()
    }
}

fn section<'a>(experiment: &'a Experiment, labels: &[String]) -> Section<'a> {
    let mut figures = picture::pictures(experiment).into_iter().map(|one| figure(one, labels));
    let of = |is_decisive: fn(&Metric) -> bool| {
        rows::tables(experiment, is_decisive).iter().map(table).collect::<Vec<_>>()
    };
    Section {
        glance: glance(experiment),
        first: figures.next(),
        figures: figures.collect(),
        metrics: experiment.metrics.iter().map(|metric| (metric, margin(metric))).collect(),
        tables: of(|metric| metric.is_decisive),
        context: of(|metric| !metric.is_decisive),
        words: in_words(experiment).into_iter().map(|(_, sentence)| sentence).collect(),
        experiment,
    }
}

fn margin(metric: &Metric) -> String {
    let (absolute, relative) = metric.margin;
    match metric.is_decisive {
        true => format!("{} or {}", with_interval(metric.unit, absolute, None), percent(relative)),
        false => "no verdicts".into(),
    }
}

/// Which subject changed in which metric.
fn glance(experiment: &Experiment) -> Table {
    let decisive: Vec<usize> =
        (0..experiment.metrics.len()).filter(|&metric| experiment.metrics[metric].is_decisive).collect();
    let mut lines: Vec<Line> = Vec::new();
    let mut labels: Vec<&str> = Vec::new();
    for line in experiment.lines.iter().filter(|line| decisive.contains(&line.metric)) {
        if !labels.contains(&line.label.as_str()) {
            labels.push(&line.label);
        }
    }
    for label in labels {
        let cell = |metric: &usize| {
            let line = experiment.lines.iter().find(|line| line.metric == *metric && line.label == label);
            line.map_or(Cell::nothing("–"), |line| verdict(line.verdict.kind()))
        };
        let cells = std::iter::once(Cell::code(label)).chain(decisive.iter().map(cell));
        lines.push(Line { subjects: vec![label.to_owned()], cells: cells.collect() });
    }
    let names = decisive.iter().map(|&metric| Head::text(experiment.metrics[metric].name));
    Table {
        caption: format!("{}: verdicts", experiment.name),
        heads: std::iter::once(Head::text("subject")).chain(names).collect(),
        lines,
        ..Table::default()
    }
}

/// A verdict in its word.
fn verdict(kind: Kind) -> Cell {
    Cell { tone: tone(kind), ..Cell::text(kind.word()) }
}

/// A metric with its settings.
fn table(one: &rows::Table<'_>) -> Table {
    let given = one.given.map_or(String::new(), |text| format!(" ({text})"));
    let settings = one.rows.iter().any(|row| !row.setting.is_empty()).then(|| Head::text("setting"));
    let has_settings = settings.is_some();
    let line = |row: &Row<'_>| {
        let median = |side: usize| match &row.medians[side] {
            Some((value, text)) => Cell::text(text).key(*value),
            None => Cell::default(),
        };
        let setting = has_settings.then(|| Cell::text(row.setting));
        let rest = [
            median(0),
            median(1),
            ranged(row.difference.as_ref()),
            ranged(row.change.as_ref()),
            row.verdict.map_or(Cell::default(), verdict),
        ];
        Line {
            subjects: vec![row.line.label.clone()],
            cells: [Cell::code(&row.line.label)].into_iter().chain(setting).chain(rest).collect(),
        }
    };
    let numbers = ["old", "new", "new − old", "new ÷ old"].map(Head::number);
    let heads =
        [Head::text("subject")].into_iter().chain(settings).chain(numbers).chain([Head::text("verdict")]);
    Table {
        caption: format!("{}{given}", one.metric.name),
        heads: heads.collect(),
        lines: one.rows.iter().map(line).collect(),
        ..Table::default()
    }
}

/// A change with its interval below it.
fn ranged(change: Option<&(f64, String)>) -> Cell {
    let Some((value, text)) = change else { return Cell::default() };
    let cell = match text.split_once(" [") {
        Some((text, rest)) => Cell { detail: format!("[{rest}"), ..Cell::text(text) },
        None => Cell::text(text),
    };
    cell.key(*value)
}
