//! The experiments' own tables: price lists, results, and the effects of a factorial.

use super::compared::verdict;
use crate::distinct;
use crate::document::{Block, Cell, Column, Item, Table, Tone};
use crate::report::model::{Amount, Effect, Experiment, Metric, Priced};
use crate::report::text::{
    capital, common_scale, estimated, listed, percent, percent_parts, width, with_interval,
};
use crate::stats::Estimate;
use crate::units::{Unit, counted};
use crate::verdict::Sum;
use crate::verdict::table::{ExperimentTable, Item as Shown, Screen};

/// A note of a table on a screen fits two lines.
const LINES: usize = 160;

/// The most notes of a table on a screen.
const NOTES: usize = 1;

/// The largest of values with one unit, as a multiple of the least.
const ALIKE: f64 = 1e3;

/// The price lists of an experiment by subject and metric, with launches and single calls apart.
pub(super) fn prices(experiment: &Experiment) -> Vec<Table> {
    let mut tables = Vec::new();
    for label in distinct(experiment.prices.iter().map(|one| one.label.as_str())) {
        for (ways, what) in [(["alone", "ladder"].as_slice(), "launches"), (&["call"], "single calls")] {
            let of_ways = |one: &&Priced| one.label == label && ways.contains(&one.way);
            let own: Vec<&Priced> = experiment.prices.iter().filter(of_ways).collect();
            for metric in &experiment.metrics {
                let title = format!("{} of {label}: price list of {what}, {}", experiment.name, metric.name);
                let Some(table) = price_table(title, &own, ways, metric) else { continue };
                let is_first = metric.name == experiment.metrics[0].name;
                tables.push(match what {
                    _ if !is_first => table,
                    "launches" => sums(experiment, label).iter().fold(table.note(LAUNCHES), Table::note),
                    _ => table.note("Medians of the system calls alone, with their 95 % intervals."),
                });
            }
        }
    }
    tables
}

/// How to read a price list of launches.
const LAUNCHES: &str = "Medians of the differences round by round, with their 95 % intervals. alone: a launch with this piece minus \
                        the same launch without it. ladder: all pieces up to this one minus all before it. spawn is a launch \
                        without any piece; least is what every container here needs.";

/// A row for each piece, and a column for each way and prestate that has a price.
fn price_table(title: String, prices: &[&Priced], ways: &[&str], metric: &Metric) -> Option<Table> {
    let prestates = distinct(prices.iter().map(|one| one.prestate));
    let has_price = |(way, prestate): &(&str, &str)| {
        let own = prices.iter().filter(|one| (one.way, one.prestate) == (*way, *prestate));
        own.into_iter().any(|one| one.amount(metric.name).is_some())
    };
    let all = ways.iter().flat_map(|way| prestates.iter().map(move |prestate| (*way, *prestate)));
    let columns: Vec<(&str, &str)> = all.filter(has_price).collect();
    let label = &prices.first()?.label;
    let heads = columns.iter().map(|(way, prestate)| Column::numbers(format!("{way}, {prestate}")));
    let mut table = Table::of(title, [Column::words("piece")].into_iter().chain(heads).collect());
    for piece in distinct(prices.iter().map(|one| one.piece)) {
        let cell = |(way, prestate): &(&str, &str)| {
            let is_it = |one: &&&Priced| (one.piece, one.way, one.prestate) == (piece, *way, *prestate);
            let Some(priced) = prices.iter().find(is_it) else { return Cell::nothing("–") };
            match (priced.amount(metric.name), &priced.lost) {
                (Some(amount), _) => price(amount),
                (None, Some((class, why))) => {
                    Cell { detail: why.clone(), ..Cell::words(class).tone(Tone::Alarm) }
                }
                (None, None) => Cell::nothing("–"),
            }
        };
        let cells = [Cell::code(piece)].into_iter().chain(columns.iter().map(cell)).collect();
        table.row(&[label], cells);
    }
    (!columns.is_empty()).then_some(table)
}

fn price(amount: &Amount) -> Cell {
    let detail = if amount.below_zero { "below zero" } else { "" };
    let cell = Cell { detail: detail.into(), ..Cell::estimate(amount.unit, &amount.price) };
    match amount {
        Amount { suspect: true, .. } => cell.tone(Tone::Alarm),
        Amount { below_zero: true, .. } => cell.tone(Tone::Open),
        _ => cell,
    }
}

