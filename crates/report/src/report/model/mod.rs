//! What a report says, in words and numbers with their units, whatever it will look like: plain
//! data, built once from a run and its analysis. All text in it is clean and can be shown as it is.
//!
//! These types are the declared public shape of a report: `--format json` is what they serialise to, field by field
//! (`docs/report-json.md`), in base units with full precision, each estimate with its interval. A field that only
//! layouts need, such as an index or a shortened text, is skipped; a name that changes changes `Report`'s schema.
//!
//! Deliberately absent: layout, and any computing that decides something.

mod build;
mod compared;
mod factors;
mod failures;
mod job;
mod precision;
mod priced;
mod setting;

pub use compared::{Place, Told};
pub use factors::{Effect, FactorAnswer, Factors, Levels};
pub use failures::Failure;
pub use job::{JOB_HOLDS, Job, JobShare};
pub use precision::Precision;
pub use priced::{Amount, Priced};
pub use setting::{Ladder, Noise, Replicated, Row, Setting, Value};

use serde::{Serialize, Serializer};

use crate::experiment;
pub use crate::experiment::MetricFacts as Metric;
use crate::record::ComponentFacts;
pub use crate::record::Order;
use crate::report::predicted::Prediction;
use crate::report::summary::{Meaning, Sentence};
use crate::report::text::in_shell;
use crate::units::Nanos;
use crate::verdict::table::ExperimentTable;
use crate::verdict::{Spikes, Sum, Verdict, Warning};

/// Everything that a rendering needs.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The run's name.
    pub run: String,
    /// The version of dunnage that measured.
    #[serde(rename = "measured_with")]
    pub dunnage: String,
    /// When it began, RFC 3339, in UTC.
    pub started: String,
    /// From its first sample to its last, where nothing interrupted it.
    #[serde(skip)]
    pub lasted: Option<Nanos>,
    /// The words of the command line that began it.
    #[serde(serialize_with = "command_line")]
    pub command: Vec<String>,
    /// Labels that the person gave the run.
    #[serde(serialize_with = "crate::document::json::by_name")]
    pub tags: Vec<(String, String)>,
    /// The host's name; none where it is not known.
    pub host: Option<String>,
    /// Facts about the machine, by name.
    #[serde(serialize_with = "crate::document::json::by_name")]
    pub machine: Vec<(String, String)>,
    /// The smallest step of the clock, in seconds; no number where it is not known.
    #[serde(rename = "timer_step_s")]
    pub timer_step: f64,
    /// SHA-256 of the executable that is probe everywhere.
    #[serde(rename = "probe_sha256")]
    pub probe: String,
    /// The programs of all subjects, each once.
    pub programs: Vec<ComponentFacts>,
    /// What was found but could not be used, with the reason.
    #[serde(serialize_with = "crate::document::json::by_name")]
    pub unavailable: Vec<(String, String)>,
    /// How it was measured.
    pub rounds: Rounds,
    /// The precision that the number of rounds was computed for.
    pub precision: Option<Precision>,
    /// By experiment.
    pub experiments: Vec<Experiment>,
    /// What the findings mean for a decision, by experiment in their order.
    pub sentences: Vec<Sentence>,
    /// What decided findings mean for kinds of jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub meanings: Vec<Meaning>,
    /// What a person predicted before measuring, and what came of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Prediction>,
    /// What the subjects add to a job of the reader's, where its length is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
    /// What qualifies the verdicts.
    pub warnings: Vec<Warning>,
    /// What must not be believed.
    pub suspects: Vec<Suspicion>,
    /// What gave no sample.
    pub failures: Vec<Failure>,
    /// In how many cells carry-over was tested.
    pub carry_over_tested: usize,
    /// How many samples there are.
    pub samples: usize,
    /// Whose measurements these are, where they were imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// What others published about the same things; only where it was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<crate::reference::Reference>,
}

/// Whose measurements a run holds that dunnage did not take itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The format and the name of the file.
    pub from: String,
    /// In which order the samples were taken.
    pub order: Order,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// How often was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rounds {
    /// Complete rounds that count.
    pub complete: usize,
    /// Planned ones.
    pub planned: usize,
    /// Rounds before them.
    pub warmups: usize,
    /// The seed of every order.
    #[serde(serialize_with = "as_text")]
    pub seed: u64,
}

/// An experiment with its answers.
#[derive(Debug, Clone, Serialize)]
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// Its question.
    pub question: &'static str,
    /// How many verdicts share its level of 5 %.
    pub verdicts_in_family: usize,
    /// The error that is left to each of them.
    pub verdict_level: f64,
    /// The planned rounds that it is in, where they are not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// What it measures, the most important first.
    pub metrics: Vec<Metric>,
    /// By setting.
    pub settings: Vec<Setting>,
    /// Comparisons of different subjects, each in every setting and metric.
    pub comparisons: Vec<Told>,
    /// Comparisons of twins.
    pub twins: Vec<Told>,
    /// What the factors of a complete factorial do.
    #[serde(rename = "factorial")]
    pub factors: Option<Factors>,
    /// What settings cost, where the experiment prices them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<Priced>,
    /// Whether prices add up to the whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sums: Vec<Sum>,
    /// Tables of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiment_tables: Vec<ExperimentTable>,
    /// Samples far from the others of their cell, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spikes: Option<Spikes>,
    /// What it declares of itself.
    #[serde(skip)]
    pub about: &'static experiment::Experiment,
}

impl Experiment {
    /// Whether it is told by tables of its own alone: prices, or experiment_tables where nothing is decided.
    pub fn speaks_for_itself(&self) -> bool {
        let decides = self.metrics.iter().any(|metric| metric.decisive);
        !self.prices.is_empty() || (!decides && !self.experiment_tables.is_empty())
    }

    /// Whether no verdict could be given for want of rounds: how many there are, and how many one needs.
    pub fn too_few(&self) -> Option<(usize, usize)> {
        self.rows().find_map(|(_, _, row)| match row.found(0)?.verdict {
            Verdict::TooFew { have, need } => Some((have, need)),
            _ => None,
        })
    }

    /// The values of a setting, of which this is the whole.
    pub fn values_of(&self, setting: &str) -> &str {
        self.settings.iter().find(|one| one.text == setting).map_or("", |one| &one.values)
    }

    /// The metric with this name.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|one| one.name == name)
    }

    /// All rows with where they stand; subjects below the engines may stand on several ladders.
    pub fn rows(&self) -> impl Iterator<Item = (&Setting, &Ladder, &Row)> {
        self.settings.iter().flat_map(|setting| {
            setting
                .ladders
                .iter()
                .flat_map(move |ladder| ladder.rows.iter().map(move |row| (setting, ladder, row)))
        })
    }
}

/// A rule that found numbers that must not be believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suspicion {
    /// The name of the rule.
    pub rule: &'static str,
    /// The experiment concerned; none where the run as a whole is.
    pub experiment: Option<&'static str>,
    /// The labels of the subjects concerned.
    pub labels: Vec<String>,
    /// The metric concerned; none where all are.
    pub metric: Option<&'static str>,
    /// What was seen.
    pub evidence: String,
    /// What probably made it so.
    pub mechanism: String,
}

/// The words of a command line, as they are typed.
fn command_line<S: Serializer>(words: &[String], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&in_shell(words))
}

/// A number that may be too large for other languages' numbers.
fn as_text<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(number)
}
