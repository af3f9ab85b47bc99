//! Tables of a document: columns of words, of numbers with their units, or of values in one unit with their
//! intervals.

use super::Tone;
use crate::report::text::{bound, clean, common_scale, decimals, in_brackets, number, parts};
use crate::stats::Estimate;
use crate::units::{Scale, Unit};
use crate::verdict::Kind;

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// How to read it.
    pub notes: Vec<String>,
    /// Its columns; the first names the subject of a row.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// The column that is also drawn, in formats that draw with letters.
    pub drawn: Option<Drawn>,
}

/// A column to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// Its index.
    pub column: usize,
    /// The unit of its values.
    pub unit: Unit,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its heading, with the unit if all its cells share one.
    pub name: String,
    /// The alignment of its cells.
    pub kind: Cells,
    /// Whether it can be left out if there is no room.
    pub need: Need,
}

/// The alignment of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cells {
    /// Left-aligned.
    Words,
    /// Right-aligned, each with its own unit.
    Numbers,
    /// Aligned values in one unit, followed by their aligned intervals.
    Measured,
    /// Words that follow the last number of their row, where letters are placed.
    Following,
}

/// Whether a column can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Never.
    Always,
    /// If the page is too narrow.
    WithRoom,
}

/// A row, which is hidden with any of its subjects.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The labels of its subjects.
    pub subjects: Vec<String>,
    /// A cell for each column.
    pub cells: Vec<Cell>,
}

/// A cell.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// The interval of a value.
    pub interval: String,
    /// A detail after the text.
    pub detail: String,
    /// Its tone.
    pub tone: Tone,
    /// Whether it is code.
    pub is_code: bool,
    /// The sort key, unless the text serves.
    pub key: Option<f64>,
    /// The number of the suspect that explains it, from 1.
    pub alarm: Option<usize>,
    /// The numbers to draw.
    pub measured: Option<Measured>,
}

/// The numbers behind a cell.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Single values, if there is no interval.
    pub points: Vec<f64>,
}

impl Column {
    /// A column of words.
    pub fn words(name: impl AsRef<str>) -> Column {
        Column { name: clean(name.as_ref()), kind: Cells::Words, need: Need::Always }
    }

    /// A column of numbers with their units.
    pub fn numbers(name: impl AsRef<str>) -> Column {
        Column { kind: Cells::Numbers, ..Column::words(name) }
    }

    /// A column of estimates with their intervals in one unit, which is in the heading; missing ones are dashes.
    pub fn measured(name: &str, unit: Unit, values: &[Option<Estimate>]) -> (Column, Vec<Cell>) {
        let scale = common_scale(unit, values.iter().flatten().map(|one| one.value.abs()));
        Column::scaled(name, scale, values)
    }

    /// The same in a unit that other columns share.
    pub fn scaled(name: &str, scale: Scale, values: &[Option<Estimate>]) -> (Column, Vec<Cell>) {
        let cell = |one: &Option<Estimate>| {
            let Some(one) = one else { return Cell::nothing("–") };
            let shown = one.value / scale.divisor;
            let decimals = decimals(shown);
            let end = |end: f64| bound(end / scale.divisor, decimals);
            let interval = one.interval.map(|ends| (ends.low, ends.high));
            Cell {
                text: number(shown, decimals),
                interval: interval
                    .map_or(String::new(), |(low, high)| format!("[{}, {}]", end(low), end(high))),
                measured: Some(Measured { value: one.value, interval, points: Vec::new() }),
                ..Cell::default()
            }
            .key(one.value)
        };
        let name =
            if scale.symbol.is_empty() { name.to_owned() } else { format!("{name}, {}", scale.symbol) };
        (Column { kind: Cells::Measured, ..Column::words(name) }, values.iter().map(cell).collect())
    }

    /// Whether it reads from the left.
    pub fn is_text(&self) -> bool {
        matches!(self.kind, Cells::Words | Cells::Following)
    }

    /// The same column, left out if the page is too narrow.
    pub fn with_room(self) -> Column {
        Column { need: Need::WithRoom, ..self }
    }
}

impl Table {
    /// A table with these columns.
    pub fn of(title: impl AsRef<str>, columns: Vec<Column>) -> Table {
        Table { title: clean(title.as_ref()), columns, ..Table::default() }
    }

    /// Adds a column with a cell for each row, and creates missing rows.
    pub fn add(&mut self, (column, cells): (Column, Vec<Cell>)) {
        self.columns.push(column);
        self.rows.resize_with(cells.len().max(self.rows.len()), Row::default);
        self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.cells.push(cell));
    }

    /// Adds a row about these subjects.
    pub fn row(&mut self, subjects: &[&str], cells: Vec<Cell>) {
        self.rows.push(Row { subjects: subjects.iter().map(|one| clean(one)).collect(), cells });
    }

    /// The same table with a note on how to read it.
    pub fn note(mut self, text: impl AsRef<str>) -> Table {
        self.notes.push(clean(text.as_ref()));
        self
    }
}

impl Cell {
    /// Words.
    pub fn words(text: impl AsRef<str>) -> Cell {
        Cell { text: clean(text.as_ref()), ..Cell::default() }
    }

    /// Several lines.
    pub fn lines<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> Cell {
        let lines: Vec<String> = lines.into_iter().map(|line| clean(line.as_ref())).collect();
        Cell { text: lines.join("\n"), ..Cell::default() }
    }

    /// Code.
    pub fn code(text: impl AsRef<str>) -> Cell {
        Cell { is_code: true, ..Cell::words(text) }
    }

    /// No value, with the reason.
    pub fn nothing(why: impl AsRef<str>) -> Cell {
        Cell { tone: Tone::Faint, ..Cell::words(why) }
    }

    /// A value with its unit, and its interval where it has one.
    pub fn value(unit: Unit, value: f64, interval: Option<(f64, f64)>) -> Cell {
        let measured = Measured { value, interval, points: Vec::new() };
        Cell { measured: Some(measured), ..Cell::ranged(parts(unit, value, interval)) }.key(value)
    }

    /// The same for an estimate.
    pub fn estimate(unit: Unit, one: &Estimate) -> Cell {
        Cell::value(unit, one.value, one.interval.map(|ends| (ends.low, ends.high)))
    }

    /// A value in words, and its interval in brackets.
    pub fn ranged((value, interval): (String, String)) -> Cell {
        Cell { interval, ..Cell::words(value) }
    }

    /// The same cell with a sort key.
    pub fn key(self, key: f64) -> Cell {
        Cell { key: Some(key).filter(|key| key.is_finite()), ..self }
    }

    /// The same cell with a tone.
    pub fn tone(self, tone: Tone) -> Cell {
        Cell { tone, ..self }
    }

    /// The word of a verdict.
    pub fn verdict(kind: Kind) -> Cell {
        Cell::words(kind.word()).tone(Tone::of(kind))
    }

    /// A text with the number of the suspect and the detail.
    pub(super) fn told(&self, text: &str) -> String {
        let alarm = self.alarm.map_or(String::new(), |number| format!(" {number}"));
        format!("{text}{alarm}{}", in_brackets(&self.detail))
    }

    /// The value and its interval on one line.
    pub(super) fn joined(&self) -> String {
        let parts = [self.text.as_str(), &self.interval];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }
}
