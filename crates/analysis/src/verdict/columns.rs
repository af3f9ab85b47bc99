//! The values of a run that count, by cell and metric, and the summary of each cell.

use serde::Serialize;

use crate::experiment::Metric;
use crate::outcome::FailureClass;
use crate::plan::Cell;
use crate::record::{Cause, Recorded};
use crate::stats::tail::{self, Counted};
use crate::stats::{Estimate, FAR, Pairs, Sample};
use crate::units::{Better, Unit};

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
#[derive(Debug, Clone, Serialize)]
pub struct MetricSummary {
    /// Median with its exact interval at 95 %; for a tail, the quantile of all rounds.
    pub median: Estimate,
    /// The smallest and the largest value of a round; NaN if rounds have none of their own, as for a tail.
    pub range: (f64, f64),
    /// The arithmetic mean, likewise; nothing is decided by it.
    pub mean: f64,
    /// The standard deviation, likewise, and NaN for a single value.
    pub deviation: f64,
}

/// The values of a run by complete round, with holes where they are missing.
pub struct Columns {
    by_cell: Vec<Vec<Vec<Option<f64>>>>,
    /// By cell and complete round, what became of a sample that was not taken.
    lost: Vec<Vec<Option<Lost>>>,
    /// By cell and metric, the quantile over all rounds, for metrics that are one.
    tails: Vec<Vec<Option<Estimate>>>,
    /// By cell, on which side of all values of the first metric one that ended too late is, if it is on one.
    late: Vec<Option<Side>>,
}

/// Why a planned sample was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It did not end in the time allowed.
    Late,
    /// It failed in another way.
    Failed,
    /// It was not tried, since others had failed before.
    Skipped,
}

/// Where a value is that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

/// On which side of all others a sample is that ended too late: only what is waited for is known to be longer, or slower.
fn side_of_late(cell: &Cell) -> Option<Side> {
    let asks = cell.asks();
    let waited_for =
        asks.metrics.first().filter(|metric| asks.event.has_one_answer() && metric.unit.is_about_speed())?;
    match waited_for.better {
        Better::Less => Some(Side::Above),
        Better::More => Some(Side::Below),
        Better::Neither => None,
    }
}

impl Columns {
    pub(crate) fn of(run: &Recorded) -> Columns {
        let complete: Vec<_> = run.contexts.iter().skip(run.plan.warmups).map(Option::is_some).collect();
        let column = |values: &Vec<f64>| -> Vec<Option<f64>> {
            let counted = values.iter().zip(&complete).filter(|(_, complete)| **complete);
            counted.map(|(value, _)| Some(*value).filter(|value| value.is_finite())).collect()
        };
        let by_cell = in_parallel(&run.series, |series| series.values.iter().map(column).collect());
        let tails = self::by_cell(run, |cell| tails(run, cell, &complete));
        let mut places = 0..;
        let places: Vec<Option<usize>> =
            complete.iter().map(|complete| complete.then(|| places.next()).flatten()).collect();
        let rounds = places.iter().flatten().count();
        let mut lost = vec![Vec::new(); run.plan.cells.len()];
        for row in &run.failures {
            let counted = row.round.checked_sub(run.plan.warmups).and_then(|round| *places.get(round)?);
            let (Some(round), Some(own)) = (counted, lost.get_mut(row.cell)) else { continue };
            own.resize(rounds, None);
            own[round] = Some(match &row.cause {
                Cause::Failed(failure) if failure.class == FailureClass::Timeout => Lost::Late,
                Cause::Failed(_) => Lost::Failed,
                Cause::Skipped(_) => Lost::Skipped,
            });
        }
        Columns { by_cell, lost, tails, late: run.plan.cells.iter().map(side_of_late).collect() }
    }

    /// The quantile of the values of all complete rounds; none for metrics that are no tail, or too few values.
    pub fn tail(&self, cell: usize, metric: usize) -> Option<Estimate> {
        *self.tails[cell].get(metric)?
    }

    /// What became of a cell's sample that was not taken in a complete round.
    pub(crate) fn lost(&self, cell: usize, round: usize) -> Option<Lost> {
        *self.lost[cell].get(round)?
    }

    /// Whether a cell has any value in a complete round.
    pub(super) fn has_any(&self, cell: usize, round: usize) -> bool {
        self.by_cell[cell].iter().any(|column| column[round].is_some())
    }

    /// The values of a cell and of what it is compared with, by round, with the rounds in which either failed. None if no
    /// round has both values.
    pub fn pairs(&self, against: usize, cell: usize, metric: usize) -> Option<Pairs> {
        self.pairs_of([(against, metric), (cell, metric)])
    }

