//! `dunnage report`: shows the results of a run.

use std::path::Path;

use anyhow::{Context, Result};

use super::guard::refuse_files_of_runs;
use super::show::{self, Output, show};
use crate::cli::Outcome;
use crate::exit::{self, nothing, usage};
use crate::record::{self, Recorded, Series};
use crate::reference::{self, beside};
use crate::report::text::{in_shell, quoted};
use crate::report::{self, File, Rendering, Report};
use crate::subject::spec::parse_duration;
use crate::sys::directory::Directory;
use crate::units::counted;
use crate::verdict;

/// What to show in addition to the run itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras<'a> {
    /// Published results.
    pub references: bool,
    /// The length of a job, in seconds.
    pub job: Option<f64>,
    /// The number of the only answer to show.
    pub question: Option<usize>,
    /// Subjects to describe next to each other, in pairs.
    pub between: &'a [String],
}

/// The length of a job in seconds, from the command line.
pub fn job(text: &str) -> Result<f64> {
    parse_duration(text).filter(|length| *length > 0.0 && length.is_finite()).ok_or_else(|| {
        usage(format!(
            "`{text}` is not the length of a job\n\nhint: write a time with its unit, as in `350ms`, `2s`, `10min` or `2h`"
        ))
    })
}

/// Runs the verb. A run without measurements also has a report, with exit code 4.
pub(super) fn run(directory: &Path, format: &str, to: Output<'_>, extras: Extras<'_>) -> Result<i32> {
    show::known::<Report>(format)?;
    let own = report::FORMATS.iter().find(|own| own.name == format);
    if own.is_some() {
        refuse_extras(format, extras)?;
    }
    let mut recorded = record::open(directory)?;
    describe(&mut recorded, extras.between)?;
    let (runs, output) = ([directory.to_owned()], to.file);
    let to = Output { runs: &runs, ..to };
    match own.map(|own| &own.rendering) {
        None => show(&built(&recorded, extras)?, format, directory, to)?,
        Some(Rendering::Rows { header, lines }) => to.write(|out| {
            out.write_all(header(&recorded).as_bytes())?;
            let mut text = String::new();
            record::rows(directory, &mut |row| {
                text.clear();
                lines(&recorded, row, &mut text);
                out.write_all(text.as_bytes()).map_err(anyhow::Error::from)
            })
        })?,
        Some(Rendering::Text(render)) => {
            let text = render(&built(&recorded, extras)?);
            to.write(|out| Ok(out.write_all(text.as_bytes())?))?;
        }
        Some(Rendering::Files(render)) => {
            let Some(path) = output else {
                return Err(usage(format!(
                    "`{format}` writes several files\n\nhint: name a directory for them, such as `-o {format}`"
                )));
            };
            let files = render(&built(&recorded, extras)?)?;
            if files.is_empty() {
                let (run, path) = (in_shell([directory.to_string_lossy()]), path.display());
                return Err(nothing(format!(
                    "`{run}` has nothing to draw, so `{path}` was not written\n\nhint: `dunnage report {run}` shows why"
                )));
            }
            write_files(directory, path, &files)?;
        }
    }
    Ok(if is_measured(&recorded.series) { exit::FINE } else { exit::NOTHING })
}

/// The page's file name, next to the samples.
const PAGE: &str = "report.html";

/// Writes the page next to the samples and shows the answer, unless another program reads the events. Returns the message about
/// the page, to be printed last; a page that cannot be written must not lose the rest.
pub(super) fn after_a_run(recorded: &Recorded, directory: &Path, outcome: Outcome) -> Result<Option<String>> {
    let report = built(recorded, Extras::default())?;
    let page = directory.join(PAGE);
    let write = || show(&report, "html", directory, Output { file: Some(&page), ..Output::default() });
    let told = (!outcome.no_html).then(|| match write() {
        Ok(()) => format!("the whole report, for a browser: {}", page.display()),
        Err(error) => format!("could not write the page: {error:#}"),
    });
    if outcome.events.is_none() {
        show(&report, "terminal", directory, Output { extent: outcome.extent.into(), ..Output::default() })?;
    }
    Ok(told)
}

/// Whether any of these cells has a value.
pub fn is_measured<'a>(cells: impl IntoIterator<Item = &'a Series>) -> bool {
    cells.into_iter().flat_map(|series| &series.values).flatten().any(|value| value.is_finite())
}

/// Adds pairs of subjects that the plan does not compare.
fn describe(recorded: &mut Recorded, pairs: &[String]) -> Result<()> {
    for pair in pairs.chunks_exact(2) {
        let (one, other) = (&pair[0], &pair[1]);
        if one == other {
            return Err(usage(format!("`--between` needs two different subjects, but both are `{one}`")));
        }
        let before = recorded.plan.comparisons.len();
        if recorded.plan.describe(one, other) == 0 {
            let labels = quoted(recorded.plan.subjects.iter().map(|one| &one.label));
            return Err(usage(format!(
                "no experiment of this run has both `{one}` and `{other}`\n\nhint: its subjects are {labels}"
            )));
        }
        if recorded.plan.comparisons.len() == before {
            super::tell(&format!("`{one}` and `{other}` are also compared without `--between`"));
        }
    }
    Ok(())
}

/// A format that cannot show an extra must refuse it instead of dropping it silently.
fn refuse_extras(format: &str, extras: Extras<'_>) -> Result<()> {
    let asked = [
        (extras.references, "--reference"),
        (!extras.between.is_empty(), "--between"),
        (extras.job.is_some(), "--job"),
        (extras.question.is_some(), "--question"),
    ];
    let Some((_, option)) = asked.iter().find(|(is_asked, _)| *is_asked) else { return Ok(()) };
    Err(usage(format!(
        "`{format}` contains only the measurements of the run\n\nhint: leave out `{option}`, or use another format"
    )))
}

/// Writes files into a directory, creating it if needed. Its other files are kept.
fn write_files(run: &Path, directory: &Path, files: &[File]) -> Result<()> {
    let context = || format!("cannot write the report into `{}`", directory.display());
    let made = Directory::make(directory).with_context(context)?;
    let is_ours = |name: &std::ffi::OsStr| files.iter().any(|file| name == std::ffi::OsStr::new(&file.name));
    let there = std::fs::read_dir(made.at("")).with_context(context)?.flatten();
    let others = there.filter(|entry| !is_ours(&entry.file_name())).count();
    if others > 0 {
        let what = counted(others, "file");
        super::tell(&format!("kept {what} in `{}` that the report did not write", directory.display()));
    }
    let own = [run.to_owned()];
    for file in files {
        let path = directory.join(&file.name);
        refuse_files_of_runs(&own, &path)?;
        Output { file: Some(&path), ..Output::default() }.write(|out| Ok(out.write_all(&file.bytes)?))?;
    }
    Ok(())
}

/// The report, with the extras.
fn built(recorded: &Recorded, extras: Extras<'_>) -> Result<Report> {
    let mut report = Report::of(recorded, &verdict::analyse(recorded));
    if extras.references {
        report.references = beside::beside(reference::sources(), &report);
    }
    if let Some(asked) = extras.question
        && asked > report.claims.len()
    {
        return Err(usage(format!(
            "this run has {}; `--question 0` lists them",
            counted(report.claims.len(), "answer")
        )));
    }
    report.opened = extras.question;
    Ok(match extras.job {
        Some(length) => report.with_job(length),
        None => report,
    })
}
