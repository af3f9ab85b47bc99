//! A metric over many runs: by date, or by a tag such as the commit that was measured, with the places at which its
//! level changed. A pure function of runs that were read and judged each by itself; computed once, rendered
//! everywhere.
//!
//! A run is one value, its median, and runs are what replicates. They stand beside each other and are never averaged;
//! runs of different hosts stand apart. Where a change is, `stats::change` decides; what happened beside it is told as
//! a coincidence.

mod build;
mod csv;
mod json;
mod machine;
mod markdown;
mod terminal;
mod words;

pub use build::{Hosts, Problem, Wish, of};

use crate::compare::Run;
use crate::record::Order;
use crate::report::Look;
use crate::stats::{Alpha, Estimate};
use crate::units::Unit;
use crate::verdict::Kind;

/// One seed for all: the same runs give the same changes.
const SEED: u64 = 0x6869_7374_6f72_7921;

/// Runs of one host in order, and what they gave.
#[derive(Debug, Clone)]
pub struct History {
    /// The host, its processor, and how many CPUs there are.
    pub machine: String,
    /// The tag that puts the runs in order; none where it is the date.
    pub by: Option<String>,
    /// The runs in order.
    pub points: Vec<Point>,
    /// The cells with a value in at least one run.
    pub series: Vec<Series>,
    /// The level of a single series, so that all together keep 5 %.
    pub level: Alpha,
    /// The fewest runs with which a change can be found at this level.
    pub needed: usize,
    /// What a reader must know, each a sentence.
    pub notices: Vec<String>,
}

/// A run.
#[derive(Debug, Clone, PartialEq)]
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

impl Point {
    /// The word for the order of its samples in files.
    fn order_name(&self) -> &'static str {
        match self.order {
            Order::Rounds => "rounds",
            Order::Blocks => "blocks",
        }
    }
}

/// One metric of one subject in one setting.
#[derive(Debug, Clone)]
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
    pub is_control: bool,
    /// By run; none where the cell has no value.
    pub values: Vec<Option<Value>>,
    /// The changes, in order.
    pub changes: Vec<Change>,
}

/// The value of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The median with its interval at 95 %.
    pub median: Estimate,
    /// Whether the run itself says that it must not be believed; such a value is shown and decides nothing.
    pub is_suspect: bool,
}

/// A place at which the level changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The index of the last run before it.
    pub before: usize,
    /// The index of the first run after it.
    pub after: usize,
    /// The median of the runs of each level.
    pub levels: (f64, f64),
    /// How many runs each level has.
    pub runs: (usize, usize),
    /// How likely a cut as good is in a random order of the runs.
    pub p: f64,
    /// The smallest difference that matters, in the unit of the metric.
    pub matters: f64,
    /// What it is.
    pub meaning: Meaning,
    /// What else is not the same before and after it, each in words.
    pub beside: Vec<String>,
    /// All of it in a sentence.
    pub sentence: String,
}

/// What a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// It changed: what that is called of this metric.
    Changed(Kind),
    /// There, and smaller than what matters.
    TooSmall,
    /// What shows the machine moved in the same way at the same run.
    Machine,
}

impl Meaning {
    /// The words used in files.
    pub fn name(self) -> &'static str {
        match self {
            Meaning::Changed(kind) => kind.word(),
            Meaning::TooSmall => "too small to matter",
            Meaning::Machine => "the machine changed",
        }
    }
}

/// One way to show histories.
pub struct Format {
    /// Its name after `--format`.
    pub name: &'static str,
    /// How it is made.
    pub render: fn(&[History], &Look) -> String,
}

/// Every format there is, the one for people first.
pub static FORMATS: [Format; 4] = [
    Format { name: "terminal", render: terminal::render },
    Format { name: "json", render: json::render },
    Format { name: "csv", render: csv::render },
    Format { name: "md", render: markdown::render },
];

/// The format with this name.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}
