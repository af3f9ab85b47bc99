//! What a run records about a metric. Deliberately absent: how its values are computed.

use serde::Serialize;

use crate::units::{Better, Unit};

/// What a run records about a metric, apart from its values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MetricFacts {
    /// Its name.
    pub name: &'static str,
    /// The base unit of its values.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
    /// What the interval covers.
    pub meaning: &'static str,
    /// Whether it gets verdicts.
    pub decisive: bool,
    /// The smallest difference that matters: absolute in the base unit, and as a share.
    pub margin: (f64, f64),
}
