//! How every verb shows what it found: in the format that was asked for, on standard output or in a file.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::guard::refuse_files_of_runs;
use super::report::look;
use crate::document::{self, Findings};
use crate::exit::Special;

/// Refuses a format that there is not, before anything is looked for that would be shown in it.
pub(super) fn known<F: Findings>(format: &str) -> Result<()> {
    let names = || document::FORMATS.iter().map(|one| one.name).chain(F::FURTHER.iter().copied());
    if names().any(|name| name == format) {
        return Ok(());
    }
    let valid: Vec<_> = names().map(|name| format!("`{name}`")).collect();
    let text = format!("there is no format `{format}`\n\nhint: formats are {}", valid.join(", "));
    Err(Special::Usage(text).into())
}

/// Where what was found goes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Output<'a> {
    /// The file; standard output where none is named.
    pub file: Option<&'a Path>,
    /// Runs whose own files are not to be overwritten.
    pub runs: &'a [PathBuf],
}

/// Shows findings about what lies at this place.
pub(super) fn show<F: Findings>(findings: &F, format: &str, place: &Path, output: Output<'_>) -> Result<()> {
    let is_terminal = output.file.is_none() && std::io::stdout().is_terminal();
    known::<F>(format)?;
    let text = document::shown(findings, format, &look(place, is_terminal)).expect("it is known");
    match output.file {
        Some(path) => {
            refuse_files_of_runs(output.runs, path)?;
            std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
        }
        None => {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())?;
            Ok(out.flush()?)
        }
    }
}
