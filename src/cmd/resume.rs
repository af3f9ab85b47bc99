//! `dunnage resume`: goes on with a run that was interrupted, by its own plan.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::carry_out::{carry_out, finish, prepare};
use super::run::conclude;
use crate::cli::Events;
use crate::exit::Special;
use crate::plan::Entry;
use crate::progress::Progress;
use crate::record;
use crate::session::{self, Origin, Wanted};
use crate::subject::Spec;

/// Runs the verb. The round that was interrupted is begun anew: half a round is none.
pub fn run(directory: &Path, events: Option<Events>) -> Result<i32> {
    let recorded = record::load(directory)?;
    if let Some(origin) = &recorded.environment.origin {
        let text = format!(
            "`{}` was imported from {}: there is nothing to go on with\n\nhint: `dunnage run` measures anew",
            directory.display(),
            origin.format
        );
        return Err(Special::Usage(text).into());
    }
    let plan = recorded.plan;
    let first = recorded.contexts.iter().position(Option::is_none);
    let Some(first) = first else {
        super::tell(&format!("`{}` is complete", directory.display()));
        return conclude(Ok(crate::runner::Ending::Complete), directory, events);
    };
    if plan.cells.iter().any(|cell| cell.setting.get("cache") == Some("cold")) {
        super::request::may_empty_caches()?;
    }
    let mut run = session::begin(plan.seed, &mut super::tell)?;
    run.tell = super::tell;
    run.allowed = plan.allowed;
    if run.place.digest != recorded.environment.probe {
        session::end(run);
        bail!(
            "`{}` was measured with another build of dunnage, so its samples and new ones would not be of the same bits\n\nhint: go on with the dunnage that began it, or begin a new run",
            directory.display()
        );
    }
    let originals: Vec<&Entry> = plan.subjects.iter().filter(|entry| entry.twin_of.is_none()).collect();
    let wanted = originals.iter().map(|entry| {
        let spec = Spec { label: Some(entry.label.clone()), ..entry.spec.clone() };
        Wanted::new(spec, entry.ladder, Origin::Named)
    });
    let found = session::find(wanted.collect(), &run, &mut super::tell)?;
    if let Some((name, why)) = found.unavailable.first() {
        let error =
            Special::Nothing(format!("cannot go on: `{name}` is no longer available: {}", why.in_short()));
        session::finish(found.candidates, &run);
        session::end(run);
        return Err(error.into());
    }
    let changed = session::environment(&run, &found).differences(&recorded.environment);
    if !changed.is_empty() {
        session::finish(found.candidates, &run);
        session::end(run);
        bail!(
            "`{}` cannot be continued, since one run is one state of things and this changed: {}\n\nhint: begin a new run",
            directory.display(),
            changed.join("; ")
        );
    }
    let mut writer =
        record::reopen(directory).with_context(|| format!("cannot go on with `{}`", directory.display()))?;
    let progress = match events {
        Some(Events::Json) => Progress::Json,
        None => Progress::for_person(&plan, first),
    };
    let ending = prepare(&plan, found.candidates, &run).and_then(|mut subjects| {
        let ending = carry_out(&plan, first, &mut subjects, &run, &mut writer, progress);
        finish(subjects, &run);
        ending
    });
    session::end(run);
    conclude(ending, directory, events)
}
