//! `dunnage run`: finds the subjects, makes the plan, measures, and shows what came out.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::carry_out::{carry_out, finish, prepare};
use super::request::{self, Asked};
use super::{pilot, report};
use crate::cli::{self, Events};
use crate::exit::{self, Special};
use crate::plan::{Plan, Rounds};
use crate::progress::Progress;
use crate::record::{self, Environment, Recorded};
use crate::runner::Ending;
use crate::session::{self, Found};
use crate::subject::{RunContext, Subject, by_cause};
use crate::sys::clock;
use crate::units::{Nanos, counted};

/// Runs the verb.
pub fn run(options: &cli::Run) -> Result<i32> {
    let asked = request::asked(&options.selection)?;
    let directory = options.output.clone().unwrap_or_else(named_after_the_date);
    record::check_empty(&directory)?;
    let mut run = session::begin(asked.seed, &mut super::tell)?;
    run.tell = super::tell;
    run.allowed = asked.allowed;
    let mut found = session::find(asked.subjects.clone(), &run, &mut super::tell)?;
    for told in by_cause(&found.unavailable) {
        super::tell(&format!("not available: {}: {}", told.names, told.reason.trim()));
        for remedy in told.remedies {
            super::tell(&format!("       remedy: {remedy}"));
        }
    }
    let (mut plan, left_out) = match request::plan(&asked, &found) {
        Ok(planned) => planned,
        Err(error) => {
            session::finish(found.candidates, &run);
            session::end(run);
            return Err(error);
        }
    };
    let named = asked.by_name();
    let lost = found.unavailable.iter().filter(|(name, _)| named.contains(name));
    let lost: Vec<String> = lost.map(|(name, _)| format!("`{name}`")).collect();
    if !lost.is_empty() {
        super::tell(&format!(
            "asked for, but not available: {}; the rest is measured (exit code {})",
            lost.join(", "),
            exit::INCOMPLETE
        ));
    }
    for prediction in &plan.predictions {
        for label in plan.not_there(prediction) {
            super::tell(&format!("predicted, but not measured here: `{label}` in `{prediction}`"));
        }
    }
    if !asked.without.is_empty() {
        let names = asked.without.join(", ");
        super::tell(&format!(
            "left out, since a minute would not be enough: {names} (`dunnage run {names} --quick` measures it by itself)"
        ));
    }
    if !left_out.is_empty() {
        super::tell(&format!("left out, since a minute would not be enough: {}", left_out.join(", ")));
        leave_out(&mut found, &left_out, &run);
    }
    let promised = if asked.quick { Nanos::from_millis(60_000) } else { Nanos::from_millis(300_000) };
    if matches!(asked.rounds, Rounds::Fit(_)) && plan.predicted() > promised {
        super::tell(&format!(
            "this takes longer than {promised}: verdicts on this many subjects need {}; name fewer with `-s`, or one setting with `--set`",
            counted(plan.rounds_for_verdicts(), "round")
        ));
    }
    let mut environment = session::environment(&run, &found);
    environment.asked = named;
    environment.tags = asked.tags.iter().cloned().collect();
    let mut subjects = match prepare(&plan, found.candidates, &run) {
        Ok(subjects) => subjects,
        Err(error) => {
            session::end(run);
            return Err(error);
        }
    };
    let ended = carry_out_new(&mut plan, &asked, &mut subjects, &run, &environment, &directory, options);
    finish(subjects, &run);
    session::end(run);
    match ended {
        Ok(ending) => conclude(ending, &directory, options.events),
        Err(error) => Err(error),
    }
}

