//! The owner of resources, and a resource that exists: recorded before it is made, undone when it is dropped.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

use super::journal::{Entry, Journal};
use super::{Keeps, Kind, Place, Record, Scope, directory, journals, remove_tree, undo, workspace};
use crate::outcome::{Abort, Failure, OrEnvironment};
use crate::sys::place;

/// The owner of resources: a run, with its journal. Its threads share it.
#[derive(Debug)]
pub struct Owner {
    /// The unique id of the run: eight letters and digits.
    pub id: String,
    /// Its directories and image.
    pub place: Place,
    journal: Journal,
    instances: AtomicU64,
}

impl Owner {
    /// Begins the journal of a run with a unique id of eight letters and digits.
    pub fn begin(place: Place, id: String) -> Result<Arc<Owner>> {
        let journal = Journal::begin(&journals(&place.state), &id)?;
        Ok(Arc::new(Owner { id, place, journal, instances: AtomicU64::new(0) }))
    }

    /// The number of the next resource that this run makes.
    pub fn next_number(&self) -> u64 {
        self.instances.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What the run has made and not yet removed, latest first.
    pub fn left(&self) -> Vec<Record> {
        self.journal.left()
    }

    /// A name for the next resource, which is unique and not part of another one: `dunnage-RUN-NUMBER`, with
    /// at least six digits.
    pub fn next_name(&self) -> String {
        format!("dunnage-{}-{:06}", self.id, self.next_number())
    }

    /// The directory for what this run makes and removes.
    pub fn workspace(&self) -> PathBuf {
        workspace(&self.place.state, &self.id)
    }

    /// Records a container in the journal, before it is made: it is found by its labels too.
    pub fn note(&self, container: Record) -> Result<Entry, Failure> {
        self.write_down(container, Keeps::Process)
    }

    fn write_down(&self, resource: Record, keeps: Keeps) -> Result<Entry, Failure> {
        let noted = self.journal.note(resource, keeps);
        noted.map_err(|error| Failure::environment(format!("{error:#}")))
    }

    /// Crosses out a resource, after it is gone.
    pub fn cross_out(&self, entry: Entry) {
        self.journal.cross_out(entry);
    }

    /// Records a resource, then makes it. If that fails, what was made is undone.
    pub(crate) fn make<T>(
        self: &Arc<Owner>,
        kind: &'static Kind,
        record: Record,
        make: impl FnOnce() -> Result<T, Abort>,
    ) -> Result<Held<T>, Abort> {
        let entry = Some(self.write_down(record.clone(), kind.keeps)?);
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

    /// Makes and fills a new directory of this run, which is removed with the result.
    pub(crate) fn directory<T>(
        self: &Arc<Owner>,
        fill: impl FnOnce(&Path) -> Result<T, Abort>,
    ) -> Result<Held<T>, Abort> {
        let above = self.workspace();
        let path = above.join(self.next_name());
        let record = Record::new(&directory::KIND, path.to_string_lossy());
        self.make(&directory::KIND, record, || {
            place::make(&above).or_environment(format_args!("cannot make `{}`", above.display()))?;
            fill(&path)
        })
    }
}

/// Removes the run's directory when all its resources have been dropped. The journal keeps what could not be
/// removed.
impl Drop for Owner {
    fn drop(&mut self) {
        let _ = remove_tree(&self.workspace());
    }
}

/// A resource that exists. When it is dropped it is undone and crossed out; like variables, later ones are
/// dropped first.
#[must_use]
pub struct Held<T> {
    /// Undone before the value is dropped.
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
    /// Undoes it, or reports why that failed; then it stays in the journal.
    pub fn finish(mut self) -> Result<(), String> {
        self.guard.undo()
    }

    /// Its name or path.
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
