//! Histories as a table for other programs: a row for each run and cell, quoted as in RFC 4180.

use dunnage_analysis::history::{History, Point, Series, Value};

use crate::document::csv;
use crate::record::Order;
use crate::report::csv::harmless;
use crate::report::text::clean;

const HEAD: &str = "machine,name,run,started,experiment,metric,unit,setting,label,value,low,high,rounds,suspect,change,level,p,order";

/// The table; none if it cannot be written, which does not happen with a text.
pub(super) fn render(histories: &[History]) -> Option<String> {
    let all = histories.iter().flat_map(|one| one.series.iter().map(move |series| (one, series)));
    csv(HEAD, all.flat_map(|(history, series)| rows(history, series)))
}

/// A row for each run that has a value.
fn rows(history: &History, series: &Series) -> Vec<[String; 18]> {
    let mut level = 1;
    let row = |(index, (point, value)): (usize, (&Point, &Option<Value>))| {
        let change = series.changes.iter().find(|change| change.after == index);
        level += usize::from(change.is_some());
        let value = value.as_ref()?;
        let interval = value.median.interval;
        let text = |text: &str| harmless(&clean(text));
        let shown = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        Some([
            text(&history.machine),
            text(&point.name),
            text(&point.run),
            text(&point.started),
            series.experiment.to_owned(),
            series.metric.to_owned(),
            series.unit.name().to_owned(),
            text(&series.setting),
            text(&series.label),
            value.median.value.to_string(),
            shown(interval.map(|one| one.low)),
            shown(interval.map(|one| one.high)),
            value.median.rounds.to_string(),
            if value.is_suspect { "suspect" } else { "" }.to_owned(),
            change.map_or("", |change| change.verdict.word()).to_owned(),
            level.to_string(),
            shown(change.map(|change| change.p)),
            if point.order == Order::Blocks { "blocks" } else { "rounds" }.to_owned(),
        ])
    };
    history.points.iter().zip(&series.values).enumerate().filter_map(row).collect()
}
