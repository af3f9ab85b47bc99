//! More and more containers of one subject that are alive at the same time, and none again in the end. Hidden from users: it tests
//! visits that hold many containers.

use super::question::{Experiment, Metric};
use super::rounds::Visit;
use super::setting::{Setting, SettingKey};
use crate::names::names;
use crate::stats::Margin;
use crate::subject::Need;
use crate::units::{Better, Nanos, Unit};

names! {
    StampName { BEGAN = "began", REACHED = "reached", }
    Counter { CONTAINERS = "containers", }
}
use names::{BEGAN, CONTAINERS, REACHED};

/// Its name.
pub const NAME: &str = "ramp";

/// How many containers there are at each step, in this order.
const STEPS: [&str; 4] = ["1", "4", "20", "none"];

static METRICS: [Metric; 2] = [
    Metric::span("raised", BEGAN, REACHED)
        .meaning("from the last step until this many containers run; missing if they cannot"),
    Metric::by("containers", |sample| sample.counter(CONTAINERS).map(|count| count as f64))
        .of(Unit::Count, Margin::fixed(0.5, 0.0))
        .with(Better::Neither)
        .context()
        .meaning("how many run at the end of the step"),
];

static KEYS: [SettingKey; 1] = [SettingKey::of("containers", &STEPS).meaning("how many run")];

/// How many containers run in a step.
pub fn containers(setting: &Setting) -> usize {
    setting.get("containers").and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The experiment `ramp`.
pub static RAMP: Experiment = Experiment {
    keys: &KEYS,
    visit: Visit::InOrder(NAME),
    quick_values: |_| &STEPS,
    cost: |setting, launch| Nanos(launch.0 * containers(setting) as i64),
    empty_launch: None,
    ..Experiment::of(NAME, "how many containers run?", Need::Lifecycle, &METRICS)
};
