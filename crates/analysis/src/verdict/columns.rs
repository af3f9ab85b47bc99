//! The values of a run that count, by cell and metric, and the summary of each cell.

use crate::experiment::Metric;
use crate::outcome::FailureClass;
use crate::record::{Cause, Recorded};
use crate::stats::{Estimate, Sample};
use crate::units::Unit;

/// One cell's own values.
#[derive(Debug, Clone)]
pub struct CellSummary {
    /// By metric; none if the cell has no value at all.
    pub metrics: Vec<Option<MetricSummary>>,
    /// Rounds that count in which it failed, by class, and the first reason of each.
    pub failures: Vec<(FailureClass, usize, String)>,
    /// Rounds that count in which it was not tried.
    pub skipped: usize,
}

/// The values of one metric in one cell.
#[derive(Debug, Clone)]
pub struct MetricSummary {
    /// Median with its exact interval at 95 %.
    pub median: Estimate,
    /// The smallest and the largest value.
    pub range: (f64, f64),
    /// The arithmetic mean; nothing is decided by it.
    pub mean: f64,
    /// The standard deviation; NaN for a single value.
    pub deviation: f64,
}

/// The values of a run by complete round, with holes where they are missing.
pub struct Columns {
    by_cell: Vec<Vec<Vec<Option<f64>>>>,
}

impl Columns {
    pub(crate) fn of(run: &Recorded) -> Columns {
        let complete: Vec<_> = run.contexts.iter().skip(run.plan.warmups).map(Option::is_some).collect();
        let column = |values: &Vec<f64>| -> Vec<Option<f64>> {
            let counted = values.iter().zip(&complete).filter(|(_, complete)| **complete);
            counted.map(|(value, _)| Some(*value).filter(|value| value.is_finite())).collect()
        };
        let by_cell = in_parallel(&run.series, |series| series.values.iter().map(column).collect());
        Columns { by_cell }
    }

    /// The values of a metric in a cell by complete round.
    pub fn get(&self, cell: usize, metric: usize) -> &[Option<f64>] {
        &self.by_cell[cell][metric]
    }

    /// The same without the holes.
    pub fn sample(&self, cell: usize, metric: usize) -> Option<Sample> {
        Sample::new(self.get(cell, metric).iter().flatten())
    }
}

/// The smallest step that values of a metric can show, in its unit; 0 if unknown.
pub(super) fn resolution(run: &Recorded, metric: &Metric) -> f64 {
    if metric.unit == Unit::Seconds { run.environment.timer.step as f64 / 1e9 } else { 0.0 }
}

/// Applies a pure function to each cell of a run.
pub(super) fn by_cell<U: Send>(run: &Recorded, apply: impl Fn(usize) -> U + Sync) -> Vec<U> {
    let cells: Vec<usize> = (0..run.plan.cells.len()).collect();
    in_parallel(&cells, |&cell| apply(cell))
}

pub(super) fn summary(run: &Recorded, columns: &Columns, cell: usize) -> CellSummary {
    let metrics = run.plan.metrics(&run.plan.cells[cell]);
    let of_metric = |metric| {
        let sample = columns.sample(cell, metric)?;
        let median = Estimate::of_median(&sample, run.plan.level(1));
        let (mean, deviation) = sample.mean_and_deviation();
        Some(MetricSummary { median, range: (sample.min(), sample.max()), mean, deviation })
    };
    let mut failures: Vec<(FailureClass, usize, String)> = Vec::new();
    let mut skipped = 0;
    for row in run.failures.iter().filter(|row| row.cell == cell && row.round >= run.plan.warmups) {
        match &row.cause {
            Cause::Skipped(_) => skipped += 1,
            Cause::Failed(failure) => match failures.iter_mut().find(|(class, ..)| *class == failure.class) {
                Some((_, count, _)) => *count += 1,
                None => failures.push((failure.class, 1, failure.to_string())),
            },
        }
    }
    CellSummary { metrics: (0..metrics.len()).map(of_metric).collect(), failures, skipped }
}

/// Applies a pure function to all items, on all CPUs, keeping their order.
pub fn in_parallel<T: Sync, U: Send>(items: &[T], apply: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let size = items.len().div_ceil(workers).max(1);
    if items.len() < 16 {
        return items.iter().map(apply).collect();
    }
    std::thread::scope(|scope| {
        let started: Vec<_> = items
            .chunks(size)
            .map(|chunk| scope.spawn(|| chunk.iter().map(&apply).collect::<Vec<_>>()))
            .collect();
        started
            .into_iter()
            .flat_map(|worker| worker.join().expect("a pure function does not panic"))
            .collect()
    })
}