    /// The same for two metrics, each of a cell, that measure the same.
    pub fn pairs_of(&self, sides: [(usize, usize); 2]) -> Option<Pairs> {
        let [baseline, subject] = sides.map(|(cell, metric)| self.get(cell, metric));
        let mut pairs = Pairs::align(baseline, subject)?;
        if sides.iter().all(|(cell, _)| !self.has_lost(*cell)) {
            return Some(pairs);
        }
        let is_lost = |round: &usize| baseline[*round].is_none() || subject[*round].is_none();
        for round in (0..baseline.len()).filter(is_lost) {
            let sides = sides.map(|(cell, metric)| self.round(&[cell], metric, round));
            let place =
                match sides {
                    [Some(Ok(_)), Some(Err(Some(Side::Above)))]
                    | [Some(Err(Some(Side::Below))), Some(Ok(_))] => &mut pairs.failed.above,
                    [Some(Ok(_)), Some(Err(Some(Side::Below)))]
                    | [Some(Err(Some(Side::Above))), Some(Ok(_))] => &mut pairs.failed.below,
                    [Some(one), Some(other)] if one.is_err() || other.is_err() => &mut pairs.failed.anywhere,
                    _ => continue,
                };
            *place += 1;
        }
        Some(pairs)
    }

    /// The values of a metric in a cell by complete round.
    pub fn get(&self, cell: usize, metric: usize) -> &[Option<f64>] {
        &self.by_cell[cell][metric]
    }

    /// Whether a cell lost any sample.
    pub(crate) fn has_lost(&self, cell: usize) -> bool {
        !self.lost[cell].is_empty()
    }

    /// How many complete rounds of a cell failed, of those in which it was tried.
    pub(crate) fn failed_of(&self, cell: usize) -> (usize, usize) {
        let rounds = 0..self.by_cell[cell].first().map_or(0, Vec::len);
        let is_failed = |round: &usize| self.lost(cell, *round).is_some_and(|lost| lost != Lost::Skipped);
        let (failed, taken): (Vec<usize>, Vec<usize>) = rounds.partition(is_failed);
        let taken = taken.into_iter().filter(|round| self.has_any(cell, *round)).count();
        (failed.len(), failed.len() + taken)
    }

    /// What is known of a round in these cells: all their values, or where the round is if samples failed; none if a
    /// sample without a failure lacks its value.
    fn round(&self, cells: &[usize], metric: usize, round: usize) -> Option<Result<Vec<f64>, Option<Side>>> {
        let values: Option<Vec<f64>> = cells.iter().map(|&cell| self.get(cell, metric)[round]).collect();
        if let Some(values) = values {
            return Some(Ok(values));
        }
        let mut side = None;
        for (place, &cell) in
            cells.iter().filter(|cell| self.get(**cell, metric)[round].is_none()).enumerate()
        {
            let is_late = self.lost(cell, round)? == Lost::Late && metric == 0;
            let own = self.late[cell].filter(|_| is_late);
            side = if place == 0 || side == own { own } else { None };
        }
        Some(Err(side))
    }

    /// The number of rounds in which one of these cells failed.
    pub(super) fn rounds_in_which_one_failed(&self, cells: &[usize], metric: usize) -> usize {
        let rounds = 0..cells.first().map_or(0, |cell| self.get(*cell, metric).len());
        rounds.filter(|round| matches!(self.round(cells, metric, *round), Some(Err(_)))).count()
    }

    /// One number for each round of these cells; rounds that failed are as far away as they are known to be, others that
    /// failed are at `failed`, or left out.
    pub(crate) fn rounds(
        &self,
        cells: &[usize],
        metric: usize,
        of_round: &dyn Fn(&[f64]) -> f64,
        failed: Option<f64>,
    ) -> Option<Sample> {
        let rounds = 0..cells.first().map_or(0, |cell| self.get(*cell, metric).len());
        let value = |round| match self.round(cells, metric, round)? {
            Ok(values) => Some(of_round(&values)).filter(|value| value.is_finite()),
            Err(Some(Side::Above)) => Some(FAR),
            Err(Some(Side::Below)) => Some(-FAR),
            Err(None) => failed,
        };
        Sample::new(rounds.filter_map(value))
    }

    /// The same without the holes.
    pub fn sample(&self, cell: usize, metric: usize) -> Option<Sample> {
        Sample::new(self.get(cell, metric).iter().flatten())
    }
}

/// By metric of a cell, the quantile of the values of all complete rounds; empty for experiments without one.
fn tails(run: &Recorded, cell: usize, complete: &[bool]) -> Vec<Option<Estimate>> {
    let series = &run.series[cell];
    let of_metric = |metric: &Metric| {
        let (distribution, share) = metric.is_tail()?;
        let own = series.tails.iter().find(|one| one.distribution == distribution)?;
        let counted = own.rounds.iter().zip(complete).filter(|(_, complete)| **complete);
        let rounds: Vec<&Counted> = counted.filter_map(|(values, _)| values.as_deref()).collect();
        Some(tail::tail(&rounds, share, run.plan.level(1))?.map(|nanos| nanos / 1e9))
    };
    if series.tails.is_empty() {
        return Vec::new();
    }
    run.plan.metrics(&run.plan.cells[cell]).iter().map(of_metric).collect()
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
        let tail = columns.tail(cell, metric);
        let Some(sample) = columns.sample(cell, metric).filter(|_| tail.is_none()) else {
            let none = f64::NAN;
            return tail.map(|median| MetricSummary {
                median,
                range: (none, none),
                mean: none,
                deviation: none,
            });
        };
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
