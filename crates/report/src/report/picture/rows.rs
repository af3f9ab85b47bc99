//! A row for each subject or piece, with marks over a horizontal axis and a few texts: how large is it, how
//! precise, and what are its parts?

use super::letters::{in_two, shorten, width};
use super::svg::{Canvas, End, LABEL, SIDE, SMALL, tick_room};
use super::{Picture, Table, named};
use crate::axis::{Axis, Range};
use crate::report::model::Row as Subject;
use crate::report::text::estimated;
use crate::stats::Estimate;
use crate::units::{Unit, counted};

/// The most rows of a picture that need no scrolling.
const MOST_ROWS: usize = 40;
/// The width of a group's name, before the names of its rows.
const GROUP: f64 = 56.0;
/// Rows higher than this have room for a second line.
const HIGH: f64 = 40.0;

/// A column of panels.
#[derive(Debug, Clone)]
pub struct Rows {
    /// The layout.
    pub layout: &'static Layout,
    /// The meaning of the colours of bars.
    pub legend: &'static [(&'static str, usize)],
    /// The headings of the cells of all rows.
    pub heads: Vec<&'static str>,
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

/// The layout of panels.
#[derive(Debug)]
pub struct Layout {
    /// The width of row names.
    pub names: f64,
    /// The width of the texts next to the plot.
    pub beside: f64,
    /// The height of a row.
    pub row: f64,
    /// The height of a bar.
    pub bar: f64,
    /// The texts next to the plot: their heading, their distance from the right edge, and the end it refers to.
    pub columns: &'static [(&'static str, f64, End)],
}

/// Rows under the same conditions.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The conditions; empty if there is only one panel of its kind.
    pub title: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The range of the axis.
    pub range: Range,
    /// Panels with the same number share an axis.
    pub axis: usize,
    /// From top to bottom.
    pub rows: Vec<Row>,
}

/// A subject, or a piece of one.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The label of its subject.
    pub subject: String,
    /// Its name.
    pub name: String,
    /// Its layer; empty without layers.
    pub layer: &'static str,
    /// The classes of its marks.
    pub class: String,
    /// The size by which it is compared with others; none if it is not.
    pub size: Option<f64>,
    /// The marks, from back to front.
    pub marks: Vec<Mark>,
    /// A class and a text for each column next to the plot.
    pub texts: Vec<(&'static str, String)>,
    /// Its cells in the table.
    pub cells: Vec<String>,
}

/// A mark in a row.
#[derive(Debug, Clone)]
pub enum Mark {
    /// The range that does not matter.
    Band((f64, f64)),
    /// Single values from the smallest to the largest.
    Dots(Vec<f64>),
    /// An interval.
    Interval((f64, f64)),
    /// A thin line over the end of a bar.
    Whisker((f64, f64)),
    /// The value itself.
    Value(f64),
    /// A bar between two values, in a colour.
    Bar((f64, f64), usize),
    /// A line to the next row.
    Down(f64),
    /// A text below.
    Below(String),
    /// A text instead of a value.
    Nothing(&'static str),
}

impl Mark {
    /// The values it spans.
    pub(crate) fn ends(&self) -> Vec<f64> {
        match self {
            Mark::Band((from, to)) | Mark::Interval((from, to)) => vec![*from, *to],
            Mark::Whisker((from, to)) | Mark::Bar((from, to), _) => vec![*from, *to],
            Mark::Dots(values) => values.clone(),
            Mark::Value(value) => vec![*value],
            Mark::Down(_) | Mark::Below(_) | Mark::Nothing(_) => Vec::new(),
        }
    }
}

/// The layout of stacked bars.
static STACKED: Layout =
    Layout { names: 118.0, beside: 78.0, row: 44.0, bar: 17.0, columns: &[("", 0.0, End::Last)] };

impl Row {
    /// A bar for a subject, of parts in their colours; a part may be missing, and one below zero is not drawn.
    pub(crate) fn stacked(
        subject: &Subject,
        unit: Unit,
        whole: &Estimate,
        parts: impl IntoIterator<Item = (Option<f64>, usize)>,
    ) -> Row {
        let (mut marks, mut cells, mut drawn, mut from) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
        for (part, colour) in parts {
            cells.push(part.map_or(String::new(), |part| unit.format(part)));
            if let Some(part) = part.filter(|part| *part > 0.0) {
                marks.push(Mark::Bar((from, from + part), colour));
                drawn.push(unit.format(part));
                from += part;
            }
        }
        cells.push(estimated(unit, whole));
        marks.extend(whole.interval.map(|one| Mark::Whisker((one.low, one.high))));
        if drawn.len() > 1 {
            marks.push(Mark::Below(drawn.join(" + ")));
        }
        let (subject, name) = (subject.label.clone(), subject.short.clone());
        let texts = vec![("ink title", unit.format(whole.value))];
        Row { subject, name, size: Some(whole.value), marks, texts, cells, ..Row::default() }
    }
}

impl Panel {
    /// A panel of bars from zero.
    pub(crate) fn of_bars(title: String, unit: Unit, rows: Vec<Row>) -> Panel {
        Panel { title, unit, range: Range::FromZero, axis: 0, rows }
    }

