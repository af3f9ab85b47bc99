//! Carries out a plan round by round and reports events. It prints and stores nothing: the listener records samples and shows
//! progress.

use std::borrow::Cow;
use std::collections::BTreeSet;

use anyhow::Result;

use crate::measure::{self, Visited};
use crate::outcome::{Abort, Failure, FailureClass, Outcome, Sample};
use crate::plan::Plan;
use crate::record::{RoundContext, Row, since_1970};
use crate::subject::{RunContext, Subject, bare};
use crate::sys::pidfd;
use crate::units::Nanos;

/// What happens during a run: for every round its beginning, its cells, its end.
#[derive(Debug)]
pub enum Event<'a> {
    /// A round begins.
    RoundBegins {
        /// Counted from 0, warm-ups first.
        round: usize,
    },
    /// A cell is about to be measured.
    CellBegins {
        /// Its index in the plan.
        cell: usize,
        /// Its place in the order of the round.
        position: usize,
    },
    /// A cell was measured, failed or was skipped.
    CellEnds(&'a Row<'a>),
    /// A round is complete.
    RoundEnds {
        /// Counted from 0, warm-ups first.
        round: usize,
        /// The state of the machine during the round.
        context: RoundContext,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All rounds are complete.
    Complete,
    /// The user asked to stop.
    Interrupted,
}

/// In how many ways a subject may time out before it is skipped, and how often in a row a cell: each time costs up to a minute.
const MOST_TIMEOUTS: usize = 2;

/// How late dunnage may wake up before a sample is discarded. A busy machine wakes it within tens of milliseconds.
const TOO_LATE: Nanos = Nanos(500_000_000);

/// How often a cell that cannot recover may fail in the same way, with no other outcome, before it is skipped.
const MOST_FAILURES: usize = 3;

/// The outcomes of a cell so far.
#[derive(Debug, Clone, Default)]
enum Past {
    /// Not tried yet.
    #[default]
    None,
    /// Failed this often, always in this way.
    Alike(FailureClass, String, usize),
    /// Measured at least once, or failed in several ways.
    Various,
}

impl Past {
    /// Why the cell is not tried again, if it is not.
    fn hopeless(&self) -> Option<String> {
        match self {
            Past::Alike(_, reason, times) if *times >= MOST_FAILURES => {
                Some(format!("it failed {times} times in the same way: {reason}"))
            }
            _ => None,
        }
    }

    /// The past including this outcome.
    fn and(self, outcome: &Outcome) -> Past {
        match (self, outcome) {
            (past, Outcome::Skipped(_)) => past,
            (Past::None, Outcome::Failed(failure)) => Past::Alike(failure.class, failure.reason.clone(), 1),
            (Past::Alike(class, reason, times), Outcome::Failed(failure))
                if class == failure.class && reason == failure.reason =>
            {
                Past::Alike(class, reason, times + 1)
            }
            _ => Past::Various,
        }
    }
}

/// What timed out of a subject as a whole since something of it last did not, of cells that share a container, by the first of them:
/// one path or one slow answer that is in the way of nothing else is not the subject's fault.
#[derive(Debug, Clone, Default)]
struct Late(BTreeSet<usize>);

impl Late {
    /// Counts the cells of a container, of which so many were tried and so many timed out.
    fn count(&mut self, group: &[usize], tried: usize, late: usize) {
        match (tried, late) {
            (0, _) => {}
            _ if tried == late => self.0.extend(group.iter().min()),
            _ => self.0.clear(),
        }
    }

    /// Whether the subject is not tried again.
    fn is_hopeless(&self) -> bool {
        self.0.len() >= MOST_TIMEOUTS
    }
}

/// The outcomes of subjects and cells so far. What is skipped stays so in every part of a run.
#[derive(Debug, Default)]
pub struct Tried {
    /// By subject.
    subjects_late: Vec<Late>,
    /// By cell, how often it timed out in a row.
    cells_late: Vec<usize>,
    /// By cell.
    pasts: Vec<Past>,
}

