//! What is known of one subject's starts: its series, and its bursts by how many were made at once. Deliberately absent: words.

use super::ceiling::{Ceiling, Seen, ceiling};
use super::names::{BUSY, CPUS, ELAPSED, OWN_CPU, RETURNED, STOLEN};
use super::{at_once, containers};
use crate::experiment::Setting;
use crate::outcome::Sample;
use crate::stats::{self, Estimate, Shape};
use crate::units::Nanos;
use crate::verdict::View;

/// The cells of one subject: its series, and its bursts by how many at once.
pub(super) struct Of<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) label: &'a str,
    pub(super) series: Option<usize>,
    pub(super) bursts: Vec<usize>,
}

pub(super) fn estimate(view: &View<'_>, cell: usize, metric: &str) -> Option<Estimate> {
    view.cells[cell].metrics[view.metric_index(cell, metric)?].as_ref().map(|one| one.median)
}

pub(super) fn setting<'a>(view: &'a View<'_>, cell: usize) -> &'a Setting {
    &view.cell(cell).setting
}

pub(super) fn samples<'a>(view: &'a View<'_>, cell: usize) -> impl Iterator<Item = &'a Sample> {
    view.run.series[cell].samples.iter().flatten()
}

/// So much CPU time as CPUs that were used all the time.
fn share(sample: &Sample, time: i64) -> Option<f64> {
    Some(time as f64 / sample.counter(ELAPSED)? as f64).filter(|cpus| cpus.is_finite())
}

impl Of<'_> {
    pub(super) fn of_series(&self, metric: &str) -> Option<Estimate> {
        estimate(self.view, self.series?, metric)
    }

    pub(super) fn shape(&self) -> Option<Shape> {
        let seconds = |sample: &Sample| -> Option<Vec<f64>> {
            Some(sample.series(RETURNED)?.iter().map(|one| Nanos(*one).seconds()).collect())
        };
        stats::shape(&samples(self.view, self.series?).filter_map(seconds).collect::<Vec<_>>())
    }

    /// The cell that tells how many fit: the series, or else the burst with most at once.
    pub(super) fn most(&self) -> Option<usize> {
        self.series.or(self.bursts.last().copied())
    }

    /// How many a sample of a cell started, in the median.
    pub(super) fn started(&self, cell: usize) -> Option<usize> {
        let counts = samples(self.view, cell).filter_map(|one| Some(one.series(RETURNED)?.len() as f64));
        Some(stats::Sample::new(counts.collect::<Vec<_>>())?.median() as usize)
    }

    /// How many the cell has that tells how many fit, and whether all that were asked for were started.
    pub(super) fn tried(&self) -> Option<(usize, bool)> {
        let cell = self.most()?;
        let (started, asked) = (self.started(cell)?, containers(setting(self.view, cell)));
        Some((started, started >= asked))
    }

    /// How many a series has, and whether all that were asked for were started.
    pub(super) fn of_all(&self) -> Option<(usize, bool)> {
        let cell = self.series?;
        let (started, asked) = (self.started(cell)?, containers(setting(self.view, cell)));
        Some((started, started >= asked))
    }

    pub(super) fn seen(&self, cell: usize) -> Option<Seen> {
        let value = |metric: &str| Some(estimate(self.view, cell, metric)?.value);
        let middle = |of: fn(&Sample) -> Option<f64>| {
            let all = stats::Sample::new(samples(self.view, cell).filter_map(of).collect::<Vec<_>>());
            all.map_or(f64::NAN, |all| all.median())
        };
        Some(Seen {
            at_once: at_once(setting(self.view, cell)) as f64,
            starts: self.started(cell)? as f64,
            rate: value("rate")?,
            cpu: value("cpu").unwrap_or(f64::NAN),
            cpus: middle(|sample| {
                Some(sample.counter(CPUS)? as f64 - share(sample, sample.counter(STOLEN)?)?)
            }),
            others: middle(|sample| share(sample, sample.counter(BUSY)? - sample.counter(OWN_CPU)?)),
            flushing: value("flushing").unwrap_or(0.0),
            waiting: value("waiting").unwrap_or(0.0),
        })
    }

    /// What limits the starts with most at once.
    pub(super) fn ceiling(&self) -> Option<Ceiling> {
        let (most, fewer) = self.bursts.split_last()?;
        let alone = self.of_series("start")?.value;
        let fewer = fewer.last().and_then(|cell| self.seen(*cell));
        Some(ceiling(&self.seen(*most)?, alone, fewer.as_ref()))
    }
}
