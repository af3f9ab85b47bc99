//! Histories for people: where levels changed, the values of each cell from run to run, and the runs.

use serde::Serialize;

use super::{csv, words};
use crate::document::{
    Block, Cell, Column, Document, Drawn, Extent, Findings, Item, Look, Section, TALL, Table, Tone, fitted,
};
use crate::report::text::{confidence, in_brackets, number};
use crate::units::counted;
use crate::verdict::Kind;
use dunnage_analysis::history::{Change, History, Series, Value};

/// With at most so many cells, there is room for every run.
const FEW: usize = 3;
/// The most lines of time series that fit next to the answer.
const COURSES: usize = 24;
/// The most characters of a drawn time series.
const COURSE: usize = 40;

/// The histories of all machines.
#[derive(Debug, Serialize)]
pub struct Histories {
    /// One for each machine.
    pub histories: Vec<History>,
}

impl Findings for Histories {
    const SCHEMA: &'static str = "dunnage-history/3";
    const FURTHER: &'static [&'static str] = &["csv"];

    fn data(&self) -> impl Serialize {
        self
    }

    fn further(&self, _: &str) -> Option<String> {
        csv::render(&self.histories)
    }

    fn document(&self, _: &Look) -> Document {
        let of_all: Vec<String> = self.histories.iter().map(title).collect();
        let mut document = Document::titled(&of_all.join("; "));
        for (index, history) in self.histories.iter().enumerate() {
            document.fact("where", &history.machine);
            document.fact("how", &how(history));
            let of =
                if self.histories.len() > 1 { format!(" on {}", history.machine) } else { String::new() };
            // Notices about all runs are shown with the first machine.
            let before = || self.histories[..index].iter().flat_map(|one| &one.notices);
            let notices = history.notices.iter().filter(|notice| before().all(|told| told != *notice));
            document.answer.push(Block::List(notices.map(|text| Item::of(text).named("note")).collect()));
            let tables =
                history.series.chunk_by(same_metric).map(|group| Block::Table(courses(history, group)));
            document.answer.extend(tables);
            let mut section = |name: &str, blocks: Vec<Block>| {
                let title = format!("{name}{of}");
                if blocks.iter().any(|block| !block.is_empty()) {
                    document.sections.push(Section { name: format!("{name}-{}", index + 1), title, blocks });
                }
            };
            let changes = changes(history).map(|(series, change)| {
                let sentence = words::sentence(series, change, &history.points);
                format!("{sentence} (p {})", shown_p(change.p))
            });
            section("changes", vec![Block::sentences(changes)]);
            let is_few = history.series.len() <= FEW;
            let values =
                history.series.iter().filter(|_| is_few).map(|one| Block::Table(values(history, one)));
            section("values", values.collect());
            section("runs", vec![Block::Table(runs(history))]);
        }
        document
    }

    /// Where levels changed, the largest change first; or that none did.
    fn brief(&self, look: &Look) -> Option<Document> {
        let of_all: Vec<String> = self.histories.iter().map(title).collect();
        let document = Document::titled(&of_all.join("; "));
        let mut points: Vec<(usize, Item)> = Vec::new();
        for history in &self.histories {
            let of =
                if self.histories.len() > 1 { format!("on {}: ", history.machine) } else { String::new() };
            let mut changes: Vec<(&Series, &Change)> = changes(history).collect();
            let size = |change: &Change| (change.levels.1 / change.levels.0).ln().abs();
            changes.sort_by(|(_, one), (_, other)| size(other).total_cmp(&size(one)));
            let still = history.series.iter().filter(|one| one.changes.is_empty()).count();
            let all = counted(history.series.len(), "cell");
            let none = format!("{of}in {still} of {all}: {}", how(history));
            let told = changes.iter().map(|(series, change)| {
                let item = Item::of(format!("{of}{}", words::sentence(series, change, &history.points)));
                let item = item.marked(Tone::of(change.verdict), change.verdict.word());
                (usize::from(change.verdict == Kind::Same), item)
            });
            points.extend(told);
            points.extend((still > 0).then(|| (0, Item::of(none).marked(Tone::Same, "no change"))));
            points.extend(history.notices.iter().map(|text| (2, Item::of(text).marked(Tone::Open, "note"))));
        }
        let courses =
            |only: &History| only.series.chunk_by(same_metric).map(|group| courses(only, group)).collect();
        let mut tables: Vec<Table> =
            self.histories.first().filter(|_| self.histories.len() == 1).map_or(Vec::new(), courses);
        if tables.iter().map(|table| table.rows.len() + 3).sum::<usize>() > COURSES {
            tables.clear();
        }
        Some(fitted(look, TALL, &points, |items, left_out| {
            let mut document = document.clone();
            document.answer = vec![Block::List(items)];
            document.answer.extend(tables.iter().cloned().map(Block::Table));
            let more =
                if left_out > 0 { format!("{}, ", counted(left_out, "more point")) } else { String::new() };
            let all =
                format!("Full history, with {more}every cell and the runs: `dunnage history … --full`.");
            document.answer.extend((look.extent == Extent::Brief).then(|| Block::note(all)));
            document
        }))
    }
}

/// Every change, with its series.
fn changes(history: &History) -> impl Iterator<Item = (&Series, &Change)> {
    history.series.iter().flat_map(|one| one.changes.iter().map(move |change| (one, change)))
}

/// Whether two series are of one metric in one setting.
fn same_metric(one: &Series, other: &Series) -> bool {
    (one.experiment, one.metric, &one.setting) == (other.experiment, other.metric, &other.setting)
}

