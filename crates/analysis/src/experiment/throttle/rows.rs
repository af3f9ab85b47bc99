//! The cells of a run with their windows, and the words for a quota.

use super::window::Measured;
use crate::advise::Cpus;
use crate::outcome::Sample;
use crate::record::Recorded;
use crate::stats::quota::Quota;
use crate::units::Unit;
use crate::verdict::View;

/// The samples of a cell in complete rounds.
pub fn counted(run: &Recorded, cell: usize) -> impl Iterator<Item = &Sample> {
    let rounds = run.contexts.iter().skip(run.plan.warmups);
    run.series[cell].samples.iter().zip(rounds).filter_map(|(sample, context)| {
        context.as_ref()?;
        sample.as_ref()
    })
}

/// A cell with all its samples that count, and what distinguishes it from the others.
pub struct Row {
    /// The subject as asked for, and the load.
    pub name: [String; 2],
    pub measured: Measured,
}

/// The reference for a cell's work: the same subject and load without a quota, or else with the largest above
/// the load.
pub fn control<'a>(rows: &'a [Row], row: &Row) -> Option<&'a Measured> {
    let first = &rows.iter().find(|one| one.name == row.name)?.measured;
    (first.quota.is_none() || first.is_control()).then_some(first)
}

/// By subject and load, the largest quota first.
pub fn rows(view: &View<'_>) -> Vec<Row> {
    let plan = &view.run.plan;
    let cells = plan.cells.iter().enumerate().filter(|(_, planned)| planned.experiment == super::NAME);
    let several = |key: &str| {
        let mut values: Vec<_> = cells.clone().filter_map(|(_, planned)| planned.setting.get(key)).collect();
        values.sort_unstable();
        values.dedup();
        values.len() > 1
    };
    let row = |(cell, planned): (usize, &crate::plan::Cell)| {
        let measured = counted(view.run, cell).filter_map(Measured::of).reduce(Measured::together)?;
        let entry = &plan.subjects[planned.subject];
        // Its quota has a column of its own; so cells that differ only in that get the same name.
        let mut spec = entry.spec.clone();
        spec.keys.retain(|(key, _)| key != "cpus" && key != "burst");
        let subject = entry.variant_of.clone().unwrap_or_else(|| match (entry.twin_of, &spec.label) {
            (None, None) => spec.shown(),
            _ => entry.label.clone(),
        });
        let load = |(key, value): &(&str, &str)| match *key {
            "load" => Some((*value).to_owned()),
            key => several(key).then(|| format!("{key}={value}")),
        };
        let load: Vec<_> = planned.setting.0.iter().filter_map(load).collect();
        Some((planned.subject, Row { name: [subject, load.join(" ")], measured }))
    };
    let mut rows: Vec<_> = cells.clone().filter_map(row).collect();
    let first: Vec<_> = rows.iter().map(|(subject, row)| (row.name[0].clone(), *subject)).collect();
    let first = |label: &str| first.iter().filter(|(own, _)| own == label).map(|(_, subject)| *subject).min();
    rows.sort_by_key(|(_, Row { name: [label, load], measured })| {
        let each = measured.quota.map_or(0, |quota| u64::MAX - quota.each);
        (first(label), load.clone(), each)
    });
    rows.into_iter().map(|(_, row)| row).collect()
}

/// `0.5 CPUs`, or `no quota`.
pub fn quota_in_words(quota: Option<Quota>) -> String {
    let Some(quota) = quota else { return "no quota".into() };
    let share = Cpus(quota.each as f64 / quota.period as f64).to_string();
    let noun = if share == "1" { "CPU" } else { "CPUs" };
    match quota.burst {
        0 => format!("{share} {noun}"),
        burst => format!("{share} {noun}, burst {}", Unit::Seconds.format(burst as f64 / 1e9)),
    }
}
