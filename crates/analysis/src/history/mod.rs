//! A metric over many runs: by date, or by a tag such as the commit that was measured, with the places where
//! its level changed. A pure function of runs that were read and judged one by one; computed once, rendered
//! everywhere.
//!
//! A run is one value, its median, and runs are the replicates. They are never averaged, and runs of
//! different hosts are separate. `stats::change` finds the changes; other differences at the same run are
//! reported as coincidences.
//!
//! What is serialised is the declared shape of `dunnage history --format json` (`docs/history-json.md`).

mod build;
mod machine;

pub use build::{Problem, Selection, of};

use serde::Serialize;

use crate::compare::{Difference, Run};
use crate::record::Order;
use crate::stats::{Alpha, Estimate};
use crate::units::Unit;
use crate::verdict::Kind;

/// A fixed seed: the same runs give the same changes.
const SEED: u64 = 0x6869_7374_6f72_7921;

/// Runs of one host in order, and their values.
#[derive(Debug, Clone, Serialize)]
pub struct History {
    /// The host, its processor, and the number of CPUs.
    pub machine: String,
    /// The tag that puts the runs in order; none if it is the date.
    pub by: Option<String>,
    /// The runs in order.
    #[serde(rename = "runs")]
    pub points: Vec<Point>,
    /// The cells with a value in at least one run.
    pub series: Vec<Series>,
    /// The level of a single series, so that all together keep 5 %.
    pub level: Alpha,
    /// The minimum number of runs to find a change at this level.
    #[serde(rename = "runs_needed")]
    pub needed: usize,
    /// What a reader must know, each a sentence.
    pub notices: Vec<String>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Its name on the axis: its date, or the value of the tag.
    pub name: String,
    /// The run.
    pub run: String,
    /// When it began, RFC 3339, in UTC.
    pub started: String,
    /// Its path.
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
    /// Whether it shows the machine and not an engine: bare, floor.
    #[serde(rename = "shows_the_machine")]
    pub is_control: bool,
    /// By run; none if the cell has no value.
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
    /// Whether the run itself says that it must not be believed; such a value is shown but decides nothing.
    #[serde(rename = "suspect")]
    pub is_suspect: bool,
}

/// A place where the level changed.
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
    /// The number of runs in each level.
    pub runs: (usize, usize),
    /// The probability of a cut as good in a random order of the runs.
    pub p: f64,
    /// The smallest difference that matters, in the unit of the metric.
    pub matters: f64,
    /// The verdict: `same` if it is smaller than what matters, and the machine's if the controls moved the
    /// same way at the same run.
    pub verdict: Kind,
    /// What else differs before and after it.
    #[serde(rename = "at_the_same_time")]
    pub beside: Vec<Difference>,
}
