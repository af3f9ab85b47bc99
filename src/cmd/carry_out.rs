//! A plan carried out, for every verb that measures: its rounds measured, written down, and shown.

use anyhow::Result;

use crate::cli::Events;
use crate::host::context::Watch;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::record::Writer;
use crate::runner::{self, Ending, Event};
use crate::session::Session;

/// Carries out the plan from round `first` on, writing every sample down.
pub(super) fn carry_out(
    plan: &Plan,
    first: usize,
    session: &mut Session,
    writer: &mut Writer,
    mut progress: Progress,
) -> Result<Ending> {
    let mut watch = Watch::default();
    let Session { run, subjects, .. } = session;
    let ending = runner::run(plan, first, subjects, run, &mut || watch.read(), &mut |event| {
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

/// How the events of a run are shown.
pub(super) fn progress(events: Option<Events>, plan: &Plan, first: usize) -> Progress {
    match events {
        Some(Events::Json) => Progress::Json,
        None => Progress::for_person(plan, first),
    }
}
