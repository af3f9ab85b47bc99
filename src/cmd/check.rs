//! `dunnage check`: tries every cell once and verifies the treatment.

use std::io::Write;

use anyhow::Result;

use super::request::{self, Asked};
use crate::cli::Selection;
use crate::exit;
use crate::measure;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::plan::{self, Rounds};
use crate::report::text::clean;
use crate::session::{self, Found};
use crate::subject::{RunContext, by_cause};

/// Runs the verb. The exit code is 0 when every cell of every subject that was found gave a sample
/// under the treatment that was asked for, or is a price that cannot be had here, and 1 otherwise.
pub fn run(selection: &Selection) -> Result<i32> {
    let asked = request::asked(selection)?;
    let mut run = session::begin(asked.seed, &mut super::tell)?;
    run.tell = super::tell;
    run.allowed = asked.allowed;
    let mut found = session::find(asked.subjects.clone(), &run, &mut super::tell)?;
    let failed = asked.named && !found.unavailable.is_empty();
    // Whatever becomes of it, nothing of the subjects stays.
    let checked = cells(&asked, &mut found, &run, &mut std::io::stdout().lock());
    session::finish(found.candidates, &run);
    session::end(run);
    Ok(match checked? {
        Cells::Interrupted => exit::INTERRUPTED,
        Cells::Fine if !failed => exit::FINE,
        Cells::Fine | Cells::Failed => exit::ERROR,
    })
}

/// What came of the cells.
enum Cells {
    Fine,
    Failed,
    Interrupted,
}

/// Tells what cannot be used, and tries every cell of the plan.
fn cells(asked: &Asked, found: &mut Found, run: &RunContext, out: &mut impl Write) -> Result<Cells> {
    for told in by_cause(&found.unavailable) {
        writeln!(out, "{:<13} {}: {}", "unavailable", told.names, told.reason)?;
        for remedy in told.remedies {
            writeln!(out, "{:<13} remedy: {remedy}", "")?;
        }
    }
    request::plan(asked, found)?;
    let mut checked = Cells::Fine;
    let subjects = found.candidates.iter().map(|one| one.entry.clone()).collect();
    let plan = plan::make(request::request(asked, subjects, Rounds::Fixed(1)));
    for cell in &plan.cells {
        let entry = &plan.subjects[cell.subject];
        if entry.twin_of.is_some() {
            continue;
        }
        let experiment = measure::find(cell.experiment).expect("cells are made of known experiments");
        let subject = found.candidates[cell.subject].subject.as_mut();
        let name = format!("{} {} {}", cell.experiment, cell.setting, entry.label);
        match experiment.measure(subject, &cell.setting, run) {
            Ok(sample) => {
                let facts: Vec<_> =
                    sample.treatment.iter().map(|(name, fact)| format!("{name}={fact}")).collect();
                writeln!(out, "{:<13} {name}", "ok")?;
                if !facts.is_empty() {
                    writeln!(out, "{:<13} {}", "", facts.join(" "))?;
                }
            }
            // A piece that this kernel lacks, or that this user may not have, is one line of a price list.
            Err(Abort::Failed(failure)) if !experiment.about().decides() && is_lacking(&failure) => {
                writeln!(out, "{:<13} {name}: {}", "lacking", clean(&failure.to_string()))?;
            }
            Err(Abort::Failed(failure)) => {
                checked = Cells::Failed;
                writeln!(out, "{:<13} {name}: {}", "failed", clean(&failure.to_string()))?;
            }
            Err(Abort::Interrupted) => return Ok(Cells::Interrupted),
        }
    }
    Ok(checked)
}

/// Whether the machine or the user lacks what it takes, and nothing is broken.
fn is_lacking(failure: &Failure) -> bool {
    matches!(failure.class, FailureClass::Unsupported | FailureClass::Permission)
}
