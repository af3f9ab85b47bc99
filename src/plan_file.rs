//! Plan files: a command line of `plan`, `check` or `run` as TOML, to be kept, shared and repeated.
//! Each value keeps the place where it was written, so that whoever checks it can say where it is
//! wrong. What keys there are stands here and in `docs/plan-file.md`; that experiments, subjects and
//! settings exist is checked where the command line is (`cmd/request.rs`). Deliberately absent:
//! anything that was found on a machine or measured.

mod read;
pub mod shipped;
mod write;

pub use read::parse;
pub use write::{settings, write};

use anyhow::{Context, Result};

use crate::exit::usage;
use crate::report::text::{meant, quoted};

/// A word that a person wrote, on the command line or in a plan file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// The word.
    pub text: String,
    /// Where it stands in a plan file, such as "`x.toml`, line 3"; none on the command line.
    pub place: Option<String>,
}

impl Typed {
    /// A word of the command line.
    pub fn on_command_line(text: &str) -> Typed {
        Typed { text: text.to_owned(), place: None }
    }

    /// The usage error that this word makes, with its place.
    pub fn wrong(&self, why: impl std::fmt::Display) -> anyhow::Error {
        let text = match &self.place {
            Some(place) => format!("{place}: {why}"),
            None => why.to_string(),
        };
        usage(text)
    }
}

/// How a plan file says how long to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Length {
    /// So many rounds.
    Rounds(u32),
    /// What a pilot finds necessary for this precision, in percent.
    Precision(Typed),
    /// What fits into a minute.
    Quick,
}

/// Whether experiments may vary keys of the subjects by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Variants {
    /// They do, where they have something to vary.
    #[default]
    OfExperiments,
    /// There are no subjects but those that are asked for.
    None,
}

/// The smallest difference of a metric that matters, as a person sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenMargin {
    /// The experiment's name.
    pub experiment: Typed,
    /// The metric's name.
    pub metric: Typed,
    /// In the unit of the metric; nothing counts as zero.
    pub absolute: Option<Typed>,
    /// In percent of the median of what is compared with; nothing counts as zero.
    pub relative: Option<Typed>,
}

/// What a plan file says; what it leaves out is as on a command line without it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanFile {
    /// What it is for, in a line.
    pub about: Option<String>,
    /// The experiments.
    pub experiments: Vec<Typed>,
    /// The subjects, in the grammar of `-s`.
    pub subjects: Vec<Typed>,
    /// The factors of which the subjects are a complete factorial.
    pub factors: Vec<Typed>,
    /// Settings, each as `key=value`.
    pub settings: Vec<Typed>,
    /// How long.
    pub length: Option<Length>,
    /// The seed.
    pub seed: Option<u64>,
    /// Seconds after which a launch counts as hung.
    pub timeout: Option<u32>,
    /// Labels of the run, each as `key=value`.
    pub tags: Vec<Typed>,
    /// Margins.
    pub margins: Vec<GivenMargin>,
    /// Whether there are variants.
    pub variants: Variants,
    /// What is predicted.
    pub predictions: Vec<Typed>,
}

/// Reads the plan with this name: a file, if it looks like a path, else one that is shipped.
pub fn open(name: &str) -> Result<PlanFile> {
    if name.contains('/') || name.ends_with(".toml") {
        let text =
            std::fs::read_to_string(name).with_context(|| format!("cannot read the plan file `{name}`"));
        return parse(name, &text.map_err(|error| usage(format!("{error:#}")))?);
    }
    let Some(found) = shipped::find(name) else {
        let names = || shipped::ALL.iter().map(|one| one.name);
        let (meant, valid) = (meant(name, names()), quoted(names()));
        return Err(usage(format!(
            "there is no plan `{name}`\n\nhint: {meant}shipped plans are {valid}; a file is named by a path with a `/`, or ends in `.toml`"
        )));
    };
    parse(found.name, found.text)
}
