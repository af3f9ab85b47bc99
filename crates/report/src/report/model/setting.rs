//! The results in one setting: subjects from the lowest layer up, each with its values and findings.

use dunnage_analysis::group::in_groups;
use serde::{Serialize, Serializer};

use super::compared::Place;
use crate::stats::{Estimate, NoiseFloor, TimeSeries};
use crate::units::Unit;
use crate::verdict::{Finding, MetricSummary, Shape, Verdict};

/// All subjects in one setting of an experiment.
#[derive(Debug, Clone, Serialize)]
pub struct Setting {
    /// The setting as `key=value` joined by `;`, empty when there is none.
    #[serde(rename = "setting")]
    pub text: String,
    /// The values of the setting only.
    #[serde(skip)]
    pub values: String,
    /// From the lowest layer to the highest, and within a layer from fast to slow.
    pub ladders: Vec<Ladder>,
    /// The noise floors, from twins.
    #[serde(rename = "noise_floors")]
    pub noise: Vec<Noise>,
}

impl Setting {
    /// All subjects, each once, in the order of the ladders.
    pub fn subjects(&self) -> Vec<&Row> {
        let rows = self.ladders.iter().flat_map(|ladder| &ladder.rows);
        in_groups(rows, |row| &row.label).into_iter().map(|(_, all)| all[0]).collect()
    }
}

/// Subjects from the lowest layer up, all as installed or all equalised.
#[derive(Debug, Clone, Serialize)]
pub struct Ladder {
    /// `as installed` or `equalised`.
    pub name: &'static str,
    /// Whether the engines are equalised.
    #[serde(skip)]
    pub equalised: bool,
    /// The keys that all its engines share, as `key=value` joined by `, `.
    pub shared_keys: String,
    /// The label of the baseline of the multiples.
    pub baseline: String,
    /// The subjects.
    #[serde(rename = "cells")]
    pub rows: Vec<Row>,
}

/// One subject in one setting.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Its label.
    pub label: String,
    /// Its label without the keys in the ladder's title.
    #[serde(skip)]
    pub short: String,
    /// Its canonical specification.
    pub subject: String,
    /// Its layer.
    pub layer: &'static str,
    /// Whether it is the baseline.
    #[serde(rename = "baseline")]
    pub is_baseline: bool,
    /// The label of the subject that it is a variant of, with another value of one key.
    pub variant_of: Option<String>,
    /// Which defaults of other engines it does without.
    #[serde(skip)]
    pub lacks: Vec<&'static str>,
    /// The runtime that does the work.
    pub runtime: Option<String>,
    /// By metric; none without any value.
    #[serde(serialize_with = "those_there")]
    pub values: Vec<Option<Value>>,
    /// By metric, compared with the baseline; none for the baseline itself.
    #[serde(skip)]
    pub against_baseline: Vec<Option<Finding>>,
    /// The share of the first metric that the floor alone takes.
    pub floor_share: Option<Estimate>,
    /// The label of that floor, and the keys in which it differs from the subject.
    pub floor: Option<(String, Vec<&'static str>)>,
    /// The values that replicate within the first counted sample, by series; none without such values.
    #[serde(skip)]
    pub replicates: Vec<Option<Replicated>>,
    /// Counted rounds without a sample.
    #[serde(rename = "lost_rounds")]
    pub lost: usize,
}

impl Row {
    /// The values of a metric, if there are any.
    pub fn value(&self, metric: usize) -> Option<&Value> {
        self.values.get(metric)?.as_ref()
    }

    /// The finding in a metric against the baseline.
    pub fn found(&self, metric: usize) -> Option<&Finding> {
        self.against_baseline.get(metric)?.as_ref()
    }

    /// Whether its values of a metric are suspect.
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
    /// Its median and other numbers of its sample.
    #[serde(flatten)]
    pub summary: MetricSummary,
    /// Its distribution, and its course over complete rounds.
    #[serde(flatten)]
    pub shape: Shape,
}

/// Values that replicate within one sample.
#[derive(Debug, Clone)]
pub struct Replicated {
    /// Their number.
    pub count: usize,
    /// Order statistics at equal steps, from the smallest to the largest value.
    pub steps: Vec<f64>,
    /// The values in their order.
    pub time_series: TimeSeries,
    /// The seconds between two of them; none if they have no order.
    pub every: Option<f64>,
}

/// The noise floor of a layer.
#[derive(Debug, Clone, Serialize)]
pub struct Noise {
    /// The layer.
    pub layer: &'static str,
    /// The subject that was measured twice.
    pub label: String,
    /// Its setting and metric.
    #[serde(flatten)]
    pub place: Place,
    /// What they show.
    #[serde(flatten)]
    pub floor: NoiseFloor,
}

/// The values that exist; each names its metric.
fn those_there<S: Serializer>(all: &[Option<Value>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().flatten())
}
