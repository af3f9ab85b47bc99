//! Plan files: a command line of `plan`, `check` or `run` as TOML, to keep, share and repeat. Each value keeps its place in
//! the file, so that later checks can name it in errors. The keys are defined here and in `docs/plan-file.md`; whether
//! experiments, subjects and settings exist is checked with the command line in `cmd/request.rs`. Deliberately absent:
//! anything found or measured on a machine.

mod read;
pub mod shipped;
mod write;

pub use read::parse;
pub use write::{settings, write};

use anyhow::{Context, Result};

use crate::exit::usage;
use crate::record;
use crate::report::text::{meant, quoted};

/// A larger file is not a plan.
const MOST_BYTES: u64 = 1 << 20;

/// A word from the command line or a plan file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// The word.
    pub text: String,
    /// Its place in a plan file, such as "`x.toml`, line 3"; none on the command line.
    pub place: Option<String>,
}

impl Typed {
    /// A word of the command line.
    pub fn on_command_line(text: &str) -> Typed {
        Typed { text: text.to_owned(), place: None }
    }

    /// A usage error about this word, with its place.
    pub fn wrong(&self, why: impl std::fmt::Display) -> anyhow::Error {
        let text = match &self.place {
            Some(place) => format!("{place}: {why}"),
            None => why.to_string(),
        };
        usage(text)
    }
}

/// How a plan file sets the length of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Length {
    /// A number of rounds.
    Rounds(u32),
    /// The number that a pilot finds for this precision, in percent.
    Precision(Typed),
    /// As many as fit in a minute.
    Quick,
}

/// Whether experiments may vary keys of the subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Variants {
    /// They may, if they have something to vary.
    #[default]
    OfExperiments,
    /// The same, and what tells why something is slow.
    Why,
    /// Only the requested subjects are measured.
    None,
}

/// The smallest difference of a metric that matters, as set by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenMargin {
    /// The experiment's name.
    pub experiment: Typed,
    /// The metric's name.
    pub metric: Typed,
    /// In the metric's unit; zero if absent.
    pub absolute: Option<Typed>,
    /// In percent of the median of the other side; zero if absent.
    pub relative: Option<Typed>,
}

/// The content of a plan file. What it leaves out has the command line's defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanFile {
    /// Its purpose, in one line.
    pub about: Option<String>,
    /// The experiments.
    pub experiments: Vec<Typed>,
    /// The subjects, in the grammar of `-s`.
    pub subjects: Vec<Typed>,
    /// The factors that the subjects combine completely.
    pub factors: Vec<Typed>,
    /// Settings, each as `key=value`.
    pub settings: Vec<Typed>,
    /// How long to measure.
    pub length: Option<Length>,
    /// The seed.
    pub seed: Option<u64>,
    /// Seconds after which a launch counts as hung.
    pub timeout: Option<u32>,
    /// The run's labels, each as `key=value`.
    pub tags: Vec<Typed>,
    /// Margins.
    pub margins: Vec<GivenMargin>,
    /// Whether experiments add variants.
    pub variants: Variants,
    /// The predictions.
    pub predictions: Vec<Typed>,
}

/// Reads the plan of this name: a file if it looks like a path, otherwise a plan that comes with dunnage.
pub fn open(name: &str) -> Result<PlanFile> {
    if name.contains('/') || name.ends_with(".toml") {
        let text = record::text(name.as_ref(), MOST_BYTES).context("cannot use the plan file");
        return parse(name, &text.map_err(|error| usage(format!("{error:#}")))?);
    }
    let Some(found) = shipped::find(name) else {
        let names = || shipped::ALL.iter().map(|one| one.name);
        let (meant, valid) = (meant(name, names()), quoted(names()));
        return Err(usage(format!(
            "unknown plan `{name}`\n\nhint: {meant}plans are {valid}; the path of a file contains a `/` or ends in `.toml`"
        )));
    };
    parse(found.name, found.text)
}
