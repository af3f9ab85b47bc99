//! `dunnage history`: a metric over many runs.

use std::path::PathBuf;

use anyhow::Result;

use super::compare::runs_in;
use super::show::{self, Output, show};
use super::tell;
use crate::cli::History;
use crate::compare::Run;
use crate::exit::{self, Special};
use crate::history::{self, Histories, Hosts, Problem, Wish};
use crate::record::{self, Recorded};
use crate::verdict::{self, Doubts};

/// Runs the verb. A run that cannot be read is told and left out, as long as there are two that can.
pub fn run(options: &History) -> Result<i32> {
    show::known::<Histories>(&options.format)?;
    let loaded = load(&options.runs)?;
    let runs: Vec<Run<'_>> =
        loaded.iter().map(|(place, recorded, doubts)| Run { recorded, doubts, place }).collect();
    let wish = Wish {
        metrics: options.metrics.clone(),
        subjects: options.subjects.clone(),
        by: options.by.clone(),
        hosts: if options.across_hosts { Hosts::Together } else { Hosts::Apart },
    };
    let histories = Histories { histories: history::of(&runs, &wish).map_err(told)? };
    let own = options.runs.iter().map(|path| runs_in(path)).collect::<Result<Vec<_>>>()?.concat();
    let output = Output { file: options.output.as_deref(), runs: &own };
    show(&histories, &options.format, &options.runs[0], output)?;
    Ok(exit::FINE)
}

/// A run with its place, as it was read and judged.
type Loaded = (String, Recorded, Doubts);

fn load(places: &[PathBuf]) -> Result<Vec<Loaded>> {
    let mut all = Vec::new();
    let mut errors = Vec::new();
    for path in places.iter().map(|path| runs_in(path)).collect::<Result<Vec<_>>>()?.concat() {
        match record::open(&path) {
            Ok(recorded) => {
                let doubts = verdict::doubts(&recorded);
                all.push((path.display().to_string(), recorded, doubts));
            }
            Err(error) => errors.push(error),
        }
    }
    if all.len() < 2 && !errors.is_empty() {
        return Err(errors.swap_remove(0));
    }
    for error in errors {
        let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
        let text = causes.join(": ");
        tell(&format!("left out: {}", text.split("\n\n").next().unwrap_or_default()));
    }
    Ok(all)
}

/// Why there is no history, and what to do.
fn told(problem: Problem) -> anyhow::Error {
    let quoted = |all: Vec<String>| all.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
    let text = match problem {
        Problem::OneRun => {
            return anyhow::anyhow!(
                "a history needs two runs at least\n\nhint: name more run directories or packs, or a directory that \
                 holds them; `dunnage report` shows a single run"
            );
        }
        Problem::NothingShared => {
            return anyhow::anyhow!(
                "no two of these runs share a cell with values\n\nhint: a cell is an experiment, a setting and a \
                 subject's label, on one host; runs of different hosts that are alike go together with `--across-hosts`"
            );
        }
        Problem::NoTag(tag) => {
            format!("no run has the tag `{tag}`\n\nhint: runs get it with `dunnage run --tag {tag}=VALUE`")
        }
        Problem::NoMetric(name, known) => {
            format!("there is no metric `{name}` in these runs\n\nhint: metrics are {}", quoted(known))
        }
        Problem::NoSubject(label, known) => {
            format!("no run has the subject `{label}`\n\nhint: subjects are {}", quoted(known))
        }
    };
    Special::Usage(text).into()
}