/// Carries out the rounds of a plan from `first` on. `subjects` and the outcomes so far are indexed like those of the plan. An
/// error of the listener, such as a full disk, ends the run; a failure of a subject does not.
pub fn run(
    plan: &Plan,
    first: usize,
    (subjects, tried): (&mut [Box<dyn Subject>], &mut Tried),
    run: &RunContext,
    context: &mut dyn FnMut() -> RoundContext,
    listen: &mut dyn FnMut(&Event<'_>) -> Result<()>,
) -> Result<Ending> {
    let Tried { subjects_late, cells_late, pasts } = tried;
    let host = bare::peer(&run.place);
    subjects_late.resize(subjects.len(), Late::default());
    cells_late.resize(plan.cells.len(), 0);
    pasts.resize(plan.cells.len(), Past::None);
    for round in first..plan.warmups + plan.rounds {
        listen(&Event::RoundBegins { round })?;
        let mut predecessor = None;
        let order = plan.order(round);
        let mut places = 0..;
        for group in order.chunk_by(|one, next| plan.share(*one, *next)) {
            let asked = group.iter().map(|cell| &plan.cells[*cell]);
            let asked = asked.map(|cell| (cell.experiment, &cell.setting)).collect();
            let number = plan.cells[group[0]].subject;
            let subject = subjects[number].as_mut();
            let is_skipped = subjects_late[number].is_hopeless();
            let (mut tried, mut late) = (0, 0);
            let mut visit = measure::begin(Visited { subject, host: &host, run, asked });
            for (&cell, position) in group.iter().zip(&mut places) {
                listen(&Event::CellBegins { cell, position })?;
                let planned = &plan.cells[cell];
                let outcome = if is_skipped || cells_late[cell] >= MOST_TIMEOUTS {
                    Outcome::Skipped(format!("it timed out {MOST_TIMEOUTS} times in a row"))
                } else if let Some(reason) = pasts[cell].hopeless() {
                    Outcome::Skipped(reason)
                } else {
                    pidfd::take_lateness();
                    let measured = visit.take((planned.experiment, &planned.setting));
                    match measured.and_then(|sample| while_running(sample, pidfd::take_lateness())) {
                        Ok(sample) => Outcome::Measured(sample),
                        Err(Abort::Failed(failure)) => Outcome::Failed(failure),
                        Err(Abort::Interrupted) => return Ok(Ending::Interrupted),
                    }
                };
                match &outcome {
                    Outcome::Failed(failure) if failure.class == FailureClass::Timeout => {
                        (tried, late) = (tried + 1, late + 1);
                        cells_late[cell] += 1;
                    }
                    Outcome::Skipped(_) => {}
                    _ => {
                        tried += 1;
                        cells_late[cell] = 0;
                    }
                }
                if !planned.asks().recovers {
                    pasts[cell] = std::mem::take(&mut pasts[cell]).and(&outcome);
                }
                let next = following(predecessor, cell, &outcome);
                let outcome = Cow::Owned(outcome);
                let started = since_1970();
                listen(&Event::CellEnds(&Row { cell, round, position, predecessor, started, outcome }))?;
                predecessor = next;
                if run.interrupts.asked() {
                    return Ok(Ending::Interrupted);
                }
            }
            subjects_late[number].count(group, tried, late);
        }
        listen(&Event::RoundEnds { round, context: context() })?;
    }
    Ok(Ending::Complete)
}

/// The sample, unless dunnage itself was not running during it: that time would be in the launch.
fn while_running(sample: Sample, late: Nanos) -> Result<Sample, Abort> {
    if late < TOO_LATE {
        return Ok(sample);
    }
    let reason = format!(
        "dunnage itself did not run for {late} during the measurement: it was stopped, or the machine was suspended, paused or overloaded"
    );
    Err(Failure::environment(reason).into())
}

/// The predecessor of the next cell: this cell, unless it was skipped.
fn following(before: Option<usize>, cell: usize, outcome: &Outcome) -> Option<usize> {
    match outcome {
        Outcome::Skipped(_) => before,
        Outcome::Measured(_) | Outcome::Failed(_) => Some(cell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(outcomes: &[&str]) -> Past {
        outcomes.iter().fold(Past::None, |past, reason| {
            let outcome = match *reason {
                "measured" => Outcome::Measured(Sample::default()),
                "skipped" => Outcome::Skipped("why".into()),
                reason => Outcome::Failed(Failure::new(FailureClass::Environment, reason)),
            };
            past.and(&outcome)
        })
    }

    #[test]
    fn one_part_that_always_times_out_does_not_take_the_others_along() {
        let mut late = Late::default();
        // The slow part is the last of one round and the first of the next.
        for (group, tried, timed_out) in
            [(&[2, 3][..], 2, 1), (&[0, 1], 2, 2), (&[1, 0], 2, 2), (&[0, 1], 0, 0)]
        {
            late.count(group, tried, timed_out);
            assert!(!late.is_hopeless());
        }
        late.count(&[3, 2], 2, 2);
        assert!(late.is_hopeless());
        late.count(&[3, 2], 2, 1);
        assert!(!late.is_hopeless());
    }

    #[test]
    fn a_cell_that_was_skipped_precedes_none() {
        let skipped = Outcome::Skipped("why".into());
        let failed = Outcome::Failed(Failure::new(FailureClass::Crash, "why"));
        assert_eq!(following(None, 3, &skipped), None);
        assert_eq!(following(Some(1), 3, &skipped), Some(1));
        assert_eq!(following(Some(1), 3, &failed), Some(3));
        assert_eq!(following(None, 3, &Outcome::Measured(Sample::default())), Some(3));
    }

    #[test]
    fn a_cell_that_only_ever_failed_in_one_way_is_left_alone() {
        assert_eq!(past(&["a", "a"]).hopeless(), None);
        let hopeless = Some("it failed 3 times in the same way: a".to_owned());
        assert_eq!(past(&["a", "a", "a"]).hopeless(), hopeless);
        assert_eq!(past(&["a", "a", "a", "skipped"]).hopeless(), hopeless);
        assert_eq!(past(&["a", "b", "a", "a", "a"]).hopeless(), None);
        assert_eq!(past(&["measured", "a", "a", "a"]).hopeless(), None);
    }
}
