//! What a report says, in words and numbers with their units, whatever it will look like: plain
//! data, built once from a run and its analysis. All text in it is clean and can be shown as it is.
//!
//! These types are the declared public shape of a report: `--format json` is what they serialise to, field by field
//! (`docs/report-json.md`), in base units with full precision, each estimate with its interval. A field that only
//! layouts need, such as an index or a shortened text, is skipped; a name that changes changes `Report`'s schema.
//!
//! Deliberately absent: layout, and any computing that decides something.

// long: the whole model, which is plain data.

mod build;
mod compared;
mod factors;
mod failures;
mod job;
mod precision;
mod priced;

pub use job::{JOB_HOLDS, Job, JobShare};
pub use priced::{Amount, Priced};

use serde::{Serialize, Serializer};

use crate::experiment;
pub use crate::experiment::MetricFacts as Metric;
use crate::plan;
use crate::record::ComponentFacts;
pub use crate::record::Order;
use crate::report::predicted::Prediction;
use crate::report::summary::Sentence;
use crate::stats::{Estimate, TimeSeries};
use crate::units::Unit;
use crate::verdict::table::ExperimentTable;
use crate::verdict::{Finding, Kind, Sum, Verdict, Warning};

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
    /// The command line that began it.
    pub command: String,
    /// Labels that the person gave the run.
    #[serde(serialize_with = "crate::document::json::by_name")]
    pub tags: Vec<(String, String)>,
    /// The host's name.
    pub host: String,
    /// Facts about the machine, by name.
    #[serde(serialize_with = "crate::document::json::by_name")]
    pub machine: Vec<(String, String)>,
    /// The smallest step of the clock, in seconds.
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

/// A precision that was asked for, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Precision {
    /// What was asked for, and what the pilot foretold.
    #[serde(flatten)]
    pub foretold: plan::Precision,
    /// What the widest comparison reached; none if there is no interval.
    pub reached: Option<f64>,
    /// All of it in words.
    pub sentence: String,
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
}

/// What the factors of a complete factorial do.
#[derive(Debug, Clone, Serialize)]
pub struct Factors {
    /// Which factor it is, as a person would ask.
    pub question: String,
    /// The factors with their levels.
    pub factors: Vec<Levels>,
    /// The answer in each setting and decisive metric.
    pub answers: Vec<FactorAnswer>,
    /// Every effect, by setting and metric, the largest first.
    pub effects: Vec<Effect>,
}

/// A factor.
#[derive(Debug, Clone, Serialize)]
pub struct Levels {
    /// Its name.
    pub name: String,
    /// Its two levels; an effect is the second less the first.
    pub levels: [String; 2],
}

/// Which factor it is.
#[derive(Debug, Clone, Serialize)]
pub struct FactorAnswer {
    /// Where it was seen.
    #[serde(flatten)]
    pub place: Place,
    /// In plain words.
    pub text: String,
}

/// A main effect or an interaction.
#[derive(Debug, Clone, Serialize)]
pub struct Effect {
    /// Where it was seen.
    #[serde(flatten)]
    pub place: Place,
    /// The names of the factors concerned; several are an interaction.
    pub factors: Vec<String>,
    /// Median of the contrasts: second level minus first.
    pub difference: Option<Estimate>,
    /// The same of the logarithms, exponentiated.
    pub ratio: Option<Estimate>,
    /// The smallest effect that matters, in the unit of the metric.
    pub matters: Option<f64>,
    /// What follows.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The same in a word, by the metric's unit and direction.
    #[serde(skip)]
    pub kind: Kind,
    /// The same, told of the level that is named: `interaction` of several factors that do not simply add up.
    #[serde(rename = "verdict")]
    pub told: &'static str,
    /// Of a main effect that is decided, the level that is slower, worse, or has more.
    #[serde(rename = "slower_level")]
    pub slower: Option<String>,
    /// The same in words.
    pub sentence: String,
}

impl Effect {
    /// What was decided of it in a few words: which level is slower, or that factors interact.
    pub fn word(&self) -> String {
        match (&self.slower, &self.verdict) {
            (Some(level), _) => format!("{level} {}", self.told),
            (None, Verdict::More | Verdict::Less) => "interact".into(),
            (None, _) => self.kind.word().into(),
        }
    }

    /// By how much it moves a single combination, twice.
    fn size(&self) -> f64 {
        let difference = self.difference.map_or(0.0, |difference| difference.value.abs());
        difference / f64::from(1u32 << (self.factors.len() - 1))
    }
}

/// All subjects in one setting of an experiment.
#[derive(Debug, Clone, Serialize)]
pub struct Setting {
    /// The setting as `key=value` joined by `;`, empty when there is none.
    #[serde(rename = "setting")]
    pub text: String,
    /// The same, only the values.
    #[serde(skip)]
    pub values: String,
    /// From the lowest layer to the highest, and within a layer from quick to slow.
    pub ladders: Vec<Ladder>,
    /// What twins show.
    #[serde(rename = "noise_floors")]
    pub noise: Vec<Noise>,
}

/// Subjects that can be seen as steps above each other.
#[derive(Debug, Clone, Serialize)]
pub struct Ladder {
    /// `as installed` or `equalised`.
    pub name: &'static str,
    /// Whether differences between engines were taken away.
    #[serde(skip)]
    pub equalised: bool,
    /// The keys that all its engines share, as `key=value` joined by `, `.
    pub shared_keys: String,
    /// The label of what the multiples are of.
    pub baseline: String,
    /// The rungs.
    #[serde(rename = "cells")]
    pub rows: Vec<Row>,
}

