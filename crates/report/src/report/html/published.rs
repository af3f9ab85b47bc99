//! What others published, beside ours: each source with its cautions and what our rules find in its numbers.
//! Nothing here is made of both sides.

use super::table::{Cell, Head, Line, Table};
use crate::report::model::{Beside, BesideRow, Caution, Ours, Published, Quantity, Reference, Standing};
use crate::report::text::with_interval;
use crate::units::Unit;

/// What a single repetition is called.
const SINGLE: &str = "single value";

/// A source as the page shows it.
#[derive(Debug)]
pub(super) struct Source<'a> {
    pub reference: &'a Reference,
    /// Its address, where it has one that can be followed.
    pub address: Option<&'a str>,
    /// Each with whether it is a guess.
    pub cautions: Vec<(&'static str, String)>,
    pub tables: Vec<Table>,
}

/// Every source that was asked for.
pub(super) fn sources(references: &[Reference]) -> Vec<Source<'_>> {
    references.iter().map(source).collect()
}

fn source(reference: &Reference) -> Source<'_> {
    let is_followed = |url: &&str| url.starts_with("https://") || url.starts_with("http://");
    Source {
        reference,
        address: reference.url.as_deref().filter(is_followed),
        cautions: reference.cautions.iter().map(caution).collect(),
        tables: reference.tables.iter().map(beside).collect(),
    }
}

fn caution(caution: &Caution) -> (&'static str, String) {
    let head = match caution.standing {
        Standing::Shown => "Caution",
        Standing::Guess => "Caution, a guess",
    };
    match caution.about.is_empty() {
        true => (head, caution.text.clone()),
        false => (head, format!("{}: {}", caution.about.join(", "), caution.text)),
    }
}

fn beside(table: &Beside) -> Table {
    let what = match table.quantity {
        Quantity::Value => "",
        Quantity::Difference => ", difference from bare",
    };
    let heads = ["published subject", "conditions"].map(Head::text).into_iter();
    let heads = heads.chain(["published", "ours"].map(Head::list));
    Table {
        caption: format!(
            "{} {}{what}, beside their {}",
            table.experiment, table.metric, table.published_experiment
        ),
        notes: vec![format!("Not alike: {}", table.differs)],
        heads: heads.collect(),
        lines: table.rows.iter().map(|row| line(table, row)).collect(),
    }
}

fn line(table: &Beside, row: &BesideRow) -> Line {
    let (single, told): (Vec<&Published>, Vec<&Published>) =
        row.published.iter().partition(|one| one.statistic == SINGLE && one.note.is_empty());
    let told: Vec<_> = told.into_iter().map(printed).collect();
    let values: Vec<_> = single.iter().map(|one| one.printed.as_str()).collect();
    let detail = match values.len() {
        0 => String::new(),
        1 => format!("{SINGLE}: {}", values[0]),
        _ => format!("{} {SINGLE}s: {}", values.len(), values.join(", ")),
    };
    let ours: Vec<_> = row.ours.iter().map(|one| own(table.unit, one)).collect();
    let ours = match ours.is_empty() {
        true => Cell::nothing(format!("none in this run (it takes {}, {})", row.subject, table.conditions)),
        false => Cell::text(ours.join("\n")),
    };
    let cells = vec![
        Cell::code(row.subject.clone()),
        Cell::text(row.conditions.clone()),
        Cell { detail, ..Cell::text(told.join("\n")) },
        ours,
    ];
    Line { subjects: Vec::new(), cells }
}

fn printed(one: &Published) -> String {
    let of = one.repetitions.map(|count| format!(" of {count}")).unwrap_or_default();
    let note = if one.note.is_empty() { String::new() } else { format!(" ({})", one.note) };
    format!("{} {}{of}{note}", one.statistic, one.printed)
}

fn own(unit: Unit, one: &Ours) -> String {
    let interval = one.estimate.interval.map(|interval| (interval.low, interval.high));
    let shown = with_interval(unit, one.estimate.value, interval);
    let setting = if one.setting.is_empty() { String::new() } else { format!(" ({})", one.setting) };
    format!("{}: median {shown} of {}{setting}", one.label, one.estimate.rounds)
}
