//! Turns measurements of other programs into runs: hyperfine's JSON, critest's benchmark JSON, raw lists and tables, and the
//! table that dunnage exports.
//!
//! Values are taken as they are and stored as *given*, under the metric with the same meaning. Missing information is reported
//! as unknown. Samples not taken in rounds get one round each, so that nothing can pair them. Deliberately absent: guessing an
//! engine from an ambiguous command line, and correcting numbers, except for the lost zeros of a stamp, which are reported as
//! suspect.

mod critest;
mod foreign;
pub(super) mod hyperfine;
mod io;
mod memory;
mod nested;
mod raw;
mod scale;
mod table;

use std::collections::BTreeMap;
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

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The file's format, notes for the reader, and suspects in the file.
    pub origin: Origin,
    /// Samples with values.
    pub samples: usize,
    /// Failed or skipped measurements.
    pub failures: usize,
}

/// A file to import.
pub(super) struct Source<'a> {
    path: &'a Path,
    /// Its name, without its directory.
    name: String,
    /// SHA-256, hexadecimal.
    sha256: String,
    /// When it was last changed, in nanoseconds since 1970.
    changed: u64,
    /// The labels of the run.
    tags: BTreeMap<String, String>,
}

impl Source<'_> {
    fn origin(&self, format: &str, order: Order, notes: Vec<String>, issues: Vec<IssueFacts>) -> Origin {
        let (format, file, sha256) = (format.to_owned(), self.name.clone(), self.sha256.clone());
        Origin { format, file, sha256, order, notes, issues }
    }
}

/// A larger JSON file is not a benchmark, and reading it takes many times its size in memory. A table is read line by line and
/// may be of any length.
const MOST_BYTES: u64 = 128 << 20;

/// The byte order mark that some editors write.
const MARK: &str = "\u{feff}";

/// Creates a run directory from a file.
pub fn import(path: &Path, directory: &Path, tags: BTreeMap<String, String>) -> Result<Imported> {
    super::check_empty(directory, "")?;
    let shown = path.display();
    let context = || format!("cannot read `{shown}`");
    // Checked before opening, because opening a pipe would block.
    let facts = path.metadata().with_context(context)?;
    if !facts.is_file() {
        return Err(Special::Usage(match facts.is_dir() {
            true => format!(
                "`{shown}` is a directory\n\nhint: show a run directory with `dunnage report {}`, without an import",
                in_shell([path.to_string_lossy()])
            ),
            false => format!(
                "`{shown}` is not a regular file\n\nhint: save the output of a pipe in a file first"
            ),
        })
        .into());
    }
    let changed = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let mut head = Vec::new();
    let opened = || super::regular(path, u64::MAX);
    opened()?.take(4096).read_to_end(&mut head).with_context(context)?;
    let source = Source {
        path,
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        sha256: Digest::of_reader(&mut opened()?).with_context(context)?.hex(),
        changed: changed.map_or(0, |time| time.as_nanos() as u64),
        tags,
    };
    let made = match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') => json(&source)?,
        _ if first_line(&head) == COLUMNS => return table::import(&source, directory),
        _ => {
            let first = first_line(&head);
            let form = raw::Form::of(&first);
            if form.is_none()
                && ![memory::COUNTED, scale::HEADER, nested::HEADER, io::HEADER].contains(&&*first)
            {
                return Err(unknown(path));
            }
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let text = whole(&source)?;
            let text = text.trim_start_matches(MARK);
            let read = match form {
                None if first == scale::HEADER => scale::read(text),
                None if first == nested::HEADER => nested::read(text),
                None if first == io::HEADER => io::read(text),
                Some(form) if !memory::is_one(text) => form.read(&name, text),
                _ => memory::read(text),
            };
            read.with_context(|| format!("cannot import `{shown}`"))?
        }
    };
    foreign::write(&source, made, directory)
}

/// The first line without a byte order mark and line end.
fn first_line(head: &[u8]) -> String {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line.strip_prefix(MARK.as_bytes()).unwrap_or(line)).trim_end().to_owned()
}

fn unknown(path: &Path) -> anyhow::Error {
    let text = format!(
        "`{}` does not have a known format\n\nhint: `import` reads hyperfine's JSON (`--export-json`), critest's benchmark JSON (`--benchmarking-output-dir`), a table with the first line `runtime,metric,value`, `runtime,metric,count,value`, `runtime,count,time_seconds,memory_mb`, `runtime,mode,rep,mb_per_sec` or `runtime,approach,result,time_seconds,error_msg`, a list of stamps in nanoseconds (`START,END`) or of durations (`0m1.531s`), and the output of `dunnage report --format csv` with its first line",
        path.display()
    );
    Special::Usage(text).into()
}

/// The whole file as text.
fn whole(source: &Source<'_>) -> Result<String> {
    let context = || format!("cannot import `{}`", source.path.display());
    let length = source.path.metadata().with_context(context)?.len();
    if length > MOST_BYTES {
        bail!("`{}` has {length} bytes, which is too large for a file of benchmarks", source.path.display());
    }
    super::text(source.path, MOST_BYTES).with_context(context)
}

/// Recognises a JSON file by its fields.
fn json(source: &Source<'_>) -> Result<foreign::Foreign> {
    let context = || format!("cannot import `{}`", source.path.display());
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

/// The environment of an import, with only what the file contains.
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

/// A subject on its own; its relations to others are added when all are known.
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
        inherited: Default::default(),
        spec,
    }
}
