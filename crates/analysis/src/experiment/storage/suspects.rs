//! What cannot be true of numbers that are called a disk's: syncs after which the bytes are not there, and rates above
//! what the device takes.

use super::class::{Class, Seen};
use super::disk::{self, sync};
use super::layers;
use super::names::{DEVICE, DURABILITY};
use crate::experiment::Weight;
use crate::names::Fact;
use crate::units::Unit;
use crate::verdict::{Suspect, View};

/// A rate may be above the measured ceiling by this factor: both have noise.
const ABOVE: f64 = 1.2;

/// The last fact of this name that was recorded for a cell.
pub(super) fn fact<'a>(view: &View<'a>, cell: usize, name: Fact) -> Option<&'a str> {
    view.run.facts(cell, name).flatten().next_back()
}

/// The median of a metric in a cell.
pub(super) fn median(view: &View<'_>, cell: usize, metric: &str) -> Option<f64> {
    Some(view.estimate_of(cell, metric)?.value)
}

/// The class of what a cell wrote, by the medians of its rounds.
pub fn class_of(view: &View<'_>, cell: usize) -> Class {
    if view.cells[cell].metrics.iter().all(Option::is_none) {
        return Class::Unproven("there is no sample".to_owned());
    }
    Class::of(&Seen {
        sync: sync(&view.cell(cell).setting),
        is_volatile: view.run.facts(cell, DURABILITY).flatten().any(|fact| fact == "volatile"),
        device: fact(view, cell, DEVICE),
        arrived: median(view, cell, "device_share"),
        others: median(view, cell, "others_share"),
    })
}

/// Syncs after which the bytes are not at the device: the numbers are no disk's.
pub fn not_durable(view: &View<'_>) -> Vec<Suspect> {
    let promised = [(disk::NAME, &disk::DURABLE[..]), (layers::NAME, &layers::DURABLE)];
    promised.into_iter().flat_map(|(name, metrics)| of_experiment(view, name, metrics)).collect()
}

fn of_experiment(view: &View<'_>, name: &'static str, metrics: &[&str]) -> Vec<Suspect> {
    let of_cell = |cell: usize| {
        let (seen, mechanism) = class_of(view, cell).fault()?;
        let of_metric = |name: &&str| {
            let metric = view.metric_index(cell, name)?;
            let evidence = format!("{}: {seen}", view.named(cell, metric));
            let decides = view.metric(cell, metric).weight == Weight::Verdict;
            decides.then(|| Suspect::of("not on the disk", (cell, metric), evidence, mechanism))
        };
        Some(metrics.iter().filter_map(of_metric).collect::<Vec<_>>())
    };
    view.cells_of(name).filter_map(of_cell).flatten().collect()
}

/// The most that a device took in this run, in bytes a second.
fn ceiling(view: &View<'_>, device: &str) -> Option<f64> {
    let own = view.cells_of(disk::NAME).filter(|cell| fact(view, *cell, DEVICE) == Some(device));
    let values = own.filter_map(|cell| {
        Some(view.cells[cell].metrics[view.metric_index(cell, "ceiling")?].as_ref()?.range.1)
    });
    values.reduce(f64::max)
}

/// Where the counters do not prove that bytes arrived, they cannot have been written faster than the device takes them.
pub fn above_the_ceiling(view: &View<'_>) -> Vec<Suspect> {
    let of_cell = |cell: usize| {
        let device =
            fact(view, cell, DEVICE).filter(|_| matches!(class_of(view, cell), Class::Unproven(_)))?;
        let (own, most) = (median(view, cell, "write_rate")?, ceiling(view, device)?);
        let shown = |value| Unit::BytesPerSecond.format(value);
        (own > ABOVE * most).then(|| {
            let metric = view.metric_index(cell, "write_gb")?;
            let evidence = format!(
                "{} is {}, but `{device}` takes {}",
                view.named(cell, metric),
                shown(own),
                shown(most)
            );
            let mechanism = "the bytes are in a cache, not on the device";
            Some(Suspect::of("above the device's ceiling", (cell, metric), evidence, mechanism))
        })?
    };
    view.cells_of(disk::NAME).filter_map(of_cell).collect()
}