/// Whether the pieces of a subject add up.
fn sums(experiment: &Experiment, label: &str) -> Vec<String> {
    let unit = experiment.metrics[0].unit;
    let one = |sum: &Sum| {
        let whole = sum.whole.as_ref().map_or(String::new(), |whole| {
            let off = percent((sum.rungs - whole.value) / whole.value);
            format!("; `{label}` as a whole takes {} (the sum is {off} off)", estimated(unit, whole))
        });
        format!(
            "{}: the pieces add up to {}; the launch with all of them takes {}{whole}. All without the probe's own work.",
            sum.prestate,
            with_interval(unit, sum.rungs, None),
            estimated(unit, &sum.last)
        )
    };
    experiment.sums.iter().filter(|sum| sum.label == label).map(one).collect()
}

/// The tables of an experiment. A row belongs to the subjects whose labels are among its texts. A table
/// without rows shows its notes: that nothing is slower is an answer.
pub(super) fn experiment_tables<'a>(
    all: impl IntoIterator<Item = &'a ExperimentTable>,
    labels: &[String],
) -> Vec<Block> {
    let blocks = |experiment_table: &ExperimentTable| match experiment_table.rows.is_empty() {
        true if experiment_table.notes.is_empty() => Vec::new(),
        true => {
            Block::titled(capital(&experiment_table.title), vec![Block::sentences(&experiment_table.notes)])
        }
        false => vec![Block::Table(exhibited(experiment_table, labels))],
    };
    all.into_iter().flat_map(blocks).collect()
}

fn exhibited(experiment_table: &ExperimentTable, labels: &[String]) -> Table {
    let head = |(index, column): (usize, &crate::verdict::table::Column)| match column.unit {
        Some(_) if index > 0 => Column::numbers(&column.name),
        _ => Column::words(&column.name),
    };
    let estimates = |index: usize| -> Option<Vec<Option<Estimate>>> {
        let of = |row: &Vec<Shown>| match &row[index] {
            Shown::Interval(one) => Some(Some(*one)),
            Shown::Nothing(_) => Some(None),
            _ => None,
        };
        experiment_table.rows.iter().map(of).collect()
    };
    // Where all are estimates of a similar size, their unit is in the heading: that of all columns if these are alike too.
    let measured = |index: usize| -> Option<(Column, Vec<Cell>)> {
        let column = experiment_table.columns.get(index).filter(|_| index > 0)?;
        let (unit, all) = (column.unit?, estimates(index)?);
        let beside = |at: &usize| experiment_table.columns[*at].unit == Some(unit);
        let others = (1..experiment_table.columns.len()).filter(beside).filter_map(estimates).flatten();
        let together: Vec<Option<Estimate>> = others.collect();
        let scale = [&together, &all].into_iter().find_map(|all| {
            let sizes = || all.iter().flatten().map(|one| one.value.abs()).filter(|size| *size > 0.0);
            let (least, most) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
            (most > 0.0 && most / least < ALIKE).then(|| common_scale(unit, sizes()))
        })?;
        Some(Column::scaled(&column.name, scale, &all))
    };

    let cell = |(index, item): (usize, &Shown)| {
        let unit = experiment_table.columns.get(index).and_then(|column| column.unit).unwrap_or(Unit::Ratio);
        match item {
            Shown::Text(text) if labels.contains(text) => Cell::code(text),
            Shown::Text(text) => Cell::words(text),
            Shown::Nothing(why) => Cell::nothing(why),
            Shown::Value(value) => Cell::words(unit.format(*value).replace('-', "−")).key(*value),
            Shown::Interval(estimate) => Cell::estimate(unit, estimate),
        }
    };
    let mut measured: Vec<Option<(Column, Vec<Cell>)>> =
        (0..experiment_table.columns.len()).map(measured).collect();
    let heads = experiment_table.columns.iter().enumerate().map(|one| match &measured[one.0] {
        Some((column, _)) => column.clone(),
        None => head(one),
    });
    let mut table = Table::of(&experiment_table.title, heads.collect());

    for (at, row) in experiment_table.rows.iter().enumerate() {
        let of_subject = row.iter().filter_map(|item| match item {
            Shown::Text(text) if labels.contains(text) => Some(text.as_str()),
            _ => None,
        });
        let cells = row.iter().enumerate().map(|(index, item)| match (&mut measured[index], item) {
            (Some((_, cells)), Shown::Interval(_)) => std::mem::take(&mut cells[at]),
            _ => cell((index, item)),
        });
        table.row(&of_subject.collect::<Vec<_>>(), cells.collect());
    }
    experiment_table.notes.iter().fold(table, |table, note| table.note(note))
}

