//! What must be known of a run by itself before its values stand beside those of another: why a cell has none, what
//! must not be believed, and what became of the run. The same as a whole analysis says of it, without the
//! comparisons within the run, which no other run asks for: reading two runs of a million samples takes longer.

use super::columns::CellSummary;
use super::suspect::Suspect;
use super::view::View;
use super::warning::Warning;
use super::{own, warning};
use crate::experiment::{Metric, Weight};
use crate::plan::{Comparison, Relation};
use crate::record::Recorded;

/// What of a run by itself bears on what is said of it beside others.
#[derive(Debug, Clone)]
pub struct Quality {
    /// By cell.
    pub cells: Vec<CellSummary>,
    /// What became of the run and its record.
    pub warnings: Vec<Warning>,
    /// What must not be believed.
    pub suspects: Vec<Suspect>,
}

/// The quality of a run, by the rules of [`super::analyse`].
pub fn quality(run: &Recorded) -> Quality {
    // Rules ask who is faster than the baseline, and whether a twin differs; both only where something is decided.
    let is_asked = |comparison: &Comparison, metric: &Metric| {
        matches!(comparison.relation, Relation::Baseline | Relation::Twin) && metric.weight == Weight::Verdict
    };
    let view = View::of(run, is_asked);
    Quality { warnings: warning::of_the_record(run), suspects: own::suspects(&view), cells: view.cells }
}
