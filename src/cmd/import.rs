//! `dunnage import`: turns another program's measurements, or a table that dunnage exported, into a run.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::exit::{self, usage};
use crate::record::import;
use crate::report::text::{clean, in_shell};
use crate::units::counted;

/// Runs the verb. Without `-o`, the run goes into the current directory, named after the file.
pub fn run(file: &Path, output: Option<&Path>, tags: &[String]) -> Result<i32> {
    let tags = super::request::tags_of(tags)?;
    let directory = match output {
        Some(directory) => directory.to_owned(),
        None => named_after(file)?,
    };
    let imported = import::import(file, &directory, tags)?;
    let failures = match imported.failures {
        0 => String::new(),
        many => format!(" and {}", counted(many, "failure")),
    };
    let (samples, shown) = (counted(imported.samples, "sample"), in_shell([directory.to_string_lossy()]));
    super::tell(&format!("imported {samples}{failures} from {} into `{shown}`", imported.origin.format));
    for note in &imported.origin.notes {
        super::tell(&format!("note: {}", clean(note)));
    }
    for one in &imported.origin.issues {
        super::tell(&format!("suspect: {}: {}", one.rule, clean(&one.evidence)));
    }
    super::tell(&format!("show it with `dunnage report {shown}`"));
    Ok(if imported.samples > 0 { exit::FINE } else { exit::NOTHING })
}

/// `bench.json` becomes `bench-run`, in the current directory.
fn named_after(file: &Path) -> Result<PathBuf> {
    let unnamed = || {
        let shown = file.display();
        usage(format!("cannot name a directory after `{shown}`\n\nhint: choose a directory with `-o`"))
    };
    let mut name = file.file_stem().filter(|stem| !stem.is_empty()).ok_or_else(unnamed)?.to_owned();
    name.push("-run");
    Ok(PathBuf::from(name))
}
