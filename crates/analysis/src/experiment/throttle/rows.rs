//! The cells of a run with their windows, and the words for a quota.

use super::window::Measured;
use crate::advise::Cpus;
use crate::distinct;
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
    pub cell: usize,
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

/// By subject and load, the largest quota first; without twins.
pub fn rows(view: &View<'_>) -> Vec<Row> {
    let plan = view.plan();
    let cells: Vec<usize> = view.originals_of(super::NAME).collect();
    let several =
        |key: &str| distinct(cells.iter().filter_map(|cell| view.cell(*cell).setting.get(key))).len() > 1;
    let row = |&cell: &usize| {
        let measured = counted(view.run, cell).filter_map(Measured::of).reduce(Measured::together)?;
        let entry = plan.entry(cell);
        // Its quota has a column of its own; so cells that differ only in that get the same name.
        let mut spec = entry.spec.clone();
        spec.keys.retain(|(key, _)| key != "cpus" && key != "burst");
        let own = || if spec.label.is_none() { spec.shown() } else { entry.label.clone() };
        let subject = entry.variant_of.clone().unwrap_or_else(own);
        let load = |(key, value): &(&str, &str)| match *key {
            "load" => Some((*value).to_owned()),
            key => several(key).then(|| format!("{key}={value}")),
        };
        let load: Vec<_> = view.cell(cell).setting.0.iter().filter_map(load).collect();
        Some(Row { cell, name: [subject, load.join(" ")], measured })
    };
    let mut rows: Vec<Row> = cells.iter().filter_map(row).collect();
    let of_subject = |row: &Row| (row.name[0].clone(), plan.cells[row.cell].subject);
    let first: Vec<(String, usize)> = rows.iter().map(of_subject).collect();
    let first = |label: &str| first.iter().filter(|(own, _)| own == label).map(|(_, subject)| *subject).min();
    rows.sort_by_key(|Row { name: [label, load], measured, .. }| {
        let each = measured.quota.map_or(0, |quota| u64::MAX - quota.each);
        (first(label), load.clone(), each)
    });
    rows
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
