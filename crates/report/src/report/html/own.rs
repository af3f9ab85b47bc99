//! The tables that experiments have of their own: price lists, exhibits, and the effects of a factorial.

use super::table::{Cell, Head, Line, Table, setting_name};
use crate::report::model::{Amount, Effect, Experiment, Factors, PriceList};
use crate::report::text::{in_percent, percent, with_interval};
use crate::stats::Estimate;
use crate::units::Unit;
use crate::verdict::exhibit::{Exhibit, Item};

/// The price lists of an experiment: launches and single calls apart, and metric by metric.
pub(super) fn prices(experiment: &Experiment) -> Vec<Table> {
    let ways: [(&[&str], &str); 2] = [(&["alone", "ladder"], "launches"), (&["call"], "single calls")];
    let of_list = |list| {
        ways.into_iter().flat_map(move |(ways, what)| {
            (0..experiment.metrics.len())
                .map(move |metric| price_table(experiment, list, ways, what, metric))
                .filter(|table| !table.is_empty())
        })
    };
    experiment.price_lists.iter().flat_map(of_list).collect()
}

/// A column of prices.
struct Column<'a> {
    way: &'a str,
    prestate: usize,
}

fn price_table(experiment: &Experiment, list: &PriceList, ways: &[&str], what: &str, metric: usize) -> Table {
    let definition = &experiment.metrics[metric];
    let pieces = list.pieces(ways);
    let amount = |piece: &str, column: &Column| -> Option<&Amount> {
        list.line(column.way, piece)?.amounts.get(column.prestate)?.get(metric)?.as_ref()
    };
    let all =
        ways.iter().flat_map(|way| (0..list.prestates.len()).map(move |prestate| Column { way, prestate }));
    let columns: Vec<Column> =
        all.filter(|column| pieces.iter().any(|piece| amount(piece, column).is_some())).collect();
    if columns.is_empty() {
        return Table::default();
    }
    let head = |column: &Column| Head::number(format!("{}, {}", column.way, list.prestates[column.prestate]));
    let cell = |piece: &str, column: &Column| {
        let unit = definition.unit;
        let lost = list.line(column.way, piece).and_then(|line| line.lost.as_ref());
        match (amount(piece, column), lost) {
            (Some(amount), _) => priced(unit, amount),
            (None, Some((class, why))) => Cell { tone: "alarm", detail: why.clone(), ..Cell::text(*class) },
            (None, None) => Cell::nothing("–"),
        }
    };
    let line = |piece: &&str| {
        let mut cells = vec![Cell::code(*piece)];
        cells.extend(columns.iter().map(|column| cell(piece, column)));
        Line { subjects: vec![list.label.clone()], cells }
    };
    let notes = match what {
        "launches" if metric == 0 => vec![
            "Median of the differences round by round, with its 95 % interval. alone: a launch with this piece less the \
             same without it. ladder: all pieces up to this one less all before it. spawn is a whole launch with \
             nothing; least is what no container here does without."
                .into(),
        ],
        _ if metric > 0 => Vec::new(),
        _ => vec!["Medians of the system calls by themselves, with their 95 % intervals.".into()],
    };
    let totals = if what == "launches" && metric == 0 { totals(experiment, list) } else { Vec::new() };
    Table {
        caption: format!("{} of {}: price list of {what}, {}", experiment.name, list.label, definition.name),
        notes: notes.into_iter().chain(totals).collect(),
        heads: std::iter::once(Head::text("piece")).chain(columns.iter().map(head)).collect(),
        lines: pieces.iter().map(line).collect(),
    }
}

fn priced(unit: Unit, amount: &Amount) -> Cell {
    let cell = Cell::estimate(unit, &amount.price);
    match amount {
        Amount { suspect: true, .. } => Cell { tone: "alarm", ..cell },
        Amount { below_zero: true, .. } => {
            Cell { tone: "open", detail: format!("{} below zero", cell.detail), ..cell }
        }
        _ => cell,
    }
}

/// Whether the rungs add up.
fn totals(experiment: &Experiment, list: &PriceList) -> Vec<String> {
    let Some(metric) = experiment.metrics.first() else { return Vec::new() };
    let told = |one: &Estimate| {
        with_interval(metric.unit, one.value, one.interval.map(|ends| (ends.low, ends.high)))
    };
    let one = |total: &crate::report::model::Total| {
        let whole = total.whole.as_ref().map_or(String::new(), |whole| {
            let off = percent((total.rungs - whole.value) / whole.value);
            format!("; {} measured whole: {} (the sum is {off} off)", list.label, told(whole))
        });
        format!(
            "{}: the rungs add up to {}; their last launch takes {}{whole}. Without the probe’s own work, all of them.",
            total.prestate,
            with_interval(metric.unit, total.rungs, None),
            told(&total.last)
        )
    };
    list.totals.iter().map(one).collect()
}

