//! What others published, for other programs: their numbers and ours side by side, never computed together.

use serde::Serialize;

use crate::report::model::{Beside, BesideRow, Caution, Doubt, Quantity, Reference, Standing};
use crate::stats::Estimate;

#[derive(Serialize)]
pub(super) struct ReferenceFile<'a> {
    source: &'a str,
    title: &'a str,
    url: Option<&'a str>,
    licence: &'a str,
    hardware: &'a str,
    kernel: &'a str,
    engines: &'a str,
    method: &'a str,
    cautions: Vec<CautionFile<'a>>,
    suspects: Vec<DoubtFile<'a>>,
    tables: Vec<BesideFile<'a>>,
}

#[derive(Serialize)]
pub(crate) struct CautionFile<'a> {
    about: &'a [String],
    text: &'a str,
    guess: bool,
}

#[derive(Serialize)]
pub(crate) struct DoubtFile<'a> {
    rule: &'a str,
    experiment: &'a str,
    evidence: &'a str,
    mechanism: &'a str,
}

#[derive(Serialize)]
struct BesideFile<'a> {
    published_experiment: &'a str,
    experiment: &'a str,
    metric: &'a str,
    unit: &'a str,
    quantity: &'a str,
    conditions: &'a str,
    differs: &'a str,
    rows: Vec<RowFile<'a>>,
}

#[derive(Serialize)]
struct RowFile<'a> {
    subject: &'a str,
    conditions: &'a str,
    published: Vec<PublishedFile<'a>>,
    ours: Vec<OursFile<'a>>,
}

#[derive(Serialize)]
struct PublishedFile<'a> {
    statistic: &'a str,
    printed: &'a str,
    value: f64,
    interval: Option<(f64, f64)>,
    repetitions: Option<u32>,
    note: &'a str,
}

#[derive(Serialize)]
struct OursFile<'a> {
    label: &'a str,
    setting: &'a str,
    median: Estimate,
}

/// A caution as every file tells it.
pub(crate) fn caution(one: &Caution) -> CautionFile<'_> {
    CautionFile { about: &one.about, text: &one.text, guess: one.standing == Standing::Guess }
}

/// What our rules find, as every file tells it.
pub(crate) fn doubt(one: &Doubt) -> DoubtFile<'_> {
    DoubtFile {
        rule: one.rule,
        experiment: &one.experiment,
        evidence: &one.evidence,
        mechanism: &one.mechanism,
    }
}

/// What a published value is compared with.
pub(crate) fn quantity(one: Quantity) -> &'static str {
    match one {
        Quantity::Value => "value",
        Quantity::Difference => "difference from bare",
    }
}

pub(super) fn reference(one: &Reference) -> ReferenceFile<'_> {
    ReferenceFile {
        source: &one.source,
        title: &one.title,
        url: one.url.as_deref(),
        licence: &one.licence,
        hardware: &one.hardware,
        kernel: &one.kernel,
        engines: &one.engines,
        method: &one.method,
        cautions: one.cautions.iter().map(caution).collect(),
        suspects: one.doubts.iter().map(doubt).collect(),
        tables: one.tables.iter().map(table).collect(),
    }
}

fn table(one: &Beside) -> BesideFile<'_> {
    BesideFile {
        published_experiment: &one.published_experiment,
        experiment: one.experiment,
        metric: one.metric,
        unit: one.unit.name(),
        quantity: quantity(one.quantity),
        conditions: &one.conditions,
        differs: &one.differs,
        rows: one.rows.iter().map(row).collect(),
    }
}

fn row(one: &BesideRow) -> RowFile<'_> {
    let published = one.published.iter().map(|one| PublishedFile {
        statistic: &one.statistic,
        printed: &one.printed,
        value: one.value,
        interval: one.interval,
        repetitions: one.repetitions,
        note: &one.note,
    });
    let ours = one.ours.iter().map(|one| OursFile {
        label: &one.label,
        setting: &one.setting,
        median: one.estimate,
    });
    RowFile {
        subject: &one.subject,
        conditions: &one.conditions,
        published: published.collect(),
        ours: ours.collect(),
    }
}
