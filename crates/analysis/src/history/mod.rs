//! A metric over many runs: by date, or by a tag such as the commit that was measured, with the places at which its
//! level changed. A pure function of runs that were read and judged each by itself; computed once, rendered
//! everywhere.
//!
//! A run is one value, its median, and runs are what replicates. They stand beside each other and are never averaged;
//! runs of different hosts stand apart. Where a change is, `stats::change` decides; what happened beside it is told as
//! a coincidence.
//!
//! What is serialised is the declared shape of `dunnage history --format json` (`docs/history-json.md`).

mod build;
mod machine;

pub use build::{Problem, Wish, of};

use serde::Serialize;

use crate::compare::{Difference, Run};
use crate::record::Order;
use crate::stats::{Alpha, Estimate};
use crate::units::Unit;
use crate::verdict::Kind;

/// One seed for all: the same runs give the same changes.
const SEED: u64 = 0x6869_7374_6f72_7921;

/// Runs of one host in order, and what they gave.
#[derive(Debug, Clone, Serialize)]
pub struct History {
    /// The host, its processor, and how many CPUs there are.
    pub machine: String,
    /// The tag that puts the runs in order; none where it is the date.
    pub by: Option<String>,
    /// The runs in order.
    #[serde(rename = "runs")]
    pub points: Vec<Point>,
    /// The cells with a value in at least one run.
    pub series: Vec<Series>,
    /// The level of a single series, so that all together keep 5 %.
    pub level: Alpha,
    /// The fewest runs with which a change can be found at this level.
    #[serde(rename = "runs_needed")]
    pub needed: usize,
    /// What a reader must know, each a sentence.
    pub notices: Vec<String>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// What it is called on the axis: its date, or the value of the tag.
    pub name: String,
    /// The run.
    pub run: String,
    /// When it began, RFC 3339, in UTC.
    pub started: String,
    /// Where it lies.
    pub place: String,
    /// Complete rounds.
    pub rounds: usize,
    /// Whether its samples were taken in shuffled rounds.
    pub order: Order,
}

/// One metric of one subject in one setting.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// The experiment.
    pub experiment: &'static str,
    /// The metric.
    pub metric: &'static str,
    /// Its base unit.
    pub unit: Unit,
    /// The setting as `key=value` joined by `;`.
    pub setting: String,
    /// The subject's label.
    pub label: String,
    /// Whether it shows what the machine does rather than an engine: bare, floor.
    #[serde(rename = "shows_the_machine")]
    pub is_control: bool,
    /// By run; none where the cell has no value.
    pub values: Vec<Option<Value>>,
    /// The changes, in order.
    pub changes: Vec<Change>,
}

/// The value of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Value {
    /// The median with its interval at 95 %.
    #[serde(flatten)]
    pub median: Estimate,
    /// Whether the run itself says that it must not be believed; such a value is shown and decides nothing.
    #[serde(rename = "suspect")]
    pub is_suspect: bool,
}

/// A place at which the level changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The index of the last run before it.
    #[serde(rename = "last_before")]
    pub before: usize,
    /// The index of the first run after it.
    #[serde(rename = "first_after")]
    pub after: usize,
    /// The median of the runs of each level.
    pub levels: (f64, f64),
    /// How many runs each level has.
    pub runs: (usize, usize),
    /// How likely a cut as good is in a random order of the runs.
    pub p: f64,
    /// The smallest difference that matters, in the unit of the metric.
    pub matters: f64,
    /// What it is: `same` where it is smaller than what matters, and the machine's where what shows the machine moved in the
    /// same way at the same run.
    pub verdict: Kind,
    /// What else is not the same before and after it.
    #[serde(rename = "at_the_same_time")]
    pub beside: Vec<Difference>,
}
