//! `dunnage check`: runs every cell once and verifies its treatment.

use anyhow::Result;
use dunnage_analysis::distinct;
use dunnage_analysis::subject::inherited::{differences, shown};

use super::request;
use crate::cli::Selection;
use crate::exit;
use crate::measure;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::plan::{self, Plan, Relation, Request, Rounds};
use crate::report::text::clean;
use crate::session::{Leftovers, heard};
use crate::subject::by_cause;

/// Runs the verb. The exit code is 0 if every cell gave a sample under the requested treatment, or is a price that this
/// machine lacks; otherwise it is 1.
pub fn run(selection: &Selection) -> Result<i32> {
    let asked = request::asked(selection)?;
    let mut session = asked.session(Leftovers::Removed)?;
    for told in by_cause(&session.found.unavailable) {
        super::say(&format!("{:<13} {}: {}", "unavailable", told.names, told.reason))?;
        for remedy in told.remedies {
            super::say(&format!("{:<13} remedy: {remedy}", ""))?;
        }
    }
    for (what, why) in &asked.lacking {
        super::say(&format!("{:<13} {what}: {why}", "lacking"))?;
    }
    let mut is_fine = !asked.named || session.found.unavailable.is_empty();
    request::plan(&asked, &session.found)?;
    let subjects = session.found.entries.clone();
    let plan = plan::make(Request { subjects, rounds: Rounds::Fixed(1), ..asked.request.clone() });
    for differing in inherited_besides(&plan) {
        super::say(&format!("{:<13} {differing}", "differs"))?;
    }
    for cell in &plan.cells {
        let entry = &plan.subjects[cell.subject];
        if entry.twin_of.is_some() {
            continue;
        }
        let subject = session.subjects[cell.subject].as_mut();
        let name = format!("{} {} {}", cell.experiment, cell.setting, entry.label);
        let run = &session.run;
        match heard(&name, run, || measure::once(cell.experiment, subject, &cell.setting, run)) {
            Ok(sample) => {
                let facts: Vec<_> =
                    sample.treatment.iter().map(|(name, fact)| format!("{name}={fact}")).collect();
                super::say(&format!("{:<13} {name}", "ok"))?;
                if !facts.is_empty() {
                    super::say(&format!("{:<13} {}", "", facts.join(" ")))?;
                }
            }
            // A piece that this kernel lacks, or that needs other privileges, is only one line of a price list.
            Err(Abort::Failed(failure)) if !cell.asks().decides() && is_lacking(&failure) => {
                super::say(&format!("{:<13} {name}: {}", "lacking", clean(&failure.in_short())))?;
            }
            Err(Abort::Failed(failure)) => {
                is_fine = false;
                super::say(&format!("{:<13} {name}: {}", "failed", clean(&failure.in_short())))?;
            }
            Err(Abort::Interrupted) => return Ok(exit::INTERRUPTED),
        }
    }
    Ok(if is_fine { exit::FINE } else { exit::ERROR })
}

/// The pairs that were asked to differ in one key and also inherit something else.
fn inherited_besides(plan: &Plan) -> Vec<String> {
    let told = plan.comparisons.iter().filter_map(|one| match &one.relation {
        Relation::KeyAndMore { key } => {
            let [one, other] = [one.subject, one.against].map(|index| &plan.subjects[index]);
            let more = shown(&differences(key, &one.inherited, &other.inherited));
            Some(format!("`{}` and `{}` not only in {key}: {more}", one.label, other.label))
        }
        _ => None,
    });
    distinct(told)
}

/// Whether the machine or the user lacks something; nothing is broken then.
fn is_lacking(failure: &Failure) -> bool {
    matches!(failure.class, FailureClass::Unsupported | FailureClass::Permission)
}
