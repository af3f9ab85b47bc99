//! How every verb shows what it found: in the format that was asked for, on standard output or in a file.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::guard::refuse_files_of_runs;
use crate::document::{self, Findings, Glyphs, Look, Style};
use crate::exit::usage;
use crate::report::text::quoted;

/// The names of the formats of some findings.
pub(super) fn names<F: Findings>() -> impl Iterator<Item = &'static str> {
    document::FORMATS.iter().map(|one| one.name).chain(F::FURTHER.iter().copied())
}

/// Refuses a format that there is not, before anything is looked for that would be shown in it.
pub(super) fn known<F: Findings>(format: &str) -> Result<()> {
    if names::<F>().any(|name| name == format) {
        return Ok(());
    }
    Err(usage(format!("there is no format `{format}`\n\nhint: formats are {}", quoted(names::<F>()))))
}

/// Where what was found goes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Output<'a> {
    /// The file; standard output where none is named.
    pub file: Option<&'a Path>,
    /// Runs whose own files are not to be overwritten.
    pub runs: &'a [PathBuf],
}

impl Output<'_> {
    /// Writes there what is given piece by piece.
    pub fn write(self, give: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        let Some(path) = self.file else {
            let mut out = BufWriter::new(io::stdout().lock());
            give(&mut out)?;
            return Ok(out.flush()?);
        };
        refuse_files_of_runs(self.runs, path)?;
        let context = || format!("cannot write `{}`", path.display());
        let mut file = BufWriter::new(File::create(path).with_context(context)?);
        give(&mut file)?;
        file.flush().with_context(context)
    }
}

/// Shows findings about what lies at this place.
pub(super) fn show<F: Findings>(findings: &F, format: &str, place: &Path, output: Output<'_>) -> Result<()> {
    known::<F>(format)?;
    let is_terminal = output.file.is_none() && io::stdout().is_terminal();
    let text = document::shown(findings, format, &look(place, is_terminal)).expect("it is known");
    output.write(|out| Ok(out.write_all(text.as_bytes())?))
}

/// How it looks: as wide as the terminal, in colour unless somebody objects.
pub(super) fn look(directory: &Path, terminal: bool) -> Look {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable).into_iter().find(|value| !value.is_empty());
    let ascii = terminal && locale.is_some_and(|locale| matches!(locale.as_str(), "C" | "POSIX"));
    let columns =
        variable("COLUMNS").parse().ok().or_else(|| terminal.then(crate::sys::terminal::columns).flatten());
    let colour = terminal && variable("NO_COLOR").is_empty() && variable("TERM") != "dumb";
    Look {
        width: columns.unwrap_or(80).clamp(80, 160),
        style: if colour { Style::Colour } else { Style::Plain },
        glyphs: if ascii { Glyphs::Ascii } else { Glyphs::Unicode },
        place: directory.display().to_string(),
    }
}
