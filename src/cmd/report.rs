//! `dunnage report`: shows the results of a run.

use std::path::Path;

use anyhow::Result;

use crate::{exit, record, verdict};

/// Runs the verb.
pub fn run(directory: &Path, format: &str, output: Option<&Path>) -> Result<i32> {
    let recorded = record::load(directory)?;
    let analysis = verdict::analyse(&recorded);
    let _ = (format, output);
    for (cell, summary) in recorded.plan.cells.iter().zip(&analysis.cells) {
        let label = &recorded.plan.subjects[cell.subject].label;
        let medians: Vec<_> = summary
            .metrics
            .iter()
            .map(|one| {
                one.as_ref()
                    .map_or("-".to_owned(), |one| crate::units::Unit::Seconds.format(one.median.value))
            })
            .collect();
        println!("{:<16} {:<34} {}", cell.setting.to_string(), label, medians.join("  "));
    }
    for warning in &analysis.warnings {
        println!("{warning:?}");
    }
    for suspect in &analysis.suspects {
        println!("{suspect:?}");
    }
    Ok(exit::FINE)
}
