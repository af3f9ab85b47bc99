//! `dunnage history`: a metric over many runs.

use std::path::PathBuf;

use anyhow::Result;

use super::compare::{Loaded, load, runs_in, runs_of};
use super::show::{self, Output, show};
use super::tell;
use crate::cli::History;
use crate::exit::{self, usage};
use crate::history::{self, Histories, Problem, Wish};
use crate::report::text::listed;

/// Runs the verb.
pub fn run(options: &History) -> Result<i32> {
    show::known::<Histories>(&options.format)?;
    let own = options.runs.iter().map(|path| runs_in(path)).collect::<Result<Vec<_>>>()?.concat();
    let loaded = readable(&own)?;
    let wish = Wish {
        metrics: options.metrics.clone(),
        subjects: options.subjects.clone(),
        by: options.by.clone(),
        across_hosts: options.across_hosts,
    };
    let told = |problem: Problem| match problem {
        Problem::OneRun | Problem::NothingShared => anyhow::Error::from(problem),
        wrong => usage(wrong.to_string()),
    };
    let histories = Histories { histories: history::of(&runs_of(&loaded), &wish).map_err(told)? };
    let output = Output { file: options.output.as_deref(), runs: &own };
    show(&histories, &options.format, &options.runs[0], output)?;
    Ok(exit::FINE)
}

/// A run that cannot be read is told and left out, as long as there are two that can.
fn readable(paths: &[PathBuf]) -> Result<Vec<Loaded>> {
    let (loaded, mut errors): (Vec<_>, Vec<_>) = paths.iter().map(|path| load(path)).partition(Result::is_ok);
    let loaded: Vec<Loaded> = loaded.into_iter().flatten().collect();
    if loaded.len() < 2 && !errors.is_empty() {
        return errors.swap_remove(0).map(|_| Vec::new());
    }
    for error in errors.into_iter().filter_map(Result::err) {
        let text = listed(error.chain(), ": ");
        tell(&format!("left out: {}", text.split("\n\n").next().unwrap_or_default()));
    }
    Ok(loaded)
}
