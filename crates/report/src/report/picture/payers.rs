//! Who pays for one more container? A bar for each subject, with a part for each payer.

use super::Picture;
use super::rows::{Panel, Row, Rows};
use crate::experiment::memory::NAME;
use crate::report::model::{Experiment, Report, Row as Subject, Setting};
use crate::report::text::clean;
use crate::units::counted;

/// The metrics of those who pay, with their colours, from the bottom up.
const PAYERS: [(&str, usize); 4] = [("container", 0), ("helpers", 4), ("caller", 3), ("uncharged", 2)];

/// The picture of `memory`, with a panel for each setting.
pub(super) fn pictures(report: &Report, experiment: &Experiment) -> Option<Picture> {
    (experiment.name == NAME).then_some(())?;
    let metric = experiment.metrics.first()?;
    let panel = |setting: &Setting| {
        let rows = setting.subjects().into_iter().filter_map(|subject| row(experiment, subject));
        Panel::of_bars(clean(&setting.text), metric.unit, rows.collect())
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
    let title = "Who pays for one more container (memory)".to_owned();
    let rows = Rows::stacked(&PAYERS, "one more [interval]", panels)?;
    Some(rows.picture(&[NAME, "payers"], title, caption, "Stacked bars, who pays"))
}

fn row(experiment: &Experiment, subject: &Subject) -> Option<Row> {
    let unit = experiment.metrics.first()?.unit;
    let whole = subject.value(0).filter(|_| subject.variant_of.is_none())?.summary.median;
    let part = |(name, colour): (&str, usize)| {
        let at = experiment.metrics.iter().position(|one| one.name == name);
        (at.and_then(|at| Some(subject.value(at)?.summary.median.value)), colour)
    };
    Some(Row::stacked(subject, unit, &whole, PAYERS.map(part)))
}
