//! Prices: what one setting costs compared with its reference setting, round by round and within the same
//! subject. They are context with a 95 % interval: nothing is decided, and nothing is cut off at zero. What
//! cannot be a price is suspect, at a level that all prices of an experiment share.
use serde::Serialize;

use super::columns::Columns;
use crate::plan::Plan;
use crate::record::Recorded;
use crate::stats::Estimate;

/// The metric that prices are judged by: the first, the time itself.
pub const JUDGED: usize = 0;

/// What a cell costs, in one metric.
#[derive(Debug, Clone)]
pub struct Price {
    /// The cell.
    pub cell: usize,
    /// The reference cell; none if the value itself is the price.
    pub reference: Option<usize>,
    /// Index into the experiment's metrics.
    pub metric: usize,
    /// Median of the paired differences, or of the values, with its interval at 95 %.
    pub price: Estimate,
    /// The same with the interval at the level that all differences of the experiment share.
    pub shared: Estimate,
}

impl Price {
    /// Whether it is less than nothing, beyond its interval at 95 %.
    pub fn is_below_zero(&self) -> bool {
        below_zero(&self.price)
    }
}

/// Whether the whole interval of an estimate is below zero.
pub fn below_zero(estimate: &Estimate) -> bool {
    estimate.interval.is_some_and(|interval| interval.high < 0.0)
}

/// Whether the pieces add up to the whole.
#[derive(Debug, Clone, Serialize)]
pub struct Sum {
    /// The experiment's name.
    #[serde(skip)]
    pub experiment: &'static str,
    /// The subject's label.
    pub label: String,
    /// What ran before.
    pub prestate: &'static str,
    /// The sum of the medians of the pieces of one launch, or of the prices of all rungs from the first
    /// launch to the last.
    pub rungs: f64,
    /// The measured launch that has all of them.
    #[serde(rename = "last_rung")]
    pub last: Estimate,
    /// The same launch as measured by another experiment, less the probe's own work, as for the rungs.
    #[serde(rename = "measured_whole")]
    pub whole: Option<Estimate>,
}

/// The reference cell of the same subject.
fn reference(plan: &Plan, cell: usize) -> Option<usize> {
    let own = &plan.cells[cell];
    let setting = (own.asks().reference)(&own.setting)?;
    plan.cell_of(own.experiment, &setting, own.subject)
}

/// All prices of a run, for the experiments with reference settings, in the order of the cells.
pub(super) fn all(run: &Recorded, columns: &Columns) -> Vec<Price> {
    let plan = &run.plan;
    let references: Vec<_> = (0..plan.cells.len()).map(|cell| reference(plan, cell)).collect();
    let told = |name: &str| {
        let own = plan.cells.iter().zip(&references).filter(|(cell, _)| cell.experiment == name);
        own.filter(|(_, reference)| reference.is_some()).count()
    };
    let mut prices = Vec::new();
    for (cell, planned) in plan.cells.iter().enumerate() {
        let shared = match told(planned.experiment) {
            0 => continue,
            all => plan.level(all),
        };
        for metric in 0..plan.metrics(planned).len() {
            let reference = references[cell];
            let at = |level| match reference {
                Some(reference) => Some(columns.pairs(reference, cell, metric)?.difference(level)),
                None => Some(Estimate::of_median(&columns.sample(cell, metric)?, level)),
            };
            let both = at(plan.level(1)).zip(at(shared));
            prices.extend(both.map(|(price, shared)| Price { cell, reference, metric, price, shared }));
        }
    }
    prices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Alpha, Sample};

    #[test]
    fn only_an_interval_below_zero_is_below_zero() {
        let estimate =
            |values: &[f64]| Estimate::of_median(&Sample::new(values).unwrap(), Alpha::FIVE_PERCENT);
        assert!(below_zero(&estimate(&[-5.0, -4.0, -3.0, -4.0, -2.0, -1.0])));
        assert!(!below_zero(&estimate(&[-5.0, -4.0, -3.0, -4.0, -2.0, 0.5])));
        // Too few for an interval: shown, not judged.
        assert!(!below_zero(&estimate(&[-5.0, -4.0, -3.0])));
    }
}
