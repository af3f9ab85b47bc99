//! Shows the findings of every verb: in the requested format, on standard output or in a file.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::fs::FileType;

use super::guard::refuse_files_of_runs;
use crate::document::{self, Extent, Findings, Glyphs, Look, Style};
use crate::exit::usage;
use crate::record::{self, Present};
use crate::report::text::{meant, quoted};
use crate::sys::directory;

/// The names of the formats of some findings.
pub(super) fn names<F: Findings>() -> impl Iterator<Item = &'static str> {
    document::FORMATS.iter().map(|one| one.name).chain(F::FURTHER.iter().copied())
}

/// Refuses an unknown format before any work is done.
pub(super) fn known<F: Findings>(format: &str) -> Result<()> {
    if names::<F>().any(|name| name == format) {
        return Ok(());
    }
    let (meant, valid) = (meant(format, names::<F>()), quoted(names::<F>()));
    Err(usage(format!("unknown format `{format}`\n\nhint: {meant}formats are {valid}")))
}

/// Where the findings go.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Output<'a> {
    /// The file, if not standard output.
    pub file: Option<&'a Path>,
    /// Runs whose files must not be overwritten.
    pub runs: &'a [PathBuf],
    /// How much to show on a terminal.
    pub extent: Extent,
}

impl Output<'_> {
    /// Writes the output piece by piece. A regular file keeps its content until everything is written; anything else, such as a
    /// pipe, gets it as it comes.
    pub fn write(self, give: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        let all = |place: String, out: &mut dyn Write| {
            let mut out = BufWriter::new(Named { place, out });
            give(&mut out)?;
            Ok(out.flush()?)
        };
        let Some(path) = self.file else { return all("standard output".into(), &mut io::stdout().lock()) };
        refuse_files_of_runs(self.runs, path)?;
        let place = format!("`{}`", path.display());
        let context = format!("cannot write {place}");
        let there = directory::find(path).with_context(|| context.clone())?;
        if let Some(found) = there.found.as_ref().filter(|found| found.kind() != FileType::RegularFile) {
            // Opening a pipe waits for its reader, for ever if that is what its owner wants.
            let is_device = matches!(found.kind(), FileType::CharacterDevice | FileType::BlockDevice);
            ensure!(
                is_device || found.is_trusted(),
                "{context}: it belongs to another user and is not a file"
            );
            return all(place, &mut File::options().write(true).open(found.path()).context(context)?);
        }
        let mut part = record::part_in(there).with_context(|| context.clone())?;
        all(place, part.file())?;
        part.persist(Present::Replace).context(context)
    }
}

/// A writer that names its target in every error.
struct Named<'a> {
    place: String,
    out: &'a mut dyn Write,
}

impl Named<'_> {
    fn error(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("cannot write {}: {error}", self.place))
    }
}

impl Write for Named<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|error| self.error(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|error| self.error(&error))
    }
}

/// Shows findings about the thing at this path.
pub(super) fn show<F: Findings>(findings: &F, format: &str, place: &Path, output: Output<'_>) -> Result<()> {
    known::<F>(format)?;
    let is_terminal = output.file.is_none() && io::stdout().is_terminal();
    let look = Look { extent: output.extent, ..look(place, is_terminal) };
    let text = document::shown(findings, format, &look).expect("it is known");
    output.write(|out| Ok(out.write_all(text.as_bytes())?))
}

/// How the output looks: as wide as the terminal, in colour unless that is disabled.
pub(super) fn look(directory: &Path, terminal: bool) -> Look {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable).into_iter().find(|value| !value.is_empty());
    let ascii = locale.is_some_and(|locale| matches!(locale.as_str(), "C" | "POSIX"));
    let columns =
        variable("COLUMNS").parse().ok().or_else(|| terminal.then(crate::sys::terminal::columns).flatten());
    let colour = terminal && variable("NO_COLOR").is_empty() && variable("TERM") != "dumb";
    Look {
        width: columns.unwrap_or(80).clamp(40, 160),
        style: if colour { Style::Colour } else { Style::Plain },
        glyphs: if ascii { Glyphs::Ascii } else { Glyphs::Unicode },
        extent: Extent::Full,
        place: directory.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_what_it_held_until_all_is_written_and_errors_name_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.md");
        std::fs::write(&path, "before").unwrap();
        let output = Output { file: Some(&path), ..Output::default() };
        let cut = output.write(|out| {
            out.write_all(b"half")?;
            anyhow::bail!("the disk is full")
        });
        assert_eq!(cut.unwrap_err().to_string(), "the disk is full");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
        output.write(|out| Ok(out.write_all(b"after")?)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "after");
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
        let error = |path: &str| {
            let output = Output { file: Some(Path::new(path)), ..Output::default() };
            format!("{:#}", output.write(|out| Ok(out.write_all(b"text")?)).unwrap_err())
        };
        assert_eq!(error("/dev/full"), "cannot write `/dev/full`: No space left on device (os error 28)");
        assert_eq!(error("/no/report"), "cannot write `/no/report`: No such file or directory (os error 2)");
    }
}
