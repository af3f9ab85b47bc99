//! Pairs published numbers with those of a run, subject by subject. Nothing is computed from both.

use dunnage_analysis::group::in_groups;

use super::counterpart::{self, Counterpart, Same};
use super::{Beside, BesideRow, Number, Ours, Published, Quantity, Reference, Source, joined};
use crate::report::Report;
use crate::report::model::{Experiment, Row};
use crate::subject::spec::Spec;

/// Every source with quantities that the run measured too: its numbers, those of the run, and the cautions.
pub fn beside(sources: &[Source], report: &Report) -> Vec<Reference> {
    sources.iter().filter_map(|source| one(source, report)).collect()
}

/// A published number, its counterpart, and the experiment of the run.
type Pair<'a> = (&'a Number, Same, &'a Experiment);

fn one(source: &Source, report: &Report) -> Option<Reference> {
    let pair = |number| -> Option<Pair<'_>> {
        let Counterpart::Metric(same) = counterpart::of(number) else { return None };
        Some((number, same, report.experiments.iter().find(|one| one.name == same.experiment)?))
    };
    let quantity = |(number, same, _): &Pair<'_>| (number.experiment.clone(), same.metric, same.quantity);
    let tables = in_groups(source.numbers.iter().filter_map(pair), quantity).into_iter();
    let tables: Vec<Beside> = tables.filter_map(|(_, all)| table(all)).collect();
    if tables.is_empty() {
        return None;
    }
    let is_shown = |name: &str| tables.iter().any(|table| table.published_experiment == name);
    let mut source = Source { numbers: Vec::new(), ..source.clone() };
    source.cautions.retain(|one| one.about.is_empty() || one.about.iter().any(|name| is_shown(name)));
    source.suspects.retain(|one| is_shown(&one.experiment));
    Some(Reference { source, tables })
}

/// The numbers of one quantity; none if dunnage has no such unit.
fn table(all: Vec<Pair<'_>>) -> Option<Beside> {
    let &(first, same, measured) = all.first()?;
    let (unit, _) = first.in_base_units(first.value)?;
    let row = |(number, ..): &Pair<'_>| (number.subject.clone(), joined(&number.without(&["stat"])));
    let rows = in_groups(all, row).into_iter().map(|((subject, conditions), all)| BesideRow {
        subject,
        conditions,
        published: all.iter().map(|(number, ..)| Published::of(number)).collect(),
        ours: ours(all[0].0, &same, measured),
    });
    Some(Beside {
        published_experiment: first.experiment.clone(),
        experiment: same.experiment,
        metric: same.metric,
        unit,
        quantity: same.quantity,
        conditions: same.conditions.to_owned(),
        differs: same.differs.to_owned(),
        rows: rows.collect(),
    })
}

/// The numbers of the run for the same subject in the same conditions; a subject on two ladders counts once.
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
            Quantity::Value => row.value(metric).map(|value| value.summary.median),
            Quantity::Difference if is_from_bare => row.found(metric).and_then(|found| found.difference),
            Quantity::Difference => None,
        };
        let is_known = |one: &Ours| one.label == row.label && one.setting == setting.text;
        if let Some(estimate) = estimate.filter(|_| !all.iter().any(is_known)) {
            all.push(Ours { label: row.label.clone(), setting: setting.text.clone(), estimate });
        }
    }
    all
}

/// Whether a subject of the run is the published one: the same kind, with the same keys, and with the named
/// runtime, if any.
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
