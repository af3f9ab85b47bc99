//! Published results for people: a list of sources, or one of them with all that it says.

use serde::Serialize;

use crate::document::{Block, Cell, Column, Document, Findings, Item, Look, Section, Table, Tone};
use crate::reference::counterpart::{self, Counterpart};
use crate::reference::{self, Number, Source, check, joined};
use crate::report::model::{Caution, Doubt, Standing};
use crate::units::counted;

/// What was asked for.
#[derive(Serialize)]
pub(super) struct Collection {
    provenance: &'static str,
    sources: Vec<Examined>,
    #[serde(skip)]
    is_one: bool,
}

/// A source with what our rules find in it.
#[derive(Serialize)]
struct Examined {
    #[serde(flatten)]
    source: &'static Source,
    suspects: Vec<Doubt>,
    numbers: Vec<Told>,
}

/// A number with what of ours is the same.
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
        let examined = |source: &'static Source| Examined {
            source,
            suspects: check::doubts(source),
            numbers: source.numbers.iter().map(told).collect(),
        };
        Collection {
            provenance: reference::provenance(),
            sources: reference::sources().iter().filter(is_wanted).map(examined).collect(),
            is_one: chosen.is_some(),
        }
    }
}

impl Findings for Collection {
    const SCHEMA: &'static str = "dunnage-reference/2";
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

    /// One row a number, in the columns of the collection and one more.
    fn further(&self, _: &str) -> Option<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        const HEAD: &str =
            "source,experiment,subject,params,metric,unit,rep,value,ci_low,ci_high,n,note,counterpart";
        writer.write_record(HEAD.split(',')).ok()?;
        for (source, Told { number: one, counterpart, .. }) in
            self.sources.iter().flat_map(|source| source.numbers.iter().map(move |one| (source, one)))
        {
            let count = |count: Option<u32>| count.map(|count| count.to_string()).unwrap_or_default();
            let end = |at: usize| one.interval.map(|ends| ends[at].to_string()).unwrap_or_default();
            let row = [
                &source.source.name,
                &one.experiment,
                &one.subject,
                &one.conditions_in_words(),
                &one.metric,
                &one.unit,
                &count(one.repetition),
                &one.printed,
                &end(0),
                &end(1),
                &count(one.repetitions),
                &one.note,
                &in_words(counterpart),
            ];
            writer.write_record(row).ok()?;
        }
        String::from_utf8(writer.into_inner().ok()?).ok()
    }
}

