//! The contents of a report, in words and numbers with their units, independent of any format: plain data, built once
//! from a run and its analysis. All text in it is clean and can be shown unchanged.
//!
//! These types are the public shape of a report: `--format json` serialises them field by field
//! (`docs/report-json.md`), in base units with full precision, each estimate with its interval. Fields that only
//! layouts need, such as an index or a shortened text, are skipped. Renaming a field changes the schema of `Report`.
//!
//! Deliberately absent: layout, and any decision.

mod build;
mod compared;
mod factors;
mod failures;
mod job;
mod precision;
mod priced;
mod setting;

pub use compared::{Place, Told};
pub use factors::{Effect, FactorAnswer, Factors};
pub use failures::Failure;
pub use job::{JOB_HOLDS, Job, JobShare};
pub use precision::Precision;
pub use priced::{Amount, Priced};
pub use setting::{Ladder, Noise, Replicated, Row, Setting, Value};

use serde::{Serialize, Serializer};

pub use crate::experiment::MetricFacts as Metric;
use crate::experiment::{self, Compared};
use crate::record::ComponentFacts;
pub use crate::record::Order;
use crate::report::predicted::Prediction;
use crate::report::summary::{Claim, Meaning};
use crate::report::text::in_shell;
use crate::units::Nanos;
use crate::verdict::table::ExperimentTable;
use crate::verdict::{Kind, Spikes, Sum, Verdict, Warning};

/// Everything that a format needs.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The run's name.
    pub run: String,
    /// The version of dunnage that measured.
    #[serde(rename = "measured_with")]
    pub dunnage: String,
    /// When it began, RFC 3339, in UTC.
    pub started: String,
    /// The time from its first sample to its last, unless it was interrupted.
    #[serde(skip)]
    pub lasted: Option<Nanos>,
    /// The words of the command line that started it.
    #[serde(serialize_with = "command_line")]
    pub command: Vec<String>,
    /// Tags that the user gave the run.
    #[serde(serialize_with = "crate::document::json::by_name")]
    pub tags: Vec<(String, String)>,
    /// The host's name, if known.
    pub host: Option<String>,
    /// Facts about the machine, by name.
    #[serde(serialize_with = "crate::document::json::by_name")]
    pub machine: Vec<(String, String)>,
    /// The smallest step of the clock, in seconds; not a number if unknown.
    #[serde(rename = "timer_step_s")]
    pub timer_step: f64,
    /// SHA-256 of the executable, which is the probe everywhere.
    #[serde(rename = "probe_sha256")]
    pub probe: String,
    /// The programs of all subjects, each once.
    pub programs: Vec<ComponentFacts>,
    /// Subjects that were found but cannot be used, with the reason.
    #[serde(serialize_with = "crate::document::json::by_name")]
    pub unavailable: Vec<(String, String)>,
    /// The rounds.
    pub rounds: Rounds,
    /// The precision that the number of rounds was computed for.
    pub precision: Option<Precision>,
    /// By experiment.
    pub experiments: Vec<Experiment>,
    /// What the findings mean for a decision, by experiment in their order.
    pub claims: Vec<Claim>,
    /// What decided findings mean for kinds of jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub meanings: Vec<Meaning>,
    /// Predictions made before measuring, with their outcomes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Prediction>,
    /// What the subjects add to a job, if its length is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
    /// What qualifies the verdicts.
    pub warnings: Vec<Warning>,
    /// Numbers that must not be believed.
    pub suspects: Vec<Suspicion>,
    /// Cells without samples.
    pub failures: Vec<Failure>,
    /// The number of cells in which carry-over was tested.
    pub carry_over_tested: usize,
    /// The number of samples.
    pub samples: usize,
    /// Where the measurements were imported from, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// The number of the claim that alone is shown, from 1, if one is.
    #[serde(skip)]
    pub opened: Option<usize>,
    /// Published numbers for the same quantities, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<crate::reference::Reference>,
}

