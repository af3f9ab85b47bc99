//! Histories as a table for other programs: a row for each run and cell, as RFC 4180 quotes it.

use super::History;

/// The table.
pub(super) fn render(histories: &[History]) -> String {
    let mut text = String::from(
        "machine,name,run,started,experiment,metric,unit,setting,label,value,low,high,rounds,suspect,change,level,p,order\n",
    );
    for history in histories {
        for series in &history.series {
            let mut level = 1;
            for (index, (point, value)) in history.points.iter().zip(&series.values).enumerate() {
                let change = series.changes.iter().find(|change| change.after == index);
                level += usize::from(change.is_some());
                let Some(value) = value else { continue };
                let interval = value.median.interval;
                let bound = |bound: Option<f64>| bound.map(|bound| bound.to_string()).unwrap_or_default();
                let fields = [
                    history.machine.clone(),
                    point.name.clone(),
                    point.run.clone(),
                    point.started.clone(),
                    series.experiment.to_owned(),
                    series.metric.to_owned(),
                    series.unit.name().to_owned(),
                    series.setting.clone(),
                    series.label.clone(),
                    value.median.value.to_string(),
                    bound(interval.map(|one| one.low)),
                    bound(interval.map(|one| one.high)),
                    value.median.rounds.to_string(),
                    if value.is_suspect { "suspect" } else { "" }.to_owned(),
                    change.map_or("", |change| change.meaning.name()).to_owned(),
                    level.to_string(),
                    change.map(|change| change.p.to_string()).unwrap_or_default(),
                    point.order_name().to_owned(),
                ];
                let row: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
                text += &row.join(",");
                text.push('\n');
            }
        }
    }
    text
}

fn quoted(field: &str) -> String {
    // A sign at the start makes a formula of a text in a spreadsheet; numbers are none.
    let is_formula = field.starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    let field = if is_formula { format!("'{field}") } else { field.to_owned() };
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field,
    }
}
