//! Tries the user's own command once in each subject before the run is planned. A subject in which it works in no setting is
//! left out with the reason; otherwise, the trial gives the command's time and with it the time limit of a launch.

use anyhow::Result;
use dunnage_analysis::distinct;
use dunnage_analysis::launch::names::{RETURNED, SPAWN};

use super::request::Asked;
use crate::exit::stopped_early;
use crate::experiment::command::names::START;
use crate::experiment::network::{http, time};
use crate::experiment::setting::SettingKey;
use crate::measure;
use crate::outcome::Abort;
use crate::plan::{self, Entry, Request, Rounds};
use crate::report::text::clean;
use crate::session::Session;
use crate::subject::Unavailable;
use crate::units::Nanos;

/// How long the command may take in its trial by default. A longer one is not worth repeating for a verdict.
const LONGEST: Nanos = Nanos::from_millis(1_800_000);
/// A launch counts as hung after this multiple of the longest launch of the trial.
const PATIENCE: i64 = 4;
/// What a command needs to work.
const REMEDY: &str = "use a command that exists in every subject's image and exits with status 0, or gets ready within `--timeout`";

/// Loads a service of the user in the first subject in which it answers, and chooses clients and the rate of requests by that,
/// for all subjects: connections that wait for each other make every load as long as all of them.
pub(super) fn of_services(asked: &mut Asked, session: &mut Session) -> Result<()> {
    let is_free = |key: &SettingKey| {
        let long = plan::key_of(&http::HTTP, key);
        asked.request.chosen.iter().all(|(own, _)| *own != long && own != key.name)
    };
    let free: Vec<&SettingKey> =
        [&http::OF_CLIENTS, &http::OF_RATE].into_iter().filter(|key| is_free(key)).collect();
    let subjects = session.found.entries.clone();
    if free.is_empty()
        || subjects.is_empty()
        || asked.request.chosen.iter().all(|(own, _)| own != http::SERVE)
    {
        return Ok(());
    }
    let plan = plan::make(Request { subjects, rounds: Rounds::Fixed(1), ..asked.request.clone() });
    for (index, entry) in session.found.entries.iter().enumerate() {
        let is_its = |cell: &&plan::Cell| cell.subject == index && cell.experiment == http::NAME;
        let Some(cell) = plan.cells.iter().find(is_its) else { continue };
        super::tell(&format!("trying the service in {}", entry.label));
        let setting = http::of_a_trial(&cell.setting);
        match measure::once(http::NAME, session.subjects[index].as_mut(), &setting, &session.run) {
            Ok(sample) => {
                let number = |name| sample.counter(name).filter(|count| *count > 0).map(|count| count as f64);
                let Some((requests, took)) = number(http::names::REQUESTS).zip(number(http::names::TOOK))
                else {
                    continue;
                };
                let (clients, rate) = http::fitting(requests / took * 1e9, time(&cell.setting));
                for key in free {
                    let value = if key.name == http::OF_CLIENTS.name { &clients } else { &rate };
                    asked.request.chosen.push((plan::key_of(&http::HTTP, key), vec![value.clone()]));
                }
                return Ok(());
            }
            Err(Abort::Failed(_)) => {}
            Err(Abort::Interrupted) => return Err(stopped_early()),
        }
    }
    Ok(())
}

/// Tries the experiments whose duration only a trial can show.
pub(super) fn of_commands(asked: &mut Asked, session: &mut Session) -> Result<()> {
    let subjects = session.found.entries.clone();
    if subjects.is_empty() {
        return Ok(());
    }
    let plan = plan::make(Request { subjects, rounds: Rounds::Fixed(1), ..asked.request.clone() });
    let is_tried = |experiment: &str| {
        plan.cells.iter().any(|cell| cell.experiment == experiment && cell.asks().unknown.is_some())
    };
    let (mut longest, mut lasted) = (Nanos(0), Vec::new());
    let mut failed = Vec::new();
    for (index, entry) in session.found.entries.iter().enumerate() {
        let own = plan.cells.iter().filter(|cell| cell.subject == index);
        let (tried, others): (Vec<_>, Vec<_>) = own.partition(|cell| is_tried(cell.experiment));
        if tried.is_empty() {
            continue;
        }
        super::tell(&format!("trying the command in {}", entry.label));
        let (mut works, mut why) = (false, None);
        for cell in tried {
            // Only the user knows how long a service may take to get ready.
            let is_bounded = asked.timeout.is_some() || cell.setting.get("ready").is_some();
            session.run.allowed = if is_bounded { asked.request.allowed } else { LONGEST };
            let subject = session.subjects[index].as_mut();
            match measure::once(cell.experiment, subject, &cell.setting, &session.run) {
                Ok(sample) => {
                    works = true;
                    let whole = sample.seconds(SPAWN, RETURNED).map_or(Nanos(0), Nanos::from_seconds);
                    let start = Nanos(sample.counter(START).unwrap_or(0));
                    longest = longest.max(whole);
                    lasted.push((whole.0 - start.0).max(0));
                }
                Err(Abort::Failed(failure)) => why = why.or(Some(failure)),
                Err(Abort::Interrupted) => return Err(stopped_early()),
            }
        }
        if let (false, Some(why)) = (works, why) {
            let others = distinct(others.into_iter().map(|cell| cell.experiment));
            failed.push((index, Unavailable::failed(&why).with_remedy(REMEDY), others));
        }
    }
    for (index, why, others) in failed.into_iter().rev() {
        let entry: &mut Entry = &mut session.found.entries[index];
        if others.is_empty() {
            let label = entry.label.clone();
            session.leave_out(std::slice::from_ref(&label));
            session.found.unavailable.insert(0, (label, why));
        } else {
            super::tell(&format!("the command does not work in `{}`: {}", entry.label, clean(&why.reason)));
            entry.only_in = others;
        }
    }
    if !lasted.is_empty() {
        asked.request.trial = Some(Nanos(lasted.iter().sum::<i64>() / lasted.len() as i64));
    }
    if asked.timeout.is_none() {
        asked.request.allowed = asked.request.allowed.max(Nanos(longest.0 * PATIENCE));
        session.run.allowed = asked.request.allowed;
    }
    Ok(())
}