    /// Panels on as many pages as needed to avoid scrolling; some must not share a page with the previous one.
    pub(crate) fn pages(all: Vec<Panel>, belongs: impl Fn(&Panel, &Panel) -> bool) -> Vec<Vec<Panel>> {
        let mut pages: Vec<Vec<Panel>> = Vec::new();
        for panel in all {
            let fits = |page: &Vec<Panel>| {
                let rows = page.iter().map(|one| one.rows.len()).sum::<usize>();
                rows + panel.rows.len() <= MOST_ROWS && belongs(&page[0], &panel)
            };
            match pages.last_mut() {
                Some(page) if fits(page) => page.push(panel),
                _ => pages.push(vec![panel]),
            }
        }
        pages
    }
}

impl Rows {
    /// Panels of stacked bars, if there are any: the names and colours of the parts, and the name of the whole.
    pub(crate) fn stacked(
        legend: &'static [(&'static str, usize)],
        whole: &'static str,
        panels: Vec<Panel>,
    ) -> Option<Rows> {
        let heads = legend.iter().map(|(name, _)| *name).chain([whole]).collect();
        (!panels.is_empty()).then_some(Rows { layout: &STACKED, legend, heads, panels })
    }

    /// Their picture, with its text and data.
    pub(crate) fn picture(self, name: &[&str], title: String, caption: Vec<String>, kind: &str) -> Picture {
        Picture {
            name: named(name),
            title,
            caption,
            alternative: format!("{kind}. {}", self.in_words()),
            table: self.table(),
            drawing: super::Drawing::Rows(self),
        }
    }

    /// The words of a row under the pointer.
    fn words(&self, row: &Row) -> String {
        let told = self.heads.iter().zip(&row.cells).filter(|(_, cell)| !cell.is_empty());
        let told = told.map(|(head, cell)| format!("{} {cell}", head.trim_end_matches(" [interval]")));
        format!("{}: {}", row.subject, told.collect::<Vec<_>>().join(", "))
    }

    /// The smallest and the largest row of each panel.
    fn in_words(&self) -> String {
        let of_panel = |panel: &Panel| {
            let size = |row: &&Row| row.size.unwrap_or(f64::NAN);
            let mut known: Vec<&Row> = panel.rows.iter().filter(|row| row.size.is_some()).collect();
            known.sort_by(|one, other| size(one).total_cmp(&size(other)));
            let title = if panel.title.is_empty() { String::new() } else { format!("{}: ", panel.title) };
            match known[..] {
                [] => format!("{title}no values."),
                [only] => format!("{title}{}.", self.words(only)),
                [least, .., most] => {
                    let [rows, least, most] =
                        [counted(known.len(), "row"), self.words(least), self.words(most)];
                    format!("{title}{rows}, smallest {least}; largest {most}.")
                }
            }
        };
        self.panels.iter().map(of_panel).collect::<Vec<_>>().join(" ")
    }

    /// The data, without empty columns.
    fn table(&self) -> Table {
        let row = |panel: &Panel, row: &Row| -> Vec<String> {
            let whose = [panel.title.clone(), row.layer.to_owned(), row.subject.clone()];
            whose.into_iter().chain(row.cells.iter().cloned()).collect()
        };
        let rows = self.panels.iter().flat_map(|panel| panel.rows.iter().map(move |one| row(panel, one)));
        let rows: Vec<Vec<String>> = rows.collect();
        let columns = ["panel", "layer", "subject"].into_iter().chain(self.heads.iter().copied()).enumerate();
        let (used, columns): (Vec<usize>, Vec<String>) = columns
            .filter(|(index, _)| rows.iter().any(|row| row.get(*index).is_some_and(|text| !text.is_empty())))
            .map(|(index, head)| (index, head.to_owned()))
            .unzip();
        let used =
            |row: &Vec<String>| used.iter().map(|at| row.get(*at).cloned().unwrap_or_default()).collect();
        Table { columns, rows: rows.iter().map(used).collect() }
    }

    /// Draws them from a height on, and returns where they end.
    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let mut y = self.draw_legend(canvas, top);
        for panel in &self.panels {
            let alike = self.panels.iter().filter(|other| other.axis == panel.axis);
            let marks = alike.flat_map(|panel| &panel.rows).flat_map(|row| &row.marks);
            let places =
                (self.names_at() + self.layout.names + 10.0, canvas.width - SIDE - self.layout.beside);
            let axis = Axis::over(panel.range, marks.flat_map(Mark::ends), panel.unit, places);
            if let Some(axis) = axis {
                y = self.draw_panel(canvas, panel, &axis, places.0, y);
            }
        }
        y
    }

    fn names_at(&self) -> f64 {
        let has_layers = self.panels.iter().flat_map(|panel| &panel.rows).any(|row| !row.layer.is_empty());
        if has_layers { SIDE + GROUP } else { SIDE }
    }

    /// The legend of the colours in use.
    fn draw_legend(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let all = || self.panels.iter().flat_map(|panel| &panel.rows).flat_map(|row| &row.marks);
        let is_used = |wanted| all().any(|mark| matches!(mark, Mark::Bar(_, own) if *own == wanted));
        let (mut x, mut y) = (SIDE, top);
        for (name, colour) in self.legend.iter().filter(|(_, colour)| is_used(*colour)) {
            let own = 16.0 + width(name, LABEL);
            if x + own > canvas.width - SIDE || y == top {
                (x, y) = (SIDE, y + LABEL * 1.5);
            }
            canvas.group(&format!("k{colour}"));
            canvas.rectangle("mark", (x, y - 9.0), (11.0, 11.0));
            canvas.end();
            canvas.text("ink", (x + 16.0, y), End::Start, LABEL, name);
            x += own + 20.0;
        }
        if y > top { y + 4.0 } else { y }
    }

    fn draw_panel(&self, canvas: &mut Canvas, panel: &Panel, axis: &Axis, left: f64, top: f64) -> f64 {
        let (edge, row_height) = (canvas.width - SIDE, self.layout.row);
        let mut y = top;
        if !panel.title.is_empty() {
            y += LABEL * 1.4;
            canvas.text("ink title", (SIDE, y), End::Start, LABEL, &panel.title);
        }
        y += SMALL + 8.0;
        let ticks = axis.ticks(tick_room);
        ticks.iter().for_each(|tick| canvas.text("faint", (tick.at, y), End::Middle, SMALL, &tick.label));
        for (head, from_edge, end) in self.layout.columns.iter().filter(|(head, ..)| !head.is_empty()) {
            canvas.text("faint", (edge - from_edge, y), *end, SMALL, head);
        }
        y += 5.0;
        let foot = y + row_height * panel.rows.len() as f64;
        ticks.iter().for_each(|tick| canvas.line("grid", (tick.at, y), (tick.at, foot)));
        if panel.range == Range::FromZero {
            canvas.line("axis", (axis.at(0.0), y), (axis.at(0.0), foot));
        }
        let mut layer = "";
        for row in &panel.rows {
            if row.layer != layer {
                layer = row.layer;
                canvas.line("grid", (SIDE, y), (edge, y));
                canvas.text("faint", (SIDE, y + row_height / 2.0 + 4.0), End::Start, SMALL, layer);
            }
            self.draw_row(canvas, row, axis, left, y);
            y += row_height;
        }
        canvas.line("grid", (SIDE, y), (edge, y));
        y + 8.0
    }

    fn draw_row(&self, canvas: &mut Canvas, row: &Row, axis: &Axis, left: f64, top: f64) {
        let layout = self.layout;
        let y = if layout.row > HIGH { top + 5.0 + layout.bar / 2.0 } else { top + layout.row / 2.0 };
        for mark in &row.marks {
            if let Mark::Band((from, to)) = mark {
                canvas.group("k0");
                canvas.rectangle(
                    "mark band",
                    (axis.at(*from), top),
                    (axis.at(*to) - axis.at(*from), layout.row),
                );
                canvas.end();
            }
        }
        canvas.subject(&row.class, &row.subject, &self.words(row));
        let name = match layout.row > HIGH {
            true => in_two(&row.name, LABEL, layout.names),
            false => vec![shorten(&row.name, LABEL, layout.names)],
        };
        for (index, line) in name.iter().enumerate() {
            let base = y + 4.0 + LABEL * 1.2 * index as f64;
            canvas.text("ink", (self.names_at(), base), End::Start, LABEL, line);
        }
        row.marks.iter().for_each(|mark| self.draw_mark(canvas, row, mark, axis, (left, y)));
        for ((_, from_edge, end), (class, text)) in layout.columns.iter().zip(&row.texts) {
            canvas.text(class, (canvas.width - SIDE - from_edge, y + 4.0), *end, SMALL, text);
        }
        canvas.end();
    }

    fn draw_mark(&self, canvas: &mut Canvas, row: &Row, mark: &Mark, axis: &Axis, (left, y): (f64, f64)) {
        let Layout { bar, row: row_height, .. } = *self.layout;
        match mark {
            Mark::Band(_) => {}
            Mark::Dots(values) => {
                let place = |(index, value): (usize, &f64)| (axis.at(*value), y + scattered(index));
                canvas.dots("line dots", values.iter().enumerate().map(place));
            }
            Mark::Interval((from, to)) => canvas.line("line", (axis.at(*from), y), (axis.at(*to), y)),
            Mark::Whisker((from, to)) => canvas.line("axis", (axis.at(*from), y), (axis.at(*to), y)),
            Mark::Value(value) => canvas.mark(row.layer, (axis.at(*value), y), 4.2),
            Mark::Bar((one, other), colour) => {
                let (from, to) = (axis.at(one.min(*other)), axis.at(one.max(*other)));
                // A gap between parts, unless it would hide them.
                let gap = if to - from > 3.0 { 1.0 } else { 0.0 };
                canvas.group(&format!("k{colour}"));
                canvas.rectangle("mark", (from, y - bar / 2.0), ((to - from - gap).max(1.0), bar));
                canvas.end();
            }
            Mark::Down(value) => {
                let x = axis.at(*value);
                canvas.line("axis faint-line", (x, y + bar / 2.0), (x, y + row_height - bar / 2.0));
            }
            Mark::Below(text) => {
                canvas.text("faint", (left + 4.0, y + bar / 2.0 + SMALL + 2.0), End::Start, SMALL, text);
            }
            Mark::Nothing(why) => canvas.text("alarm", (left, y + 4.0), End::Start, SMALL, why),
        }
    }
}

