//! Pictures as the page shows them: drawn into it, with the data behind them folded below.

use super::table::{Cell, Head, Line, Table};
use crate::report::picture::{self, Picture, svg};

/// A picture in the page.
#[derive(Debug)]
pub(crate) struct Figure {
    pub title: String,
    pub caption: Vec<String>,
    /// The drawing, whose texts and attributes its own module escapes.
    pub drawing: String,
    /// The data behind it.
    pub table: Table,
}

/// Draws it. Whose a row of its data is, is told by a text in it that is a subject's label.
pub(crate) fn figure(picture: Picture, labels: &[String]) -> Figure {
    let drawing = picture::svg::draw(&picture, svg::Style::Inline);
    let line = |row: &Vec<String>| Line {
        subjects: row.iter().filter(|text| labels.contains(text)).cloned().collect(),
        cells: row.iter().map(Cell::text).collect(),
    };
    let table = Table {
        caption: format!("{}, in numbers", picture.title),
        heads: picture.table.columns.iter().map(Head::text).collect(),
        lines: picture.table.rows.iter().map(line).collect(),
        ..Table::default()
    };
    Figure { title: picture.title, caption: picture.caption, drawing, table }
}
