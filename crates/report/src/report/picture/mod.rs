//! Pictures: each a drawing chosen for a question, with what it is called, how to read it, what it shows in words,
//! and the data behind it as a table. Plain data, of which every format that can show a picture draws the same.
//!
//! A drawing decides nothing and computes nothing but places. Deliberately absent: what a picture looks like in a
//! page (its theme belongs to whoever embeds it), and interaction: marks only say to which subject they belong.

pub mod axis;
pub(crate) mod changes;
mod courses;
mod distribution;
mod grid;
mod intervals;
mod ladder;
mod letters;
mod over;
pub mod png;
mod replicates;
pub mod svg;
mod tracks;
mod waterfall;

use crate::report::File;
use crate::report::model::{Experiment, Report};

pub use changes::Changes;
pub use distribution::Distribution;
pub use grid::Grid;
pub use intervals::Intervals;
pub use ladder::Ladder;
pub use over::Over;
pub use tracks::Tracks;
pub use waterfall::Waterfall;

/// A picture with all that is told beside it.
#[derive(Debug, Clone)]
pub struct Picture {
    /// The stem of a file's name, of `a` to `z`, digits, `-` and `_`; no other picture of the report has it.
    pub name: String,
    /// The experiment that its data are of.
    pub experiment: &'static str,
    /// What it shows, in a line.
    pub title: String,
    /// How to read it, in sentences.
    pub caption: Vec<String>,
    /// What it shows, for whoever does not see it.
    pub alternative: String,
    /// The data behind it.
    pub table: Table,
    /// What is drawn.
    pub drawing: Drawing,
}

impl Picture {
    /// What it shows, how to read it and the data behind it, as a text file.
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
    /// The heads.
    pub columns: Vec<String>,
    /// Rows with a text for each column.
    pub rows: Vec<Vec<String>>,
}

/// What is drawn, a kind for each kind of question.
#[derive(Debug, Clone)]
pub enum Drawing {
    /// How large is it, how sure is that, and what lies behind it?
    Intervals(Intervals),
    /// Which share of the values is no larger?
    Distribution(Distribution),
    /// What happened one after the other?
    Tracks(Tracks),
    /// What does each layer add?
    Ladder(Ladder),
    /// What does each piece cost, and do the prices make the whole?
    Waterfall(Waterfall),
    /// What happens where two things meet?
    Grid(Grid),
    /// How does it grow?
    Over(Over),
    /// What is not what it was?
    Changes(Changes),
}

/// The pictures of an experiment, the most important first. What there is round by round is apart: a page shows it in its
/// own way, and nothing twice.
pub fn of_experiment(report: &Report, experiment: &Experiment) -> Vec<Picture> {
    let mut pictures = waterfall::pictures(experiment);
    pictures.extend(grid::pictures(report, experiment));
    pictures.extend(over::pictures(experiment));
    pictures.extend(intervals::pictures(report, experiment));
    pictures.extend(replicates::pictures(experiment));
    pictures.extend(distribution::pictures(report, experiment));
    keep_names_distinct(&mut pictures);
    pictures
}

/// The pictures of an experiment, and after them its rounds.
fn with_rounds(report: &Report, experiment: &Experiment) -> Vec<Picture> {
    let mut pictures = of_experiment(report, experiment);
    pictures.extend(courses::pictures(report, experiment));
    keep_names_distinct(&mut pictures);
    pictures
}

/// The picture of the whole run: what each layer adds. None where no experiment has layers above each other.
pub fn summary(report: &Report) -> Option<Picture> {
    ladder::picture(report)
}

/// Every picture of a run, the summary first.
pub fn all(report: &Report) -> Vec<Picture> {
    let of_experiments = report.experiments.iter().flat_map(|experiment| with_rounds(report, experiment));
    summary(report).into_iter().chain(of_experiments).collect()
}

/// A name for a file out of words.
pub(crate) fn named(words: &[&str]) -> String {
    let letter = |letter: char| match letter.to_ascii_lowercase() {
        plain @ ('a'..='z' | '0'..='9' | '_') => plain,
        _ => '-',
    };
    let text: String = words.join("-").chars().map(letter).collect();
    let parts: Vec<_> = text.split('-').filter(|part| !part.is_empty()).collect();
    let mut name = parts.join("-");
    // A file system takes 255 bytes, and a person fewer.
    name.truncate(80);
    name
}

/// Numbers names that are there already.
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

/// The class of a layer's colour: an index into the palette of `svg`.
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
