//! `dunnage pack`: makes one file of a run that can be given away, and shows what is in it and what is not
//! before it writes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::guard::refuse_files_of_runs;
use super::tell;
use crate::cli;
use crate::exit::{self, Special};
use crate::host::private::Private;
use crate::record::pack::{self, Contents, Kind, Options, Present, Replaced};
use crate::report::text::{clean, shorten, wrap};
use crate::units::{Unit, counted};

/// How many texts of a kind are shown where the person did not ask for all.
const SHOWN: usize = 5;
const WIDTH: usize = 100;

/// Runs the verb.
pub fn run(options: &cli::Pack) -> Result<i32> {
    let path = match &options.output {
        Some(path) => path.clone(),
        None => named_as(&options.directory)?,
    };
    let present = if options.force { Present::Replace } else { Present::Keep };
    if !options.dry_run
        && present == Present::Keep
        && path.symlink_metadata().is_ok_and(|found| found.is_file())
    {
        let text = format!(
            "`{}` is there already\n\nhint: choose another file with `-o`, or replace it with `--force`",
            path.display()
        );
        return Err(Special::Usage(text).into());
    }
    // Its place is taken by renaming: a device, a pipe or a link would be gone.
    if !options.dry_run && path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        let text = format!(
            "`{}` is no regular file, and stays\n\nhint: choose another file with `-o`",
            path.display()
        );
        return Err(Special::Usage(text).into());
    }
    refuse_files_of_runs(std::slice::from_ref(&options.directory), &path)?;
    if let Some(short) = options.private.iter().find(|word| word.trim().chars().count() < 2) {
        let text = format!("`--private {short}` is too short to be told from the rest");
        return Err(Special::Usage(text).into());
    }
    let asked = Options {
        machine: Private::gather(),
        words: options.private.clone(),
        dropped: options.drop_tags.clone(),
    };
    let contents = pack::look(&options.directory, &asked)?;
    show(&contents, if options.dry_run { usize::MAX } else { SHOWN });
    if options.dry_run {
        tell("\nnothing was written");
        return Ok(exit::FINE);
    }
    let size = pack::write(&contents, &path, present)?;
    let shown = path.display();
    tell(&format!(
        "\nwrote `{shown}` ({}), and none of the words above is in it\nlook at it with `dunnage report {shown}`",
        Unit::Bytes.format(size as f64)
    ));
    Ok(exit::FINE)
}

/// A file beside us, named as the directory.
fn named_as(directory: &Path) -> Result<PathBuf> {
    let whole = directory.canonicalize().with_context(|| format!("cannot read `{}`", directory.display()))?;
    let name = whole.file_name().context("the root directory is no run directory")?;
    Ok(PathBuf::from(format!("{}.{}", name.display(), pack::ENDING)))
}

/// Shows what the pack will hold and what it will not, with at most so many texts of a kind.
fn show(contents: &Contents, most: usize) {
    let (run, plan) = (&contents.environment, &contents.plan);
    let machine = |name: &str| run.machine.get(name).map_or("unknown", String::as_str);
    let labels: Vec<&str> = plan.subjects.iter().map(|entry| entry.label.as_str()).collect();
    let mut experiments: Vec<&str> = plan.cells.iter().map(|cell| cell.experiment).collect();
    experiments.dedup();
    let tags: Vec<String> = run.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let files: Vec<String> = contents
        .files
        .iter()
        .map(|(name, bytes)| format!("{name} {}", Unit::Bytes.format(*bytes as f64)))
        .collect();
    tell("in the pack:");
    line("run", &format!("{} of {}, dunnage {}", run.run, run.started, run.dunnage));
    line(
        "machine",
        &format!("{}, kernel {}, {}", machine("cpu"), machine("kernel"), machine("distribution")),
    );
    line("command", &run.command.join(" "));
    if !tags.is_empty() {
        line("tags", &tags.join(", "));
    }
    line("measured", &format!("{} in {}", experiments.join(", "), counted(plan.rounds, "round")));
    line("subjects", &labels.join(", "));
    line("files", &files.join(", "));
    tell("\nnot in the pack:");
    for (kind, name) in Kind::ALL {
        let all: Vec<&Replaced> = contents.replaced.iter().filter(|one| one.kind == kind).collect();
        if !all.is_empty() {
            removed(name, &all, most);
        }
    }
    if contents.replaced.is_empty() {
        tell("  nothing was found that is private");
    }
    if !contents.spared.is_empty() {
        tell("\nnot looked for, since the run itself says it:");
        for secret in &contents.spared {
            tell(&format!("  {}: {}", secret.called, shorten(&clean(&secret.word), 60)));
        }
    }
}

fn line(name: &str, text: &str) {
    for line in wrap(&format!("  {name:<10}"), &clean(text), WIDTH) {
        tell(&line);
    }
}

fn removed(name: &str, all: &[&Replaced], most: usize) {
    tell(&format!("  {name} ({})", all.len()));
    for one in all.iter().take(most) {
        let text = shorten(&clean(&one.text), 64);
        match one.placeholder.as_str() {
            "" => tell(&format!("    {text}")),
            placeholder => tell(&format!("    {text} → {placeholder}")),
        }
    }
    if all.len() > most {
        tell(&format!("    and {} more, which `--dry-run` shows", all.len() - most));
    }
}
