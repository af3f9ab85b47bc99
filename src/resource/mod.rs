//! Resources: what outlives a process unless somebody removes it. Each is written into the cleanup
//! journal before it is made, as a [`Record`] of plain strings, and undone by what the record says:
//! by its owner in the end, or by `sweep` after a kill, in the same way.
//!
//! A kind of resource is one file with a [`Kind`] and a line in [`KINDS`]; what lies in engines is
//! known to subjects, which keep a list of their own. Neither the journal nor `sweep` knows any.

pub(crate) mod command;
pub mod daemon;
pub(crate) mod directory;
pub mod filesystem;
mod held;
pub mod journal;
pub mod mounts;
pub mod ports;
mod processes;
mod ready;
pub(crate) mod service;
mod tool;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::sys::process;

pub use held::{Held, Owner};

/// The kinds that need no subject.
pub(crate) static KINDS: &[&Kind] =
    &[&directory::KIND, &mounts::KIND, &filesystem::KIND, &service::KIND, &daemon::KIND];

/// What is written down of a resource before it is made: enough to find it and to undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The name of its kind.
    pub kind: String,
    /// What it is called, or where it lies: no other of its kind has the same.
    pub id: String,
    /// What else it takes to find and undo it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

impl Record {
    /// A resource of this kind.
    pub(crate) fn new(kind: &Kind, id: impl Into<String>) -> Record {
        Record { kind: kind.name.to_owned(), id: id.into(), attributes: BTreeMap::new() }
    }

    /// The same with an attribute.
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Record {
        self.attributes.insert(name.to_owned(), value.into());
        self
    }

    /// An attribute, which a damaged journal may lack.
    pub(crate) fn attribute(&self, name: &str) -> Result<&str, String> {
        let found = self.attributes.get(name).map(String::as_str);
        found.ok_or_else(|| format!("its line in the journal does not say its {name}"))
    }
}

/// A kind of resource: how one is looked for, and how it is undone.
pub struct Kind {
    /// As records name it.
    pub name: &'static str,
    /// When it goes after a kill.
    pub goes: Goes,
    /// What it is called when people are told that it was removed.
    pub shown: fn(&Record) -> String,
    /// Whether it is there and ours.
    pub look: fn(&Record, &Scope<'_>) -> Result<Look, String>,
    /// Removes it; called only for what is ours.
    pub undo: fn(&Record, &Scope<'_>) -> Result<Found, String>,
}

/// Whether what was to be removed was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It was, and is removed.
    Yes,
    /// It was not.
    No,
}

impl Found {
    /// `Yes` if this holds.
    pub fn when(there: bool) -> Found {
        if there { Found::Yes } else { Found::No }
    }
}

/// When a resource of a killed run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goes {
    /// At once: it never ends by itself, so nobody waits for it.
    First,
    /// When the clients of the run have ended: what they make is complete only then.
    AfterClients,
}

/// What a look finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// It is ours, and is there or may be.
    Ours,
    /// It is not there.
    Gone,
    /// It cannot be one of ours, for this reason, and is left alone.
    Foreign(String),
}

/// Where this process keeps its things.
#[derive(Debug, Clone)]
pub struct Place {
    /// The state directory: images, bundles, journals.
    pub state: PathBuf,
    /// The executable of the image `small`, on the host.
    pub executable: PathBuf,
    /// The root directory that holds it and nothing else.
    pub rootfs: PathBuf,
    /// The name of the image in engines.
    pub reference: String,
    /// SHA-256 of the executable, hexadecimal.
    pub digest: String,
}

/// Whose resource it is.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Where the run keeps its things.
    pub place: &'a Place,
    /// Its run.
    pub run: &'a str,
}

impl Scope<'_> {
    /// Whether a path lies in the run's own directory, and so is ours.
    pub fn holds(&self, path: &Path) -> bool {
        is_word(self.run) && is_inside(path, &workspace(&self.place.state, self.run))
    }

    /// What a look finds that knows only where the resource lies.
    pub fn look(&self, path: &Path) -> Look {
        if self.holds(path) {
            Look::Ours
        } else {
            Look::Foreign("it does not lie where the run kept its things".into())
        }
    }
}

/// Whether another process is a dunnage, or holds a run's journal, wherever that lies and whatever it is called.
pub(crate) fn another_dunnage() -> bool {
    let own = std::process::id() as i32;
    process::named(&["dunnage"]).iter().any(|other| other.pid != own)
        || process::holding(&is_journal).any(|other| other != own)
}

/// The directory of journals in a state directory.
pub(crate) fn journals(state: &Path) -> PathBuf {
    state.join("journal")
}

/// Whether a path is that of a run's journal, in whatever state directory.
pub(crate) fn is_journal(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".jsonl"));
    name.is_some_and(is_word) && path.parent().is_some_and(|above| above.ends_with("journal"))
}

/// The directory for what a run makes and removes again.
pub(crate) fn workspace(state: &Path, run: &str) -> PathBuf {
    state.join("runs").join(run)
}

/// Removes a directory with everything in it, but nothing where something is mounted below: that may be somebody
/// else's, and not a copy. Fine where there is none.
pub(crate) fn remove_tree(directory: &Path) -> Result<Found, String> {
    if let Some(point) = mounts::below(directory)?.last() {
        return Err(format!("something is mounted on `{}`", point.display()));
    }
    unless_gone(std::fs::remove_dir_all(directory))
}

/// What came of a removal; that it was not there is no error.
pub(crate) fn unless_gone(removed: std::io::Result<()>) -> Result<Found, String> {
    match removed {
        Ok(()) => Ok(Found::Yes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Found::No),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a path lies below a directory, by its words alone: a journal is a file that others could
/// have written to.
pub(crate) fn is_inside(path: &Path, directory: &Path) -> bool {
    let climbs = path.components().any(|part| part.as_os_str() == "..");
    path.starts_with(directory) && path != directory && !climbs
}

/// Whether this can be the name of a run.
pub(crate) fn is_word(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Undoes what a record says with the kind that it names, if that is there and ours.
pub(crate) fn undo(kinds: &[&Kind], record: &Record, scope: &Scope<'_>) -> Result<Found, String> {
    let Some(kind) = kind_of(kinds, record) else {
        return Err(format!("this version of dunnage knows no `{}`", record.kind));
    };
    match (kind.look)(record, scope)? {
        Look::Ours => (kind.undo)(record, scope),
        Look::Gone => Ok(Found::No),
        Look::Foreign(why) => Err(why),
    }
}

/// The kind that a record names.
pub(crate) fn kind_of<'a>(kinds: &[&'a Kind], record: &Record) -> Option<&'a Kind> {
    kinds.iter().copied().find(|kind| kind.name == record.kind)
}

/// What people are told that a record is.
pub(crate) fn shown(kinds: &[&Kind], record: &Record) -> String {
    match kind_of(kinds, record) {
        Some(kind) => (kind.shown)(record),
        None => format!("the {} `{}`", record.kind, record.id),
    }
}