/// A factorial: the answer in plain words, then every effect, the largest first.
pub(super) fn factors(experiment: &Experiment) -> Vec<Block> {
    let Some(factors) = &experiment.factors else { return Vec::new() };
    let answers = factors.answers.iter().map(|answer| {
        let setting = experiment.values_of(&answer.place.setting);
        let comma = if setting.is_empty() { "" } else { ", " };
        Item::of(&answer.text).named(format!("`{}`{comma}{setting}", answer.place.metric))
    });
    let levels = factors.factors.iter().map(|one| format!("{} ({})", one.name, one.levels.join(", ")));
    let notes = format!(
        "Each round runs every combination of {}; nothing else differs. An effect is the mean at the second level minus \
         the mean at the first, round by round; an interaction is the difference between two such differences.",
        listed(levels, ", ")
    );
    let table = |metric: &Metric| {
        let columns = vec![
            Column::words("effect of"),
            Column::words("setting"),
            Column::numbers("second level minus first"),
            Column::numbers("ratio").with_room(),
            Column::words("verdict"),
        ];
        let mut table = Table::of(format!("Effects on {}, the largest first", metric.name), columns);
        let own = factors.effects.iter().filter(|effect| effect.place.metric == metric.name);
        own.for_each(|effect| table.row(&[], of_effect(experiment, effect)));
        Block::Table(table)
    };
    let tables = experiment.metrics.iter().map(table);
    vec![
        Block::title(format!("Factors: {}", factors.question)),
        Block::List(answers.collect()),
        Block::note(notes),
        Block::folded("Every effect", tables.filter(|table| !table.is_empty()).collect()),
    ]
}

fn of_effect(experiment: &Experiment, effect: &Effect) -> Vec<Cell> {
    vec![
        Cell::words(effect.factors.join(" × ")),
        Cell::words(experiment.values_of(&effect.place.setting)),
        effect.difference.map_or(Cell::nothing("–"), |one| Cell::estimate(effect.place.unit, &one)),
        effect.ratio.map_or(Cell::nothing("–"), |one| Cell::ranged(percent_parts(&one)).key(one.value)),
        Cell { text: effect.word(), ..verdict(&effect.verdict, effect.kind) },
    ]
}

/// What answers the question on a screen: the part of an experiment's own table that is meant for it.
pub(super) fn answer(experiment: &Experiment, most: usize) -> Option<Block> {
    let is_for_it = |table: &&ExperimentTable| table.screen != Screen::No && !table.rows.is_empty();
    let own = experiment.experiment_tables.iter().find(is_for_it)?;
    let (columns, rows) = match &own.screen {
        Screen::Part { columns, rows } => (columns.clone(), rows.clone()),
        _ => ((0..own.columns.len()).collect(), (0..own.rows.len()).collect()),
    };
    // What nothing is known of in any row is no answer.
    let is_known = |at: &usize| rows.iter().any(|row| !matches!(own.rows[*row][*at], Shown::Nothing(_)));
    let columns: Vec<usize> = columns.into_iter().filter(is_known).collect();
    let part = |row: &Vec<Shown>| columns.iter().map(|at| row[*at].clone()).collect::<Vec<_>>();
    // A note about a column that is not shown explains nothing.
    let left_out = |note: &String| {
        let is_of = |at: usize| note.split_once(':').is_some_and(|(of, _)| of == own.columns[at].name);
        (0..own.columns.len()).any(|at| is_of(at) && !columns.contains(&at))
    };
    let shown = ExperimentTable {
        title: String::new(),
        notes: own.notes.iter().filter(|note| !left_out(note)).cloned().collect(),
        columns: columns.iter().map(|at| own.columns[*at].clone()).collect(),
        rows: rows.iter().map(|at| part(&own.rows[*at])).collect(),
        ..own.clone()
    };
    Some(Block::Table(cut(exhibited(&shown, &[]), most)))
}

/// The first table of an experiment without one that is meant for a screen.
pub(super) fn short_table(experiment: &Experiment, most: usize) -> Option<Block> {
    let first = || {
        let all = experiment_tables(&experiment.experiment_tables, &[]).into_iter();
        prices(experiment)
            .into_iter()
            .chain(all.filter_map(|block| match block {
                Block::Table(table) => Some(table),
                _ => None,
            }))
            .next()
    };
    answer(experiment, most).or_else(|| first().map(|table| Block::Table(cut(table, most))))
}

/// A table with as many rows as there is room for, and the first of its notes.
pub(super) fn cut(mut table: Table, most: usize) -> Table {
    let rows = table.rows.len();
    table.rows.truncate(most);
    table.notes.truncate(NOTES);
    table.notes.retain(|note| width(note) <= LINES);

    match rows.saturating_sub(most) {
        0 => table,
        more => table.note(format!("and {} in `--full`", counted(more, "more row"))),
    }
}
