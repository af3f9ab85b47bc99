//! A plan carried out, for whichever verb: its subjects made, its rounds measured and written down, its subjects finished.

use anyhow::Result;

use crate::plan::Plan;
use crate::progress::Progress;
use crate::record::Writer;
use crate::runner::{self, Ending, Event};
use crate::session::{self, Candidate};
use crate::subject::{RunContext, Subject};

/// The subjects of a plan, by index: those that were found, and a second instance of each that has a
/// twin. After an error none is left.
pub(super) fn prepare(
    plan: &Plan,
    candidates: Vec<Candidate>,
    run: &RunContext,
) -> Result<Vec<Box<dyn Subject>>> {
    let mut subjects: Vec<Box<dyn Subject>> = candidates.into_iter().map(|one| one.subject).collect();
    for entry in plan.subjects.iter().filter(|entry| entry.twin_of.is_some()) {
        match session::twin(entry, run) {
            Ok(twin) => subjects.push(twin),
            Err(error) => {
                finish(subjects, run);
                return Err(error);
            }
        }
    }
    Ok(subjects)
}

/// Removes what the subjects prepared.
pub(super) fn finish(subjects: Vec<Box<dyn Subject>>, run: &RunContext) {
    for mut subject in subjects {
        subject.finish(run);
    }
}

/// Carries out the plan from round `first` on, writing every sample down.
pub(super) fn carry_out(
    plan: &Plan,
    first: usize,
    subjects: &mut [Box<dyn Subject>],
    run: &RunContext,
    writer: &mut Writer,
    mut progress: Progress,
) -> Result<Ending> {
    let mut context = session::round_context();
    let ending = runner::run(plan, first, subjects, run, &mut context, &mut |event| {
        match event {
            Event::RoundBegins { round } => writer.begin_round(*round)?,
            Event::CellEnds(row) => writer.sample(row)?,
            Event::RoundEnds { round, context } => writer.end_round(*round, context)?,
            Event::CellBegins { .. } => {}
        }
        progress.show(plan, event)
    });
    progress.finish();
    ending
}
