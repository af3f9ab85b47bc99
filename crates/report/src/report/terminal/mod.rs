//! The report for a person at a terminal, in 80 columns or more: what must not be believed, the
//! ladders, what differs in sentences, what failed, warnings, tables, where to go from here.
//!
//! It is text, for whoever writes it to where it belongs: no terminal is asked anything here.

mod exhibits;
mod factors;
mod job;
mod ladder;
mod notes;
mod prices;
mod references;
mod tables;

use super::model::{Ladder, Report};
use super::{Format, Look, Rendering};
use crate::document::Tone;
use crate::document::page::Page;

/// The format `terminal`.
pub struct Terminal;

impl Format for Terminal {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn description(&self) -> &'static str {
        "ladders, verdicts and warnings for a person to read"
    }

    fn rendering(&self) -> Rendering {
        Rendering::Whole(render)
    }
}

/// The report as text.
pub fn render(report: &Report, look: &Look) -> String {
    let mut page = Page::new(look);
    notes::head(&mut page, report);
    notes::suspects(&mut page, report);
    for experiment in &report.experiments {
        // Settings that are priced stand in a list, not in a ladder each.
        prices::prices(&mut page, experiment);
        exhibits::exhibits(&mut page, experiment);
        if experiment.speaks_for_itself() {
            continue;
        }
        for setting in &experiment.settings {
            // Where nobody has a value of the first metric, all that there is stands in the tables.
            let is_told = |one: &&Ladder| {
                one.rows.iter().any(|row| {
                    row.lost > 0 || row.values.iter().flatten().count() == 0 || row.values[0].is_some()
                })
            };
            for one in setting.ladders.iter().filter(is_told) {
                ladder::ladder(&mut page, experiment, setting, one);
                ladder::floor_shares(&mut page, experiment, one);
            }
            ladder::noise(&mut page, experiment, setting);
        }
        if let Some((have, need)) = experiment.too_few() {
            page.gap();
            let text = match have {
                1 => format!("no verdicts: there is 1 round, and this many comparisons need {need}"),
                _ => format!("no verdicts: there are {have} rounds, and this many comparisons need {need}"),
            };
            page.paragraph(Tone::Open, "", &text);
        }
        page.gap();
        notes::legend(&mut page, experiment);
        factors::factors(&mut page, experiment);
        notes::differences(&mut page, experiment);
    }
    notes::failures(&mut page, report);
    notes::notices(&mut page, report);
    for experiment in report.experiments.iter().filter(|one| !one.speaks_for_itself()) {
        for setting in &experiment.settings {
            tables::tables(&mut page, experiment, setting);
        }
    }
    references::references(&mut page, report);
    notes::predictions(&mut page, report);
    notes::in_short(&mut page, report);
    job::job(&mut page, report);
    notes::closing(&mut page, report, look);
    page.finish()
}
