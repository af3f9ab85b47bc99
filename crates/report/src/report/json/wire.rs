//! The wire format of the analysis, field by field as `docs/report-json.md` describes it. A change
//! that breaks readers changes the name of the schema.

use serde::Serialize;

use crate::report::model::Reference;
use crate::stats::Estimate;

#[derive(Serialize)]
pub(super) struct File<'a> {
    pub run: &'a str,
    pub measured_with: &'a str,
    pub started: &'a str,
    pub command: &'a str,
    pub tags: Facts<'a>,
    pub host: &'a str,
    pub machine: Facts<'a>,
    pub timer_step_s: f64,
    pub probe_sha256: &'a str,
    pub programs: Vec<ProgramFile<'a>>,
    pub unavailable: Facts<'a>,
    pub rounds: RoundsFile,
    pub precision: Option<PrecisionFile<'a>>,
    pub samples: usize,
    pub carry_over_tested: usize,
    pub sentences: Vec<SentenceFile<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<PredictionFile<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobFile<'a>>,
    pub experiments: Vec<ExperimentFile<'a>>,
    pub failures: Vec<FailureFile<'a>>,
    pub warnings: Vec<WarningFile<'a>>,
    pub suspects: Vec<SuspectFile<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedFile<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub references: &'a [Reference],
}

pub(super) type Facts<'a> = std::collections::BTreeMap<&'a str, &'a str>;

#[derive(Serialize)]
pub(super) struct ImportedFile<'a> {
    pub from: &'a str,
    pub order: crate::report::model::Order,
    pub notes: &'a [String],
}

#[derive(Serialize)]
pub(super) struct ProgramFile<'a> {
    pub role: &'a str,
    pub path: &'a str,
    pub version: &'a str,
    pub sha256: &'a str,
}

#[derive(Serialize)]
pub(super) struct RoundsFile {
    pub complete: usize,
    pub planned: usize,
    pub warmups: usize,
    pub seed: String,
}

#[derive(Serialize)]
pub(super) struct PrecisionFile<'a> {
    pub asked: f64,
    pub pilot_rounds: usize,
    pub predicted: Option<f64>,
    pub capped: bool,
    pub reached: Option<f64>,
    pub sentence: &'a str,
}

#[derive(Serialize)]
pub(super) struct JobFile<'a> {
    pub length_s: f64,
    pub shares: Vec<JobShareFile<'a>>,
}

#[derive(Serialize)]
pub(super) struct JobShareFile<'a> {
    pub experiment: &'a str,
    pub occasion: &'a str,
    pub setting: &'a str,
    pub label: &'a str,
    pub against: &'a str,
    pub share: Estimate,
    pub verdict: &'static str,
}

#[derive(Serialize)]
pub(super) struct PredictionFile<'a> {
    pub prediction: &'a str,
    pub outcome: &'static str,
    pub links: Vec<LinkFile<'a>>,
}

#[derive(Serialize)]
pub(super) struct LinkFile<'a> {
    pub link: &'a str,
    pub setting: Option<&'a str>,
    pub outcome: &'static str,
    pub verdict: Option<&'static str>,
    pub sentence: &'a str,
}

#[derive(Serialize)]
pub(super) struct SentenceFile<'a> {
    pub experiment: &'a str,
    pub topic: &'static str,
    pub sentence: &'a str,
    pub rests_on: Vec<GroundFile<'a>>,
}

#[derive(Serialize)]
pub(super) struct GroundFile<'a> {
    pub setting: &'a str,
    pub metric: &'static str,
    pub subject: &'a str,
    pub against: &'a str,
}

#[derive(Serialize)]
pub(super) struct ExperimentFile<'a> {
    pub name: &'a str,
    pub question: &'a str,
    pub verdicts_in_family: usize,
    pub verdict_level: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    pub metrics: Vec<MetricFile<'a>>,
    pub cells: Vec<CellFile<'a>>,
    pub comparisons: Vec<ComparisonFile<'a>>,
    pub noise_floors: Vec<NoiseFile<'a>>,
    pub factorial: Option<FactorialFile<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<PriceFile<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub price_sums: Vec<SumFile<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exhibits: Vec<ExhibitFile<'a>>,
}

#[derive(Serialize)]
pub(super) struct ExhibitFile<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub columns: Vec<ColumnFile<'a>>,
    pub rows: Vec<Vec<ItemFile<'a>>>,
    pub notes: &'a [String],
    pub summary: &'a [String],
}

#[derive(Serialize)]
pub(super) struct ColumnFile<'a> {
    pub name: &'a str,
    pub unit: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ItemFile<'a> {
    Text(&'a str),
    Value(f64),
    Estimate(Estimate),
    Nothing { nothing: &'a str },
}

#[derive(Serialize)]
pub(super) struct FactorialFile<'a> {
    pub question: &'a str,
    pub factors: Vec<FactorFile<'a>>,
    pub answers: Vec<AnswerFile<'a>>,
    pub effects: Vec<EffectFile<'a>>,
}

