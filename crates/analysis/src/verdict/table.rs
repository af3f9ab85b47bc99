//! Tables that belong to one experiment, in addition to the findings that all have. Plain data, computed once
//! and rendered everywhere.

use serde::{Serialize, Serializer};

use crate::stats::Estimate;
use crate::text::clean;
use crate::units::Unit;

/// A table of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentTable {
    /// The experiment's name.
    #[serde(skip)]
    pub experiment: &'static str,
    /// Its name in files.
    pub name: &'static str,
    /// What it shows, in a line.
    pub title: String,
    /// Its columns; the first says what a row is about.
    pub columns: Vec<Column>,
    /// Its rows, each with an item for every column.
    pub rows: Vec<Vec<Item>>,
    /// What a reader must know to read it, in sentences.
    pub notes: Vec<String>,
    /// What it answers, which the claims of a report contain.
    #[serde(skip)]
    pub answers: Vec<Answer>,

    /// What of it is the answer to the experiment's question, which stands before differences from a baseline.
    #[serde(skip)]
    pub screen: Screen,
}

/// What of a table is shown where there is little room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Screen {
    /// Nothing, as long as other tables answer.
    #[default]
    No,
    /// All of it.
    All,
    /// These columns of these rows, by their indices.
    Part {
        /// The columns.
        columns: Vec<usize>,
        /// The rows.
        rows: Vec<usize>,
    },
}

impl ExperimentTable {
    /// A table with neither notes nor answers.
    pub fn new(
        experiment: &'static str,
        name: &'static str,
        title: String,
        columns: Vec<Column>,
    ) -> ExperimentTable {
        let (rows, notes, answers, screen) = Default::default();
        ExperimentTable { experiment, name, title, columns, rows, notes, answers, screen }
    }

    /// The same with clean texts, which include labels and messages of engines.
    pub(super) fn cleaned(mut self) -> ExperimentTable {
        for item in self.rows.iter_mut().flatten() {
            if let Item::Text(text) | Item::Nothing(text) = item {
                *text = clean(text);
            }
        }
        let answers = self.answers.iter_mut().map(|one| &mut one.text);
        let texts = answers.chain(&mut self.notes).chain([&mut self.title]);
        texts.for_each(|text| *text = clean(text));
        self
    }

    /// The answers without their questions.
    pub fn told(&self) -> Vec<&str> {
        self.answers.iter().map(|one| one.text.as_str()).collect()
    }
}

/// What a table answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The question, in a few words.
    pub question: &'static str,
    /// The answer, in a sentence without a full stop.
    pub text: String,
    /// Whether it is decided by rounds or a model, so that jobs can be told what it means for them.
    pub is_decided: bool,
}

impl Answer {
    /// What answers a question as far as it is known.
    pub fn all(question: &'static str, texts: impl IntoIterator<Item = String>) -> Vec<Answer> {
        texts.into_iter().map(|text| Answer { question, text, is_decided: false }).collect()
    }

    /// The same where it is decided.
    pub fn decided(question: &'static str, texts: impl IntoIterator<Item = String>) -> Vec<Answer> {
        texts.into_iter().map(|text| Answer { question, text, is_decided: true }).collect()
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The base unit of its values; none if it holds texts.
    pub unit: Option<Unit>,
}

impl Column {
    /// A column of texts.
    pub fn of_texts(name: &str) -> Column {
        Column { name: name.to_owned(), unit: None }
    }

    /// A column of values.
    pub fn of_values(name: &str, unit: Unit) -> Column {
        Column { name: name.to_owned(), unit: Some(unit) }
    }
}

/// An item of a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Item {
    /// Words.
    Text(String),
    /// A value in the column's unit.
    Value(f64),
    /// A value with its interval.
    Interval(Estimate),
    /// Why there is no value: `not applicable`.
    Nothing(#[serde(serialize_with = "nothing")] String),
}

impl Item {
    /// The value, or why there is none.
    pub fn value(value: Option<f64>, why: &str) -> Item {
        value.map_or_else(|| Item::Nothing(why.to_owned()), Item::Value)
    }

    /// The value with its interval, or why there is none.
    pub fn interval(found: Option<Estimate>, why: &str) -> Item {
        found.map_or_else(|| Item::Nothing(why.to_owned()), Item::Interval)
    }

    /// The words, or why there are none.
    pub fn text<T: Into<String>>(words: Option<T>, why: &str) -> Item {
        words.map_or_else(|| Item::Nothing(why.to_owned()), |words| Item::Text(words.into()))
    }
}

/// The notes of a table.
pub fn notes<const N: usize>(sentences: [&str; N]) -> Vec<String> {
    sentences.map(str::to_owned).to_vec()
}

fn nothing<S: Serializer>(why: &str, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map([("nothing", why)])
}
