//! The run directory on disk: written while measuring, opened for reading, packed into one file without private words, and
//! created from other programs' results. The analysis defines the content of its files and reads them.

pub mod import;
pub mod pack;
mod source;
mod writer;

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result, ensure};
pub use dunnage_analysis::record::{
    Cause, ComponentFacts, ENVIRONMENT, Environment, FORMAT, FailureRow, FilterFacts, IMPORT_RULES,
    IssueFacts, Order, Origin, PLAN, Recorded, RoundContext, Row, SAMPLES, Series, Source, SubjectFacts,
    Timer, plan_file, read, reader, wire,
};

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

/// Opens a regular file of at most `most` bytes, and refuses anything else. Never blocks, as opening a pipe without a writer
/// would.
fn regular(path: &Path, most: u64) -> Result<File> {
    let context = || format!("cannot read `{}`", path.display());
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = opened.with_context(context)?;
    let facts = file.metadata().with_context(context)?;
    ensure!(facts.is_file(), "`{}` is not a regular file", path.display());
    let length = facts.len();
    ensure!(length <= most, "`{}` has {length} bytes, more than the limit of {most}", path.display());
    Ok(file)
}

/// A temporary file next to `path`, to be renamed to it when it is complete, so that the old content is kept until then.
pub fn part_of(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let permissions =
        path.metadata().map_or_else(|_| Permissions::from_mode(0o666), |there| there.permissions());
    let made = tempfile::Builder::new().prefix(".dunnage-").permissions(permissions).tempfile_in(above);
    // Without the temporary name in the message.
    made.map_err(|error| {
        io::Error::new(error.kind(), error.to_string().split(" at path ").next().unwrap_or_default())
    })
}

/// The run directory of a pilot, inside that of its run.
pub const PILOT: &str = "pilot";
