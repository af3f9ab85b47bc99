//! A run with its results so far, for the rules that find suspects and the tables of experiments.

use super::columns::{by_cell, summary};
use super::price::JUDGED;
use super::{CellSummary, Columns, Finding, Noise, Price, finding, noise, price, sibling};
use crate::experiment::Metric;
use crate::names::Fact;
use crate::plan::{Cell, Comparison, Layer, Plan};
use crate::record::Recorded;
use crate::stats::Estimate;

/// What a rule can look at.
pub struct View<'a> {
    /// What was recorded.
    pub run: &'a Recorded,
    /// The values of every cell and metric by complete round.
    pub columns: Columns,
    /// The cells, in the order of the plan.
    pub cells: Vec<CellSummary>,
    /// The results of comparisons; for tables, overruled where they are suspect.
    pub findings: Vec<Finding>,
    /// What twins show.
    pub noise: Vec<Noise>,
    /// What settings cost compared with their references, in the order of their cells.
    pub prices: Vec<Price>,
}

impl<'a> View<'a> {
    /// The results of a run before suspects are looked for, with the wanted findings.
    pub(super) fn of(run: &'a Recorded, is_wanted: impl Fn(&Comparison, &Metric) -> bool) -> View<'a> {
        let columns = Columns::of(run);
        let cells = by_cell(run, |cell| summary(run, &columns, cell));
        let findings = finding::findings(run, &columns, is_wanted);
        let noise = noise::of_twins(&run.plan, &columns, &cells, &findings);
        let prices = price::all(run, &columns);
        View { run, columns, cells, findings, noise, prices }
    }

    /// The plan of the run.
    pub fn plan(&self) -> &'a Plan {
        &self.run.plan
    }

    /// A cell of the plan.
    pub fn cell(&self, cell: usize) -> &'a Cell {
        &self.plan().cells[cell]
    }

    /// What a cell measures.
    pub fn metric(&self, cell: usize, metric: usize) -> &'static Metric {
        &self.plan().metrics(self.cell(cell))[metric]
    }

    /// Every cell with every one of its metrics.
    pub fn all(&self) -> impl Iterator<Item = (usize, usize)> {
        let metrics = |cell: usize| self.cells[cell].metrics.len();
        (0..self.cells.len()).flat_map(move |cell| (0..metrics(cell)).map(move |metric| (cell, metric)))
    }

    /// The cells of an experiment.
    pub fn cells_of(&self, experiment: &'static str) -> impl Iterator<Item = usize> + use<'a> {
        let cells = self.plan().cells.iter().enumerate();
        cells.filter(move |(_, cell)| cell.experiment == experiment).map(|(index, _)| index)
    }

    /// The same without those of twins.
    pub fn originals_of(&self, experiment: &'static str) -> impl Iterator<Item = usize> + use<'a> {
        let plan = self.plan();
        self.cells_of(experiment).filter(|cell| plan.entry(*cell).twin_of.is_none())
    }

    /// The cells of subjects other than the baseline, without twins, each with the baseline's cell in the
    /// same setting.
    pub fn beside_baseline(&self, experiment: &'static str) -> Vec<(usize, usize)> {
        let plan = self.plan();
        let baseline = plan.baseline_of(experiment);
        let beside = |cell: usize| {
            let is_other = plan.cells[cell].subject != baseline;
            is_other.then(|| Some((cell, sibling(plan, cell, baseline)?)))?
        };
        self.originals_of(experiment).filter_map(beside).collect()
    }

    /// Whether a cell is a process on the host.
    pub fn is_bare(&self, cell: usize) -> bool {
        self.plan().entry(cell).layer == Layer::Bare
    }

    /// The index of a metric among those of a cell's experiment.
    pub fn metric_index(&self, cell: usize, name: &str) -> Option<usize> {
        self.plan().metrics(self.cell(cell)).iter().position(|metric| metric.name == name)
    }

    /// The median of a metric in a cell.
    pub fn median(&self, cell: usize, metric: usize) -> Option<f64> {
        Some(self.estimate(cell, metric)?.value)
    }

    /// The same with its interval.
    pub fn estimate(&self, cell: usize, metric: usize) -> Option<Estimate> {
        Some(self.cells[cell].metrics[metric].as_ref()?.median)
    }

    /// The same of the metric with this name.
    pub fn estimate_of(&self, cell: usize, name: &str) -> Option<Estimate> {
        self.estimate(cell, self.metric_index(cell, name)?)
    }

    /// What was found inside a cell, in the last round in which it was.
    pub fn fact(&self, cell: usize, name: Fact) -> Option<&'a str> {
        self.run.facts(cell, name).flatten().next_back()
    }

    /// The comparison of two cells in a metric.
    pub fn finding(&self, cell: usize, against: usize, name: &str) -> Option<&Finding> {
        let asked = (cell, against, self.metric_index(cell, name)?);
        self.findings.iter().find(|one| (one.cell, one.against, one.metric) == asked)
    }

    /// What a cell costs, in the metric that prices are judged by.
    pub fn price(&self, cell: usize) -> Option<&Price> {
        let first = self.prices.partition_point(|price| price.cell < cell);
        let mut own = self.prices[first..].iter().take_while(|price| price.cell == cell);
        own.find(|price| price.metric == JUDGED)
    }

    /// The label of a cell's subject.
    pub fn label(&self, cell: usize) -> &'a str {
        &self.plan().entry(cell).label
    }

    /// The label of the baseline of an experiment.
    pub fn baseline(&self, experiment: &str) -> &'a str {
        &self.plan().subjects[self.plan().baseline_of(experiment)].label
    }

    /// A metric of a cell, in words.
    pub fn named(&self, cell: usize, metric: usize) -> String {
        format!("{} of {}", self.metric(cell, metric).name, self.plan().named(cell))
    }

    /// The same setting of the baseline.
    pub fn baseline_cell(&self, cell: usize) -> Option<usize> {
        sibling(self.plan(), cell, self.plan().baseline_of(self.cell(cell).experiment))
    }
}
