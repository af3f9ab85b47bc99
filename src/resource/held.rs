//! The owner of resources, and a resource that is there: written down before it is made, undone when it is let go.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

use super::journal::{Entry, Journal};
use super::{Kind, Place, Record, Scope, directory, journals, remove_tree, undo, workspace};
use crate::outcome::{Abort, Failure, OrEnvironment};

/// Whose resources they are: a run, with its journal. Its threads share it.
#[derive(Debug)]
pub struct Owner {
    /// Eight letters and digits that tell the run from all others.
    pub id: String,
    /// Where things are kept.
    pub place: Place,
    journal: Journal,
    instances: AtomicU64,
}

impl Owner {
    /// Begins the journal of a run, named by eight letters and digits that no other run has.
    pub fn begin(place: Place, id: String) -> Result<Arc<Owner>> {
        let journal = Journal::begin(&journals(&place.state), &id)?;
        Ok(Arc::new(Owner { id, place, journal, instances: AtomicU64::new(0) }))
    }

    /// The number of the next thing that this run makes.
    pub fn next_number(&self) -> u64 {
        self.instances.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A name for the next thing, which nobody else uses and which is no part of another one:
    /// `dunnage-RUN-NUMBER`, with six digits at least.
    pub fn next_name(&self) -> String {
        format!("dunnage-{}-{:06}", self.id, self.next_number())
    }

    /// A directory for what this run makes and removes again.
    pub fn workspace(&self) -> PathBuf {
        workspace(&self.place.state, &self.id)
    }

    /// Writes a resource into the journal, before it is made.
    pub fn note(&self, resource: Record) -> Result<Entry, Failure> {
        let noted = self.journal.note(resource);
        noted.map_err(|error| Failure::environment(format!("{error:#}")))
    }

    /// Crosses a resource out, after it is gone.
    pub fn cross_out(&self, entry: Entry) {
        self.journal.cross_out(entry);
    }

    /// Writes a resource down, then makes it. What came of one that could not be made is undone.
    pub(crate) fn make<T>(
        self: &Arc<Owner>,
        kind: &'static Kind,
        record: Record,
        make: impl FnOnce() -> Result<T, Abort>,
    ) -> Result<Held<T>, Abort> {
        let entry = Some(self.note(record.clone())?);
        let mut guard = Guard { entry, kind, record, owner: self.clone() };
        match make() {
            Ok(thing) => Ok(Held { guard, thing }),
            Err(abort) => {
                // What cannot be undone now stays in the journal.
                let _ = guard.undo();
                Err(abort)
            }
        }
    }

    /// Has a directory of this run made and filled, which goes with what is made of it. It is not there yet.
    pub(crate) fn directory<T>(
        self: &Arc<Owner>,
        fill: impl FnOnce(&Path) -> Result<T, Abort>,
    ) -> Result<Held<T>, Abort> {
        let above = self.workspace();
        let path = above.join(self.next_name());
        let record = Record::new(&directory::KIND, path.to_string_lossy());
        self.make(&directory::KIND, record, || {
            std::fs::create_dir_all(&above)
                .or_environment(format_args!("cannot make `{}`", above.display()))?;
            fill(&path)
        })
    }
}

/// Ends the run's resources, when nothing holds any. What could not be removed stays in the journal.
impl Drop for Owner {
    fn drop(&mut self) {
        let _ = remove_tree(&self.workspace());
    }
}

/// A resource that is there. When it is dropped, it is undone and crossed out; what is made later goes earlier, as
/// variables do.
#[must_use]
pub struct Held<T> {
    /// Undone before what is known of it goes.
    guard: Guard,
    thing: T,
}

struct Guard {
    entry: Option<Entry>,
    kind: &'static Kind,
    record: Record,
    owner: Arc<Owner>,
}

impl<T> Held<T> {
    /// Undoes it and says why where that cannot be done; then it stays in the journal.
    pub fn finish(mut self) -> Result<(), String> {
        self.guard.undo()
    }

    /// What it is called, or where it lies.
    pub(crate) fn id(&self) -> &str {
        &self.guard.record.id
    }
}

impl Guard {
    fn undo(&mut self) -> Result<(), String> {
        let Some(entry) = self.entry.take() else { return Ok(()) };
        undo(&[self.kind], &self.record, &Scope { place: &self.owner.place, run: &self.owner.id })?;
        self.owner.cross_out(entry);
        Ok(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.undo();
    }
}

impl<T> std::ops::Deref for Held<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.thing
    }
}

impl<T> std::ops::DerefMut for Held<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.thing
    }
}

impl<T> fmt::Debug for Held<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Held({} `{}`)", self.guard.record.kind, self.guard.record.id)
    }
}
