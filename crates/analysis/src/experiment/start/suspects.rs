//! What cannot be true of a launch or of an entry into a container, whatever its interval says.

use crate::experiment;
use crate::plan::Layer;
use crate::units::Unit;
use crate::verdict::columns::CellSummary;
use crate::verdict::suspect::{Suspect, View, is_bare};

/// No container starts in less time than the quickest process. What a command of a person's takes may vary by more.
pub fn shorter_than_a_bare_start(view: &View<'_>) -> Vec<Suspect> {
    let mut found = Vec::new();
    for (cell, summary) in view.cells.iter().enumerate() {
        let layer = view.plan().subjects[view.plan().cells[cell].subject].layer;
        let about = experiment::find(view.plan().cells[cell].experiment).map(|one| one.about());
        let launch = about.and_then(|about| about.empty_launch);
        let Some(metric) = launch.and_then(|name| view.metric_index(cell, name)) else { continue };
        let Some(baseline) = view.baseline_cell(cell).filter(|baseline| *baseline != cell) else { continue };
        if layer == Layer::Bare || !is_bare(view, baseline) {
            continue;
        }
        let range = |summary: &CellSummary| summary.metrics[metric].as_ref().map(|values| values.range);
        let (Some(own), Some(bare)) = (range(summary), range(&view.cells[baseline])) else { continue };
        if own.0 < bare.0 {
            found.push(Suspect {
                rule: "shorter than a bare start",
                cells: vec![cell],
                metric: Some(metric),
                up_to: None,
                evidence: format!(
                    "{} takes {} at least once, and no bare start took less than {}",
                    view.named(cell, metric),
                    Unit::Seconds.format(own.0),
                    Unit::Seconds.format(bare.0)
                ),
                mechanism: "the command came back before its container had run, or something else was started".into(),
            });
        }
    }
    found
}

/// A part cannot take longer than the whole that holds it.
pub fn longer_than_the_whole(view: &View<'_>) -> Vec<Suspect> {
    const PARTS: [(&str, &str); 3] =
        [("first_instruction", "returned"), ("returned", "gone"), ("teardown", "gone")];
    let mut found = Vec::new();
    for cell in 0..view.cells.len() {
        for (part, whole) in PARTS {
            let (Some(part), Some(whole)) = (view.metric_index(cell, part), view.metric_index(cell, whole))
            else {
                continue;
            };
            let (parts, wholes) = (view.columns.get(cell, part), view.columns.get(cell, whole));
            let beyond = parts.iter().zip(wholes).filter_map(|(part, whole)| Some(((*part)?, (*whole)?)));
            let Some((part_value, whole_value)) = beyond.into_iter().find(|(part, whole)| part > whole)
            else {
                continue;
            };
            found.push(Suspect {
                rule: "longer than the whole",
                cells: vec![cell],
                metric: Some(part),
                up_to: None,
                evidence: format!(
                    "{} takes {} in a round where {} takes {}",
                    view.named(cell, part),
                    Unit::Seconds.format(part_value),
                    view.named(cell, whole),
                    Unit::Seconds.format(whole_value)
                ),
                mechanism: "a stamp from inside that is not on the clock of the stamps from outside".into(),
            });
        }
    }
    found
}
