//! Carries out a plan, for every verb that measures: measures its rounds, records them, and shows progress.

use anyhow::Result;

use crate::cli::Events;
use crate::host::context::Watch;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::record::{self, Writer};
use crate::runner::{self, Ending, Event};
use crate::session::Session;
use crate::verdict::precision;

/// Carries out the plan from round `first` on, recording every sample. A plan in stages ends at the first look at which its
/// precision is reached.
pub(super) fn carry_out(
    plan: &Plan,
    first: usize,
    session: &mut Session,
    writer: &mut Writer,
    mut progress: Progress,
) -> Result<Ending> {
    let mut watch = Watch::default();
    watch.crowds = plan.cells.iter().any(|cell| cell.asks().crowds);
    let Session { run, subjects, tried, .. } = session;
    let mut to = |end: usize, from: usize, writer: &mut Writer, progress: &mut Progress| {
        let stage = Plan { rounds: end, ..plan.clone() };
        runner::run(&stage, from, (subjects, tried), run, &mut || watch.read(), &mut |event| {
            match event {
                Event::RoundBegins { round } => writer.begin_round(*round)?,
                Event::CellEnds(row) => writer.sample(row)?,
                Event::RoundEnds { round, context } => writer.end_round(*round, context)?,
                Event::CellBegins { .. } => {}
            }
            progress.show(plan, event)
        })
    };
    let ending = (|| {
        let mut from = first;
        for (index, &look) in plan.looks.iter().enumerate() {
            if look == plan.rounds || plan.warmups + look < from {
                continue;
            }
            if to(look, from, writer, &mut progress)? == Ending::Interrupted {
                return Ok(Ending::Interrupted);
            }
            from = plan.warmups + look;
            let is_reached = precision::is_reached(&record::load(writer.directory())?);
            let (number, all) = (index + 1, plan.looks.len());
            let follows = if is_reached { "the precision is reached" } else { "not precise enough yet" };
            let rounds = plan.rounds;
            progress.tell(format!("look {number} of {all}, after {look} of {rounds} rounds: {follows}"));
            if is_reached {
                return writer.stop(look).map(|()| Ending::Complete);
            }
        }
        to(plan.rounds, from, writer, &mut progress)
    })();
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
