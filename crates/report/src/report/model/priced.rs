//! Prices by name: what a piece costs on a subject, in each way and after each prestate.

use serde::Serialize;

use super::failures::reasons;
use crate::record::Recorded;
use crate::report::text::clean;
use crate::stats::Estimate;
use crate::units::Unit;
use crate::verdict::{Analysis, Price};

/// One piece, priced in one way after one prestate.
#[derive(Debug, Clone, Serialize)]
pub struct Priced {
    /// The subject's label.
    pub label: String,
    /// The priced piece.
    pub piece: &'static str,
    /// The way of pricing.
    pub way: &'static str,
    /// The prestate.
    pub prestate: &'static str,
    /// The priced setting.
    pub setting: String,
    /// The known prices, by metric.
    pub amounts: Vec<Amount>,
    /// If the cell has no sample: the class and the first reason.
    pub lost: Option<(&'static str, String)>,
}

/// A price.
#[derive(Debug, Clone, Serialize)]
pub struct Amount {
    /// The metric's name.
    pub metric: &'static str,
    /// The base unit of its values.
    pub unit: Unit,
    /// The setting that is subtracted; none if the value itself is the price.
    pub reference: Option<String>,
    /// Median of the paired differences, or of the values, with its interval at 95 %.
    pub price: Estimate,
    /// Whether its whole interval is below zero.
    pub below_zero: bool,
    /// Whether a rule marks it as suspect.
    pub suspect: bool,
}

impl Priced {
    /// The price in a metric.
    pub fn amount(&self, metric: &str) -> Option<&Amount> {
        self.amounts.iter().find(|one| one.metric == metric)
    }
}

/// The prices of an experiment in the order of the plan; none if it prices nothing.
pub(super) fn prices(run: &Recorded, analysis: &Analysis, name: &str) -> Vec<Priced> {
    let plan = &run.plan;
    let priced = |cell: usize| {
        let planned = &plan.cells[cell];
        let value = |key: &str| planned.setting.get(key).unwrap_or_default();
        let first = reasons(run, analysis, cell).into_iter().next();
        let is_lost = analysis.cells[cell].metrics.iter().all(Option::is_none);
        (planned.experiment == name && planned.setting.get("piece").is_some()).then(|| Priced {
            label: clean(&plan.subjects[planned.subject].label),
            piece: value("piece"),
            way: value("way"),
            prestate: value("prestate"),
            setting: planned.setting.to_string(),
            amounts: amounts(run, analysis, cell),
            lost: first.filter(|_| is_lost).map(|(class, _, why)| (class, why)),
        })
    };
    (0..plan.cells.len()).filter_map(priced).collect()
}

fn amounts(run: &Recorded, analysis: &Analysis, cell: usize) -> Vec<Amount> {
    let cells = &run.plan.cells;
    let metrics = run.plan.metrics(&cells[cell]);
    let amount = |price: &Price| Amount {
        metric: metrics[price.metric].name,
        unit: metrics[price.metric].unit,
        reference: price.reference.map(|reference| cells[reference].setting.to_string()),
        price: price.price,
        below_zero: price.reference.is_some() && price.is_below_zero(),
        suspect: analysis.suspects.iter().any(|suspect| {
            suspect.cells.contains(&cell) && suspect.metric.is_none_or(|one| one == price.metric)
        }),
    };
    analysis.prices.iter().filter(|price| price.cell == cell).map(amount).collect()
}