impl Collection {
    fn list(&self) -> Document {
        let numbers = self.sources.iter().map(|one| one.numbers.len()).sum();
        let title = format!(
            "Published results: {}, {}",
            counted(self.sources.len(), "source"),
            counted(numbers, "number")
        );
        let columns = ["source", "title", "experiments"].map(Column::words).into_iter();
        let counts = ["numbers", "with a counterpart", "cautions", "suspect"].map(Column::numbers);
        let mut table = Table::of("", columns.chain(counts).collect());
        for one in &self.sources {
            let has = |told: &&Told| matches!(told.counterpart, Counterpart::Metric(_));
            let counts = [
                one.numbers.len(),
                one.numbers.iter().filter(has).count(),
                one.source.cautions.len(),
                one.suspects.len(),
            ];
            let words = [&one.source.title, &one.source.experiments.join(", ")].map(Cell::words);
            let counts = counts.map(|count| Cell::words(count.to_string()).key(count as f64));
            table.row(&[], [Cell::code(&one.source.name)].into_iter().chain(words).chain(counts).collect());
        }
        Document {
            answer: vec![
                Block::words(
                    "Shown beside ours where asked for, each with its cautions; they enter no verdict and no average.",
                ),
                Block::Table(table),
                Block::facts([
                    ("dunnage reference SOURCE", "one of them, with its numbers and cautions"),
                    ("dunnage report DIR --reference", "beside the numbers of a run"),
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
        let place = match (&source.url, &source.revision) {
            (Some(url), Some(revision)) => &format!("{url} at {revision}"),
            (Some(url), None) => url,
            (None, _) => "not public",
        };
        let facts = [
            ("where", place),
            ("licence", &source.licence),
            ("language", &source.language),
            ("hardware", &source.hardware),
            ("kernel", &source.kernel),
            ("engines", &source.engines),
            ("method", &source.method),
        ];
        facts.iter().for_each(|(name, text)| document.fact(name, text));
        let general = source.cautions.iter().filter(|one| one.about.is_empty()).map(cautioned);
        document.answer = Block::titled("Cautions about all of it", vec![Block::List(general.collect())]);
        for (index, name) in source.experiments.iter().enumerate() {
            let own = source.cautions.iter().filter(|one| one.about.contains(name)).map(cautioned);
            let suspects = self.suspects.iter().filter(|one| one.experiment == *name).map(suspected);
            let mut blocks = vec![Block::List(own.chain(suspects).collect())];
            blocks.extend(self.numbers(name));
            let section = Section::of(name, blocks);
            // Names are a stranger's; this one leads there.
            document.sections.push(Section { name: format!("experiment-{}", index + 1), ..section });
        }
        document
    }

    /// Numbers of one quantity in the same conditions, by subject, below what of ours is the same.
    fn numbers(&self, experiment: &str) -> Vec<Block> {
        let own: Vec<&Told> = self.numbers.iter().filter(|one| one.number.experiment == experiment).collect();
        let key = |one: &Told| {
            let number = one.number;
            (
                in_words(&one.counterpart),
                number.metric.clone(),
                joined(&number.without(&["stat"])),
                number.subject.clone(),
            )
        };
        let mut groups: Vec<(_, Vec<&Number>)> = Vec::new();
        for one in own {
            match groups.iter_mut().find(|(known, _)| *known == key(one)) {
                Some((_, numbers)) => numbers.push(one.number),
                None => groups.push((key(one), vec![one.number])),
            }
        }
        // In the order in which each counterpart comes first.
        let first = |of: &str| groups.iter().position(|((counterpart, ..), _)| counterpart == of);
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|&at| first(&groups[at].0.0));
        let groups: Vec<_> = order.into_iter().map(|at| groups[at].clone()).collect();
        let mut blocks = Vec::new();
        for group in groups.chunk_by(|(one, _), (other, _)| one.0 == other.0) {
            let columns = ["metric", "conditions", "subject", "published"].map(Column::words);
            let title = format!("counterpart: {}", group[0].0.0);
            let mut table = Table::of(title, columns.into());
            for ((_, metric, conditions, subject), numbers) in group {
                let words = [metric, conditions, subject].map(Cell::words);
                table.row(&[], words.into_iter().chain([Cell::words(published(numbers))]).collect());
            }
            blocks.push(Block::Table(table));
        }
        blocks
    }
}

fn cautioned(caution: &Caution) -> Item {
    let mark = if caution.standing == Standing::Guess { "caution, a guess" } else { "caution" };
    Item::of(&caution.text).marked(Tone::Open, mark)
}

fn suspected(one: &Doubt) -> Item {
    let item = Item::of(format!("{}: {}", one.rule, one.evidence)).marked(Tone::Alarm, "suspect");
    item.detail(format!("probably: {}", one.mechanism))
}

/// `start returned`, or why there is none.
fn in_words(counterpart: &Counterpart) -> String {
    match counterpart {
        Counterpart::None(why) => format!("none: {why}"),
        other => other.in_words(),
    }
}

/// `313.9 299.8 305.1 ms; mean 307.8 ms of 10; min 299.8 ms`, and what is noted of them, once.
fn published(numbers: &[&Number]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let single: Vec<&str> = numbers
        .iter()
        .filter(|one| one.repetition.is_some() && one.condition("stat").is_none())
        .map(|one| one.printed.as_str())
        .collect();
    if let Some(first) = numbers.first().filter(|_| !single.is_empty()) {
        parts.push(format!("{} {}", single.join(" "), first.unit));
    }
    for one in numbers.iter().filter(|one| one.repetition.is_none() || one.condition("stat").is_some()) {
        let interval = one.interval.map(|[low, high]| format!(" [{low}, {high}]")).unwrap_or_default();
        let of = one.repetitions.map(|count| format!(" of {count}")).unwrap_or_default();
        parts.push(format!("{} {}{interval} {}{of}", one.statistic(), one.printed, one.unit));
    }
    let mut notes: Vec<&str> =
        numbers.iter().map(|one| one.note.as_str()).filter(|note| !note.is_empty()).collect();
    notes.dedup();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    format!("{}{notes}", parts.join("; "))
}
