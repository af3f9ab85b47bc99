//! The questions that people ask about layers, each of which is one difference within a subject, round by round: does
//! size matter, the number of files, new or changed, layer or mount, depth, the number of layers? All of them share
//! one level.

use std::collections::BTreeSet;

use super::{BIND, FIRST, LAST, NAME, at, count, size};
use crate::experiment::Setting;
use crate::stats::{Comparison, Estimate, Pairs, compare};
use crate::units::{Better, Unit};
use crate::verdict::{Kind, Verdict, View};

/// A cell and one of its metrics.
type Value = (usize, &'static str);

/// A question, and the two values whose difference answers it.
struct Asked {
    question: Question,
    value: Value,
    against: Value,
}

/// What a difference is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Question {
    /// In a few words.
    pub short: &'static str,
    /// Whether it asks which layer a file is in, or how many layers there are.
    pub is_of_layers: bool,
}

/// A question that has been answered.
#[derive(Debug)]
pub(super) struct Answer {
    /// The subject.
    pub subject: usize,
    /// The question.
    pub question: Question,
    /// The difference, and what it means.
    pub compared: Comparison,
}

impl Answer {
    /// Its verdict in a word.
    pub fn kind(&self) -> Kind {
        Verdict::from(self.compared.decision).kind(Unit::Seconds, Better::Less)
    }
}

/// The cells of a subject in the first size that was chosen.
pub(super) struct Cells<'a> {
    view: &'a View<'a>,
    own: Vec<usize>,
}

impl<'a> Cells<'a> {
    /// Those of a subject.
    pub fn of(view: &'a View<'a>, subject: usize) -> Cells<'a> {
        let mut own: Vec<usize> =
            view.cells_of(NAME).filter(|cell| view.cell(*cell).subject == subject).collect();
        let size_of = |cell: &usize| size(&view.cell(*cell).setting);
        let first = own.first().map(size_of);
        own.retain(|cell| Some(size_of(cell)) == first);
        Cells { view, own }
    }

    /// The numbers of layers, the smallest first.
    pub fn layers(&self) -> Vec<usize> {
        let all: BTreeSet<usize> = self.own.iter().filter_map(|cell| count(self.setting(*cell))).collect();
        all.into_iter().collect()
    }

    /// The cell in this layer of an image with so many, or in a mount.
    pub fn find(&self, layers: Option<usize>, place: &str) -> Option<usize> {
        let fits = |cell: &usize| count(self.setting(*cell)) == layers && at(self.setting(*cell)) == place;
        self.own.iter().copied().find(fits)
    }

    fn setting(&self, cell: usize) -> &'a Setting {
        &self.view.cell(cell).setting
    }

    /// The questions that these cells can answer.
    fn asked(&self) -> Vec<Asked> {
        let layers = self.layers();
        let (Some(&few), Some(&many)) = (layers.first(), layers.last()) else { return Vec::new() };
        let in_few = self.find(Some(few), FIRST);
        let mount = self.find(None, BIND);
        let (first, last) = (self.find(Some(many), FIRST), self.find(Some(many), LAST));
        let mut all = Vec::new();
        let mut ask = |short, is_of_layers, value: (Option<usize>, _), against: (Option<usize>, _)| {
            if let ((Some(cell), metric), (Some(other), than)) = (value, against) {
                let question = Question { short, is_of_layers };
                all.push(Asked { question, value: (cell, metric), against: (other, than) });
            }
        };
        ask("change: a large file, not a small one", false, (in_few, "modify"), (in_few, "modify_1"));
        ask("change: ten files, not one", false, (in_few, "modify_many"), (in_few, "modify"));
        ask("change: an image's file, not a new one", false, (in_few, "modify"), (in_few, "new"));
        ask("write: to the root, not to a mount", false, (in_few, "new"), (mount, "new"));
        ask("change: in the root, not in a mount", false, (in_few, "modify"), (mount, "modify"));
        ask("read: from the root, not from a mount", false, (in_few, "read"), (mount, "read"));
        ask("open: of the first layer, not the last", true, (first, "open"), (last, "open"));
        ask("read: of the first layer, not the last", true, (first, "read"), (last, "read"));
        ask("change: of the first layer, not the last", true, (first, "modify"), (last, "modify"));
        if few < many {
            ask("open: of many layers, not of few", true, (first, "open"), (in_few, "open"));
            ask("change: of many layers, not of few", true, (first, "modify"), (in_few, "modify"));
        }
        all
    }
}

/// The values of both sides in the same rounds.
fn pairs(view: &View<'_>, (cell, metric): Value, (against, than): Value) -> Option<Pairs> {
    let sides = [(against, view.metric_index(against, than)?), (cell, view.metric_index(cell, metric)?)];
    view.columns.pairs_of(sides)
}

/// The answers of these subjects.
pub(super) fn all(view: &View<'_>, subjects: &[usize]) -> Vec<Answer> {
    let of_subject = |&subject: &usize| {
        let asked = Cells::of(view, subject).asked().into_iter();
        asked.filter_map(move |one| Some((subject, pairs(view, one.value, one.against)?, one)))
    };
    let asked: Vec<_> = subjects.iter().flat_map(of_subject).collect();
    let level = view.plan().level(asked.len());
    let answer = |(subject, pairs, one): (usize, Pairs, Asked)| {
        let (cell, name) = one.value;
        let metric = view.metric(cell, view.metric_index(cell, name)?);
        let compared = compare(&pairs, view.plan().margin_of(NAME, metric), level);
        Some(Answer { subject, question: one.question, compared })
    };
    asked.into_iter().filter_map(answer).collect()
}

/// What each layer above a file adds to opening it for the first time.
pub(super) fn each_layer_adds(view: &View<'_>, cells: &Cells<'_>) -> Option<Estimate> {
    let many = *cells.layers().last()?;
    let (first, last) = (cells.find(Some(many), FIRST)?, cells.find(Some(many), LAST)?);
    let pairs = pairs(view, (first, "open"), (last, "open"))?;
    // The program's layer is above both.
    let between = many.checked_sub(2).filter(|count| *count > 0)? as f64;
    Some(pairs.difference(view.plan().level(1)).map(|seconds| seconds / between))
}