/// Fixes the rounds by a pilot, where a precision was asked for, and carries the plan out. What ended the
/// run itself is inside; the outer error is of what came before it.
fn carry_out_new(
    plan: &mut Plan,
    asked: &Asked,
    subjects: &mut [Box<dyn Subject>],
    run: &RunContext,
    environment: &Environment,
    directory: &Path,
    options: &cli::Run,
) -> Result<Result<Ending>> {
    let id = run.id.clone();
    let mut writer = if let Rounds::Precise(share) = asked.rounds {
        let events = options.events;
        let piloted = pilot::fix_rounds(plan, share, subjects, run, environment, directory, events)?;
        if piloted == Ending::Interrupted {
            super::tell("the pilot was interrupted; it is no part of the run, so nothing was kept");
            return Err(Special::Interrupted.into());
        }
        record::create_beside_pilot(directory, &id, environment, plan)?
    } else {
        record::create(directory, &id, environment, plan)?
    };
    let rare = plan.quotas.iter().filter(|quota| quota.rounds < plan.rounds);
    let rare: String = rare.map(|quota| format!(" ({} with {})", quota.rounds, quota.experiment)).collect();
    super::tell(&format!(
        "{}, {}{rare} and {} to warm up: about {} (results in `{}`)",
        counted(plan.cells.len(), "cell"),
        counted(plan.rounds, "round"),
        plan.warmups,
        plan.predicted(),
        directory.display()
    ));
    let progress = match options.events {
        Some(Events::Json) => Progress::Json,
        None => Progress::for_person(plan, 0),
    };
    let began = clock::now();
    let ending = carry_out(plan, 0, subjects, run, &mut writer, progress);
    if matches!(ending, Ok(Ending::Complete)) {
        let took = clock::now().since(began);
        super::tell(&format!("measured for {took}; {} were predicted", plan.predicted()));
    }
    Ok(ending)
}

fn named_after_the_date() -> PathBuf {
    let now = jiff::Timestamp::now().to_string();
    let digits: String = now.chars().take(19).map(|c| if c == ':' { '-' } else { c }).collect();
    PathBuf::from(format!("dunnage-{digits}"))
}

fn leave_out(found: &mut Found, labels: &[String], run: &RunContext) {
    let all = std::mem::take(&mut found.candidates);
    let (dropped, kept): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|one| labels.contains(&one.entry.label));
    session::finish(dropped, run);
    found.candidates = kept;
}

/// Shows what came out of a run, and says how it ended.
pub(super) fn conclude(ending: Result<Ending>, directory: &Path, events: Option<Events>) -> Result<i32> {
    let ending = ending.with_context(|| {
        let directory = directory.display();
        format!("the run stopped; what was measured before is in `{directory}`\n\nhint: with the cause mended, `dunnage resume {directory}` goes on")
    });
    let code = match &ending {
        Ok(Ending::Complete) => exit::FINE,
        Ok(Ending::Interrupted) => exit::INTERRUPTED,
        Err(error) if matches!(error.downcast_ref(), Some(Special::Interrupted)) => exit::INTERRUPTED,
        // Whoever read the events has seen enough, which ends the run as Ctrl-C would.
        Err(error) if super::is_closed_pipe(error) => exit::INTERRUPTED,
        Err(_) => exit::ERROR,
    };
    if code == exit::INTERRUPTED {
        super::tell(&format!(
            "interrupted; the samples are kept, and `dunnage resume {}` goes on",
            directory.display()
        ));
    } else {
        ending?;
    }
    if events.is_none() {
        report::run(directory, "terminal", None, report::Extras::default())?;
    }
    if code != exit::FINE {
        return Ok(code);
    }
    let recorded = record::load(directory)?;
    if !report::is_measured(&recorded.series) {
        return Ok(exit::NOTHING);
    }
    let missing = missing(&recorded);
    if missing.is_empty() {
        return Ok(exit::FINE);
    }
    super::tell(&format!("asked for, but not measured: {}", missing.join(", ")));
    Ok(exit::INCOMPLETE)
}

/// The subjects that were asked for by name and gave no value: they could not be used, or failed in every cell.
fn missing(recorded: &Recorded) -> Vec<String> {
    let has_failed = |name: &str| {
        let cells = recorded.plan.cells.iter().zip(&recorded.series);
        let mut own = cells
            .filter(|(cell, _)| recorded.plan.subjects[cell.subject].label == name)
            .map(|(_, series)| series)
            .peekable();
        own.peek().is_some() && !report::is_measured(own)
    };
    let environment = &recorded.environment;
    let asked = environment.asked.iter();
    asked
        .filter(|name| environment.unavailable.contains_key(*name) || has_failed(name))
        .map(|name| format!("`{name}`"))
        .collect()
}
