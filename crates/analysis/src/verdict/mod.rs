//! From samples to verdicts, warnings and suspects: computed once, rendered everywhere. A pure
//! function of what was recorded.
//!
//! The plan has fixed what is compared, at which level and with which margin. `stats` decides the verdicts,
//! `suspect` overrules them, and `warning` qualifies them.

pub mod columns;
pub mod factors;
mod failing;
pub mod finding;
pub mod kind;
pub mod noise;
mod own;
pub mod precision;
pub mod price;
mod quality;
mod share;
mod spikes;
pub mod suspect;
pub mod table;
mod view;
pub mod warning;

pub use columns::{CellSummary, Columns, MetricSummary, in_parallel};
pub use failing::{FailureShares, lost_too_many};
pub use finding::{About, Finding, Numbers, Verdict, sibling};
pub use kind::Kind;
pub use noise::Noise;
pub use price::{Price, Sum};
pub use quality::{Quality, quality};
pub use share::FloorShare;
pub use spikes::{Circumstance, Far, Spike, Spikes};
pub use suspect::Suspect;
pub use table::ExperimentTable;
pub use view::View;
pub use warning::Warning;

use serde::Serialize;

use crate::record::Recorded;
use crate::stats::{self, TimeSeries};
use columns::by_cell;

/// The whole analysis of a run.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// Complete rounds that count.
    pub rounds: usize,
    /// By cell.
    pub cells: Vec<CellSummary>,
    /// By cell and metric; none where the cell has no value at all.
    pub shapes: Vec<Vec<Option<Shape>>>,
    /// Every comparison in every setting and metric.
    pub findings: Vec<Finding>,
    /// Where a side of a comparison failed: how often each.
    pub failure_shares: Vec<FailureShares>,
    /// By metric and setting, what twins show.
    pub noise: Vec<Noise>,
    /// The floor's share of each subject's time.
    pub floor_shares: Vec<FloorShare>,
    /// The prices of settings, for experiments that have them.
    pub prices: Vec<Price>,
    /// Whether prices add up to the whole.
    pub sums: Vec<Sum>,
    /// What qualifies the verdicts.
    pub warnings: Vec<Warning>,
    /// What must not be believed.
    pub suspects: Vec<Suspect>,
    /// Samples far from the others of their cell, by experiment.
    pub spikes: Vec<Spikes>,
    /// The number of cells in which carry-over was tested.
    pub carry_over_tested: usize,
    /// Every effect of the factorial, in every setting and decisive metric.
    pub factors: Vec<factors::FactorFinding>,
    /// The experiments' own tables.
    pub experiment_tables: Vec<ExperimentTable>,
    /// How narrow the comparisons with the baseline are.
    pub precision: Option<precision::Reached>,
}

/// The distribution of a metric's values in a cell, and their course over time.
#[derive(Debug, Clone, Serialize)]
pub struct Shape {
    /// The quartiles.
    pub quartiles: (f64, f64),
    /// At most [`MOST_STEPS`] order statistics at equal steps, from the smallest to the largest value.
    #[serde(skip)]
    pub steps: Vec<f64>,
    /// The values over complete rounds, in at most [`MOST_POINTS`] points.
    #[serde(skip)]
    pub time_series: TimeSeries,
}

/// Enough for a smooth curve of a distribution.
pub const MOST_STEPS: usize = 101;
/// As many as a page shows side by side.
pub const MOST_POINTS: usize = 200;

/// More rounds than anyone will run.
pub const HOPELESS: usize = 5000;

/// Analyses a run.
pub fn analyse(run: &Recorded) -> Analysis {
    let mut view = View::of(run, |_, _| true);
    let suspects = own::suspects(&view);
    for (index, suspect) in suspects.iter().enumerate() {
        suspect.overrule(index, &mut view.findings);
    }
    for finding in &mut view.findings {
        finding.noise = noise::above(&run.plan, &view.noise, finding);
    }
    let mut effects = factors::findings(run, &view.columns);
    factors::overrule(&suspects, &mut effects);
    let spikes = spikes::all(run, &view.columns);
    let (warnings, carry_over_tested) = warning::all(run, &view.columns, &view.cells, &spikes);
    // Experiments' own tables rest on rounds or on whole samples; blocks have neither.
    let experiment_tables = if run.is_in_blocks() { Vec::new() } else { own::tables(&view) };
    let sums = own::sums(&view);
    let View { columns, cells, findings, noise, prices, .. } = view;
    Analysis {
        rounds: run.complete_rounds(),
        floor_shares: share::floor_shares(run, &columns),
        factors: effects,
        failure_shares: failing::shares(&run.plan, &columns),
        experiment_tables,
        precision: precision::reached(&run.plan, &columns, &findings),
        sums,
        shapes: by_cell(run, |cell| shapes(run, &columns, cell)),
        prices,
        cells,
        findings,
        noise,
        warnings,
        suspects,
        spikes,
        carry_over_tested,
    }
}

fn shapes(run: &Recorded, columns: &Columns, cell: usize) -> Vec<Option<Shape>> {
    let of_metric = |metric| {
        let sample = columns.sample(cell, metric);
        // The rounds of a tail may have none of their own.
        sample.as_ref().map(|_| ()).or(columns.tail(cell, metric).map(|_| ()))?;
        let quartiles = sample.as_ref().map(|sample| sample.quantiles([0.25, 0.75]));
        Some(Shape {
            quartiles: quartiles.map_or((f64::NAN, f64::NAN), |[low, high]| (low, high)),
            steps: sample.map(|sample| stats::steps(&sample, MOST_STEPS)).unwrap_or_default(),
            time_series: stats::time_series(columns.get(cell, metric), MOST_POINTS),
        })
    };
    (0..run.plan.metrics(&run.plan.cells[cell]).len()).map(of_metric).collect()
}
