//! What is said of a change, and how a reader is told what happened beside it: as a coincidence, never as a cause.

use super::{Change, Meaning, Point, Series};
use crate::compare::Difference;
use crate::report::text::percent;
use crate::units::counted;

/// The cell of a series in words.
pub(super) fn cell(series: &Series) -> String {
    let setting = if series.setting.is_empty() { String::new() } else { format!(" ({})", series.setting) };
    format!("{}.{} of {}{setting}", series.experiment, series.metric, series.label)
}

/// A change in a sentence.
pub(super) fn sentence(series: &Series, change: &Change, points: &[Point]) -> String {
    let unit = series.unit;
    let (old, new) = change.levels;
    let share = if old > 0.0 {
        format!(" ({}{})", if new > old { "+" } else { "" }, percent(new / old - 1.0))
    } else {
        String::new()
    };
    let numbers = format!(
        "from {} over {} to {} over {}{share}",
        unit.format(old),
        counted(change.runs.0, "run"),
        unit.format(new),
        counted(change.runs.1, "run")
    );
    let at = &points[change.after].name;
    let what = cell(series);
    let said = match change.meaning {
        Meaning::Changed(kind) => {
            let is_more = change.levels.1 > change.levels.0;
            let more = if is_more { "more" } else { "less" };
            // What one wishes to be small is taken, and everything else is there.
            let is_cost = if is_more { kind.is_worse() } else { kind.is_better() };
            let takes = if is_cost { "takes" } else { "has" };
            format!("{what} {takes} {more} since {at}: {numbers}")
        }
        Meaning::TooSmall => {
            format!(
                "{what} moved at {at} by less than what matters ({}): {numbers}",
                unit.format(change.matters)
            )
        }
        Meaning::Machine => {
            format!("{what} moved at {at}, and so did what shows the machine: the machine changed; {numbers}")
        }
    };
    match change.beside.as_slice() {
        [] => said,
        beside => format!("{said}; at the same time, cause or not: {}", beside.join(", ")),
    }
}

/// Something that is not the same before and after a change.
pub(super) fn beside(one: &Difference) -> String {
    format!("{} {} → {}", one.what, one.old, one.new)
}
