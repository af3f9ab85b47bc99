//! The changes of an experiment as pictures: each subject's over all settings, with its interval.

use super::lines::Scale;
use super::lines::one_setting;
use super::{Experiment, Line, words};
use crate::report::picture::changes::{Changes, Panel, Row};
use crate::report::picture::{Drawing, Picture, Table, named};
use crate::units::{Unit, counted};

/// A picture with more rows than these would have to be scrolled.
const MOST_ROWS: usize = 40;

/// A picture for each decisive metric, or for several that have few subjects.
pub(super) fn pictures(experiment: &Experiment) -> Vec<Picture> {
    let mut groups: Vec<Vec<Panel>> = Vec::new();
    for panel in panels(experiment) {
        match groups.last_mut() {
            Some(group)
                if group.iter().map(|one| one.rows.len()).sum::<usize>() + panel.rows.len() <= MOST_ROWS =>
            {
                group.push(panel);
            }
            _ => groups.push(vec![panel]),
        }
    }
    let pages = groups.len();
    let numbered = groups.into_iter().enumerate();
    numbered.map(|(index, panels)| picture(experiment, panels, (index + 1, pages))).collect()
}

/// A panel a metric; what has no ratio is told in times of what matters, on an axis of its own.
fn panels(experiment: &Experiment) -> Vec<Panel> {
    let mut all = Vec::new();
    for (index, metric) in experiment.metrics.iter().enumerate().filter(|(_, metric)| metric.is_decisive) {
        let lines: Vec<&Line> = experiment.lines.iter().filter(|line| line.metric == index).collect();
        let given = one_setting(&lines).filter(|text| !text.is_empty());
        let given = given.map_or(String::new(), |text| format!(" ({text})"));
        for (scale, unit, what) in [
            (Scale::Ratio, Unit::Share, "change"),
            (Scale::Margins, Unit::Count, "change in times of what matters"),
        ] {
            let is_own = |line: &&&Line| line.together.map_or(Scale::Ratio, |all| all.scale) == scale;
            let rows: Vec<Row> = lines.iter().filter(is_own).map(|line| row(metric.name, line)).collect();
            if rows.iter().any(|row| row.change.is_some()) {
                all.push(Panel { title: format!("{}{given}, {what}", metric.name), unit, rows });
            }
        }
    }
    all
}

fn row(metric: &str, line: &Line) -> Row {
    let (change, matters, shown) = match line.together {
        None => (None, (0.0, 0.0), String::new()),
        Some(all) => {
            let (from, zone) = match all.scale {
                Scale::Ratio => (1.0, (1.0 / all.matters - 1.0, all.matters - 1.0)),
                Scale::Margins => (0.0, (-all.matters, all.matters)),
            };
            let interval = all.change.interval.map(|ends| (ends.low - from, ends.high - from));
            // The panel's title says in what changes are told.
            let shown = words::change(all.scale, &all.change).replace(words::MATTERS, "");
            (Some((all.change.value - from, interval)), zone, shown)
        }
    };
    let kind = line.verdict.kind();
    let words = format!("{}: {metric} {shown}, {}", line.label, kind.word());
    Row { label: line.label.clone(), change, matters, shown, verdict: kind, words }
}

fn picture(experiment: &Experiment, panels: Vec<Panel>, (page, pages): (usize, usize)) -> Picture {
    let number = if pages > 1 { format!(", {page} of {pages}") } else { String::new() };
    let told = panels.iter().map(in_words).collect::<Vec<_>>();
    Picture {
        name: named(&["changes", experiment.name, &page.to_string()]),
        experiment: experiment.name,
        title: format!("{}: from old to new{number}", experiment.name),
        caption: vec![
            "A mark is the change over all settings together, the line its interval; an interval that reaches the edge goes \
             on beyond it. Within the grey a change does not matter. What is pale is not decided."
                .into(),
        ],
        alternative: format!("Changes with their intervals. {}", told.join(" ")),
        table: table(&panels),
        drawing: Drawing::Changes(Changes { panels }),
    }
}

/// The smallest and the largest change of a panel.
fn in_words(panel: &Panel) -> String {
    let mut known: Vec<(&Row, f64)> =
        panel.rows.iter().filter_map(|row| Some((row, row.change?.0))).collect();
    known.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let told = |row: &Row| format!("{} ({}, {})", row.shown, row.label, row.verdict.word());
    match known.as_slice() {
        [] => format!("{}: no values.", panel.title),
        [(only, _)] => format!("{}: {}.", panel.title, told(only)),
        [(least, _), .., (most, _)] => format!(
            "{}: {} from {} to {}.",
            panel.title,
            counted(known.len(), "subject"),
            told(least),
            told(most)
        ),
    }
}

fn table(panels: &[Panel]) -> Table {
    let of = |panel: &Panel, row: &Row| {
        [&panel.title, &row.label, &row.shown, row.verdict.word()].map(str::to_owned).to_vec()
    };
    Table {
        columns: ["metric", "subject", "change [interval]", "verdict"].map(str::to_owned).to_vec(),
        rows: panels.iter().flat_map(|panel| panel.rows.iter().map(move |row| of(panel, row))).collect(),
    }
}
