//! `dunnage resume`: continues an interrupted run by its own plan.

use std::path::Path;

use anyhow::{Context, Result, bail};
use dunnage_analysis::subject::inherited::{ENVIRONMENT, differences, shown};

use super::carry_out::{carry_out, progress};
use super::run::conclude;
use crate::cli::Outcome;
use crate::exit::{nothing, usage};
use crate::plan::Entry;
use crate::record::{self, Recorded, resumable};
use crate::session::{self, Leftovers, Origin, Session, Trial, Wanted};
use crate::subject::{Spec, context};

/// Runs the verb. The interrupted round starts over, because half a round does not count.
pub fn run(directory: &Path, outcome: Outcome) -> Result<i32> {
    let shown = directory.display();
    let recorded = record::load(directory)?;
    if let Some(origin) = &recorded.environment.origin {
        return Err(usage(format!(
            "cannot resume `{shown}`: it was imported from {}\n\nhint: start a new run with `dunnage run`",
            origin.format
        )));
    }
    if unfinished(&recorded).is_none() {
        super::tell(&format!("`{shown}` is complete"));
        return conclude(Ok(crate::runner::Ending::Complete), directory, outcome);
    }
    // Checked before the session unpacks this build's image over the other one's.
    if session::own_digest()? != recorded.environment.probe {
        bail!(
            "cannot resume `{shown}`: it was measured with another build of dunnage\n\nhint: resume it with the build that started it, or start a new run"
        );
    }
    // Read once more, since the files may have been exchanged.
    let (recorded, variables) = resumable::load(directory, &context::state_directory()?)?;
    let first = unfinished(&recorded).context("it was complete in the meantime")?;
    let plan = recorded.plan;
    if plan.cells.iter().any(|cell| cell.setting.get("cache") == Some("cold")) {
        super::request::may_empty_caches()?;
    }
    let mut session = Session::begin(plan.seed, Leftovers::Removed, super::tell)?;
    session.run.allowed = plan.allowed;
    session.run.variables = variables;
    let originals: Vec<&Entry> = plan.subjects.iter().filter(|entry| entry.twin_of.is_none()).collect();
    let wanted = originals.iter().map(|entry| {
        let spec = Spec { label: Some(entry.label.clone()), ..entry.spec.clone() };
        Wanted::new(spec, entry.ladder, Origin::Named)
    });
    session.find(wanted.collect(), Trial::Twice)?;
    if let Some((name, why)) = session.found.unavailable.first() {
        return Err(nothing(format!("cannot resume: `{name}` is no longer available: {}", why.in_short())));
    }
    let mut changed = session.environment().differences(&recorded.environment);
    changed.extend(plan.subjects.iter().filter_map(|entry| inherits_more(entry, &session.found.entries)));
    if !changed.is_empty() {
        bail!(
            "cannot resume `{shown}`, because the machine has changed: {}\n\nhint: start a new run",
            changed.join("; ")
        );
    }
    let mut writer = record::reopen(directory).with_context(|| format!("cannot resume `{shown}`"))?;
    // A run that was interrupted between two rounds says so too: the round begins here and, as all do, when it is measured.
    writer.begin_round(first)?;
    let twins = session.add_twins(&plan);
    let progress = progress(outcome.events, &plan, first);
    let ending = twins.and_then(|()| carry_out(&plan, first, &mut session, &mut writer, progress));
    drop(session);
    conclude(ending, directory, outcome)
}

/// What the containers of a subject inherit otherwise than before: resumed in another shell, it would be another subject.
fn inherits_more(before: &Entry, now: &[Entry]) -> Option<String> {
    let now = now.iter().find(|entry| entry.label == before.label)?;
    let mut all = differences("", &before.inherited, &now.inherited);
    all.retain(|one| one.what != ENVIRONMENT);
    (!all.is_empty()).then(|| format!("what `{}` inherits: {}", before.label, shown(&all)))
}

/// The first round that is not complete.
fn unfinished(recorded: &Recorded) -> Option<usize> {
    recorded.contexts.iter().position(Option::is_none)
}
