//! What was measured in one setting: subjects as steps above each other, each with its values and what was found of it.

use serde::{Serialize, Serializer};

use super::compared::Place;
use crate::stats::{Estimate, TimeSeries};
use crate::units::Unit;
use crate::verdict::{Finding, Verdict};

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
    /// Which floor that is, by its label, and the keys in which it is not like the subject.
    pub floor: Option<(String, Vec<&'static str>)>,
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
    /// The arithmetic mean, by which nothing is decided.
    pub mean: f64,
    /// The standard deviation; no number of a single value.
    pub deviation: f64,
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

/// Without what is missing: each names its metric.
fn those_there<S: Serializer>(all: &[Option<Value>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().flatten())
}
