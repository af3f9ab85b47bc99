//! Carries a plan out, round by round, and says what happens as it happens. Prints nothing, and
//! keeps nothing: whoever listens writes samples down and shows progress.

use std::borrow::Cow;

use anyhow::Result;

use crate::experiment;
use crate::outcome::{Abort, FailureClass, Outcome};
use crate::plan::Plan;
use crate::record::{RoundContext, Row};
use crate::subject::{Stage, Subject};

/// What happens during a run, in this order: for every round its beginning, its cells, its end.
#[derive(Debug)]
pub enum Event<'a> {
    /// A round begins.
    RoundBegins {
        /// Warm-ups first, from 0.
        round: usize,
    },
    /// A cell is about to be tried.
    CellBegins {
        /// Its index in the plan.
        cell: usize,
        /// Its place in the order of the round.
        position: usize,
    },
    /// A cell was tried, or not.
    CellEnds(&'a Row<'a>),
    /// A round is complete.
    RoundEnds {
        /// Warm-ups first, from 0.
        round: usize,
        /// What the machine was like during it.
        context: RoundContext,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All rounds are complete.
    Complete,
    /// The person asked to stop.
    Interrupted,
}

/// How often a subject may time out before it is left alone: each time costs a minute.
const MOST_TIMEOUTS: usize = 2;

/// Carries out the rounds of a plan from `first` on. `subjects` belong to the plan's, by index.
/// An error of the listener (a full disk) ends the run; a failure of a subject does not.
pub fn run(
    plan: &Plan,
    first: usize,
    subjects: &mut [Box<dyn Subject>],
    stage: &mut Stage,
    context: &mut dyn FnMut() -> RoundContext,
    listen: &mut dyn FnMut(&Event<'_>) -> Result<()>,
) -> Result<Ending> {
    let mut timeouts = vec![0; subjects.len()];
    for round in first..plan.warmups + plan.rounds {
        listen(&Event::RoundBegins { round })?;
        let mut predecessor = None;
        for (position, cell) in plan.order(round).into_iter().enumerate() {
            listen(&Event::CellBegins { cell, position })?;
            let planned = &plan.cells[cell];
            let experiment =
                experiment::find(planned.experiment).expect("cells are made of known experiments");
            let subject = &mut subjects[planned.subject];
            let outcome = if timeouts[planned.subject] >= MOST_TIMEOUTS {
                Outcome::Skipped(format!("it timed out {MOST_TIMEOUTS} times in a row"))
            } else {
                match experiment.measure(subject.as_mut(), &planned.setting, stage) {
                    Ok(sample) => Outcome::Measured(sample),
                    Err(Abort::Failed(failure)) => Outcome::Failed(failure),
                    Err(Abort::Interrupted) => return Ok(Ending::Interrupted),
                }
            };
            timeouts[planned.subject] = match &outcome {
                Outcome::Failed(failure) if failure.class == FailureClass::Timeout => {
                    timeouts[planned.subject] + 1
                }
                Outcome::Skipped(_) => timeouts[planned.subject],
                _ => 0,
            };
            let outcome = Cow::Owned(outcome);
            listen(&Event::CellEnds(&Row { cell, round, position, predecessor, started: 0, outcome }))?;
            predecessor = Some(cell);
            if stage.interrupts.asked() {
                return Ok(Ending::Interrupted);
            }
        }
        listen(&Event::RoundEnds { round, context: context() })?;
    }
    Ok(Ending::Complete)
}
