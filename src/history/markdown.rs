//! Histories as Markdown, for an issue or a wiki. Text from outside stands in cells of tables and in lists, with what
//! would be read as markup escaped.

use super::{History, Look, Series};
use crate::document::markdown::escaped;
use crate::units::counted;

/// The text.
pub(super) fn render(histories: &[History], _: &Look) -> String {
    let mut text = String::new();
    for history in histories {
        let order = history.by.as_ref().map_or("date".to_owned(), |tag| format!("`{}`", escaped(tag)));
        let (first, last) = (&history.points[0].name, &history.points[history.points.len() - 1].name);
        text += &format!(
            "### {} by {order}, {} to {}\n\n{}\n\n",
            counted(history.points.len(), "run"),
            escaped(first),
            escaped(last),
            escaped(&history.machine)
        );
        for notice in &history.notices {
            text += &format!("> {}\n\n", escaped(notice));
        }
        text += "| metric | subject | setting | first | last | changes |\n| --- | --- | --- | --- | --- | --- |\n";
        for series in &history.series {
            text += &row(history, series);
        }
        let sentences: Vec<&str> = history
            .series
            .iter()
            .flat_map(|one| &one.changes)
            .map(|change| change.sentence.as_str())
            .collect();
        if !sentences.is_empty() {
            text.push('\n');
        }
        for sentence in sentences {
            text += &format!("- {}\n", escaped(sentence));
        }
        text.push('\n');
    }
    text
}

fn row(history: &History, series: &Series) -> String {
    let values: Vec<f64> = series.values.iter().flatten().map(|value| value.median.value).collect();
    let shown = |value: Option<&f64>| value.map(|value| series.unit.format(*value)).unwrap_or_default();
    let of = |change: &super::Change| {
        format!("{} at {}", change.meaning.name(), history.points[change.after].name)
    };
    let changes: Vec<String> = series.changes.iter().map(of).collect();
    let fields = [
        format!("{}.{}", series.experiment, series.metric),
        series.label.clone(),
        series.setting.clone(),
        shown(values.first()),
        shown(values.last()),
        changes.join("; "),
    ];
    format!("| {} |\n", fields.map(|field| escaped(&field)).join(" | "))
}
