//! Published results as a document: a list of sources, or one source in full.

use dunnage_analysis::group::in_groups;
use serde::Serialize;

use crate::document::{Block, Cell, Column, Document, Findings, Look, Section, Table, csv};
use crate::reference::counterpart::{self, Counterpart};
use crate::reference::{self, Number, Published, Source, joined, shown};
use crate::units::counted;

/// The sources to show.
#[derive(Serialize)]
pub(super) struct Collection {
    provenance: &'static str,
    sources: Vec<Examined>,
    #[serde(skip)]
    is_one: bool,
}

/// A source with its numbers.
#[derive(Serialize)]
struct Examined {
    #[serde(flatten)]
    source: &'static Source,
    numbers: Vec<Told>,
}

/// A number with dunnage's metric for the same quantity.
#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    number: &'static Number,
    statistic: &'static str,
    counterpart: Counterpart,
}

impl Collection {
    /// One source, or all of them.
    pub fn of(chosen: Option<&'static Source>) -> Collection {
        let is_wanted = |source: &&Source| chosen.is_none_or(|one| one.name == source.name);
        let told = |number: &'static Number| Told {
            number,
            statistic: number.statistic(),
            counterpart: counterpart::of(number),
        };
        let examined =
            |source: &'static Source| Examined { source, numbers: source.numbers.iter().map(told).collect() };
        Collection {
            provenance: reference::provenance(),
            sources: reference::sources().iter().filter(is_wanted).map(examined).collect(),
            is_one: chosen.is_some(),
        }
    }
}

impl Findings for Collection {
    const SCHEMA: &'static str = "dunnage-reference/3";
    const FURTHER: &'static [&'static str] = &["csv"];

    fn data(&self) -> impl Serialize {
        self
    }

    fn document(&self, _: &Look) -> Document {
        let mut document = match self.sources.first() {
            Some(one) if self.is_one => one.document(),
            _ => self.list(),
        };
        document.sections.push(Section::of("Provenance", vec![Block::note(self.provenance)]));
        document
    }

    /// One row per number, with the columns of the collection and the counterpart.
    fn further(&self, _: &str) -> Option<String> {
        const HEAD: &str =
            "source,experiment,subject,params,metric,unit,rep,value,ci_low,ci_high,n,note,counterpart";
        let all = self.sources.iter().flat_map(|one| one.numbers.iter().map(move |told| (one.source, told)));
        let row = |(source, Told { number: one, counterpart, .. }): (&'static Source, &Told)| {
            let end = |at: usize| one.interval.map(|ends| ends[at].to_string());
            (
                (&source.name, &one.experiment, &one.subject, one.conditions_in_words()),
                (&one.metric, &one.unit, one.repetition, &one.printed, end(0), end(1)),
                (one.repetitions, &one.note, in_words(counterpart)),
            )
        };
        csv(HEAD, all.map(row))
    }
}

impl Collection {
    fn list(&self) -> Document {
        let numbers = counted(self.sources.iter().map(|one| one.numbers.len()).sum(), "number");
        let title = format!("Published results: {}, {numbers}", counted(self.sources.len(), "source"));
        let columns = ["source", "title", "experiments"].map(Column::words).into_iter();
        let counts = ["numbers", "with a counterpart", "cautions", "suspect"].map(Column::numbers);
        let mut table = Table::of("", columns.chain(counts).collect());
        for one in &self.sources {
            let has = |told: &&Told| matches!(told.counterpart, Counterpart::Metric(_));
            let counts = [
                one.numbers.len(),
                one.numbers.iter().filter(has).count(),
                one.source.cautions.len(),
                one.source.suspects.len(),
            ];
            let words = [&one.source.title, &one.source.experiments.join(", ")].map(Cell::words);
            let counts = counts.map(|count| Cell::words(count.to_string()).key(count as f64));
            table.row(&[], [Cell::code(&one.source.name)].into_iter().chain(words).chain(counts).collect());
        }
        Document {
            answer: vec![
                Block::words(
                    "Reports show them on request, each with its cautions. They do not affect verdicts or averages.",
                ),
                Block::Table(table),
                Block::facts([
                    ("dunnage reference SOURCE", "one source, with its numbers and cautions"),
                    ("dunnage report DIR --reference", "next to the numbers of a run"),
                ]),
            ],
            ..Document::titled(&title)
        }
    }
}

impl Examined {
    fn document(&self) -> Document {
        let source = self.source;
        let mut document = Document::titled(&format!("{}: {}", source.name, source.title));
        shown::facts(source).iter().for_each(|(name, text)| document.fact(name, text));
        let general = source.cautions.iter().filter(|one| one.about.is_empty());
        document.answer =
            Block::titled("Cautions about all of its numbers", vec![shown::remarks(general, [])]);
        for (index, name) in source.experiments.iter().enumerate() {
            let own = source.cautions.iter().filter(|one| one.about.contains(name));
            let suspects = source.suspects.iter().filter(|one| one.experiment == *name);
            let mut blocks = vec![shown::remarks(own, suspects)];
            blocks.extend(self.numbers(name));
            let section = Section::of(name, blocks);
            // The experiment's name comes from outside, so the anchor is numbered.
            document.sections.push(Section { name: format!("experiment-{}", index + 1), ..section });
        }
        document
    }

    /// Numbers of one quantity under the same conditions, by subject, below dunnage's counterpart.
    fn numbers(&self, experiment: &str) -> Vec<Block> {
        let table = |(counterpart, all): (String, Vec<&Told>)| {
            let columns = ["metric", "conditions", "subject", "published"].map(Column::words);
            let mut table = Table::of(format!("counterpart: {counterpart}"), columns.into());
            let row = |one: &&Told| {
                let number = one.number;
                [number.metric.clone(), joined(&number.without(&["stat"])), number.subject.clone()]
            };
            for (words, numbers) in in_groups(all, row) {
                let published: Vec<_> = numbers.iter().map(|one| Published::of(one.number)).collect();
                table.row(
                    &[],
                    words.map(Cell::words).into_iter().chain([shown::numbers(&published)]).collect(),
                );
            }
            Block::Table(table)
        };
        let own = self.numbers.iter().filter(|one| one.number.experiment == experiment);
        in_groups(own, |one| in_words(&one.counterpart)).into_iter().map(table).collect()
    }
}

/// `start returned`, or why there is no counterpart.
fn in_words(counterpart: &Counterpart) -> String {
    match counterpart {
        Counterpart::None(why) => format!("none: {why}"),
        other => other.in_words(),
    }
}
