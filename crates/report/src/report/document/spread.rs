//! What a median does not show: samples far from the others with the state of the machine at that time, and means
//! with standard deviations and ranges, for comparison with published ones.

use crate::document::{Block, Cell, Column, Item, Table};
use crate::report::model::Experiment;
use crate::report::text::{in_brackets, listed};
use crate::units::counted;
use crate::verdict::{Circumstance, Spike};

/// Samples listed in full.
const IN_FULL: usize = 30;

/// Samples far from the others, and the state of the machine then and otherwise.
pub(super) fn far(experiment: &Experiment) -> Block {
    let Some(spikes) = &experiment.spikes else { return Block::folded("", Vec::new()) };
    let all = spikes.samples.len();
    let numbers = ["far samples", "others"].map(Column::numbers);
    let columns = [Column::words("reading")].into_iter().chain(numbers).collect();
    let title = "The machine during these samples, and during the other samples of the same cells";
    let mut table = Table::of(title, columns)
        .note("Medians of readings of whole rounds, and shares of samples. A description, not a test.");
    for Circumstance { what, unit, far, ordinary } in &spikes.circumstances {
        let numbers = [far, ordinary].map(|value| Cell::words(unit.format(*value)).key(*value));
        table.row(&[], [Cell::words(what)].into_iter().chain(numbers).collect());
    }
    let more = (all > IN_FULL).then(|| {
        let less = counted(all - IN_FULL, "sample");
        Block::note(format!("and {less} less far: see `--format json`"))
    });
    let list = Block::List(spikes.samples.iter().take(IN_FULL).map(item).collect());
    let blocks = [list].into_iter().chain(more).chain([Block::Table(table)]);
    Block::folded(format!("Values far from the others ({all})"), blocks.collect())
}

/// When a sample was taken, its values, and the state of the machine.
fn item(spike: &Spike) -> Item {
    let place = spike.position.map(|position| match &spike.predecessor {
        Some(before) => format!(", place {position}, right after {before}"),
        None => format!(", place {position}, without a predecessor"),
    });
    let values = spike.values.iter().map(|one| {
        let [value, median] = [one.value, one.median].map(|value| one.unit.format(value));
        format!("{} {value}, median {median}", one.metric)
    });
    let differs = spike.differs.iter().map(|one| {
        let [far, ordinary] = [one.far, one.ordinary].map(|value| one.unit.format(value));
        format!("{} {far} (otherwise {ordinary})", one.what)
    });
    let machine = match (spike.differs.len(), spike.compared) {
        (0, 0) => "no readings of the machine at that time".to_owned(),
        (0, _) => "the machine was as in other rounds".to_owned(),
        _ => format!("the machine differed from other rounds: {}", listed(differs, ", ")),
    };
    let told = format!("round {}{}: {}", spike.round, place.unwrap_or_default(), listed(values, ", "));
    let item = Item::of(told).named(format!("`{}`{}", spike.label, in_brackets(&spike.setting)));
    Item { subject: Some(spike.label.clone()), ..item.detail(machine) }
}

/// Medians, means, standard deviations and ranges, a table for each metric with verdicts.
pub(super) fn means(experiment: &Experiment) -> Block {
    let numbers = ["median", "mean", "standard deviation", "smallest", "largest"].map(Column::numbers);
    let columns = ["subject", "setting"].map(Column::words).into_iter();
    let columns: Vec<Column> =
        columns.chain([Column::numbers("values").with_room()]).chain(numbers).collect();
    let table = |metric: usize, name: &str| {
        let mut table = Table::of(name, columns.clone());
        let settings = experiment.settings.iter();
        for (setting, row) in settings.flat_map(|one| one.subjects().into_iter().map(move |row| (one, row))) {
            let Some(value) = row.value(metric) else { continue };
            let (low, high) = value.summary.range;
            let numbers =
                [value.summary.median.value, value.summary.mean, value.summary.deviation, low, high];
            let number = |one: f64| match one.is_finite() {
                true => Cell::words(value.unit.format(one)).key(one),
                false => Cell::nothing("–"),
            };
            let count = Cell::words(value.summary.median.rounds.to_string());
            let cells = [Cell::code(&row.label), Cell::words(&setting.values), count].into_iter();
            table.row(&[&row.label], cells.chain(numbers.map(number)).collect());
        }
        Block::Table(table)
    };
    let decisive = experiment.metrics.iter().enumerate().filter(|(_, metric)| metric.decisive);
    let tables = decisive.map(|(index, metric)| table(index, metric.name));
    Block::folded("Means, for comparison with published ones", tables.collect())
}
