//! With how little memory does a container start? A memory limit is halved until it is known to 64 KiB with which a container starts,
//! and with which the kernel leaves it alone. Each round searches anew, so that the interval holds what comes and goes: pages that
//! each CPU keeps charged and unused.
//!
//! A container has started once the probe in it has said so, not once its engine says it; a program of the user's must still run a second
//! later. The second limit is a comfortable one: nothing was ever to be charged above it, so the kernel neither reclaimed nor waited, and
//! a start takes as long as without a limit. Version 1 of cgroups also counts charges of 64 pages at once that are then made smaller, so
//! the second is up to 256 KiB higher there.
//!
//! Deliberately absent: swap, which a limit of memory does not count.

use super::{GUARDED, Own};
use crate::experiment::question::{Event, Experiment, Metric, Scope};
use crate::experiment::setting::SettingKey;
use crate::names::names;
use crate::stats::Margin;
use crate::subject::{Layer, Need};
use crate::units::{Better, Nanos, Unit};
use names::{COMFORTABLE, PEAK, SMALLEST, STARTED, STARTED_COMFORTABLE, STARTED_SMALLEST, TRIES};

names! {
    Counter {
        SMALLEST = "smallest_limit", COMFORTABLE = "comfortable_limit", PEAK = "unlimited_peak", TRIES = "limit_tries",
        STARTED = "started_unlimited", STARTED_SMALLEST = "started_smallest", STARTED_COMFORTABLE = "started_comfortable",
    }
    Fact { BELOW = "below_smallest", }
}

pub mod tables;

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
        .meaning("the smallest memory limit, in steps of 64 KiB, with which a container starts: the probe in it says so, a program of yours \
         still runs a second later, and the kernel has killed none of its processes"),
    Metric::counted("comfortable", COMFORTABLE, 1.0).of(Unit::Bytes, MARGIN).meaning(
        "the smallest with which nothing was to be charged above it until then, so that the kernel neither reclaims nor waits; up to \
         256 KiB more on cgroup v1, which also counts charges of 64 pages at once that are then made smaller",
    ),
    Metric::counted("peak", PEAK, 1.0).of(Unit::Bytes, MARGIN).context().meaning(
        "the most that is charged to a container without a limit until it has started: the runtime's own part, and pages that each \
         CPU keeps unused",
    ),
    Metric::nanos("unlimited", STARTED).context()
        .meaning("from the creation of a container without a limit until the probe in it has said that it is ready, and a program of yours has \
             started or answered"),
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
    refuses: |setting| {
        let of_many = ["rest", "reserve"].into_iter().find(|key| setting.get(key).is_some());
        match of_many {
            Some(key) => Some(format!("`{key}` is about containers that run on, which `memory` weighs")),
            None => Own::of(setting).err(),
        }
    },
    event: Event::Held("container"),
    scope: Scope::Few,
    keeps_samples: true,
    empty_launch: None,
    twins: |_, layer| layer == Layer::Floor,
    cost: |setting, launch| {
        let watched = if setting.0.is_empty() { 0 } else { 1_000_000_000 };
        Nanos((launch.0 + watched) * SEARCHED)
    },
    ..Experiment::of(NAME, "with how little memory does a container start?", Need::Lifecycle, &METRICS)
};
