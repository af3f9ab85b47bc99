//! The changes of an experiment as pictures: each subject's change over all settings, with its interval and the range
//! that does not matter.

use dunnage_analysis::compare::{Experiment, Line, Scale, Together};

use super::words;
use crate::axis::Range;
use crate::report::picture::Picture;
use crate::report::picture::rows::{Layout, Mark, Panel, Row, Rows};
use crate::report::picture::svg::End;
use crate::report::text::{clean, in_brackets, in_one};
use crate::units::Unit;
use crate::verdict::Kind;

/// An axis reaches so many times as far as its marks; longer intervals end at its edge.
const BEYOND: f64 = 4.0;

static LAYOUT: Layout = Layout {
    names: 190.0,
    beside: 266.0,
    row: 23.0,
    bar: 12.0,
    columns: &[("change [interval]", 252.0, End::Start), ("", 96.0, End::Start)],
};

/// A picture for each decisive metric, or for several with few subjects.
pub(super) fn pictures(experiment: &Experiment) -> Vec<Picture> {
    let pages = Panel::pages(panels(experiment), |_, _| true);
    let count = pages.len();
    let picture = |(index, panels): (usize, Vec<Panel>)| {
        let page = (index + 1).to_string();
        let number = if count > 1 { format!(", {page} of {count}") } else { String::new() };
        let title = format!("{}: from old to new{number}", experiment.name);
        let caption = vec![
            "A mark is the change over all settings together, the line its interval. An interval that reaches the edge \
             continues beyond it. Changes within the grey area do not matter. Pale marks are undecided."
                .to_owned(),
        ];
        let heads = vec!["change [interval]", "verdict"];
        let rows = Rows { layout: &LAYOUT, legend: &[], heads, panels };
        rows.picture(&["changes", experiment.name, &page], title, caption, "Changes with their intervals")
    };
    pages.into_iter().enumerate().map(picture).collect()
}

/// A panel for each metric; a change without a ratio is shown in multiples of what matters. Each has its own axis.
fn panels(experiment: &Experiment) -> Vec<Panel> {
    let mut all = Vec::new();
    for (index, metric) in experiment.metrics.iter().enumerate().filter(|(_, metric)| metric.decisive) {
        let lines: Vec<&Line> = experiment.lines.iter().filter(|line| line.metric == index).collect();
        let given = in_brackets(words::one_setting(&lines).unwrap_or_default());
        for (scale, unit, what) in [
            (Scale::Ratio, Unit::Share, "change"),
            (Scale::Margins, Unit::Count, "change in multiples of what matters"),
        ] {
            let is_own = |line: &&Line| line.together.map_or(Scale::Ratio, |all| all.scale) == scale;
            let own: Vec<&Line> = lines.iter().copied().filter(is_own).collect();
            if own.iter().any(|line| line.together.is_some()) {
                let reach = BEYOND * own.iter().filter_map(|line| marked(line)).fold(0.0, f64::max);
                all.push(Panel {
                    title: format!("{}{given}, {what}", metric.name),
                    unit,
                    range: Range::FromZero,
                    axis: all.len(),
                    rows: own.into_iter().map(|line| row(line, reach)).collect(),
                });
            }
        }
    }
    all
}

/// The range in which a change does not matter.
fn band(all: &Together) -> (f64, f64) {
    let high = words::from_none(all.scale, all.matters);
    match all.scale {
        Scale::Ratio => (1.0 / all.matters - 1.0, high),
        Scale::Margins => (-all.matters, high),
    }
}

/// The largest distance from zero of a line's mark and of the range that does not matter.
fn marked(line: &Line) -> Option<f64> {
    let all = line.together?;
    let (low, high) = band(&all);
    Some(words::from_none(all.scale, all.change.value).abs().max(low.abs()).max(high))
}

fn row(line: &Line, reach: f64) -> Row {
    let (kind, label) = (line.verdict, clean(&line.label));
    // Vermilion, green and ink for decided changes, which have words too; pale for undecided ones.
    let class = match kind {
        Kind::Slower | Kind::Worse => "k5",
        Kind::Faster | Kind::Better => "k3",
        Kind::Same => "k0",
        _ => "k0 light",
    };
    let (size, marks, shown) = match line.together {
        None => (None, vec![Mark::Nothing("no value")], String::new()),
        Some(all) => {
            let from_none = |size: f64| words::from_none(all.scale, size);
            let value = from_none(all.change.value);
            let ends = all.change.interval.map(|one| (from_none(one.low), from_none(one.high)));
            // The title of the panel has the unit.
            let shown = in_one(words::change(&all)).replace(words::MATTERS, "");
            (Some(value), marks(value, ends, band(&all), reach), shown)
        }
    };
    Row {
        subject: label.clone(),
        name: label,
        layer: "",
        class: class.to_owned(),
        size,
        marks,
        texts: vec![
            ("ink", shown.clone()),
            (if kind == Kind::Suspect { "alarm" } else { "ink" }, kind.word().to_owned()),
        ],
        cells: vec![shown, kind.word().to_owned()],
    }
}

/// The values to draw of a change and its interval.
fn marks(value: f64, ends: Option<(f64, f64)>, band: (f64, f64), reach: f64) -> Vec<Mark> {
    let interval = ends.map(|(low, high)| Mark::Interval((low.max(-reach), high.min(reach))));
    [Mark::Band(band)].into_iter().chain(interval).chain([Mark::Value(value)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_interval_does_not_press_what_is_marked_together() {
        let marks = marks(0.1, Some((-0.9, 60.0)), (-0.03, 0.03), BEYOND * 0.1);
        let ends: Vec<f64> = marks.iter().flat_map(Mark::ends).collect();
        assert!(ends.iter().all(|end| end.abs() <= BEYOND * 0.1), "{ends:?}");
        assert!(ends.contains(&0.1) && ends.contains(&-0.03), "{ends:?}");
    }
}
