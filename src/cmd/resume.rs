//! `dunnage resume`: goes on with a run that was interrupted, by its own plan.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::carry_out::{carry_out, progress};
use super::run::conclude;
use crate::cli::Outcome;
use crate::exit::{nothing, usage};
use crate::plan::Entry;
use crate::record;
use crate::session::{self, Origin, Session, Trial, Wanted};
use crate::subject::Spec;

/// Runs the verb. The round that was interrupted is begun anew: half a round is none.
pub fn run(directory: &Path, outcome: Outcome) -> Result<i32> {
    let recorded = record::load(directory)?;
    let shown = directory.display();
    if let Some(origin) = &recorded.environment.origin {
        return Err(usage(format!(
            "`{shown}` was imported from {}: there is nothing to go on with\n\nhint: `dunnage run` measures anew",
            origin.format
        )));
    }
    let plan = recorded.plan;
    let first = recorded.contexts.iter().position(Option::is_none);
    let Some(first) = first else {
        super::tell(&format!("`{shown}` is complete"));
        return conclude(Ok(crate::runner::Ending::Complete), directory, outcome);
    };
    if plan.cells.iter().any(|cell| cell.setting.get("cache") == Some("cold")) {
        super::request::may_empty_caches()?;
    }
    // Before a session unpacks this build where the other one lies.
    if session::own_digest()? != recorded.environment.probe {
        bail!(
            "`{shown}` was measured with another build of dunnage, so its samples and new ones would not be of the same bits\n\nhint: go on with the dunnage that began it, or begin a new run"
        );
    }
    let mut session = Session::begin(plan.seed, super::tell)?;
    session.run.allowed = plan.allowed;
    let originals: Vec<&Entry> = plan.subjects.iter().filter(|entry| entry.twin_of.is_none()).collect();
    let wanted = originals.iter().map(|entry| {
        let spec = Spec { label: Some(entry.label.clone()), ..entry.spec.clone() };
        Wanted::new(spec, entry.ladder, Origin::Named)
    });
    session.find(wanted.collect(), Trial::Twice)?;
    if let Some((name, why)) = session.found.unavailable.first() {
        return Err(nothing(format!("cannot go on: `{name}` is no longer available: {}", why.in_short())));
    }
    let changed = session.environment().differences(&recorded.environment);
    if !changed.is_empty() {
        bail!(
            "`{shown}` cannot be continued, since one run is one state of things and this changed: {}\n\nhint: begin a new run",
            changed.join("; ")
        );
    }
    let mut writer = record::reopen(directory).with_context(|| format!("cannot go on with `{shown}`"))?;
    let twins = session.add_twins(&plan);
    let progress = progress(outcome.events, &plan, first);
    let ending = twins.and_then(|()| carry_out(&plan, first, &mut session, &mut writer, progress));
    drop(session);
    conclude(ending, directory, outcome)
}
