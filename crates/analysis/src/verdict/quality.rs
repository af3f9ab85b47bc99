//! What must be known about a single run before its values are compared with another run's: why a cell has no
//! values, what must not be believed, and what happened to the run. The same as in a whole analysis, but
//! without the comparisons within the run, which take too long for runs of a million samples and are not
//! needed.

use super::columns::CellSummary;
use super::suspect::Suspect;
use super::view::View;
use super::warning::Warning;
use super::{own, warning};
use crate::experiment::{Metric, Weight};
use crate::plan::{Comparison, Relation};
use crate::record::Recorded;

/// The quality of one run, as far as it matters for a comparison with others.
#[derive(Debug, Clone)]
pub struct Quality {
    /// By cell.
    pub cells: Vec<CellSummary>,
    /// What happened to the run and its record.
    pub warnings: Vec<Warning>,
    /// What must not be believed.
    pub suspects: Vec<Suspect>,
}

/// The quality of a run, by the rules of [`super::analyse`].
pub fn quality(run: &Recorded) -> Quality {
    // The rules ask what is faster than the baseline and whether a twin differs, both only for metrics with
    // verdicts.
    let is_asked = |comparison: &Comparison, metric: &Metric| {
        matches!(comparison.relation, Relation::Baseline | Relation::Twin) && metric.weight == Weight::Verdict
    };
    let view = View::of(run, is_asked);
    Quality { warnings: warning::of_the_record(run), suspects: own::suspects(&view), cells: view.cells }
}
