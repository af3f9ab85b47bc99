//! Changes from old runs to new ones, a row a subject: how large is it, how sure is that, and where does it begin to
//! matter?

use super::axis::Axis;
use super::letters::shorten;
use super::svg::{Canvas, End, LABEL, SIDE, SMALL, WIDTH, tick_room};
use crate::units::Unit;
use crate::verdict::Kind;

const LABEL_ROOM: f64 = 190.0;
const PLOT: (f64, f64) = (SIDE + LABEL_ROOM + 12.0, WIDTH - SIDE - 266.0);
const CHANGE_AT: f64 = PLOT.1 + 14.0;
const VERDICT_AT: f64 = WIDTH - SIDE - 96.0;
const ROW: f64 = 23.0;
/// An axis reaches so many times as far as what is marked on it; intervals that go farther end at its edge.
const BEYOND: f64 = 4.0;

/// Panels under each other, each with an axis of its own.
#[derive(Debug, Clone)]
pub struct Changes {
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

/// Subjects in a metric.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Which metric.
    pub title: String,
    /// What changes are told in: a share of the old value, or a number of times what matters.
    pub unit: Unit,
    /// A row a subject.
    pub rows: Vec<Row>,
}

/// A subject.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its label.
    pub label: String,
    /// The change and the ends of its interval; none where a side has no value.
    pub change: Option<(f64, Option<(f64, f64)>)>,
    /// From where to where a change does not matter.
    pub matters: (f64, f64),
    /// The change as it is shown.
    pub shown: String,
    /// What was decided.
    pub verdict: Kind,
    /// All of it in words.
    pub words: String,
}

impl Panel {
    /// From the lowest to the highest of what is marked, or what an interval needs if that is less.
    fn ends(&self) -> Vec<f64> {
        let marked = |row: &Row| {
            let value = row.change.map_or(0.0, |(value, _)| value.abs());
            value.max(row.matters.0.abs()).max(row.matters.1)
        };
        let reach = BEYOND * self.rows.iter().map(marked).fold(0.0, f64::max);
        let ends = |row: &Row| {
            let interval = row.change.and_then(|(_, interval)| interval).unwrap_or_default();
            [interval.0.max(-reach), interval.1.min(reach), row.matters.0, row.matters.1]
        };
        let values = self.rows.iter().filter_map(|row| Some(row.change?.0));
        self.rows.iter().flat_map(ends).chain(values).collect()
    }
}

impl Changes {
    /// Draws it from a height on, and says where it ends.
    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let mut y = top;
        for panel in &self.panels {
            let Some(axis) = Axis::from_zero(panel.ends(), panel.unit, PLOT) else { continue };
            y += LABEL * 1.4;
            canvas.text("ink title", (SIDE, y), End::Start, LABEL, &panel.title);
            y += SMALL + 8.0;
            let ticks = axis.ticks(tick_room);
            ticks.iter().for_each(|tick| canvas.text("faint", (tick.at, y), End::Middle, SMALL, &tick.label));
            canvas.text("faint", (CHANGE_AT, y), End::Start, SMALL, "change [interval]");
            y += 5.0;
            let foot = y + ROW * panel.rows.len() as f64;
            canvas.group("k0");
            for (index, row) in panel.rows.iter().enumerate() {
                let (low, high) = (axis.at(row.matters.0), axis.at(row.matters.1));
                canvas.rectangle("mark band", (low, y + ROW * index as f64), (high - low, ROW));
            }
            canvas.end();
            ticks.iter().for_each(|tick| canvas.line("grid", (tick.at, y), (tick.at, foot)));
            canvas.line("axis", (axis.at(0.0), y), (axis.at(0.0), foot));
            for row in &panel.rows {
                draw(canvas, &axis, row, y + ROW / 2.0);
                y += ROW;
            }
            canvas.line("grid", (SIDE, y), (WIDTH - SIDE, y));
            y += 8.0;
        }
        y
    }
}

fn draw(canvas: &mut Canvas, axis: &Axis, row: &Row, y: f64) {
    // Vermilion and green beside ink: what is decided is also said in words, and what is pale is open.
    let class = match row.verdict {
        Kind::Slower | Kind::Worse => "k5",
        Kind::Faster | Kind::Better => "k3",
        Kind::Same => "k0",
        _ => "k0 light",
    };
    canvas.subject(class, &row.label, &row.words);
    let base = y + 4.0;
    canvas.text("ink", (SIDE, base), End::Start, LABEL, &shorten(&row.label, LABEL, LABEL_ROOM));
    match row.change {
        Some((value, interval)) => {
            if let Some((low, high)) = interval {
                canvas.line("line", (axis.at(low), y), (axis.at(high), y));
            }
            canvas.mark("", (axis.at(value), y), 4.2);
            canvas.text("ink", (CHANGE_AT, base), End::Start, SMALL, &row.shown);
        }
        None => canvas.text("alarm", (PLOT.0, base), End::Start, SMALL, "no value"),
    }
    let class = if row.verdict == Kind::Suspect { "alarm" } else { "ink" };
    canvas.text(class, (VERDICT_AT, base), End::Start, SMALL, row.verdict.word());
    canvas.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: f64, interval: (f64, f64)) -> Row {
        Row {
            label: "a <b>".into(),
            change: Some((value, Some(interval))),
            matters: (-0.03, 0.03),
            shown: "+10 %".into(),
            verdict: Kind::Slower,
            words: "a <b>: +10 %".into(),
        }
    }

    #[test]
    fn a_wide_interval_does_not_press_what_is_marked_together() {
        let panel = Panel { title: "x".into(), unit: Unit::Share, rows: vec![row(0.1, (-0.9, 60.0))] };
        let ends = panel.ends();
        assert!(ends.iter().all(|end| end.abs() <= BEYOND * 0.1), "{ends:?}");
        assert!(ends.contains(&0.1) && ends.contains(&-0.03), "{ends:?}");
    }

    #[test]
    fn every_subject_is_a_mark_of_its_own_and_what_it_is_called_is_text() {
        let panel = Panel { title: "x".into(), unit: Unit::Share, rows: vec![row(0.1, (0.05, 0.2)); 2] };
        let picture = super::super::Picture {
            name: "p".into(),
            experiment: "start",
            title: "t".into(),
            caption: Vec::new(),
            alternative: "a".into(),
            table: super::super::Table::default(),
            drawing: super::super::Drawing::Changes(Changes { panels: vec![panel] }),
        };
        let drawn = super::super::svg::draw(&picture, super::super::svg::Style::Inline);
        assert_eq!(drawn.matches("data-subject=\"a &lt;b&gt;\"").count(), 2);
        assert!(!drawn.contains("<b>") && drawn.contains("slower"), "{drawn}");
    }
}
