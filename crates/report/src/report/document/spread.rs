//! What a median does not say: the samples far from the others with what was going on then, and means with standard
//! deviations and ranges for those who compare with published ones.

use crate::document::{Block, Cell, Column, Item, Table};
use crate::report::model::Experiment;
use crate::report::text::{in_brackets, listed};
use crate::units::counted;
use crate::verdict::{Circumstance, Spike};

/// Samples that are told in full.
const IN_FULL: usize = 30;

/// Samples far from the others, and what was so then and otherwise.
pub(super) fn far(experiment: &Experiment) -> Block {
    let Some(spikes) = &experiment.spikes else { return Block::folded("", Vec::new()) };
    let all = spikes.samples.len();
    let numbers = ["far ones", "ordinary ones"].map(Column::numbers);
    let columns = [Column::words("what")].into_iter().chain(numbers).collect();
    let title = "What was so with them, and with the ordinary samples of the same cells";
    let mut table = Table::of(title, columns)
        .note("Medians of readings of whole rounds, and shares of samples. Described, not tested.");
    for Circumstance { what, unit, far, ordinary } in &spikes.circumstances {
        let numbers = [far, ordinary].map(|value| Cell::words(unit.format(*value)).key(*value));
        table.row(&[], [Cell::words(what)].into_iter().chain(numbers).collect());
    }
    let more = (all > IN_FULL).then(|| {
        let less = counted(all - IN_FULL, "sample");
        Block::note(format!("and {less} less far; `--format json` has them all"))
    });
    let list = Block::List(spikes.samples.iter().take(IN_FULL).map(item).collect());
    let blocks = [list].into_iter().chain(more).chain([Block::Table(table)]);
    Block::folded(format!("Values far from the others ({all})"), blocks.collect())
}

/// When a sample was taken, its values, and what the machine did.
fn item(spike: &Spike) -> Item {
    let place = spike.position.map(|position| match &spike.predecessor {
        Some(before) => format!(", place {position}, right after {before}"),
        None => format!(", place {position}, with nothing before it"),
    });
    let values = spike.values.iter().map(|one| {
        let [value, median] = [one.value, one.median].map(|value| one.unit.format(value));
        format!("{} {value} against a median of {median}", one.metric)
    });
    let differs = spike.differs.iter().map(|one| {
        let [far, ordinary] = [one.far, one.ordinary].map(|value| one.unit.format(value));
        format!("{} {far} (ordinarily {ordinary})", one.what)
    });
    let machine = match (spike.differs.len(), spike.compared) {
        (0, 0) => "nothing is known of the machine then".to_owned(),
        (0, _) => "nothing on the machine differed from ordinary rounds".to_owned(),
        _ => format!("the machine differed from ordinary rounds: {}", listed(differs, ", ")),
    };
    let told = format!("round {}{}: {}", spike.round, place.unwrap_or_default(), listed(values, ", "));
    let item = Item::of(told).named(format!("`{}`{}", spike.label, in_brackets(&spike.setting)));
    Item { subject: Some(spike.label.clone()), ..item.detail(machine) }
}

/// Means, standard deviations and ranges beside the medians, a table for each metric with verdicts.
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
            let (low, high) = value.range;
            let numbers = [value.median.value, value.mean, value.deviation, low, high];
            let number = |one: f64| match one.is_finite() {
                true => Cell::words(value.unit.format(one)).key(one),
                false => Cell::nothing("–"),
            };
            let count = Cell::words(value.median.rounds.to_string());
            let cells = [Cell::code(&row.label), Cell::words(&setting.values), count].into_iter();
            table.row(&[&row.label], cells.chain(numbers.map(number)).collect());
        }
        Block::Table(table)
    };
    let decisive = experiment.metrics.iter().enumerate().filter(|(_, metric)| metric.decisive);
    let tables = decisive.map(|(index, metric)| table(index, metric.name));
    Block::folded("Means, for comparison with published ones", tables.collect())
}
