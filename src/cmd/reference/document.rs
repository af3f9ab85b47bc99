//! Published results as one JSON object, for other programs. Described in docs/reference-json.md.

use serde::Serialize;

use crate::reference::counterpart::{self, Counterpart};
use crate::reference::{self, Number, Source, check};
use crate::report::json::references::{self, CautionFile, DoubtFile};
use crate::report::model::Doubt;

/// The name of the format with its version.
const SCHEMA: &str = "dunnage-reference/1";

#[derive(Serialize)]
struct File<'a> {
    schema: &'static str,
    provenance: &'a str,
    sources: Vec<SourceFile<'a>>,
}

#[derive(Serialize)]
struct SourceFile<'a> {
    name: &'a str,
    title: &'a str,
    url: Option<&'a str>,
    revision: Option<&'a str>,
    licence: &'a str,
    language: &'a str,
    hardware: &'a str,
    kernel: &'a str,
    engines: &'a str,
    experiments: &'a [String],
    method: &'a str,
    cautions: Vec<CautionFile<'a>>,
    suspects: Vec<DoubtFile<'a>>,
    numbers: Vec<NumberFile<'a>>,
}

#[derive(Serialize)]
struct NumberFile<'a> {
    experiment: &'a str,
    subject: &'a str,
    conditions: String,
    metric: &'a str,
    unit: &'a str,
    statistic: &'a str,
    repetition: Option<u32>,
    value: f64,
    printed: &'a str,
    interval: Option<[f64; 2]>,
    repetitions: Option<u32>,
    note: &'a str,
    counterpart: CounterpartFile,
}

#[derive(Serialize, Default)]
struct CounterpartFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantity: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conditions: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    differs: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    none_yet: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    none: Option<&'static str>,
}

/// The document.
pub fn render(chosen: Option<&'static Source>) -> String {
    let sources: Vec<(&Source, Vec<Doubt>)> =
        super::those(chosen).map(|source| (source, check::doubts(source))).collect();
    let file = File {
        schema: SCHEMA,
        provenance: reference::provenance(),
        sources: sources.iter().map(|(source, doubts)| source_file(source, doubts)).collect(),
    };
    let mut text = serde_json::to_string_pretty(&file).expect("plain data with text keys has a JSON form");
    text.push('\n');
    text
}

fn source_file<'a>(source: &'a Source, doubts: &'a [Doubt]) -> SourceFile<'a> {
    SourceFile {
        name: &source.name,
        title: &source.title,
        url: source.url.as_deref(),
        revision: source.revision.as_deref(),
        licence: &source.licence,
        language: &source.language,
        hardware: &source.hardware,
        kernel: &source.kernel,
        engines: &source.engines,
        experiments: &source.experiments,
        method: &source.method,
        cautions: source.cautions.iter().map(references::caution).collect(),
        suspects: doubts.iter().map(references::doubt).collect(),
        numbers: source.numbers.iter().map(number_file).collect(),
    }
}

fn number_file(one: &Number) -> NumberFile<'_> {
    NumberFile {
        experiment: &one.experiment,
        subject: &one.subject,
        conditions: one.conditions_in_words(),
        metric: &one.metric,
        unit: &one.unit,
        statistic: one.statistic(),
        repetition: one.repetition,
        value: one.value,
        printed: &one.printed,
        interval: one.interval,
        repetitions: one.repetitions,
        note: &one.note,
        counterpart: counterpart_file(one),
    }
}

fn counterpart_file(one: &Number) -> CounterpartFile {
    match counterpart::of(one) {
        Counterpart::Metric(same) => CounterpartFile {
            experiment: Some(same.experiment),
            metric: Some(same.metric),
            quantity: Some(references::quantity(same.quantity)),
            conditions: Some(same.conditions),
            differs: Some(same.differs),
            ..CounterpartFile::default()
        },
        Counterpart::NoneYet(name) => CounterpartFile { none_yet: Some(name), ..CounterpartFile::default() },
        Counterpart::None(why) => CounterpartFile { none: Some(why), ..CounterpartFile::default() },
    }
}
