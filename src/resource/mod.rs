//! Resources: things that outlive a process unless they are removed. Each is recorded in the cleanup journal
//! before it is made, as a [`Record`] of plain strings, and undone from the record alone: by its owner in the
//! end, or by `sweep` after a kill, in the same way.
//!
//! A kind of resource is one file with a [`Kind`] and a line in [`KINDS`]; those in engines belong to
//! subjects, which have a separate list. The journal and `sweep` depend on none of them.

pub mod address;
pub(crate) mod command;
pub mod daemon;
pub(crate) mod directory;
mod failpoint;
pub mod filesystem;
mod held;
pub mod journal;
pub mod mounts;
pub(crate) mod orphan;
pub mod ports;
mod processes;
mod ready;
pub(crate) mod service;
pub(crate) mod store;
pub(crate) mod tool;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::sys::{beneath, process};

pub use held::{Held, Owner};

/// The kinds that need no subject.
pub(crate) static KINDS: &[&Kind] = &[
    &directory::KIND,
    &mounts::KIND,
    &filesystem::KIND,
    &service::KIND,
    &store::KIND,
    &daemon::KIND,
    &address::KIND,
];

/// The record of a resource, written before it is made: enough to find it and to undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The name of its kind.
    pub kind: String,
    /// Its name or path, unique within its kind.
    pub id: String,
    /// What else is needed to find and undo it.
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
        found.ok_or_else(|| format!("its line in the journal lacks `{name}`"))
    }
}

/// A kind of resource: how to look for one, and how to undo it.
pub struct Kind {
    /// Its name in records.
    pub name: &'static str,
    /// When it is removed after a kill.
    pub goes: Goes,
    /// What its record must outlive.
    pub keeps: Keeps,
    /// Its description in messages about its removal.
    pub shown: fn(&Record) -> String,
    /// Whether it exists and is dunnage's.
    pub look: fn(&Record, &Scope<'_>) -> Result<Look, String>,
    /// Removes it; called only if it is dunnage's.
    pub undo: fn(&Record, &Scope<'_>) -> Result<Found, String>,
}

/// Whether what should be removed existed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It existed, and has been removed.
    Yes,
    /// It did not exist.
    No,
}

impl Found {
    /// `Yes` if this is true.
    pub fn when(there: bool) -> Found {
        if there { Found::Yes } else { Found::No }
    }
}

/// What a record must outlive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// The process: what it names does not survive the kernel, or is found without its record.
    Process,
    /// The kernel, so that it is synced to the disk.
    Crash,
}

/// When a resource of a killed run is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goes {
    /// At once: it never ends on its own, so there is nothing to wait for.
    First,
    /// After the clients of the run have ended: only then is the resource complete.
    AfterClients,
}

/// The result of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// It is dunnage's, and exists or may exist.
    Ours,
    /// It does not exist.
    Gone,
    /// It cannot be dunnage's, for this reason, and is left alone.
    Foreign(String),
}

/// The directories and the image of this process.
#[derive(Debug, Clone)]
pub struct Place {
    /// The state directory: images, bundles, journals.
    pub state: PathBuf,
    /// The random name of the state directory in the labels of what its runs make; empty if it has none and cannot get one.
    pub id: String,
    /// The executable of the image `small`, on the host.
    pub executable: PathBuf,
    /// The root directory that holds only the executable.
    pub rootfs: PathBuf,
    /// The reference of the image in engines.
    pub reference: String,
    /// SHA-256 of the executable, hexadecimal.
    pub digest: String,
}

/// The run that a resource belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The places of the run.
    pub place: &'a Place,
    /// Its run.
    pub run: &'a str,
}

impl Scope<'_> {
    /// Whether a path is in the run's own directory, and so is dunnage's.
    pub fn holds(&self, path: &Path) -> bool {
        is_word(self.run) && is_inside(path, &workspace(&self.place.state, self.run))
    }

    /// A look at a resource that is identified by its path alone.
    pub fn look(&self, path: &Path) -> Look {
        if self.holds(path) { Look::Ours } else { Look::Foreign("it is not in the run's directory".into()) }
    }
}

