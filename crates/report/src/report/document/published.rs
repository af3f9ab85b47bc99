//! What others published, beside ours: each source with its cautions and what our rules find in its numbers.
//! Nothing here is made of both sides.

use crate::document::{Block, Cell, Column, Item, Section, Table, Tone};
use crate::report::model::{Beside, BesideRow, Caution, Ours, Published, Quantity, Reference, Standing};
use crate::report::text::estimated;
use crate::units::Unit;

/// What a single repetition is called.
const SINGLE: &str = "single value";

/// Every source that was asked for; none where none was.
pub(super) fn section(references: &[Reference]) -> Option<Section> {
    let mut blocks = vec![Block::words(
        "Taken on other machines, kernels and programs: shown beside ours, and no verdict, ratio or average is made of both.",
    )];
    blocks.extend(references.iter().flat_map(source));
    (!references.is_empty()).then(|| Section {
        name: "published".into(),
        title: "What others published".into(),
        blocks,
    })
}

fn source(reference: &Reference) -> Vec<Block> {
    let url = reference.url.as_deref().unwrap_or("not public");
    let facts = [
        ("source", format!("{}, {url}; licence: {}", reference.source, reference.licence)),
        ("machine", reference.hardware.clone()),
        ("kernel", reference.kernel.clone()),
        ("engines", reference.engines.clone()),
        ("method", reference.method.clone()),
    ];
    let suspects = reference.doubts.iter().map(|one| {
        let item = Item::of(format!("{}: {}", one.experiment, one.evidence));
        item.marked(Tone::Alarm, format!("Suspect, {}", one.rule))
            .detail(format!("Probably: {}", one.mechanism))
    });
    let mut blocks = vec![
        Block::title(&reference.title),
        Block::facts(facts.map(|(name, text)| (name.to_owned(), text))),
        Block::List(reference.cautions.iter().map(caution).chain(suspects).collect()),
    ];
    blocks.extend(reference.tables.iter().map(|table| Block::Table(beside(table))));
    blocks
}

fn caution(caution: &Caution) -> Item {
    let mark = match caution.standing {
        Standing::Shown => "Caution",
        Standing::Guess => "Caution, a guess",
    };
    let about = caution.about.join(", ");
    let about = if about.is_empty() { about } else { format!("{about}: ") };
    Item::of(format!("{about}{}", caution.text)).marked(Tone::Plain, mark)
}

fn beside(table: &Beside) -> Table {
    let what = match table.quantity {
        Quantity::Value => "",
        Quantity::Difference => ", difference from bare",
    };
    let columns = ["published subject", "conditions", "published", "ours"].map(Column::words);
    let title =
        format!("{} {}{what}, beside their {}", table.experiment, table.metric, table.published_experiment);
    let mut shown = Table::of(title, columns.into()).note(format!("Not alike: {}", table.differs));
    table.rows.iter().for_each(|row| shown.row(&[], cells(table, row)));
    shown
}

fn cells(table: &Beside, row: &BesideRow) -> Vec<Cell> {
    let (single, told): (Vec<&Published>, Vec<&Published>) =
        row.published.iter().partition(|one| one.statistic == SINGLE && one.note.is_empty());
    let values: Vec<_> = single.iter().map(|one| one.printed.as_str()).collect();
    let detail = match values.len() {
        0 => String::new(),
        1 => format!("{SINGLE}: {}", values[0]),
        _ => format!("{} {SINGLE}s: {}", values.len(), values.join(", ")),
    };
    let ours: Vec<_> = row.ours.iter().map(|one| own(table.unit, one)).collect();
    vec![
        Cell::code(&row.subject),
        Cell::words(&row.conditions),
        Cell { detail, ..Cell::lines(told.into_iter().map(printed)) },
        match ours.is_empty() {
            true => {
                Cell::nothing(format!("none in this run (it takes {}, {})", row.subject, table.conditions))
            }
            false => Cell::lines(ours),
        },
    ]
}

fn printed(one: &Published) -> String {
    let of = one.repetitions.map(|count| format!(" of {count}")).unwrap_or_default();
    let note = if one.note.is_empty() { String::new() } else { format!(" ({})", one.note) };
    format!("{} {}{of}{note}", one.statistic, one.printed)
}

fn own(unit: Unit, one: &Ours) -> String {
    let setting = if one.setting.is_empty() { String::new() } else { format!(" ({})", one.setting) };
    format!("{}: median {} of {}{setting}", one.label, estimated(unit, &one.estimate), one.estimate.rounds)
}
