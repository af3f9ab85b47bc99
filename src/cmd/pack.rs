//! `dunnage pack`: makes one file of a run that can be given away, and shows what is in it and what is not
//! before it writes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dunnage_analysis::distinct;

use super::guard::refuse_files_of_runs;
use super::tell;
use crate::cli;
use crate::exit::{self, usage};
use crate::host::private::Private;
use crate::record::pack::{self, Contents, Listed, Options, Present};
use crate::report::text::{clean, in_shell, listed, shorten, wrap};
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
    if let Some(found) = path.symlink_metadata().ok().filter(|_| !options.dry_run) {
        let shown = in_shell([path.to_string_lossy()]);
        // Its place is taken by renaming: a device, a pipe or a link would be gone.
        if !found.is_file() {
            return Err(usage(format!(
                "`{shown}` is no regular file, and stays\n\nhint: choose another file with `-o`"
            )));
        }
        if present == Present::Keep {
            return Err(usage(format!(
                "`{shown}` is there already\n\nhint: choose another file with `-o`, or replace it with `--force`"
            )));
        }
    }
    refuse_files_of_runs(std::slice::from_ref(&options.directory), &path)?;
    if let Some(short) = options.private.iter().find(|word| word.trim().chars().count() < 2) {
        return Err(usage(format!("`--private {short}` is too short to be told from the rest")));
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
        tell("  nothing was found that is private");
    }
    for all in contents.replaced.chunk_by(|one, other| one.kind == other.kind) {
        tell(&format!("  {} ({})", all[0].kind.name(), all.len()));
        for one in all.iter().take(most) {
            let placeholder = Some(&one.placeholder).filter(|text| !text.is_empty());
            let placeholder = placeholder.map(|text| format!(" → {text}")).unwrap_or_default();
            tell(&format!("    {}{placeholder}", shorten(&clean(&one.text), 64)));
        }
        if all.len() > most {
            tell(&format!("    and {} more, which `--dry-run` shows", all.len() - most));
        }
    }
    if !contents.spared.is_empty() {
        tell("\nnot looked for, since the run itself says it:");
        for secret in &contents.spared {
            tell(&format!("  {}: {}", secret.called, shorten(&clean(&secret.word), 60)));
        }
    }
}
