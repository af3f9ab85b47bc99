//! Who pays for one more container? A bar for each subject, with a part for each payer.

use super::Picture;
use super::rows::{Layout, Mark, Panel, Row, Rows};
use super::svg::End;
use crate::axis::Range;
use crate::experiment::memory::NAME;
use crate::report::model::{Experiment, Report, Row as Subject, Setting};
use crate::report::text::{clean, estimated};
use crate::units::counted;

/// The metrics of those who pay, with their colours, from the bottom up.
const PAYERS: [(&str, usize); 4] = [("container", 0), ("helpers", 4), ("caller", 3), ("uncharged", 2)];

static LAYOUT: Layout =
    Layout { names: 118.0, beside: 78.0, row: 44.0, bar: 17.0, columns: &[("", 0.0, End::Last)] };

/// The picture of `memory`, with a panel for each setting.
pub(super) fn pictures(report: &Report, experiment: &Experiment) -> Option<Picture> {
    (experiment.name == NAME).then_some(())?;
    let metric = experiment.metrics.first()?;
    let panel = |setting: &Setting| Panel {
        title: clean(&setting.text),
        unit: metric.unit,
        range: Range::FromZero,
        axis: 0,
        rows: setting.subjects().into_iter().filter_map(|subject| row(experiment, subject)).collect(),
    };
    let panels: Vec<Panel> =
        experiment.settings.iter().map(panel).filter(|panel| !panel.rows.is_empty()).collect();
    let caption = vec![
        format!(
            "Medians over {}. Each part of a bar is what one more container adds to those who pay; the thin line at its end is the 95 % \
             interval of the sum.",
            counted(report.rounds.complete, "round")
        ),
        "A part below zero, such as kernel memory that is charged to no cgroup where containers fill room that there was, is not drawn: \
         the sum is shorter by it."
            .to_owned(),
    ];
    let heads = PAYERS.iter().map(|(name, _)| *name).chain(["one more [interval]"]).collect();
    let title = "Who pays for one more container (memory)".to_owned();
    (!panels.is_empty()).then(|| {
        let rows = Rows { layout: &LAYOUT, legend: &PAYERS, heads, panels };
        rows.picture(&[NAME, "payers"], title, caption, "Stacked bars, who pays")
    })
}

fn row(experiment: &Experiment, subject: &Subject) -> Option<Row> {
    let unit = experiment.metrics.first()?.unit;
    let whole = subject.value(0).filter(|_| subject.variant_of.is_none())?.median;
    let (mut marks, mut cells, mut told, mut from) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
    for (name, colour) in PAYERS {
        let at = experiment.metrics.iter().position(|one| one.name == name);
        let Some(part) = at.and_then(|at| subject.value(at)) else {
            cells.push(String::new());
            continue;
        };
        let part = part.median.value;
        cells.push(unit.format(part));
        if part > 0.0 {
            marks.push(Mark::Bar((from, from + part), colour));
            from += part;
            told.push(unit.format(part));
        }
    }
    cells.push(estimated(unit, &whole));
    marks.extend(whole.interval.map(|one| Mark::Whisker((one.low, one.high))));
    if told.len() > 1 {
        marks.push(Mark::Below(told.join(" + ")));
    }
    Some(Row {
        subject: subject.label.clone(),
        name: subject.short.clone(),
        layer: "",
        class: String::new(),
        size: Some(whole.value),
        marks,
        texts: vec![("ink title", unit.format(whole.value))],
        cells,
    })
}
