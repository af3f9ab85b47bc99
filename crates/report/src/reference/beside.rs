//! Sets what others published beside what a run measured, subject by subject. Nothing is computed from both.

use super::counterpart::{self, Counterpart, Same};
use super::{Number, Source, check, joined};
use crate::report::Report;
use crate::report::model::{Beside, BesideRow, Experiment, Ours, Published, Quantity, Reference, Row};
use crate::subject::spec::Spec;

/// Every source that speaks of something that the run measured too, with its numbers, ours, and what must be known of both.
pub fn beside(sources: &[Source], report: &Report) -> Vec<Reference> {
    sources.iter().filter_map(|source| one(source, report)).collect()
}

fn one(source: &Source, report: &Report) -> Option<Reference> {
    let mut tables: Vec<Beside> = Vec::new();
    for number in &source.numbers {
        let Counterpart::Metric(same) = counterpart::of(number) else { continue };
        let Some(measured) = report.experiments.iter().find(|one| one.name == same.experiment) else {
            continue;
        };
        add(&mut tables, number, &same, measured);
    }
    if tables.is_empty() {
        return None;
    }
    let is_shown = |name: &str| tables.iter().any(|table| table.published_experiment == name);
    let cautions = source.cautions.iter();
    let cautions = cautions.filter(|one| one.about.is_empty() || one.about.iter().any(|name| is_shown(name)));
    let doubts = check::doubts(source).into_iter().filter(|doubt| is_shown(&doubt.experiment));
    Some(Reference {
        source: source.name.clone(),
        title: source.title.clone(),
        url: source.url.clone(),
        licence: source.licence.clone(),
        hardware: source.hardware.clone(),
        kernel: source.kernel.clone(),
        engines: source.engines.clone(),
        method: source.method.clone(),
        cautions: cautions.cloned().collect(),
        doubts: doubts.collect(),
        tables,
    })
}

fn add(tables: &mut Vec<Beside>, number: &Number, same: &Same, measured: &Experiment) {
    let Some((unit, value)) = number.in_base_units(number.value) else { return };
    let fits = |table: &Beside| {
        (table.published_experiment.as_str(), table.metric, table.quantity)
            == (number.experiment.as_str(), same.metric, same.quantity)
    };
    let at = tables.iter().position(fits).unwrap_or_else(|| {
        tables.push(Beside {
            published_experiment: number.experiment.clone(),
            experiment: same.experiment,
            metric: same.metric,
            unit,
            quantity: same.quantity,
            conditions: same.conditions.to_owned(),
            differs: same.differs.to_owned(),
            rows: Vec::new(),
        });
        tables.len() - 1
    });
    let conditions = joined(&number.without(&["stat"]));
    let rows = &mut tables[at].rows;
    let row = rows.iter().position(|row| row.subject == number.subject && row.conditions == conditions);
    let row = row.unwrap_or_else(|| {
        let ours = ours(number, same, measured);
        rows.push(BesideRow { subject: number.subject.clone(), conditions, published: Vec::new(), ours });
        rows.len() - 1
    });
    let base = |value: f64| number.in_base_units(value).map_or(value, |(_, value)| value);
    rows[row].published.push(Published {
        statistic: number.statistic().to_owned(),
        printed: format!("{} {}", number.printed, number.unit),
        value,
        interval: number.interval.map(|[low, high]| (base(low), base(high))),
        repetitions: number.repetitions,
        note: number.note.clone(),
    });
}

/// What we measured of the same subject in the same conditions; a subject that stands on two ladders counts once.
fn ours(number: &Number, same: &Same, measured: &Experiment) -> Vec<Ours> {
    let Some(metric) = measured.metrics.iter().position(|metric| metric.name == same.metric) else {
        return Vec::new();
    };
    let mut all: Vec<Ours> = Vec::new();
    for (setting, ladder, row) in measured.rows() {
        if !is_the_same(&number.subject, row) || !(same.setting)(number, &setting.text) {
            continue;
        }
        let is_from_bare = ladder.rows.iter().any(|other| other.is_baseline && other.subject == "bare");
        let estimate = match same.quantity {
            Quantity::Value => row.values[metric].as_ref().map(|value| value.median),
            Quantity::Difference if is_from_bare => {
                row.against_baseline[metric].as_ref().and_then(|change| change.difference)
            }
            Quantity::Difference => None,
        };
        let is_known = |one: &Ours| one.label == row.label && one.setting == setting.text;
        if let Some(estimate) = estimate.filter(|_| !all.iter().any(is_known)) {
            all.push(Ours { label: row.label.clone(), setting: setting.text.clone(), estimate });
        }
    }
    all
}

/// Whether a subject of ours is the published one: the same kind, started with the same keys, and where a runtime is
/// named, with that one.
fn is_the_same(published: &str, row: &Row) -> bool {
    let (Ok(theirs), Ok(own)) = (Spec::parse(published), Spec::parse(&row.subject)) else { return false };
    let runtime = match &theirs.runtime {
        Some(named) => own.runtime.as_ref().or(row.runtime.as_ref()) == Some(named),
        None => own.runtime.is_none(),
    };
    let alike = |one: &str, other: &str| match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    };
    let keys = theirs.keys.len() == own.keys.len()
        && theirs.keys.iter().zip(&own.keys).all(|(one, other)| one.0 == other.0 && alike(&one.1, &other.1));
    theirs.name == own.name && runtime && keys
}
