//! Pictures: each a drawing chosen for a question, with a title, a caption on how to read it, a text for readers
//! who cannot see it, and its data as a table. Plain data, from which every format draws the same picture.
//!
//! A drawing decides nothing and computes only positions. Deliberately absent: the look of a picture in a page (the
//! page has the theme), and interaction: marks only name their subject.

mod distribution;
mod grid;
mod growth;
mod intervals;
mod ladder;
mod letters;
mod payers;
mod plane;
pub mod png;
mod replicates;
pub(crate) mod rows;
pub mod svg;
mod time_series;
mod waterfall;

use crate::distinct;
use crate::report::File;
use crate::report::model::{Experiment, Report, Row, Setting};
use crate::report::text::{after_comma, clean};

pub use ladder::summary;

use grid::Grid;
use plane::Plane;
use rows::Rows;

/// With more subjects in one plane, variants are left out.
const CROWDED: usize = 14;

/// A picture with its texts and data.
#[derive(Debug, Clone)]
pub struct Picture {
    /// The unique stem of its file name, of `a` to `z`, digits, `-` and `_`.
    pub name: String,
    /// Its title.
    pub title: String,
    /// How to read it, in sentences.
    pub caption: Vec<String>,
    /// A text for readers who cannot see it.
    pub alternative: String,
    /// The data behind it.
    pub table: Table,
    /// The drawing.
    drawing: Drawing,
}

impl Picture {
    /// Its title, texts and data as a text file.
    pub fn words(&self) -> File {
        let mut text = format!("{}\n\n{}\n\n", self.title, self.alternative);
        self.caption.iter().for_each(|sentence| text.push_str(&format!("{sentence}\n")));
        for row in std::iter::once(&self.table.columns).chain(&self.table.rows) {
            text.push_str(&format!("\n{}", row.join("\t")));
        }
        text.push('\n');
        File { name: format!("{}.txt", self.name), bytes: text.into_bytes() }
    }
}

/// The data behind a picture, as texts with their units.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// The column names.
    pub columns: Vec<String>,
    /// Rows with a text for each column.
    pub rows: Vec<Vec<String>>,
}

/// The kinds of drawings.
#[derive(Debug, Clone)]
enum Drawing {
    /// Rows of marks over one axis: how large is it, how precise, and what are its parts?
    Rows(Rows),
    /// Curves over two axes: how does it grow, how is it distributed, how does it change over time?
    Plane(Plane),
    /// A map over two dimensions.
    Grid(Grid),
}

/// The pictures of an experiment, the most important first, without those round by round, which a page shows in its
/// own way.
pub fn of_experiment(report: &Report, experiment: &Experiment) -> Vec<Picture> {
    let mut pictures = waterfall::pictures(experiment);
    pictures.extend(payers::pictures(report, experiment));
    pictures.extend(grid::pictures(report, experiment));
    pictures.extend(growth::pictures(experiment));
    pictures.extend(intervals::pictures(report, experiment, &metrics(experiment)));
    pictures.extend(replicates::pictures(experiment));
    pictures.extend(distribution::pictures(report, experiment));
    if pictures.is_empty() {
        pictures = intervals::pictures(report, experiment, &[0]);
    }
    keep_names_distinct(&mut pictures);
    pictures
}

/// Every picture of a run, the summary first, and the rounds of an experiment after its other pictures.
pub fn all(report: &Report) -> Vec<Picture> {
    let of_experiments = report.experiments.iter().flat_map(|experiment| {
        let mut pictures = of_experiment(report, experiment);
        pictures.extend(time_series::pictures(report, experiment));
        keep_names_distinct(&mut pictures);
        pictures
    });
    summary(report).into_iter().chain(of_experiments).collect()
}

/// Every picture as a file, with a file of its texts and data.
pub(super) fn svg_files(report: &Report) -> anyhow::Result<Vec<File>> {
    let files = |picture: Picture| {
        let bytes = svg::draw(&picture, svg::Style::Standalone).into_bytes();
        [File { name: format!("{}.svg", picture.name), bytes }, picture.words()]
    };
    Ok(all(report).into_iter().flat_map(files).collect())
}

