//! The questions that people ask about layers, each of which is one difference within a subject, round by round: does
//! size matter, the number of files, new or changed, layer or mount, depth, the number of layers? All of them share
//! one level.

use super::{BIND, FIRST, LAST, NAME, at, count, size};
use crate::experiment::Setting;
use crate::stats::{Comparison, Decision, Estimate, Pairs, compare};
use crate::units::Unit;
use crate::verdict::View;
use crate::verdict::kind::Kind;

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
    /// The metric whose two values are compared.
    pub metric: &'static str,
    /// The topic that it belongs to.
    pub topic: Topic,
}

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    /// Which file, and what is done to it.
    File,
    /// Layer or mount.
    Mount,
    /// Which layer.
    Depth,
    /// How many layers.
    Layers,
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
        match self.compared.decision {
            Decision::Same => Kind::Same,
            Decision::More | Decision::Less => {
                let is_more = self.compared.decision == Decision::More;
                Kind::of_difference(is_more, Unit::Seconds, crate::units::Better::Less)
            }
            Decision::Undecided { .. } => Kind::Undecided,
            Decision::TooFew { .. } => Kind::TooFew,
        }
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
        let plan = view.plan();
        let mut own: Vec<usize> =
            view.cells_of(NAME).filter(|cell| plan.cells[*cell].subject == subject).collect();
        let setting = |cell: usize| -> &Setting { &plan.cells[cell].setting };
        let first = own.first().map(|cell| size(setting(*cell)));
        own.retain(|cell| Some(size(setting(*cell))) == first);
        Cells { view, own }
    }

    /// The numbers of layers, the smallest first.
    pub fn layers(&self) -> Vec<usize> {
        let mut all: Vec<_> = self.own.iter().filter_map(|cell| count(self.setting(*cell))).collect();
        all.sort_unstable();
        all.dedup();
        all
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
        let mut ask = |(topic, short), value: (Option<usize>, _), against: (Option<usize>, _)| {
            if let ((Some(cell), metric), (Some(other), than)) = (value, against) {
                let question = Question { short, metric, topic };
                all.push(Asked { question, value: (cell, metric), against: (other, than) });
            }
        };
        ask((Topic::File, "change: a large file, not a small one"), (in_few, "modify"), (in_few, "modify_1"));
        ask((Topic::File, "change: ten files, not one"), (in_few, "modify_many"), (in_few, "modify"));
        ask((Topic::File, "change: an image's file, not a new one"), (in_few, "modify"), (in_few, "new"));
        for (short, metric) in [
            ("write: to the root, not to a mount", "new"),
            ("change: in the root, not in a mount", "modify"),
            ("read: from the root, not from a mount", "read"),
        ] {
            ask((Topic::Mount, short), (in_few, metric), (mount, metric));
        }
        for (short, metric) in [
            ("open: of the first layer, not the last", "open"),
            ("read: of the first layer, not the last", "read"),
            ("change: of the first layer, not the last", "modify"),
        ] {
            ask((Topic::Depth, short), (first, metric), (last, metric));
        }
        if few < many {
            for (short, metric) in [
                ("open: of many layers, not of few", "open"),
                ("change: of many layers, not of few", "modify"),
            ] {
                ask((Topic::Layers, short), (first, metric), (in_few, metric));
            }
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
