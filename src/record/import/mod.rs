//! Measurements of others as runs: hyperfine's JSON, critest's benchmark JSON, raw lists and tables, and the table that dunnage
//! itself exports.
//!
//! What a file says is taken as it is: values stand in the samples as *given*, by the name of the metric that means the same.
//! What it does not say is said to be unknown. Samples that were not taken in rounds stand in a round of their own each, so
//! that nothing can pair them. Deliberately absent: guessing an engine from a command line that does not
//! say it for certain, and correcting numbers (but for the zeros that a stamp lost, which is suspect and says so).

mod critest;
mod foreign;
pub(super) mod hyperfine;
mod raw;
mod table;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};

use super::{Environment, IssueFacts, Order, Origin};
use crate::exit::Special;
use crate::image::Digest;
use crate::plan::{Entry, again};
use crate::report::csv::{COLUMNS, instant};
use crate::report::text::in_shell;
use crate::subject::{self, Layer, Spec};
use crate::units::Nanos;

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Whose format it was, what a reader must know, and what was suspect in the file itself.
    pub origin: Origin,
    /// Samples with values.
    pub samples: usize,
    /// Measurements that failed or were not tried.
    pub failures: usize,
}

/// A file that is to be imported, as far as it was looked at.
pub(super) struct Source<'a> {
    path: &'a Path,
    /// Its name, without its directory.
    name: String,
    /// SHA-256, hexadecimal.
    sha256: String,
    /// When it was last changed, in nanoseconds since 1970.
    changed: u64,
    /// Labels that the person gave the run.
    tags: BTreeMap<String, String>,
}

impl Source<'_> {
    fn origin(&self, format: &str, order: Order, notes: Vec<String>, issues: Vec<IssueFacts>) -> Origin {
        let (format, file, sha256) = (format.to_owned(), self.name.clone(), self.sha256.clone());
        Origin { format, file, sha256, order, notes, issues }
    }
}

/// Larger files of JSON are no benchmarks, and take many times their size while they are read; a table is read line by line
/// and may have any length.
const MOST_BYTES: u64 = 128 << 20;

/// What some editors write before the first letter.
const MARK: &str = "\u{feff}";

/// Makes a run directory of a file.
pub fn import(path: &Path, directory: &Path, tags: BTreeMap<String, String>) -> Result<Imported> {
    super::check_empty(directory, "")?;
    let shown = path.display();
    let context = || format!("cannot read `{shown}`");
    // Before it is opened: a pipe would wait for somebody who writes.
    let facts = path.metadata().with_context(context)?;
    if !facts.is_file() {
        return Err(Special::Usage(match facts.is_dir() {
            true => format!(
                "`{shown}` is a directory\n\nhint: a run directory needs no import; `dunnage report {}` shows it",
                in_shell([path.to_string_lossy()])
            ),
            false => format!(
                "`{shown}` is no file that can be read twice\n\nhint: save what comes from a pipe in a file first"
            ),
        })
        .into());
    }
    let changed = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let mut head = Vec::new();
    File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head)).with_context(context)?;
    let source = Source {
        path,
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        sha256: File::open(path)
            .and_then(|mut file| Digest::of_reader(&mut file))
            .with_context(context)?
            .hex(),
        changed: changed.map_or(0, |time| time.as_nanos() as u64),
        tags,
    };
    let made = match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') => json(&source)?,
        _ if first_line(&head) == COLUMNS => return table::import(&source, directory),
        _ => {
            let form = raw::Form::of(&first_line(&head)).ok_or_else(|| unknown(path))?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            form.read(&name, whole(&source)?.trim_start_matches(MARK))
                .with_context(|| format!("`{shown}` cannot be imported"))?
        }
    };
    foreign::write(&source, made, directory)
}

/// Without a mark of the order of bytes, and without its end.
fn first_line(head: &[u8]) -> String {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line.strip_prefix(MARK.as_bytes()).unwrap_or(line)).trim_end().to_owned()
}

fn unknown(path: &Path) -> anyhow::Error {
    let text = format!(
        "`{}` is nothing that can be imported\n\nhint: that is hyperfine's JSON (`--export-json`), critest's benchmark JSON (`--benchmarking-output-dir`), a table with the first line `runtime,metric,value`, a list of stamps in nanoseconds (`START,END`) or of durations (`0m1.531s`), and what `dunnage report --format csv` writes, with its first line",
        path.display()
    );
    Special::Usage(text).into()
}

/// All of a file that is taken at once.
fn whole(source: &Source<'_>) -> Result<String> {
    let context = || format!("`{}` cannot be imported", source.path.display());
    let length = source.path.metadata().with_context(context)?.len();
    if length > MOST_BYTES {
        bail!("`{}` has {length} bytes, more than a file of benchmarks has", source.path.display());
    }
    std::fs::read_to_string(source.path).with_context(context)
}

/// A file of JSON is told by its fields.
fn json(source: &Source<'_>) -> Result<foreign::Foreign> {
    let context = || format!("`{}` cannot be imported", source.path.display());
    let value: serde_json::Value = serde_json::from_str(&whole(source)?).with_context(context)?;
    let made = if value.get("results").is_some() {
        hyperfine::read(&value)
    } else if value.get("operationsNames").is_some() && value.get("datapoints").is_some() {
        critest::read(&value)
    } else {
        return Err(unknown(source.path));
    };
    made.with_context(context)
}

/// The environment of an import: what the file does not say is not there.
fn environment(source: &Source<'_>, run: &str, host: &str, started: u64, origin: &Origin) -> Environment {
    Environment {
        dunnage: env!("CARGO_PKG_VERSION").to_owned(),
        run: run.to_owned(),
        host: host.to_owned(),
        started: instant(started),
        tags: source.tags.clone(),
        origin: Some(origin.clone()),
        ..Environment::default()
    }
}

/// A subject by itself; what it is to others follows when all are known.
fn entry(label: &str, spec: Spec) -> Entry {
    let unknown = if spec.name == critest::SUBJECT { Layer::Engine } else { Layer::None };
    let layer = subject::kind_of(&spec).map_or(unknown, |kind| kind.layer);
    let default = || (layer == Layer::Engine).then(|| format!("{}'s default", spec.name));
    Entry {
        label: label.to_owned(),
        layer,
        ladder: again::ladder_of(&spec, layer),
        twin_of: None,
        runtime: spec.runtime.clone().or_else(default),
        launch: Nanos(0),
        offers: Vec::new(),
        only_in: Vec::new(),
        variant_of: None,
        spec,
    }
}