fn title(history: &History) -> String {
    let order = history.by.as_ref().map_or("by date".to_owned(), |tag| format!("by `{tag}`"));
    let (first, last) = (&history.points[0].name, &history.points[history.points.len() - 1].name);
    format!("{} {order}, {first} to {last}", counted(history.points.len(), "run"))
}

fn how(history: &History) -> String {
    let level = confidence(history.level);
    format!(
        "changes are marked at {level} for each cell, so that all together hold at 95 %; this needs at least {}",
        counted(history.needed, "run")
    )
}

/// The time series of each subject in one metric and setting.
fn courses(history: &History, group: &[Series]) -> Table {
    let setting = in_brackets(&group[0].setting);
    let columns = vec![
        Column::words("subject"),
        Column::numbers("first"),
        Column::numbers("last"),
        Column::words("values"),
        Column::words("change"),
        Column::words("since").with_room(),
    ];
    let mut table = Table::of(format!("{}.{}{setting}", group[0].experiment, group[0].metric), columns);
    for series in group {
        let known: Vec<f64> = series.values.iter().flatten().map(|value| value.median.value).collect();
        let end = |value: Option<&f64>| {
            value.map_or(Cell::default(), |value| Cell::words(series.unit.format(*value)).key(*value))
        };
        let (tone, what, since) = in_short(history, series);
        let cells = vec![
            Cell::code(&series.label),
            end(known.first()),
            end(known.last()),
            Cell { text: drawn(series, history.points.len().min(COURSE)), ..Cell::default() },
            Cell::words(what).tone(tone),
            Cell::words(since),
        ];
        table.row(&[&series.label], cells);
    }
    table
}

/// The last change that matters in a few words, and the run since which it holds.
fn in_short(history: &History, series: &Series) -> (Tone, String, String) {
    let matters = series.changes.iter().rev().find(|change| change.verdict != Kind::Same);
    let Some(change) = matters.or(series.changes.last()) else {
        return (Tone::Faint, "none found".into(), String::new());
    };
    let more = match series.changes.len() {
        1 => String::new(),
        count => format!(", {count} in all"),
    };
    let share = (change.levels.1 / change.levels.0 - 1.0) * 100.0;
    let sign = if share > 0.0 { "+" } else { "" };
    let share = if change.levels.0 > 0.0 { format!(" {sign}{} %", number(share, 1)) } else { String::new() };
    let what = format!("{}{share}", change.verdict.word());
    (Tone::of(change.verdict), what, format!("{}{more}", history.points[change.after].name))
}

/// The time series in so many characters, whose heights go from the lowest to the highest value; `!` is a suspect
/// value.
fn drawn(series: &Series, columns: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let count = series.values.len();
    // A column of several runs shows the middle one.
    let column = |index: usize| -> Option<Value> {
        let (from, to) =
            (index * count / columns, ((index + 1) * count / columns).max(index * count / columns + 1));
        let mut values: Vec<Value> = series.values[from..to].iter().flatten().copied().collect();
        values.sort_by(|one, other| one.median.value.total_cmp(&other.median.value));
        values.get(values.len() / 2).copied()
    };
    let values: Vec<Option<Value>> = (0..columns).map(column).collect();
    let known = || values.iter().flatten().filter(|value| !value.is_suspect).map(|value| value.median.value);
    let (low, high) =
        known().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), one| (low.min(one), high.max(one)));
    // A range too small to matter is drawn flat.
    let span = (high - low).max(high.abs() * 0.05);
    let middle = f64::midpoint(low, high);
    let sign = |value: &Option<Value>| match value {
        None => '·',
        Some(value) if value.is_suspect => '!',
        Some(value) => {
            let share = ((value.median.value - middle) / span + 0.5).clamp(0.0, 1.0);
            BARS[(share * 7.0).round() as usize]
        }
    };
    values.iter().map(sign).collect()
}

/// The value of each run, and the change at it.
fn values(history: &History, series: &Series) -> Table {
    let medians: Vec<_> = series.values.iter().map(|value| value.map(|value| value.median)).collect();
    let mut table = Table::of(words::cell(series), vec![Column::words("run")]);
    history.points.iter().for_each(|point| table.row(&[], vec![Cell::words(&point.name)]));
    table.drawn = Some(Drawn { column: 1, unit: series.unit });
    table.add(Column::measured(series.metric, series.unit, &medians));
    let told = |(index, value): (usize, &Option<Value>)| {
        let change = series.changes.iter().find(|change| change.after == index);
        let suspect = value.filter(|value| value.is_suspect).map(|_| "suspect");
        let what: Vec<&str> = change.map(|change| change.verdict.word()).into_iter().chain(suspect).collect();
        Cell::words(what.join(", ")).tone(if what.is_empty() { Tone::Plain } else { Tone::Open })
    };
    table.add((Column::words("change"), series.values.iter().enumerate().map(told).collect()));
    table
}

/// A probability with one significant digit.
fn shown_p(p: f64) -> String {
    format!("{p:.*}", (-p.log10().floor()).max(1.0) as usize)
}

fn runs(history: &History) -> Table {
    let mut table = Table::of("", ["name", "started", "run", "rounds", "place"].map(Column::words).into());
    for point in &history.points {
        let day = point.started.get(..16).unwrap_or(&point.started).replace('T', " ");
        let words = [&point.name, &day, &point.run, &counted(point.rounds, "round"), &point.place];
        table.row(&[], words.map(Cell::words).into());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_has_one_digit_that_counts() {
        assert_eq!([shown_p(0.03), shown_p(0.0004), shown_p(1.0)], ["0.03", "0.0004", "1.0"]);
    }
}