/// The origin of measurements that dunnage did not take itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The format and the name of the file.
    pub from: String,
    /// The order in which the samples were taken.
    pub order: Order,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// The rounds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rounds {
    /// Complete rounds, without warm-up.
    pub complete: usize,
    /// Planned rounds.
    pub planned: usize,
    /// Warm-up rounds before them.
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
    /// The number of questions that are asked first and share an error of 5 %.
    pub first_verdicts: usize,
    /// The error of each of them.
    pub first_level: f64,
    /// The number of all other verdicts, which share an error of 5 % too.
    pub verdicts_in_family: usize,
    /// The error of each of them.
    pub verdict_level: f64,
    /// The planned rounds in which it runs, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// Its metrics, the most important first.
    pub metrics: Vec<Metric>,
    /// By setting.
    pub settings: Vec<Setting>,
    /// Comparisons of different subjects, each in every setting and metric.
    pub comparisons: Vec<Told>,
    /// Comparisons of twins.
    pub twins: Vec<Told>,
    /// The effects of the factors of a complete factorial.
    #[serde(rename = "factorial")]
    pub factors: Option<Factors>,
    /// The prices of settings, if the experiment has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<Priced>,
    /// Whether prices add up to the whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sums: Vec<Sum>,
    /// Tables of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiment_tables: Vec<ExperimentTable>,
    /// Samples far from the others of their cell, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spikes: Option<Spikes>,
    /// Its declaration.
    #[serde(skip)]
    pub about: &'static experiment::Experiment,
}

impl Experiment {
    /// Whether its own tables are all it has: prices, or tables without a verdict on any layer.
    pub fn speaks_for_itself(&self) -> bool {
        let is_of_layers = self.about.decides() && self.about.compares == Compared::Layers;
        !self.prices.is_empty() || (!is_of_layers && !self.experiment_tables.is_empty())
    }

    /// Whether anything is decided.
    pub fn has_verdicts(&self) -> bool {
        self.first_verdicts + self.verdicts_in_family > 0
    }

    /// If there are too few rounds for any verdict: the rounds it has, and the rounds it needs.
    pub fn too_few(&self) -> Option<(usize, usize)> {
        let is_decided = |kind: Kind| !matches!(kind, Kind::TooFew | Kind::NoData | Kind::Context);
        if self.rows().any(|(_, _, row)| row.found(0).is_some_and(|found| is_decided(found.kind())))
            || self.comparisons.iter().any(|one| is_decided(one.kind))
        {
            return None;
        }
        self.rows().find_map(|(_, _, row)| match row.found(0)?.verdict {
            Verdict::TooFew { have, need } => Some((have, need)),
            _ => None,
        })
    }

    /// The values of the setting with this text.
    pub fn values_of(&self, setting: &str) -> &str {
        self.settings.iter().find(|one| one.text == setting).map_or("", |one| &one.values)
    }

    /// The metric with this name.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|one| one.name == name)
    }

    /// All rows with their settings and ladders; subjects below the engines may be on several ladders.
    pub fn rows(&self) -> impl Iterator<Item = (&Setting, &Ladder, &Row)> {
        self.settings.iter().flat_map(|setting| {
            setting
                .ladders
                .iter()
                .flat_map(move |ladder| ladder.rows.iter().map(move |row| (setting, ladder, row)))
        })
    }
}

/// A rule that marks numbers as suspect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suspicion {
    /// The name of the rule.
    pub rule: &'static str,
    /// The experiment concerned; none if it is the whole run.
    pub experiment: Option<&'static str>,
    /// The labels of the subjects concerned.
    pub labels: Vec<String>,
    /// The metric concerned; none if all are.
    pub metric: Option<&'static str>,
    /// The evidence.
    pub evidence: String,
    /// The probable cause.
    pub mechanism: String,
}

/// The words of a command line, as the user would type them.
fn command_line<S: Serializer>(words: &[String], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&in_shell(words))
}

/// A number that may be too large for the numbers of other languages.
fn as_text<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(number)
}
