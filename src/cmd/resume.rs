//! `dunnage resume`: goes on with a run that was interrupted, by its own plan.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::run::{conclude, measure};
use crate::cli::Events;
use crate::exit::Special;
use crate::plan::Entry;
use crate::progress::Progress;
use crate::record;
use crate::session::{self, Wanted};

/// Runs the verb. The round that was interrupted is begun anew: half a round is none.
pub fn run(directory: &Path, events: Option<Events>) -> Result<i32> {
    let recorded = record::load(directory)?;
    let plan = recorded.plan;
    let first = recorded.contexts.iter().position(Option::is_none);
    let Some(first) = first else {
        super::tell(&format!("`{}` is complete", directory.display()));
        return conclude(Ok(crate::runner::Ending::Complete), directory, events);
    };
    let mut stage = session::begin(plan.seed, &mut super::tell)?;
    if stage.place.digest != recorded.environment.probe {
        session::end(stage);
        bail!(
            "`{}` was measured with another build of dunnage, so its samples and new ones would not be of the same bits\n\nhint: go on with the dunnage that began it, or begin a new run",
            directory.display()
        );
    }
    let originals: Vec<&Entry> = plan.subjects.iter().filter(|entry| entry.twin_of.is_none()).collect();
    let wanted = originals.iter().map(|entry| {
        let mut spec = entry.spec.clone();
        // The label keeps a runtime that became the default meanwhile from being left out.
        spec.label = Some(entry.label.clone());
        Wanted { spec, ladder: entry.ladder }
    });
    let found = session::find(wanted.collect(), &mut stage, &mut super::tell)?;
    if let Some((name, why)) = found.unavailable.first() {
        let error =
            Special::Nothing(format!("cannot go on: `{name}` is no longer available: {}", why.reason));
        session::finish(found.candidates, &mut stage);
        session::end(stage);
        return Err(error.into());
    }
    let mut writer =
        record::reopen(directory).with_context(|| format!("cannot go on with `{}`", directory.display()))?;
    let progress = match events {
        Some(Events::Json) => Progress::Json,
        None => Progress::for_person(&plan, first),
    };
    let ending = measure(&plan, first, found.candidates, &mut stage, &mut writer, progress);
    session::end(stage);
    conclude(ending, directory, events)
}
