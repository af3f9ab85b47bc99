//! The tables that experiments have of their own: price lists, exhibits, and the effects of a factorial.

use super::compared::verdict;
use crate::document::{Block, Cell, Column, Item, Table, Tone};
use crate::report::model::{Amount, Effect, Experiment, Metric, PriceList};
use crate::report::text::{capital, estimated, in_percent, percent, with_interval};
use crate::units::Unit;
use crate::verdict::exhibit::{Exhibit, Item as Shown};

/// The price lists of an experiment: launches and single calls apart, and metric by metric.
pub(super) fn prices(experiment: &Experiment) -> Vec<Table> {
    let ways: [(&[&str], &str); 2] = [(&["alone", "ladder"], "launches"), (&["call"], "single calls")];
    let of_list = |list| {
        ways.into_iter().flat_map(move |(ways, what)| {
            let metrics = 0..experiment.metrics.len();
            metrics.filter_map(move |metric| price_table(experiment, list, ways, what, metric))
        })
    };
    experiment.price_lists.iter().flat_map(of_list).collect()
}

fn price_table(
    experiment: &Experiment,
    list: &PriceList,
    ways: &[&'static str],
    what: &str,
    metric: usize,
) -> Option<Table> {
    let definition = &experiment.metrics[metric];
    let pieces = list.pieces(ways);
    let amount = |piece: &str, (way, prestate): (&str, usize)| -> Option<&Amount> {
        list.line(way, piece)?.amounts.get(prestate)?.get(metric)?.as_ref()
    };
    let all = ways.iter().flat_map(|way| (0..list.prestates.len()).map(move |prestate| (*way, prestate)));
    let columns: Vec<_> =
        all.filter(|column| pieces.iter().any(|piece| amount(piece, *column).is_some())).collect();
    if columns.is_empty() {
        return None;
    }
    let heads = columns
        .iter()
        .map(|(way, prestate)| Column::numbers(format!("{way}, {}", list.prestates[*prestate])));
    let mut table = Table::of(
        format!("{} of {}: price list of {what}, {}", experiment.name, list.label, definition.name),
        [Column::words("piece")].into_iter().chain(heads).collect(),
    );
    for piece in &pieces {
        let cell = |column: &(&str, usize)| {
            let lost = list.line(column.0, piece).and_then(|line| line.lost.as_ref());
            match (amount(piece, *column), lost) {
                (Some(amount), _) => priced(definition.unit, amount),
                (None, Some((class, why))) => {
                    Cell { detail: why.clone(), ..Cell::words(class).tone(Tone::Alarm) }
                }
                (None, None) => Cell::nothing("–"),
            }
        };
        let cells = [Cell::code(piece)].into_iter().chain(columns.iter().map(cell)).collect();
        table.row(&[&list.label], cells);
    }
    Some(match (what, metric) {
        ("launches", 0) => totals(experiment, list).iter().fold(
            table.note(
                "Median of the differences round by round, with its 95 % interval. alone: a launch with this piece less the \
                 same without it. ladder: all pieces up to this one less all before it. spawn is a whole launch with \
                 nothing; least is what no container here does without.",
            ),
            |table, note| table.note(note),
        ),
        (_, 0) => table.note("Medians of the system calls by themselves, with their 95 % intervals."),
        _ => table,
    })
}

fn priced(unit: Unit, amount: &Amount) -> Cell {
    let detail = if amount.below_zero { "below zero" } else { "" };
    let cell = Cell { detail: detail.into(), ..Cell::estimate(unit, &amount.price) };
    match amount {
        Amount { suspect: true, .. } => cell.tone(Tone::Alarm),
        Amount { below_zero: true, .. } => cell.tone(Tone::Open),
        _ => cell,
    }
}

/// Whether the rungs add up.
fn totals(experiment: &Experiment, list: &PriceList) -> Vec<String> {
    let Some(metric) = experiment.metrics.first() else { return Vec::new() };
    let one = |total: &crate::report::model::Total| {
        let whole = total.whole.as_ref().map_or(String::new(), |whole| {
            let off = percent((total.rungs - whole.value) / whole.value);
            let told = estimated(metric.unit, whole);
            format!("; `{}` measured whole: {told} (the sum is {off} off)", list.label)
        });
        format!(
            "{}: the rungs add up to {}; their last launch takes {}{whole}. Without the probe's own work, all of them.",
            total.prestate,
            with_interval(metric.unit, total.rungs, None),
            estimated(metric.unit, &total.last)
        )
    };
    list.totals.iter().map(one).collect()
}

/// The exhibits of an experiment; whose a row is, is told by a text in it that is a subject's label or begins with one.
/// What one without rows has to say stands in its notes: that nothing is slower is an answer.
pub(super) fn exhibits(experiment: &Experiment, labels: &[String]) -> Vec<Block> {
    let blocks = |exhibit: &Exhibit| match exhibit.rows.is_empty() {
        true => Block::titled(capital(&exhibit.title), vec![Block::sentences(&exhibit.notes)]),
        false => vec![Block::Table(exhibited(exhibit, labels))],
    };
    experiment.exhibits.iter().flat_map(blocks).collect()
}

fn exhibited(exhibit: &Exhibit, labels: &[String]) -> Table {
    let head = |(index, column): (usize, &crate::verdict::exhibit::Column)| match column.unit {
        Some(_) if index > 0 => Column::numbers(&column.name),
        _ => Column::words(&column.name),
    };
    let cell = |(index, item): (usize, &Shown)| {
        let unit = exhibit.columns.get(index).and_then(|column| column.unit).unwrap_or(Unit::Ratio);
        match item {
            Shown::Text(text) if labels.contains(text) => Cell::code(text),
            Shown::Text(text) => Cell::words(text),
            Shown::Nothing(why) => Cell::nothing(why),
            Shown::Value(value) => Cell::words(unit.format(*value).replace('-', "−")).key(*value),
            Shown::Interval(estimate) => Cell::estimate(unit, estimate),
        }
    };
    let mut table = Table::of(&exhibit.title, exhibit.columns.iter().enumerate().map(head).collect());
    for row in &exhibit.rows {
        let of_subject = row.iter().enumerate().filter_map(|(index, item)| match item {
            Shown::Text(text) if labels.contains(text) => Some(text.as_str()),
            Shown::Text(text) if index == 0 => {
                let begun = labels.iter().filter(|label| {
                    text.strip_prefix(label.as_str()).is_some_and(|rest| rest.starts_with(' '))
                });
                begun.max_by_key(|label| label.len()).map(String::as_str)
            }
            _ => None,
        });
        table.row(&of_subject.collect::<Vec<_>>(), row.iter().enumerate().map(cell).collect());
    }
    exhibit.notes.iter().fold(table, |table, note| table.note(note))
}

/// What a factorial says: the answer in plain words, then every effect, the largest first.
pub(super) fn factors(experiment: &Experiment) -> Vec<Block> {
    let Some(factors) = &experiment.factors else { return Vec::new() };
    let answers = factors.answers.iter().map(|answer| {
        let setting = &experiment.settings[answer.setting].values;
        let comma = if setting.is_empty() { "" } else { ", " };
        Item::of(&answer.text).named(format!("`{}`{comma}{setting}", experiment.metrics[answer.metric].name))
    });
    let levels: Vec<_> =
        factors.factors.iter().map(|one| format!("{} ({})", one.name, one.levels.join(", "))).collect();
    let notes = format!(
        "Every combination of {} in every round, and nothing else differs. An effect is the mean at the second level minus \
         the mean at the first, round by round; an interaction is the difference between two such differences.",
        levels.join(", ")
    );
    let table = |(index, metric): (usize, &Metric)| {
        let columns = vec![
            Column::words("effect of"),
            Column::words("setting"),
            Column::numbers("second level minus first"),
            Column::numbers("ratio").with_room(),
            Column::words("verdict"),
        ];
        let mut table = Table::of(format!("Effects on {}, the largest first", metric.name), columns);
        let own = factors.effects.iter().filter(|effect| effect.metric == index);
        own.for_each(|effect| table.row(&[], of_effect(experiment, effect)));
        Block::Table(table)
    };
    let tables = experiment.metrics.iter().enumerate().map(table);
    vec![
        Block::title(format!("Factors: {}", factors.question)),
        Block::List(answers.collect()),
        Block::note(notes),
        Block::folded("Every effect", tables.filter(|table| !table.is_empty()).collect()),
    ]
}

fn of_effect(experiment: &Experiment, effect: &Effect) -> Vec<Cell> {
    let metric = &experiment.metrics[effect.metric];
    vec![
        Cell::words(&effect.name),
        Cell::words(experiment.settings.get(effect.setting).map_or("", |one| one.values.as_str())),
        effect.difference.map_or(Cell::nothing("–"), |one| Cell::estimate(metric.unit, &one)),
        effect.ratio.map_or(Cell::nothing("–"), |one| Cell::ranged(in_percent(&one)).key(one.value)),
        Cell { text: effect.word(), ..verdict(&effect.verdict, effect.kind) },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::exhibit::Column;

    #[test]
    fn a_row_belongs_to_the_subject_that_its_first_text_begins_with() {
        let labels = ["docker", "docker+crun", "floor"].map(str::to_owned);
        let exhibit = Exhibit {
            experiment: "throttle",
            name: "quota",
            title: "what a quota does".into(),
            columns: ["subject, load", "who waits"].map(Column::of_texts).into(),
            rows: ["docker bursts", "docker+crun bursts", "dockers", "floor"]
                .map(|text| vec![Shown::Text(text.into()), Shown::Text("nobody".into())])
                .into(),
            notes: Vec::new(),
            summary: Vec::new(),
        };
        let table = exhibited(&exhibit, &labels);
        let subjects: Vec<_> = table.rows.iter().map(|row| row.subjects.join(" ")).collect();
        assert_eq!(subjects, ["docker", "docker+crun", "", "floor"]);
    }
}
