//! `dunnage history`: a metric over many runs.

use anyhow::Result;

use super::compare::{loaded, runs_of};
use super::show::{self, Output, show};
use crate::cli::History;
use crate::exit::{self, usage};
use crate::history::{self, Histories, Problem, Selection};

/// Runs the verb.
pub fn run(options: &History) -> Result<i32> {
    show::known::<Histories>(&options.format)?;
    let (loaded, own) = loaded(&options.runs)?;
    let wanted = Selection {
        metrics: options.metrics.clone(),
        subjects: options.subjects.clone(),
        by: options.by.clone(),
        across_hosts: options.across_hosts,
    };
    let told = |problem: Problem| match problem {
        Problem::OneRun | Problem::NothingShared => anyhow::Error::from(problem),
        wrong => usage(wrong.to_string()),
    };
    let histories = Histories { histories: history::of(&runs_of(&loaded), &wanted).map_err(told)? };
    let output = Output { file: options.output.as_deref(), runs: &own, extent: options.extent.into() };
    show(&histories, &options.format, &options.runs[0], output)?;
    Ok(exit::FINE)
}
