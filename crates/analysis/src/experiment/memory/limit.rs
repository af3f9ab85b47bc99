//! With how little memory does a container start? A memory limit is halved until it is known to 64 KiB with which a container starts,
//! and with which the kernel leaves it alone. Each round searches anew, so that the interval holds what comes and goes: pages that
//! each CPU keeps charged and unused.
//!
//! A container has started once the probe in it has said so, whatever the engine says. The second limit is a comfortable one: nothing was
//! ever to be charged above it, so the kernel neither reclaimed nor waited, and a start takes as long as without a limit.
//!
//! Deliberately absent: swap, which a limit of memory does not count.

use super::{GUARDED, Own};
use crate::experiment::question::{Event, Experiment, Metric, Scope};
use crate::experiment::setting::SettingKey;
use crate::names::names;
use crate::stats::{Estimate, Margin};
use crate::subject::{Layer, Need};
use crate::text::estimated;
use crate::units::{Better, Nanos, Unit};
use crate::verdict::View;
use crate::verdict::table::{Column, ExperimentTable, Item};
use names::{BELOW, COMFORTABLE, PEAK, SMALLEST, STARTED, STARTED_COMFORTABLE, STARTED_SMALLEST, TRIES};

names! {
    Counter {
        SMALLEST = "smallest_limit", COMFORTABLE = "comfortable_limit", PEAK = "unlimited_peak", TRIES = "limit_tries",
        STARTED = "started_unlimited", STARTED_SMALLEST = "started_smallest", STARTED_COMFORTABLE = "started_comfortable",
    }
    Fact { BELOW = "below_smallest", }
}

/// Its name.
pub const NAME: &str = "memory-limit";

/// Limits are multiples of this many bytes.
pub const STEP: u64 = 65_536;

/// How many containers a search takes.
const SEARCHED: i64 = 16;

/// A step, which is what the search can tell apart.
const MARGIN: Margin = Margin::fixed(STEP as f64, 0.05);

static METRICS: [Metric; 7] = [
    Metric::counted("smallest", SMALLEST, 1.0)
        .of(Unit::Bytes, MARGIN)
        .meaning("the smallest memory limit, in steps of 64 KiB, with which a container starts: the probe in it says so"),
    Metric::counted("comfortable", COMFORTABLE, 1.0).of(Unit::Bytes, MARGIN).meaning(
        "the smallest with which nothing was to be charged above it until then, so that the kernel neither reclaims nor waits",
    ),
    Metric::counted("peak", PEAK, 1.0).of(Unit::Bytes, MARGIN).context().meaning(
        "the most that is charged to a container without a limit until it has started: the runtime's own part, and pages that each \
         CPU keeps unused",
    ),
    Metric::nanos("unlimited", STARTED).context()
        .meaning("from the creation of a container without a limit until the probe in it has said that it is ready"),
    Metric::nanos("at_smallest", STARTED_SMALLEST).context().meaning("the same with the smallest limit"),
    Metric::nanos("at_comfortable", STARTED_COMFORTABLE).context().meaning("the same with the comfortable limit"),
    Metric::counted("tries", TRIES, 1.0)
        .of(Unit::Count, Margin::fixed(0.5, 0.0))
        .with(Better::Neither)
        .context()
        .meaning("how many containers the search took"),
];

static KEYS: [SettingKey; 0] = [];

/// The experiment `memory-limit`.
pub static MEMORY_LIMIT: Experiment = Experiment {
    keys: &KEYS,
    guarded: &GUARDED,
    refuses: |setting| match setting.get("rest") {
        Some(_) => Some("`rest` is about containers that run on, which `memory` weighs".to_owned()),
        None => Own::of(setting).err(),
    },
    event: Event::Held("container"),
    scope: Scope::Few,
    keeps_samples: true,
    empty_launch: None,
    twins: |_, layer| layer == Layer::Floor,
    cost: |_, launch| Nanos(launch.0 * SEARCHED),
    ..Experiment::of(NAME, "with how little memory does a container start?", Need::Lifecycle, &METRICS)
};

/// The table: both limits, what a start takes with each, and what happens with less.
pub fn tables(view: &View<'_>) -> Vec<ExperimentTable> {
    let is_shown = |cell: &usize| view.plan().entry(*cell).twin_of.is_none();
    let cells: Vec<usize> = view.cells_of(NAME).filter(is_shown).collect();
    let of = |cell: usize, metric: &str| -> Option<Estimate> {
        view.cells[cell].metrics[view.metric_index(cell, metric)?].as_ref().map(|one| one.median)
    };
    if cells.iter().all(|cell| of(*cell, "smallest").is_none()) {
        return Vec::new();
    }
    let below = |cell: usize| view.run.facts(cell, BELOW).flatten().next_back();
    let row = |cell: &usize| {
        let interval =
            |metric| of(*cell, metric).map_or(Item::Nothing("not known".to_owned()), Item::Interval);
        let value = |metric| Item::value(of(*cell, metric).map(|one| one.value), "not known");
        let below = below(*cell).map_or(Item::Nothing("not known".to_owned()), |all| Item::Text(all.to_owned()));
        let times = ["unlimited", "at_comfortable", "at_smallest"].map(value);
        [Item::Text(view.label(*cell).to_owned()), interval("smallest"), interval("comfortable"), value("peak")]
            .into_iter()
            .chain(times)
            .chain([below])
            .collect()
    };
    let told = |cell: &usize| {
        let [smallest, comfortable] = ["smallest", "comfortable"].map(|metric| of(*cell, metric));
        Some(format!(
            "{}: a container starts with {} and is left alone by the kernel from {} on",
            view.label(*cell),
            estimated(Unit::Bytes, &smallest?),
            estimated(Unit::Bytes, &comfortable?),
        ))
    };
    let columns = vec![
        Column::of_texts("subject"),
        Column::of_values("starts with", Unit::Bytes),
        Column::of_values("left alone with", Unit::Bytes),
        Column::of_values("peak", Unit::Bytes),
        Column::of_values("unlimited", Unit::Seconds),
        Column::of_values("left alone", Unit::Seconds),
        Column::of_values("smallest", Unit::Seconds),
        Column::of_texts("with 64 KiB less"),
    ];
    let summary: Vec<String> = cells.iter().filter_map(told).collect();
    let title = "with how little memory a container starts".to_owned();
    vec![ExperimentTable {
        rows: cells.iter().map(row).collect(),
        notes: vec![
            "starts with: the smallest limit with which the probe inside says that it runs; left alone with: the smallest that nothing was \
             ever to be charged above, so that the kernel reclaims nothing"
                .to_owned(),
            "peak: the most that is charged without a limit; then what a start takes without one, with the second and with the first"
                .to_owned(),
        ],
        decided: summary.clone(),
        summary,
        leads: true,
        ..ExperimentTable::new(NAME, "limits", title, columns)
    }]
}
