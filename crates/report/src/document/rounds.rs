//! Raw rounds over time as small drawings, one for each cell: plain data for formats that can draw them.

use crate::axis::Axis;
use crate::units::Scale;

/// The drawings of a metric in a setting.
#[derive(Debug, Clone)]
pub struct Rounds {
    /// Their title.
    pub title: String,
    /// One for each cell.
    pub drawings: Vec<Drawing>,
}

impl Rounds {
    /// The number of values.
    pub fn values(&self) -> usize {
        self.drawings.iter().map(|drawing| drawing.points).sum()
    }
}

/// The rounds of one cell.
#[derive(Debug, Clone)]
pub struct Drawing {
    /// Its heading.
    pub name: String,
    /// The label of its subject.
    pub label: String,
    /// A text for readers who cannot see it.
    pub alternative: String,
    /// The number of points.
    pub points: usize,
    /// The number of rounds in a point.
    pub step: usize,
    /// A path through the medians.
    pub line: String,
    /// The area from the smallest to the largest value, if a point has several rounds.
    pub band: Option<String>,
    /// A path along the median of all rounds.
    pub middle: String,
    /// The ends of the axis with their unit.
    pub ends: [String; 2],
    /// For the script: maps values to heights.
    pub axis: Axis,
    /// For the script: the unit of shown values.
    pub scale: Scale,
}
