//! `dunnage run`: finds the subjects, makes the plan, measures, and shows the result.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dunnage_analysis::distinct;

use super::carry_out::{carry_out, progress};
use super::request::{self, Asked};
use super::{pilot, report, trial};
use crate::cli::{self, Outcome};
use crate::exit::{self, Special};
use crate::outcome::FailureClass;
use crate::plan::{Cell, Plan, Rounds};
use crate::record::{self, Cause, Environment, Recorded, Series};
use crate::report::text::{in_shell, listed, quoted};
use crate::runner::Ending;
use crate::session::{Leftovers, Session};
use crate::subject::by_cause;
use crate::sys::clock;
use crate::units::counted;
use crate::verdict::lost_too_many;

/// Runs the verb.
pub fn run(options: &cli::Run) -> Result<i32> {
    let (ending, directory) = measured(options)?;
    conclude(ending, &directory, options.outcome)
}

/// Measures, and returns how that ended and where the samples are.
pub(super) fn measured(options: &cli::Run) -> Result<(Result<Ending>, PathBuf)> {
    let mut asked = request::asked(&options.selection)?;
    let directory = options.output.clone().unwrap_or_else(named_after_the_date);
    record::check_empty(&directory, ", or resume an unfinished run with `dunnage resume`")?;
    let mut session = asked.session(Leftovers::Removed)?;
    trial::of_commands(&mut asked, &mut session)?;
    trial::of_services(&mut asked, &mut session)?;
    for told in by_cause(&session.found.unavailable) {
        super::tell(&format!("not available: {}: {}", told.names, told.reason.trim()));
        for remedy in told.remedies {
            super::tell(&format!("       remedy: {remedy}"));
        }
    }
    let (mut plan, left_out) = request::plan(&asked, &session.found)?;
    let named = asked.by_name();
    let lost = session.found.unavailable.iter().filter(|(name, _)| named.contains(name));
    let (lost, code) = (quoted(lost.map(|(name, _)| name)), exit::INCOMPLETE);
    if !lost.is_empty() {
        let rest = format!("measuring the rest (exit code {code})");
        super::tell(&format!("requested, but not available: {lost}; {rest}"));
    }
    for prediction in &plan.predictions {
        for label in plan.not_there(prediction) {
            super::tell(&format!("predicted, but not measured: `{label}` in `{prediction}`"));
        }
    }
    if !asked.without.is_empty() {
        let names = asked.without.join(", ");
        super::tell(&format!(
            "left out to stay within a minute: {names} (measure it alone with `dunnage run {names} --quick`)"
        ));
    }
    for (what, why) in &asked.lacking {
        super::tell(&format!("left out: {what}: {why}"));
    }
    if !left_out.is_empty() {
        super::tell(&format!("left out {}: {}", asked.to_be_quick(), left_out.join(", ")));
        session.leave_out(&left_out);
    }
    if let Some(words) = super::plan::takes_long(&asked, &plan, &session.found) {
        super::tell(&words);
    }
    let mut environment = session.environment();
    let why = format!("left out {}", asked.to_be_quick());
    environment.unavailable.extend(left_out.into_iter().map(|label| (label, why.clone())));
    let lacking = asked.lacking.iter().map(|(what, why)| (what.clone(), (*why).to_owned()));
    environment.unavailable.extend(lacking);
    environment.asked = named;
    environment.tags = asked.tags.iter().cloned().collect();
    session.add_twins(&plan)?;
    let ending = carry_out_new(&mut plan, &asked, &mut session, &environment, &directory, options)?;
    Ok((ending, directory))
}

/// Fixes the rounds by a pilot if a precision was requested, and carries out the plan. The inner result is that of the run,
/// the outer error is from before it.
fn carry_out_new(
    plan: &mut Plan,
    asked: &Asked,
    session: &mut Session,
    environment: &Environment,
    directory: &Path,
    options: &cli::Run,
) -> Result<Result<Ending>> {
    if let Rounds::Precise(share) = asked.request.rounds {
        let piloted = pilot::run(plan, share, session, environment, directory, options.outcome.events)?;
        if piloted == Ending::Interrupted {
            super::tell("the pilot was interrupted; its samples are not part of a run, so nothing was kept");
            return Err(Special::Interrupted.into());
        }
    }
    if let Some(words) = super::plan::too_few(plan) {
        super::tell(&words);
    }
    let mut writer = record::create(directory, &session.run.id, environment, plan)?;
    record::resumable::allow(&writer, &session.run.place.state, &session.run.variables)?;
    let rare = plan.quotas.iter().filter(|quota| quota.rounds < plan.rounds);
    let rare: String = rare.map(|quota| format!(" ({} with {})", quota.rounds, quota.experiment)).collect();
    let (cells, rounds) = (counted(plan.cells.len(), "cell"), counted(plan.rounds, "round"));
    let (warmups, time, shown) = (plan.warmups, plan.predicted(), directory.display());
    super::tell(&format!(
        "{cells}, {rounds}{rare} and {warmups} to warm up: about {time} (results in `{shown}`)"
    ));
    let progress = progress(options.outcome.events, plan, 0);
    let began = clock::now();
    let ending = carry_out(plan, 0, session, &mut writer, progress);
    if matches!(ending, Ok(Ending::Complete)) {
        let took = clock::now().since(began);
        super::tell(&format!("measured for {took} (predicted: {})", plan.predicted()));
    }
    Ok(ending)
}