/// The exhibits of an experiment; whose a line is, is told by a text in it that is a subject's label or begins with one.
pub(super) fn exhibits(experiment: &Experiment, labels: &[String]) -> Vec<Table> {
    experiment.exhibits.iter().map(|exhibit| exhibited(exhibit, labels)).collect()
}

fn exhibited(exhibit: &Exhibit, labels: &[String]) -> Table {
    let head = |(index, column): (usize, &crate::verdict::exhibit::Column)| match column.unit {
        Some(_) if index > 0 => Head::number(column.name.clone()),
        _ => Head::text(column.name.clone()),
    };
    let cell = |(index, item): (usize, &Item)| {
        let unit = exhibit.columns.get(index).and_then(|column| column.unit).unwrap_or(Unit::Ratio);
        match item {
            Item::Text(text) if labels.contains(text) => Cell::code(text.clone()),
            Item::Text(text) => Cell::text(text.clone()),
            Item::Nothing(why) => Cell::nothing(why.clone()),
            Item::Value(value) => Cell::text(unit.format(*value).replace('-', "−")).key(*value),
            Item::Interval(estimate) => Cell::estimate(unit, estimate),
        }
    };
    let line = |row: &Vec<Item>| {
        let of_subject = row.iter().enumerate().filter_map(|(index, item)| match item {
            Item::Text(text) if labels.contains(text) => Some(text.clone()),
            Item::Text(text) if index == 0 => {
                let begun = labels.iter().filter(|label| {
                    text.strip_prefix(label.as_str()).is_some_and(|rest| rest.starts_with(' '))
                });
                begun.max_by_key(|label| label.len()).cloned()
            }
            _ => None,
        });
        Line { subjects: of_subject.collect(), cells: row.iter().enumerate().map(cell).collect() }
    };
    Table {
        caption: exhibit.title.clone(),
        notes: exhibit.notes.clone(),
        heads: exhibit.columns.iter().enumerate().map(head).collect(),
        lines: exhibit.rows.iter().map(line).collect(),
    }
}

/// What a factorial says in words, a title and the answer each.
pub(super) fn answers(experiment: &Experiment, factors: &Factors) -> Vec<(String, String)> {
    let one = |answer: &crate::report::model::FactorAnswer| {
        let setting = &experiment.settings[answer.setting].values;
        let comma = if setting.is_empty() { "" } else { ", " };
        (format!("{}{comma}{setting}", experiment.metrics[answer.metric].name), answer.text.clone())
    };
    factors.answers.iter().map(one).collect()
}

/// Every effect of a factorial.
pub(super) fn effects(experiment: &Experiment, factors: &Factors) -> Table {
    let line = |effect: &Effect| {
        let metric = &experiment.metrics[effect.metric];
        let verdict = Cell { text: effect.word(), ..Cell::verdict(&effect.verdict, effect.kind) };
        Line {
            subjects: Vec::new(),
            cells: vec![
                Cell::text(effect.name.clone()),
                Cell::text(setting_name(experiment, effect.setting)),
                Cell::text(metric.name),
                effect.difference.map_or(Cell::nothing("–"), |one| Cell::estimate(metric.unit, &one)),
                effect.ratio.map_or(Cell::nothing("–"), |one| Cell::text(in_percent(&one)).key(one.value)),
                verdict,
            ],
        }
    };
    let levels: Vec<_> =
        factors.factors.iter().map(|(name, [one, other])| format!("{name} ({one}, {other})")).collect();
    let heads = ["effect of", "setting", "metric"].map(Head::text).into_iter();
    let heads =
        heads.chain(["second level minus first", "ratio"].map(Head::number)).chain([Head::text("verdict")]);
    Table {
        caption: "Effects of the factors, the largest first".into(),
        notes: vec![format!(
            "Every combination of {} in every round, and nothing else differs. An effect is the mean at the second level \
             minus the mean at the first, round by round; an interaction is the difference between two such \
             differences.",
            levels.join(", ")
        )],
        heads: heads.collect(),
        lines: factors.effects.iter().map(line).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::exhibit::Column;

    #[test]
    fn a_line_belongs_to_the_subject_that_its_first_text_begins_with() {
        let labels = ["docker", "docker+crun", "floor"].map(str::to_owned);
        let exhibit = Exhibit {
            experiment: "throttle",
            name: "quota",
            title: "what a quota does".into(),
            columns: ["subject, load", "who waits"].map(Column::of_texts).into(),
            rows: ["docker bursts", "docker+crun bursts", "dockers", "floor"]
                .map(|text| vec![Item::Text(text.into()), Item::Text("nobody".into())])
                .into(),
            notes: Vec::new(),
            summary: Vec::new(),
        };
        let table = exhibited(&exhibit, &labels);
        let subjects: Vec<_> = table.lines.iter().map(|line| line.subjects.join(" ")).collect();
        assert_eq!(subjects, ["docker", "docker+crun", "", "floor"]);
    }
}
