//! Refuses to overwrite files of a run, so that a mistyped name does not destroy measurements.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::exit::usage;
use crate::record;

/// Refuses a path that is a file of one of these runs or packs, under any name, or a file of any other run.
pub fn refuse_files_of_runs(runs: &[PathBuf], path: &Path) -> Result<()> {
    let identity = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    let Some(target) = identity(path) else { return Ok(()) };
    let beside = path.parent().map(Path::to_owned);
    let directories = runs.iter().flat_map(|run| [run.clone(), run.join(record::PILOT)]);
    let mut own = directories.chain(beside).flat_map(|run| record::files(&run)).chain(runs.iter().cloned());
    if own.any(|file| identity(&file) == Some(target)) {
        let shown = path.display();
        return Err(usage(format!("`{shown}` is part of a run\n\nhint: choose another file")));
    }
    Ok(())
}