/// The random name of a state directory, made when it is first asked for. So a path that means another directory in
/// another mount namespace is not mistaken for this one.
pub(crate) fn identity(state: &Path) -> std::io::Result<String> {
    use std::io::{Read, Write};
    let place = state.join("id");
    let known = || {
        let mut text = String::new();
        std::fs::File::open(&place)?.take(ID_DIGITS as u64 + 1).read_to_string(&mut text)?;
        let is_whole = text.len() == ID_DIGITS && is_word(&text);
        is_whole
            .then_some(text)
            .ok_or_else(|| std::io::Error::other(format!("`{}` is damaged", place.display())))
    };
    if place.exists() {
        return known();
    }
    let mut bytes = [0u8; ID_DIGITS / 2];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = tempfile::NamedTempFile::new_in(state)?;
    file.write_all(id.as_bytes())?;
    match file.persist_noclobber(&place) {
        Ok(_) => Ok(id),
        // Another process was first.
        Err(why) if why.error.kind() == std::io::ErrorKind::AlreadyExists => known(),
        Err(why) => Err(why.error),
    }
}

/// The length of a state directory's random name.
const ID_DIGITS: usize = 32;

/// The id of another dunnage process, or of a process with any run's journal open.
pub(crate) fn another_dunnage() -> Option<i32> {
    let named = process::named(&["dunnage"]).into_iter().map(|other| other.pid);
    named.chain(process::holding(&is_journal)).find(|other| *other != std::process::id() as i32)
}

/// The id of a running `dunnage sweep` of this user or of root: others may call a program of theirs so, and need not end it. It
/// keeps the images if it sees another dunnage, so a run that begins meanwhile and waits for it to end finds its images as they
/// stay.
pub(crate) fn sweeper() -> Option<i32> {
    let sweeps = |pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).nth(1) == Some(b"sweep") && process::is_ours_or_roots(*pid)
    };
    process::named(&["dunnage"]).iter().map(|process| process.pid).find(sweeps)
}

/// Whether this can be the name of something that this run made.
pub(crate) fn is_name_of(run: &str, name: &str) -> bool {
    let number = name
        .strip_prefix("dunnage-")
        .and_then(|rest| rest.strip_prefix(run))
        .and_then(|rest| rest.strip_prefix('-'));
    is_word(run)
        && number.is_some_and(|number| number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The directory of journals in a state directory.
pub(crate) fn journals(state: &Path) -> PathBuf {
    state.join("journal")
}

/// Whether a path is that of a run's journal, in any state directory.
pub(crate) fn is_journal(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".jsonl"));
    name.is_some_and(is_word) && path.parent().is_some_and(|above| above.ends_with("journal"))
}

/// The directory for what a run makes and removes.
pub(crate) fn workspace(state: &Path, run: &str) -> PathBuf {
    state.join("runs").join(run)
}

/// Removes a directory with everything in it, but refuses if something is mounted below: that may be another
/// program's data. No link is followed, though containers may have written there. A missing directory is fine.
pub(crate) fn remove_tree(directory: &Path) -> Result<Found, String> {
    if let Some(point) = mounts::below(directory)?.last() {
        return Err(format!("something is mounted on `{}`", point.display()));
    }
    let (Some(above), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Err(format!("`{}` is not a directory to remove", directory.display()));
    };
    unless_gone(beneath::at(above).and_then(|above| beneath::remove(above, Path::new(name))))
}

/// The result of a removal; that it did not exist is not an error.
pub(crate) fn unless_gone(removed: std::io::Result<()>) -> Result<Found, String> {
    match removed {
        Ok(()) => Ok(Found::Yes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Found::No),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a path is below a directory, by the text alone: other users could have written to a journal.
pub(crate) fn is_inside(path: &Path, directory: &Path) -> bool {
    let climbs = path.components().any(|part| part.as_os_str() == "..");
    path.starts_with(directory) && path != directory && !climbs
}

/// Whether this can be the id of a run.
pub(crate) fn is_word(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Undoes a resource with the kind that its record names, if it exists and is dunnage's.
pub(crate) fn undo(kinds: &[&Kind], record: &Record, scope: &Scope<'_>) -> Result<Found, String> {
    let Some(kind) = kind_of(kinds, record) else {
        return Err(format!("this version of dunnage does not know the kind `{}`", record.kind));
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

/// The description of a record in messages.
pub(crate) fn shown(kinds: &[&Kind], record: &Record) -> String {
    match kind_of(kinds, record) {
        Some(kind) => (kind.shown)(record),
        None => format!("the {} `{}`", record.kind, record.id),
    }
}
