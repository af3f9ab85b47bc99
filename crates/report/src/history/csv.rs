//! Histories as a table for other programs: a row for each run and cell, as RFC 4180 quotes it.

use dunnage_analysis::history::History;

use crate::record::Order;
use crate::report::csv::harmless;
use crate::report::text::clean;

const HEAD: &str = "machine,name,run,started,experiment,metric,unit,setting,label,value,low,high,rounds,suspect,change,level,p,order";

/// The table; none of it where it cannot be written, which a text always can.
pub(super) fn render(histories: &[History]) -> Option<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEAD.split(',')).ok()?;
    for history in histories {
        for series in &history.series {
            let mut level = 1;
            for (index, (point, value)) in history.points.iter().zip(&series.values).enumerate() {
                let change = series.changes.iter().find(|change| change.after == index);
                level += usize::from(change.is_some());
                let Some(value) = value else { continue };
                let interval = value.median.interval;
                let text = |text: &str| harmless(&clean(text));
                let shown = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
                writer
                    .write_record([
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
                    .ok()?;
            }
        }
    }
    String::from_utf8(writer.into_inner().ok()?).ok()
}
