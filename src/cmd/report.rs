//! `dunnage report`: shows the results of a run.

use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result};

use super::guard::refuse_files_of_runs;
use crate::exit::{self, Special};
use crate::record::{self, Recorded, Series};
use crate::reference::{self, beside};
use crate::report::{self, File, Format, Glyphs, Look, Rendering, Report, Style};
use crate::subject::spec::parse_duration;
use crate::units::counted;
use crate::verdict;

/// What a person asks for beside what the run itself shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras<'a> {
    /// What others published.
    pub references: bool,
    /// The length of a job, in seconds.
    pub job: Option<f64>,
    /// Subjects to be described beside each other, in pairs.
    pub between: &'a [String],
}

/// The length of a job, as a person gives it.
pub fn job(text: &str) -> Result<f64> {
    parse_duration(text).filter(|length| *length > 0.0 && length.is_finite()).ok_or_else(|| {
        let text = format!(
            "`{text}` is no length of a job\n\nhint: write a time with its unit, as in `2s` or `350ms`"
        );
        Special::Usage(text).into()
    })
}

/// Runs the verb. A run in which nothing was measured has a report too, and exit code 4.
pub fn run(directory: &Path, format: &str, output: Option<&Path>, extras: Extras<'_>) -> Result<i32> {
    let Some(format) = report::find(format) else {
        let valid: Vec<_> = report::FORMATS.iter().map(|format| format!("`{}`", format.name())).collect();
        let text = format!("there is no format `{format}`\n\nhint: formats are {}", valid.join(", "));
        return Err(Special::Usage(text).into());
    };
    refuse_extras(format, extras)?;
    let mut recorded = record::open(directory)?;
    describe(&mut recorded, extras.between)?;
    let own = [directory.to_owned()];
    match (format.rendering(), output) {
        (Rendering::Files(_), None) => {
            let text = format!(
                "`{name}` makes several files\n\nhint: name a directory for them, such as `-o {name}`",
                name = format.name()
            );
            return Err(Special::Usage(text).into());
        }
        (Rendering::Files(render), Some(path)) => {
            let files = render(&built(&recorded, extras), &look(directory, false))?;
            if files.is_empty() {
                let text = format!(
                    "`{}` holds nothing that could be drawn, so `{}` was not written\n\nhint: `dunnage report {}` says why",
                    directory.display(),
                    path.display(),
                    directory.display()
                );
                return Err(Special::Nothing(text).into());
            }
            write_files(directory, path, &files)?;
        }
        (_, None) => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            let look = look(directory, std::io::stdout().is_terminal());
            write(directory, &recorded, format, extras, &look, &mut out)?;
            out.flush()?;
        }
        (_, Some(path)) => {
            refuse_files_of_runs(&own, path)?;
            let context = || format!("cannot write the report to `{}`", path.display());
            let mut file = BufWriter::new(std::fs::File::create(path).with_context(context)?);
            write(directory, &recorded, format, extras, &look(directory, false), &mut file)?;
            file.flush().with_context(context)?;
        }
    }
    Ok(if is_measured(&recorded.series) { exit::FINE } else { exit::NOTHING })
}

/// Whether any of these cells has a value.
pub fn is_measured<'a>(cells: impl IntoIterator<Item = &'a Series>) -> bool {
    cells.into_iter().flat_map(|series| &series.values).flatten().any(|value| value.is_finite())
}

/// Sets pairs of subjects beside each other that the plan does not compare.
fn describe(recorded: &mut Recorded, pairs: &[String]) -> Result<()> {
    for pair in pairs.chunks_exact(2) {
        if pair[0] == pair[1] || recorded.plan.describe(&pair[0], &pair[1]) == 0 {
            let labels: Vec<_> =
                recorded.plan.subjects.iter().map(|one| format!("`{}`", one.label)).collect();
            let text = format!(
                "no experiment of this run has both `{}` and `{}`\n\nhint: its subjects are {}",
                pair[0],
                pair[1],
                labels.join(", ")
            );
            return Err(Special::Usage(text).into());
        }
    }
    Ok(())
}

/// What was asked for beside the run must have a place in the format, or it would be left out in silence.
fn refuse_extras(format: &dyn Format, extras: Extras<'_>) -> Result<()> {
    if matches!(format.rendering(), Rendering::Common(_)) {
        return Ok(());
    }
    let name = format.name();
    if extras.references {
        let text = format!(
            "`{name}` holds what the run measured and nothing else\n\nhint: `dunnage reference --format csv` shows what \
             others published"
        );
        return Err(Special::Usage(text).into());
    }
    if !extras.between.is_empty() {
        let text =
            format!("`{name}` holds samples, and no subjects side by side\n\nhint: take another format");
        return Err(Special::Usage(text).into());
    }
    if extras.job.is_some() {
        let text = format!(
            "`{name}` holds what the run measured, in which no job of yours has a share\n\nhint: leave `--job` out, or \
             take another format"
        );
        return Err(Special::Usage(text).into());
    }
    Ok(())
}

/// Writes files into a directory, which is made where there is none; what it holds under other names stays.
fn write_files(run: &Path, directory: &Path, files: &[File]) -> Result<()> {
    let context = || format!("cannot write the report into `{}`", directory.display());
    std::fs::create_dir_all(directory).with_context(context)?;
    let is_ours = |name: &std::ffi::OsStr| files.iter().any(|file| name == std::ffi::OsStr::new(&file.name));
    let there = std::fs::read_dir(directory).with_context(context)?.flatten();
    let others = there.filter(|entry| !is_ours(&entry.file_name())).count();
    if others > 0 {
        let what = counted(others, "file");
        super::tell(&format!("{what} of something else in `{}` stayed there", directory.display()));
    }
    let own = [run.to_owned()];
    for file in files {
        let path = directory.join(&file.name);
        refuse_files_of_runs(&own, &path)?;
        std::fs::write(&path, &file.bytes).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    Ok(())
}

/// The report, with what was asked for beside the run.
fn built(recorded: &Recorded, extras: Extras<'_>) -> Report {
    let mut report = Report::of(recorded, &verdict::analyse(recorded));
    if extras.references {
        report.references = beside::beside(reference::sources(), &report);
    }
    match extras.job {
        Some(length) => report.with_job(length),
        None => report,
    }
}

fn write(
    directory: &Path,
    recorded: &Recorded,
    format: &dyn Format,
    extras: Extras<'_>,
    look: &Look,
    out: &mut impl Write,
) -> Result<()> {
    match format.rendering() {
        Rendering::Common(format) => {
            out.write_all(format.render(&built(recorded, extras), look).as_bytes())?;
        }
        Rendering::Files(_) => unreachable!("files go into a directory"),
        Rendering::Rows { header, lines } => {
            out.write_all(header(recorded).as_bytes())?;
            let mut text = String::new();
            record::rows(directory, &mut |row| {
                text.clear();
                lines(recorded, row, &mut text);
                out.write_all(text.as_bytes()).map_err(anyhow::Error::from)
            })?;
        }
    }
    Ok(())
}

/// How the report looks: as wide as the terminal, in colour unless somebody objects.
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
