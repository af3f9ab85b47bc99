//! Published numbers next to those of this run: each source with its cautions and what dunnage's rules find in its
//! numbers. Nothing is computed from both sides.

use crate::document::{Block, Cell, Column, Section, Table};
use crate::reference::{Beside, BesideRow, Ours, Quantity, Reference, shown};
use crate::report::text::{estimated, in_brackets};
use crate::units::Unit;

/// Every requested source; none without a request.
pub(super) fn section(references: &[Reference]) -> Option<Section> {
    let mut blocks = vec![Block::words(
        "Measured on other machines, kernels and programs: shown for comparison, without verdicts, ratios or averages across both.",
    )];
    blocks.extend(references.iter().flat_map(source));
    (!references.is_empty()).then(|| Section {
        name: "published".into(),
        title: "Published numbers".into(),
        blocks,
    })
}

fn source(reference: &Reference) -> Vec<Block> {
    let source = &reference.source;
    let facts = shown::facts(source);
    let tables = reference.tables.iter().map(|table| Block::Table(beside(table)));
    let blocks = [
        Block::title(format!("{}: {}", source.name, source.title)),
        Block::facts(facts.iter().map(|(name, text)| (*name, text.as_str()))),
        shown::remarks(&source.cautions, &source.suspects),
    ];
    blocks.into_iter().chain(tables).collect()
}

fn beside(table: &Beside) -> Table {
    let what = match table.quantity {
        Quantity::Value => "",
        Quantity::Difference => ", difference from bare",
    };
    let columns = ["published subject", "conditions", "published", "this run"].map(Column::words);
    let Beside { experiment, metric, published_experiment, .. } = table;
    let title = format!("{experiment} {metric}{what}, next to the published {published_experiment}");
    let mut shown = Table::of(title, columns.into()).note(format!("Differs: {}", table.differs));
    table.rows.iter().for_each(|row| shown.row(&[], cells(table, row)));
    shown
}

fn cells(table: &Beside, row: &BesideRow) -> Vec<Cell> {
    let ours: Vec<_> = row.ours.iter().map(|one| own(table.unit, one)).collect();
    vec![
        Cell::code(&row.subject),
        Cell::words(&row.conditions),
        shown::numbers(&row.published),
        match ours.is_empty() {
            true => Cell::nothing(format!("not in this run (needs {}, {})", row.subject, table.conditions)),
            false => Cell::lines(ours),
        },
    ]
}

fn own(unit: Unit, one: &Ours) -> String {
    let (median, setting) = (estimated(unit, &one.estimate), in_brackets(&one.setting));
    format!("{}: median {median} of {}{setting}", one.label, one.estimate.rounds)
}
