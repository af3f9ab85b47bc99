//! A change in a sentence, with what else happened at the same time: as a coincidence, never as a cause.

use dunnage_analysis::history::{Change, Point, Series};

use crate::report::text::{in_brackets, listed, percent};
use crate::units::counted;
use crate::verdict::Kind;

/// The cell of a series in words.
pub(super) fn cell(series: &Series) -> String {
    let setting = in_brackets(&series.setting);
    format!("{}.{} of {}{setting}", series.experiment, series.metric, series.label)
}

/// A change in a sentence.
pub(super) fn sentence(series: &Series, change: &Change, points: &[Point]) -> String {
    let unit = series.unit;
    let (old, new) = change.levels;
    let sign = if new > old { "+" } else { "" };
    let share = if old > 0.0 { format!(" ({sign}{})", percent(new / old - 1.0)) } else { String::new() };
    let level = |value: f64, runs: usize| format!("{} over {}", unit.format(value), counted(runs, "run"));
    let [before, after] = [level(old, change.runs.0), level(new, change.runs.1)];
    let numbers = format!("from {before} to {after}{share}");
    let at = &points[change.after].name;
    let what = cell(series);
    let said = match change.verdict {
        Kind::Same => {
            let matters = unit.format(change.matters);
            format!("{what} moved at {at} by less than what matters ({matters}): {numbers}")
        }
        Kind::Machine => {
            format!("{what} moved at {at}, and so did bare or floor: the machine changed; {numbers}")
        }
        kind => {
            let more = if new > old { "more" } else { "less" };
            // Costs are taken, other amounts are had.
            let is_cost = if new > old { kind.is_worse() } else { kind.is_better() };
            let takes = if is_cost { "takes" } else { "has" };
            format!("{what} {takes} {more} since {at}: {numbers}")
        }
    };
    let beside = change.beside.iter().map(|one| format!("{} {} → {}", one.what, one.old, one.new));
    match listed(beside, ", ") {
        none if none.is_empty() => said,
        beside => format!("{said}; at the same time, cause or not: {beside}"),
    }
}