/// Two runs that begin in the same second have different names.
fn named_after_the_date() -> PathBuf {
    let now = jiff::Timestamp::now().to_string();
    let digits: String = now.chars().take(19).map(|c| if c == ':' { '-' } else { c }).collect();
    let numbered = (2..).map(|number| format!("dunnage-{digits}-{number}"));
    let mut names = std::iter::once(format!("dunnage-{digits}")).chain(numbered).map(PathBuf::from);
    names.find(|name| !name.exists()).expect("there is always another number")
}

/// Shows the result of a run, and returns its exit code.
pub(super) fn conclude(ending: Result<Ending>, directory: &Path, outcome: Outcome) -> Result<i32> {
    let ending = ending.with_context(|| {
        let directory = in_shell([directory.to_string_lossy()]);
        format!("the run stopped\n\nhint: fix the cause, then continue with `dunnage resume {directory}`: the samples so far are kept")
    });
    let code = match &ending {
        Ok(Ending::Complete) => exit::FINE,
        Ok(Ending::Interrupted) => exit::INTERRUPTED,
        Err(error) if matches!(error.downcast_ref(), Some(Special::Interrupted)) => exit::INTERRUPTED,
        // A reader of the events that closes the pipe ends the run, as Ctrl-C would.
        Err(error) if super::is_closed_pipe(error) => exit::INTERRUPTED,
        Err(_) => exit::ERROR,
    };
    if code == exit::INTERRUPTED {
        let shown = in_shell([directory.to_string_lossy()]);
        super::tell(&format!("interrupted; the samples are kept: continue with `dunnage resume {shown}`"));
    } else {
        ending?;
    }
    let recorded = record::load(directory)?;
    let shown = report::after_a_run(&recorded, directory, outcome)
        .with_context(|| format!("the samples are in `{}`, but cannot be shown", directory.display()))?;
    let code = if code == exit::FINE { completeness(&recorded) } else { code };
    shown.into_iter().for_each(|line| super::tell(&line));
    Ok(code)
}

/// The exit code of a run that ended normally. Reports missing results.
fn completeness(recorded: &Recorded) -> i32 {
    if !report::is_measured(&recorded.series) {
        return exit::NOTHING;
    }
    let missing = missing(recorded);
    if missing.is_empty() {
        return exit::FINE;
    }
    let code = exit::INCOMPLETE;
    super::tell(&format!(
        "some requested results are missing, not counting warm-ups (exit code {code}): {missing}"
    ));
    code
}

/// Subjects that were named or found working but gave no value, and those that lost most of their samples and have too few for
/// verdicts while others have enough. Of the others, settings in which too many samples failed.
fn missing(recorded: &Recorded) -> String {
    let Recorded { plan, series, environment, .. } = recorded;
    let taken = |(cell, series): (&Cell, &Series)| {
        let finite = |values: &Vec<f64>| values.iter().filter(|value| value.is_finite()).count();
        let taken = series.values.iter().map(finite).max().unwrap_or(0);
        (cell.subject, taken, plan.rounds_of(cell.experiment), plan.rounds_for_any(cell.experiment))
    };
    let cells: Vec<_> = plan.cells.iter().zip(series).map(taken).collect();
    let any_has_enough = cells.iter().any(|(_, taken, _, needed)| taken >= needed);
    // What an engine lacks, or a user may not do, is not missing.
    let may_be_lost =
        |class: FailureClass| !matches!(class, FailureClass::Unsupported | FailureClass::Permission);
    let has_failed = |cell: usize| {
        recorded
            .failures
            .iter()
            .filter(|row| row.cell == cell)
            .any(|row| matches!(&row.cause, Cause::Failed(failure) if may_be_lost(failure.class)))
    };
    let whole = |(cell, lost): (usize, usize)| {
        let (own, named) = (plan.cells[cell].experiment, plan.named(cell));
        let is_alone = plan.cells.iter().all(|one| one.experiment == own);
        let named = if is_alone { named } else { format!("{named} in {own}") };
        match cells[cell].2 {
            all if all == lost => format!("all {all} samples of {named}"),
            all => format!("{lost} of {all} samples of {named}"),
        }
    };
    let told = |name: &String| {
        let own = cells.iter().filter(|(subject, ..)| plan.subjects[*subject].label == *name);
        let (mut all, mut planned, mut lacks) = (0, 0, false);
        for (_, taken, rounds, needed) in own {
            (all, planned, lacks) = (all + taken, planned + rounds, lacks || taken < needed);
        }
        let few = 2 * all < planned && lacks && any_has_enough;
        let lost = |index: usize| {
            let (subject, taken, rounds, _) = cells[index];
            let is_own = plan.subjects[subject].label == *name;
            let is_empty = taken == 0 && rounds > 0 && has_failed(index);
            let lost = if is_empty { Some(rounds) } else { lost_too_many(recorded, index) };
            lost.filter(|_| is_own).map(|lost| (index, lost))
        };
        match all {
            0 if planned > 0 => vec![format!("all {planned} samples of `{name}`")],
            0 => match environment.unavailable.get(name) {
                Some(why) if why.starts_with("left out") => vec![format!("`{name}`, {why}")],
                Some(_) => vec![format!("`{name}`, which is not available")],
                None => Vec::new(),
            },
            _ if few => vec![format!("{} of {planned} samples of `{name}`", planned - all)],
            _ => (0..cells.len()).filter_map(lost).map(whole).collect(),
        }
    };
    let found = (0..plan.subjects.len()).filter(|one| plan.is_original(*one));
    let found = found.map(|one| &plan.subjects[one].label);
    listed(distinct(environment.asked.iter().chain(found)).into_iter().flat_map(told), "; ")
}
