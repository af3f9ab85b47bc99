//! The run directory on disk: written while measuring, opened for reading, packed into one file without private words, and
//! created from other programs' results. The analysis defines the content of its files and reads them.

pub mod import;
pub mod pack;
pub mod resumable;
mod source;
mod writer;

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
pub use dunnage_analysis::record::{
    Cause, ComponentFacts, ENVIRONMENT, Environment, FORMAT, FailureRow, FilterFacts, IMPORT_RULES,
    IssueFacts, Order, Origin, PLAN, Recorded, RoundContext, Row, SAMPLES, Series, Source, SubjectFacts,
    Timer, plan_file, read, reader, wire,
};
use rustix::fs::FileType;
use serde::Serialize;

use crate::sys::directory::{self, Place};
pub use writer::{Writer, check_empty, create, reopen, since_1970};

/// The largest run that a plan allows: twenty million samples of about 400 bytes each.
const MOST_BYTES: u64 = 8 << 30;
/// Environment and plan are read into memory.
const MOST_TEXT: u64 = 64 << 20;

/// Reads a run, from its directory or from a pack.
pub fn open(path: &Path) -> Result<Recorded> {
    read(&source::open(path)?)
}

/// Reads a run directory.
pub fn load(directory: &Path) -> Result<Recorded> {
    read(&source::directory(directory)?)
}

/// Passes every sample of a run to `visit`, in the order of the file.
pub fn rows(path: &Path, visit: &mut dyn FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
    dunnage_analysis::record::rows(&source::open(path)?, visit)
}

/// The files of a run in this directory.
pub fn files(directory: &Path) -> [std::path::PathBuf; 3] {
    [ENVIRONMENT, PLAN, SAMPLES].map(|name| directory.join(name))
}

/// Opens a regular file of at most `most` bytes, and refuses anything else before it is opened: a pipe would block, and a device
/// may do something. A link of another user is not followed, since it can lead to what only this user may read.
fn regular(path: &Path, most: u64) -> Result<File> {
    let context = || format!("cannot read `{}`", path.display());
    let found = directory::find(path).with_context(context)?.found;
    let found = found.ok_or_else(|| io::Error::from(rustix::io::Errno::NOENT)).with_context(context)?;
    ensure!(found.kind() == FileType::RegularFile, "`{}` is not a regular file", path.display());
    let file = File::open(found.path()).with_context(context)?;
    let length = file.metadata().with_context(context)?.len();
    ensure!(length <= most, "`{}` has {length} bytes, more than the limit of {most}", path.display());
    Ok(file)
}

/// The text of a regular file of at most `most` bytes.
pub fn text(path: &Path, most: u64) -> Result<String> {
    let mut text = String::new();
    let read = regular(path, most)?.take(most).read_to_string(&mut text);
    read.with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(text)
}

/// Writes environment, plan and manifest.
fn pretty(value: &impl Serialize, out: &mut dyn Write) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    Ok(out.write_all(b"\n")?)
}

/// A file that is being written, under a temporary name next to its own.
pub struct Part {
    file: tempfile::NamedTempFile,
    place: Place,
}

/// A temporary file next to `path`, to be renamed to it when it is complete, so that the old content is kept until then. The
/// target of a symbolic link is replaced, not the link.
pub fn part_of(path: &Path) -> io::Result<Part> {
    part_in(directory::find(path)?)
}

/// The same for a place that was found.
pub fn part_in(place: Place) -> io::Result<Part> {
    let mode =
        place.found.as_ref().filter(|found| found.is_trusted()).map_or(0o666, |found| found.mode() & 0o666);
    let permissions = Permissions::from_mode(mode);
    let above = place.above.at("");
    let made = tempfile::Builder::new().prefix(".dunnage-").permissions(permissions).tempfile_in(above);
    // Without the temporary name in the message.
    let file = made.map_err(|error| {
        io::Error::new(error.kind(), error.to_string().split(" at path ").next().unwrap_or_default())
    })?;
    Ok(Part { file, place })
}

/// Whether an existing file may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    /// It is kept, and writing fails.
    Keep,
    /// It is replaced once the new one is complete.
    Replace,
}

impl Part {
    /// The file.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Only its owner may read it.
    pub fn make_private(&self) -> io::Result<()> {
        self.file.as_file().set_permissions(Permissions::from_mode(0o600))
    }

    /// Its temporary path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Gives it its name.
    pub fn persist(self, present: Present) -> io::Result<()> {
        let path = self.place.above.at(&self.place.name);
        let named = match present {
            Present::Replace => self.file.persist(path),
            Present::Keep => self.file.persist_noclobber(path),
        };
        named.map(drop).map_err(|why| why.error)
    }
}

/// The run directory of a pilot, inside that of its run.
pub const PILOT: &str = "pilot";
