//! The run directory on disk: written while measuring, opened for reading, packed into one file without what is private,
//! and made of other programs' results. What its files hold, and reading them, stands in the analysis.

pub mod import;
pub mod pack;
mod source;
mod writer;

use std::path::Path;

use anyhow::Result;
pub use dunnage_analysis::record::{
    Cause, ComponentFacts, ENVIRONMENT, Environment, FORMAT, FailureRow, FilterFacts, IMPORT_RULES,
    IssueFacts, Order, Origin, PLAN, Recorded, RoundContext, Row, SAMPLES, Series, Source, SubjectFacts,
    Timer, plan_file, read, reader, wire,
};

pub use writer::{Writer, check_empty, create, reopen, since_1970};

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

/// The run directory of a pilot, in that of its run.
pub const PILOT: &str = "pilot";
