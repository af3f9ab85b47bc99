//! `dunnage pack`: packs a run into one file to share, after showing what the file contains and what is left out.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dunnage_analysis::distinct;

use super::guard::refuse_files_of_runs;
use super::tell;
use crate::cli;
use crate::exit::{self, usage};
use crate::host::private::Private;
use crate::record::Present;
use crate::record::pack::{self, Contents, Listed, Options};
use crate::report::text::{clean, in_shell, listed, shorten, wrap};
use crate::units::{Unit, counted};

/// Number of texts of a kind to show without `--dry-run`.
const SHOWN: usize = 5;
const WIDTH: usize = 100;

/// Runs the verb.
pub fn run(options: &cli::Pack) -> Result<i32> {
    let path = match &options.output {
        Some(path) => path.clone(),
        None => named_as(&options.directory)?,
    };
    let present = if options.force { Present::Replace } else { Present::Keep };
    if let Some(found) = path.symlink_metadata().ok().filter(|_| !options.dry_run) {
        let shown = in_shell([path.to_string_lossy()]);
        // Writing replaces the path by renaming, which would destroy a device, a pipe or a link.
        if !found.is_file() {
            return Err(usage(format!(
                "`{shown}` is not a regular file\n\nhint: choose another file with `-o`"
            )));
        }
        if present == Present::Keep {
            return Err(usage(format!(
                "`{shown}` already exists\n\nhint: choose another file with `-o`, or overwrite it with `--force`"
            )));
        }
    }
    refuse_files_of_runs(std::slice::from_ref(&options.directory), &path)?;
    if let Some(short) = options.private.iter().find(|word| word.trim().chars().count() < 2) {
        return Err(usage(format!("`--private {short}` is too short: it must have at least two characters")));
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
    let size = pack::write(contents, &path, present)?;
    let shown = path.display();
    tell(&format!(
        "\nwrote `{shown}` ({}) without any of the words above\nshow it with `dunnage report {shown}`",
        Unit::Bytes.format(size as f64)
    ));
    Ok(exit::FINE)
}

/// A file in the current directory, named after the run directory.
fn named_as(directory: &Path) -> Result<PathBuf> {
    // Without such a directory, reading the run explains what is wrong.
    let whole = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let name = whole.file_name().context("the root directory is not a run directory")?;
    Ok(PathBuf::from(format!("{}.{}", name.display(), pack::ENDING)))
}

/// Shows what the pack will contain and what it leaves out, with at most `most` texts of a kind.
fn show(contents: &Contents, most: usize) {
    let (run, plan) = (&contents.environment, &contents.plan);
    let machine =
        ["cpu", "kernel", "distribution"].map(|name| run.machine.get(name).map_or("unknown", |fact| fact));
    let experiments = distinct(plan.cells.iter().map(|cell| cell.experiment));
    let file = |one: &Listed| format!("{} {}", one.name, Unit::Bytes.format(one.bytes as f64));
    tell("in the pack:");
    for (name, text) in [
        ("run", format!("{} of {}, dunnage {}", run.run, run.started, run.dunnage)),
        ("machine", machine.join(", ")),
        ("tags", listed(run.tags.iter().map(|(key, value)| format!("{key}={value}")), ", ")),
        ("measured", format!("{} in {}", experiments.join(", "), counted(plan.rounds, "round"))),
        ("subjects", listed(plan.subjects.iter().map(|entry| &entry.label), ", ")),
        ("files", listed(contents.files.iter().map(file), ", ")),
    ] {
        if !text.is_empty() {
            wrap(&format!("  {name:<10}"), &clean(&text), WIDTH).iter().for_each(|line| tell(line));
        }
    }
    tell("\nnot in the pack:");
    if contents.replaced.is_empty() {
        tell("  nothing private was found");
    }
    for all in contents.replaced.chunk_by(|one, other| one.kind == other.kind) {
        tell(&format!("  {} ({})", all[0].kind.name(), all.len()));
        for one in all.iter().take(most) {
            let placeholder = Some(&one.placeholder).filter(|text| !text.is_empty());
            let placeholder = placeholder.map(|text| format!(" → {text}")).unwrap_or_default();
            tell(&format!("    {}{placeholder}", shorten(&clean(&one.text), 64)));
        }
        if all.len() > most {
            tell(&format!("    and {} more: see `--dry-run`", all.len() - most));
        }
    }
    if !contents.spared.is_empty() {
        tell("\nkept, because the run itself uses these words:");
        for secret in &contents.spared {
            tell(&format!("  {}: {}", secret.called, shorten(&clean(&secret.word), 60)));
        }
    }
}
