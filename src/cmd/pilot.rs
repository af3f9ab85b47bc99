//! The pilot of `run --precision`: a few rounds before the run, in their own run directory, from which the number of rounds is
//! computed. None of its samples counts in the run.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::carry_out::carry_out;
use crate::cli::Events;
use crate::plan::{MOST_PRECISE_ROUNDS, PILOT_ROUNDS, PRECISE_TIME, Plan};
use crate::progress::Progress;
use crate::record::{self, Environment};
use crate::report::text::{listed, percent};
use crate::runner::Ending;
use crate::session::Session;
use crate::stats::Rng;
use crate::units::counted;
use crate::verdict::precision::fix_rounds;

/// Runs the pilot of `plan` and fixes the plan's number of rounds. Returns how the pilot ended; if it was interrupted, its
/// directory is removed.
pub(super) fn run(
    plan: &mut Plan,
    asked: f64,
    session: &mut Session,
    environment: &Environment,
    directory: &Path,
    events: Option<Events>,
) -> Result<Ending> {
    // With its own order, or the run would repeat that of the pilot.
    let seed = Rng::for_stream(plan.seed, u64::MAX).next_u64();
    let pilot = Plan { rounds: PILOT_ROUNDS, seed, ..plan.clone() };
    let (time, share) = (pilot.predicted(), percent(asked));
    super::tell(&format!(
        "running a pilot of {PILOT_ROUNDS} rounds, about {time}, to find the number of rounds for ±{share}"
    ));
    let place = directory.join(record::PILOT);
    let was_there = directory.exists();
    let ended = (|| {
        let mut writer = record::create(&place, &session.run.id, environment, &pilot)?;
        // The event stream is about the run only.
        let progress = match events {
            Some(Events::Json) => Progress::Quiet,
            None => Progress::for_person(&pilot, 0),
        };
        carry_out(&pilot, 0, session, &mut writer, progress)
    })();
    if !matches!(ended, Ok(Ending::Complete)) {
        let _ = fs::remove_dir_all(&place);
        if !was_there {
            let _ = fs::remove_dir(directory);
        }
        return ended;
    }
    let most = plan.rounds_within(PRECISE_TIME, MOST_PRECISE_ROUNDS);
    fix_rounds(plan, &record::load(&place)?, asked, most);
    let Some(precision) = plan.precision else { return ended };
    let rounds = counted(plan.rounds, "round");
    let foretold = match precision.predicted {
        Some(share) => format!("{rounds}, expected to reach ±{}", percent(share)),
        None => format!("{rounds}; the pilot gave too few samples to predict their precision"),
    };
    super::tell(&match precision.capped {
        true => format!(
            "no number of rounds within an hour, or up to {MOST_PRECISE_ROUNDS}, reaches ±{share}: the run has {foretold}"
        ),
        false => format!("the run has {foretold}, for the requested ±{share}"),
    });
    if let [looks @ .., _] = &plan.looks[..] {
        let looks = listed(looks, " and ");
        super::tell(&format!("the run ends earlier if it reaches ±{share} after {looks} rounds"));
    }
    Ok(Ending::Complete)
}