/// Every picture in two sizes, with a file of its texts and data.
pub(super) fn png_files(report: &Report) -> anyhow::Result<Vec<File>> {
    let mut files = Vec::new();
    for picture in all(report) {
        for (scale, mark) in [(1.0, ""), (2.0, "@2x")] {
            let bytes = png::draw_at(&picture, scale)?;
            files.push(File { name: format!("{}{mark}.png", picture.name), bytes });
        }
        files.push(picture.words());
    }
    Ok(files)
}

/// The metrics with verdicts, or else the first; none for an experiment that has only tables of its own.
fn metrics(experiment: &Experiment) -> Vec<usize> {
    if experiment.speaks_for_itself() {
        return Vec::new();
    }
    let decisive = experiment.metrics.iter().enumerate().filter(|(_, metric)| metric.decisive);
    match decisive.map(|(index, _)| index).collect::<Vec<_>>() {
        none if none.is_empty() => (0..experiment.metrics.len().min(1)).collect(),
        decisive => decisive,
    }
}

/// All subjects of an experiment, each once, followed by its variants.
fn subjects(experiment: &Experiment) -> Vec<&Row> {
    let mut rows: Vec<&Row> = experiment.rows().map(|(_, _, row)| row).collect();
    let labels = distinct(rows.iter().map(|row| row.label.as_str()));
    let place = |row: &Row| {
        let original = row.variant_of.as_ref().unwrap_or(&row.label);
        labels.iter().position(|label| label == original).unwrap_or(usize::MAX)
    };
    rows.sort_by(|one, other| place(one).cmp(&place(other)).then(one.label.cmp(&other.label)));
    rows.dedup_by(|next, row| next.label == row.label);
    rows
}

/// A subject in a setting.
fn row_of<'a>(setting: &'a Setting, label: &str) -> Option<&'a Row> {
    setting.ladders.iter().flat_map(|ladder| &ladder.rows).find(|row| row.label == label)
}

/// The subjects of a setting, each once, for a plane that shows all of them.
fn drawn(setting: &Setting) -> Vec<&Row> {
    let mut rows = setting.subjects();
    if setting.ladders.iter().map(|ladder| ladder.rows.len()).sum::<usize>() > CROWDED {
        rows.retain(|row| row.variant_of.is_none());
    }
    rows
}

/// A setting at the end of a title.
fn under(setting: &Setting) -> String {
    after_comma(&clean(&setting.text))
}

/// A file name made of words.
pub(crate) fn named(words: &[&str]) -> String {
    let letter = |letter: char| match letter.to_ascii_lowercase() {
        plain @ ('a'..='z' | '0'..='9' | '_') => plain,
        _ => '-',
    };
    let text: String = words.join("-").chars().map(letter).collect();
    let parts: Vec<_> = text.split('-').filter(|part| !part.is_empty()).collect();
    let mut name = parts.join("-");
    // File systems allow 255 bytes; shorter names are easier to read.
    name.truncate(80);
    name
}

/// Numbers names that already exist.
fn keep_names_distinct(pictures: &mut [Picture]) {
    for index in 1..pictures.len() {
        let (before, rest) = pictures.split_at_mut(index);
        let own = rest[0].name.clone();
        let is_free = |name: &String| before.iter().all(|picture| picture.name != *name);
        let numbered = (2..).map(|number| format!("{own}-{number}"));
        if let Some(name) = std::iter::once(own.clone()).chain(numbered).find(is_free) {
            rest[0].name = name;
        }
    }
}

/// The colour of a layer: an index into the palette of `svg`.
fn colour_of_layer(layer: &str) -> usize {
    match layer {
        "bare" => 0,
        "floor" => 1,
        "runtime" => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fit_for_files() {
        assert_eq!(named(&["start", "returned", "prestate=idle; ../x"]), "start-returned-prestate-idle-x");
        assert!(named(&["é", &"a b".repeat(99)]).len() <= 80);
    }
}