/// The distance of a dot from the middle of its row, so that equal values do not hide each other: the van der Corput
/// sequence, whose neighbours are far apart.
fn scattered(index: usize) -> f64 {
    let mut share = 0.0;
    let (mut rest, mut weight) = (index + 1, 0.5);
    while rest > 0 {
        share += weight * (rest % 2) as f64;
        (rest, weight) = (rest / 2, weight / 2.0);
    }
    (share - 0.5) * 13.0
}

#[cfg(test)]
mod tests {
    use super::super::svg::{Style, draw};
    use super::*;

    static LAYOUT: Layout =
        Layout { names: 90.0, beside: 90.0, row: 20.0, bar: 9.0, columns: &[("time", 0.0, End::Last)] };

    fn row(subject: &str, value: f64, cells: [&str; 2]) -> Row {
        Row {
            subject: subject.into(),
            name: subject.into(),
            layer: "",
            class: "k0".into(),
            size: Some(value),
            marks: vec![Mark::Value(value)],
            texts: vec![("ink", cells[0].to_owned())],
            cells: cells.map(str::to_owned).to_vec(),
        }
    }

    #[test]
    fn every_subject_is_a_mark_of_its_own_and_what_it_is_called_is_text() {
        let rows = vec![row("a <b>", 1.0, ["1 s [0, 2]", ""]), row("c", 3.0, ["3 s", ""])];
        let panel =
            Panel { title: String::new(), unit: Unit::Seconds, range: Range::FromZero, axis: 0, rows };
        let rows = Rows {
            layout: &LAYOUT,
            legend: &[],
            heads: vec!["time [interval]", "verdict"],
            panels: vec![panel],
        };
        let picture = rows.picture(&["p"], "t".into(), Vec::new(), "Plot");
        assert_eq!(
            picture.alternative,
            "Plot. 2 rows, smallest a <b>: time 1 s [0, 2]; largest c: time 3 s."
        );
        // Empty columns are left out.
        assert_eq!(picture.table.columns, ["subject", "time [interval]"]);
        assert_eq!(picture.table.rows[1], ["c", "3 s"]);
        let drawn = draw(&picture, Style::Inline);
        assert_eq!(drawn.matches("<g class=\"subject").count(), 2);
        assert!(!drawn.contains("<b>") && drawn.contains("c: time 3 s"), "{drawn}");
    }

    #[test]
    fn no_page_has_to_be_scrolled() {
        let panel = |rows: usize| Panel {
            title: String::new(),
            unit: Unit::Seconds,
            range: Range::Ratio,
            axis: 0,
            rows: (0..rows).map(|_| row("a", 1.0, ["", ""])).collect(),
        };
        let pages = Panel::pages(vec![panel(30), panel(10), panel(1), panel(60)], |_, _| true);
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1]);
    }
}