#[derive(Serialize)]
pub(super) struct FactorFile<'a> {
    pub name: &'a str,
    pub levels: &'a [String; 2],
}

#[derive(Serialize)]
pub(super) struct AnswerFile<'a> {
    pub setting: &'a str,
    pub metric: &'a str,
    pub text: &'a str,
}

#[derive(Serialize)]
pub(super) struct EffectFile<'a> {
    pub setting: &'a str,
    pub metric: &'a str,
    pub unit: &'a str,
    pub factors: Vec<&'a str>,
    pub verdict: &'static str,
    pub slower_level: Option<&'a str>,
    pub difference: Option<Estimate>,
    pub ratio: Option<Estimate>,
    pub matters: Option<f64>,
    pub smallest_visible: Option<f64>,
    pub new_run: Option<NewRunFile>,
    pub rounds_needed: Option<usize>,
    pub suspect: Option<usize>,
    pub sentence: &'a str,
}

#[derive(Serialize)]
pub(super) struct PriceFile<'a> {
    pub label: &'a str,
    pub piece: &'a str,
    pub way: &'a str,
    pub prestate: &'a str,
    pub setting: &'a str,
    pub reference: Option<&'a str>,
    pub metric: &'a str,
    pub unit: &'a str,
    pub price: Estimate,
    pub below_zero: bool,
    pub suspect: bool,
}

#[derive(Serialize)]
pub(super) struct SumFile<'a> {
    pub label: &'a str,
    pub prestate: &'a str,
    pub unit: &'a str,
    pub rungs: f64,
    pub last_rung: Estimate,
    pub measured_whole: Option<Estimate>,
}

#[derive(Serialize)]
pub(super) struct MetricFile<'a> {
    pub name: &'a str,
    pub unit: &'a str,
    pub better: &'a str,
    pub meaning: &'a str,
    pub decisive: bool,
    pub margin_absolute: f64,
    pub margin_relative: f64,
}

#[derive(Serialize)]
pub(super) struct CellFile<'a> {
    pub setting: &'a str,
    pub label: &'a str,
    pub subject: &'a str,
    pub layer: &'a str,
    pub ladders: Vec<&'a str>,
    pub runtime: Option<&'a str>,
    pub baseline: bool,
    pub lost_rounds: usize,
    pub floor_share: Option<Estimate>,
    pub values: Vec<ValueFile<'a>>,
}

#[derive(Serialize)]
pub(super) struct ValueFile<'a> {
    pub metric: &'a str,
    pub unit: &'a str,
    pub median: Estimate,
    pub smallest: f64,
    pub lower_quartile: f64,
    pub upper_quartile: f64,
    pub largest: f64,
}

#[derive(Serialize)]
pub(super) struct ComparisonFile<'a> {
    pub setting: &'a str,
    pub metric: &'a str,
    pub unit: &'a str,
    pub subject: &'a str,
    pub against: &'a str,
    pub relation: &'a str,
    pub key: Option<&'a str>,
    pub verdict: &'static str,
    pub difference: Option<Estimate>,
    pub ratio: Option<Estimate>,
    pub matters: Option<f64>,
    pub smallest_visible: Option<f64>,
    pub new_run: Option<NewRunFile>,
    pub rounds_needed: Option<usize>,
    pub suspect: Option<usize>,
    pub hidden_by_noise_floor: Option<f64>,
    pub sentence: String,
}

#[derive(Serialize)]
pub(super) struct NewRunFile {
    pub rounds: usize,
    pub goal: &'static str,
}

#[derive(Serialize)]
pub(super) struct NoiseFile<'a> {
    pub setting: &'a str,
    pub metric: &'a str,
    pub unit: &'a str,
    pub layer: &'a str,
    pub label: &'a str,
    pub floor: f64,
    pub floor_share: Option<f64>,
    pub holds_zero: bool,
}

#[derive(Serialize)]
pub(super) struct FailureFile<'a> {
    pub experiment: &'a str,
    pub label: &'a str,
    pub class: &'a str,
    pub settings: &'a [String],
    pub times: usize,
    pub planned: usize,
    pub reason: &'a str,
}

#[derive(Serialize)]
pub(super) struct WarningFile<'a> {
    pub kind: &'a str,
    pub labels: &'a [String],
    pub seen: &'a str,
    pub remedy: &'a str,
}

#[derive(Serialize)]
pub(super) struct SuspectFile<'a> {
    pub rule: &'a str,
    pub labels: &'a [String],
    pub metric: Option<&'a str>,
    pub evidence: &'a str,
    pub mechanism: &'a str,
}