/// One subject in one setting.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Its label.
    pub label: String,
    /// Its label without the keys that the ladder's title tells.
    #[serde(skip)]
    pub short: String,
    /// Its canonical specification.
    pub subject: String,
    /// Its layer.
    pub layer: &'static str,
    /// Whether it is what all others are compared with.
    #[serde(rename = "baseline")]
    pub is_baseline: bool,
    /// The label of the subject of which the experiment made it, by another value of one key.
    pub variant_of: Option<String>,
    /// The runtime that does the work.
    pub runtime: Option<String>,
    /// By metric; none where there is no value at all.
    #[serde(serialize_with = "those_there")]
    pub values: Vec<Option<Value>>,
    /// By metric, compared with the baseline; none for the baseline itself.
    #[serde(skip)]
    pub against_baseline: Vec<Option<Finding>>,
    /// Which share of the first metric the floor alone would take.
    pub floor_share: Option<Estimate>,
    /// By what replicates within a sample, of the first sample that counts; none where it has no such values.
    #[serde(skip)]
    pub replicates: Vec<Option<Replicated>>,
    /// Rounds that count without a sample.
    #[serde(rename = "lost_rounds")]
    pub lost: usize,
}

impl Row {
    /// The values of a metric, where there are any.
    pub fn value(&self, metric: usize) -> Option<&Value> {
        self.values.get(metric)?.as_ref()
    }

    /// What was found in a metric against the baseline.
    pub fn found(&self, metric: usize) -> Option<&Finding> {
        self.against_baseline.get(metric)?.as_ref()
    }

    /// Whether its values of a metric must not be believed.
    pub fn is_suspect(&self, metric: usize) -> bool {
        self.found(metric).is_some_and(|finding| matches!(finding.verdict, Verdict::Suspect(_)))
    }
}

/// The values of a metric in one cell.
#[derive(Debug, Clone, Serialize)]
pub struct Value {
    /// The metric's name.
    pub metric: &'static str,
    /// The base unit of all numbers here.
    pub unit: Unit,
    /// Median with its interval at 95 %.
    pub median: Estimate,
    /// The smallest and the largest value.
    pub range: (f64, f64),
    /// The quartiles.
    pub quartiles: (f64, f64),
    /// The single values, where they are too few for an interval.
    #[serde(skip)]
    pub points: Vec<f64>,
    /// Order statistics at equal steps, from the smallest to the largest value.
    #[serde(skip)]
    pub steps: Vec<f64>,
    /// The values over complete rounds.
    #[serde(skip)]
    pub time_series: TimeSeries,
}

/// Values that replicate within one sample.
#[derive(Debug, Clone)]
pub struct Replicated {
    /// How many there are.
    pub count: usize,
    /// Order statistics at equal steps, from the smallest to the largest value.
    pub steps: Vec<f64>,
    /// The values in their order.
    pub time_series: TimeSeries,
    /// How many seconds lie between two of them; none where they are in no order.
    pub every: Option<f64>,
}

/// Where a number belongs, in names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The setting as `key=value` joined by `;`, empty when there is none.
    pub setting: String,
    /// The metric's name.
    pub metric: &'static str,
    /// The base unit of its values.
    pub unit: Unit,
}

/// What one comparison says about one metric in one setting, and in words.
#[derive(Debug, Clone, Serialize)]
pub struct Told {
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
    /// Its verdict in a word, by the metric's unit and direction.
    #[serde(rename = "verdict")]
    pub kind: Kind,
    /// How a sentence about the two subjects begins. It names a cause only where one thing differs.
    pub phrase: String,
    /// What is said of them in a sentence that begins so.
    pub predicate: String,
}

/// The noise floor of a layer.
#[derive(Debug, Clone, Serialize)]
pub struct Noise {
    /// The layer.
    pub layer: &'static str,
    /// The subject that was measured twice.
    pub label: String,
    /// Where it was seen.
    #[serde(flatten)]
    pub place: Place,
    /// In the unit of the metric.
    #[serde(rename = "floor")]
    pub units: f64,
    /// As a share of the median.
    #[serde(rename = "floor_share")]
    pub share: Option<f64>,
    /// Whether zero lies in the interval of the twins' difference.
    pub holds_zero: bool,
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

/// Cells that gave no sample, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The experiment.
    pub experiment: &'static str,
    /// The subject's label.
    pub label: String,
    /// `skipped` or the class of the failure.
    pub class: &'static str,
    /// The settings in which it happened.
    pub settings: Vec<String>,
    /// How often.
    pub times: usize,
    /// Of how many planned samples in those settings.
    pub planned: usize,
    /// The first reason, with the engine's own words.
    pub reason: String,
}

/// A number that may be too large for other languages' numbers.
fn as_text<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(number)
}

/// Without what is missing: each names its metric.
fn those_there<S: Serializer>(all: &[Option<Value>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().flatten())
}

impl Setting {
    /// All subjects, each once, in the order of the ladders.
    pub fn subjects(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = Vec::new();
        for row in self.ladders.iter().flat_map(|ladder| &ladder.rows) {
            if rows.iter().all(|known| known.label != row.label) {
                rows.push(row);
            }
        }
        rows
    }
}

impl Experiment {
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
