//! Raw rounds over time as small drawings, one a cell: plain data, for formats that can draw them.

use crate::axis::Axis;
use crate::units::Scale;

/// The drawings of a metric in a setting.
#[derive(Debug, Clone)]
pub struct Rounds {
    /// What is drawn.
    pub title: String,
    /// One of each cell.
    pub drawings: Vec<Drawing>,
}

impl Rounds {
    /// How many values there are.
    pub fn values(&self) -> usize {
        self.drawings.iter().map(|drawing| drawing.points).sum()
    }
}

/// The rounds of one cell.
#[derive(Debug, Clone)]
pub struct Drawing {
    /// What stands above it.
    pub name: String,
    /// Whose it is.
    pub label: String,
    /// What there is to see, for whoever does not.
    pub alternative: String,
    /// How many points there are.
    pub points: usize,
    /// How many rounds a point stands for.
    pub step: usize,
    /// A path through the medians.
    pub line: String,
    /// The area from the smallest to the largest value, where a point stands for several rounds.
    pub band: Option<String>,
    /// Where the median of all rounds lies.
    pub middle: String,
    /// The ends of the axis with their unit.
    pub ends: [String; 2],
    /// For the script: from values to heights.
    pub axis: Axis,
    /// For the script: in which unit values are told.
    pub scale: Scale,
}
