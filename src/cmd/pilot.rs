//! The pilot of `run --precision`: a few rounds before the run, in a run directory of their own, from
//! which the number of rounds is computed. None of its samples counts in the run.

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

/// Runs the pilot of `plan` and fixes the plan's number of rounds. The ending is that of the pilot: after
/// an interruption nothing of it is left, since it is no part of any run.
pub(super) fn run(
    plan: &mut Plan,
    asked: f64,
    session: &mut Session,
    environment: &Environment,
    directory: &Path,
    events: Option<Events>,
) -> Result<Ending> {
    // An order of its own, or the run would repeat the pilot's.
    let seed = Rng::for_stream(plan.seed, u64::MAX).next_u64();
    let pilot = Plan { rounds: PILOT_ROUNDS, seed, ..plan.clone() };
    let (time, share) = (pilot.predicted(), percent(asked));
    super::tell(&format!("a pilot of {PILOT_ROUNDS} rounds, about {time}, finds the rounds for ±{share}"));
    let place = directory.join(record::PILOT);
    let was_there = directory.exists();
    let ended = (|| {
        let mut writer = record::create(&place, &session.run.id, environment, &pilot)?;
        // The event stream tells of the run alone.
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
        Some(share) => format!("{rounds}, which should reach ±{}", percent(share)),
        None => format!("{rounds}; the pilot gave too few samples to foretell what they reach"),
    };
    super::tell(&match precision.capped {
        true => format!(
            "the pilot finds no number of rounds within an hour, or up to {MOST_PRECISE_ROUNDS}, that reaches ±{share}: {foretold}"
        ),
        false => format!("the pilot finds {foretold}, for the ±{share} asked for"),
    });
    if let [looks @ .., _] = &plan.looks[..] {
        let looks = listed(looks, " and ");
        super::tell(&format!("the run ends earlier where ±{share} is reached after {looks} rounds"));
    }
    Ok(Ending::Complete)
}
