//! The price list: one line a piece, with what it costs in each way and after each prestate.

use serde::{Serialize, Serializer};

use super::notices::first_skip;
use crate::outcome::FailureClass;
use crate::plan::Cell;
use crate::record::Recorded;
use crate::report::text::clean;
use crate::stats::Estimate;
use crate::units::Unit;
use crate::verdict::{Analysis, Price};

/// What the pieces of one subject cost.
#[derive(Debug, Clone, Serialize)]
pub struct PriceList {
    /// The subject's label.
    pub label: String,
    /// What ran before, in the order of the columns.
    pub prestates: Vec<&'static str>,
    /// By piece and way, in the order of the plan.
    pub lines: Vec<Line>,
    /// Whether the rungs add up, by prestate.
    #[serde(rename = "sums")]
    pub totals: Vec<Total>,
}

/// One piece, priced in one way.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// What is priced.
    pub piece: &'static str,
    /// How.
    pub way: &'static str,
    /// By prestate and metric, in the order of the experiment's metrics.
    #[serde(serialize_with = "those_there")]
    pub amounts: Vec<Vec<Option<Amount>>>,
    /// Why there is nothing, where a cell never gave a sample: the class and the first reason.
    pub lost: Option<(&'static str, String)>,
}

/// A price.
#[derive(Debug, Clone, Serialize)]
pub struct Amount {
    /// What ran before.
    pub prestate: &'static str,
    /// The metric's name.
    pub metric: &'static str,
    /// The base unit of its values.
    pub unit: Unit,
    /// The setting that is priced.
    pub setting: String,
    /// The setting that it is told in difference of; none where the value itself is the price.
    pub reference: Option<String>,
    /// Median of the paired differences, or of the values, with its interval at 95 %.
    pub price: Estimate,
    /// Whether it is less than nothing, beyond its interval.
    pub below_zero: bool,
    /// Whether a rule found that it must not be believed.
    pub suspect: bool,
}

/// Do the rungs make the whole?
#[derive(Debug, Clone, Serialize)]
pub struct Total {
    /// What ran before.
    pub prestate: &'static str,
    /// The prices of all rungs added up.
    pub rungs: f64,
    /// The last rung as it was measured.
    #[serde(rename = "last_rung")]
    pub last: Estimate,
    /// The same launch as another experiment measured it, less the probe's own work.
    #[serde(rename = "measured_whole")]
    pub whole: Option<Estimate>,
}

/// Without what is missing: each names its prestate and metric.
fn those_there<S: Serializer>(all: &[Vec<Option<Amount>>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().flatten().flatten())
}

impl PriceList {
    /// The line of a piece in one way.
    pub fn line(&self, way: &str, piece: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.way == way && line.piece == piece)
    }

    /// The rungs that cost most after a prestate, the dearest first. What may as well be nothing is not told as dear.
    pub fn dearest(&self, prestate: usize, most: usize) -> Vec<(&'static str, f64)> {
        let rung = |line: &Line| {
            let amount = line.amounts.get(prestate)?.first()?.as_ref()?;
            let costs = amount.price.interval.is_some_and(|interval| interval.low > 0.0);
            (line.way == "ladder" && costs).then_some((line.piece, amount.price.value))
        };
        let mut rungs: Vec<(&str, f64)> = self.lines.iter().filter_map(rung).collect();
        rungs.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        rungs.truncate(most);
        rungs
    }

    /// The pieces of these ways, in the order of the plan, each once.
    pub fn pieces(&self, ways: &[&str]) -> Vec<&'static str> {
        let mut pieces = Vec::new();
        for line in self.lines.iter().filter(|line| ways.contains(&line.way)) {
            if !pieces.contains(&line.piece) {
                pieces.push(line.piece);
            }
        }
        pieces
    }
}

/// The price lists of an experiment; none if it prices nothing.
pub(super) fn price_lists(run: &Recorded, analysis: &Analysis, name: &str) -> Vec<PriceList> {
    let plan = &run.plan;
    let of_experiment = |cell: &Cell| cell.experiment == name && cell.setting.get("piece").is_some();
    let mut subjects: Vec<usize> = Vec::new();
    for cell in plan.cells.iter().filter(|cell| of_experiment(cell)) {
        if !subjects.contains(&cell.subject) {
            subjects.push(cell.subject);
        }
    }
    subjects.into_iter().map(|subject| price_list(run, analysis, name, subject)).collect()
}

fn price_list(run: &Recorded, analysis: &Analysis, name: &str, subject: usize) -> PriceList {
    let plan = &run.plan;
    let cells: Vec<usize> = (0..plan.cells.len())
        .filter(|&cell| plan.cells[cell].experiment == name && plan.cells[cell].subject == subject)
        .collect();
    let value = |cell: usize, key: &str| plan.cells[cell].setting.get(key).unwrap_or_default();
    let mut prestates: Vec<&'static str> = Vec::new();
    let mut kinds: Vec<(&'static str, &'static str)> = Vec::new();
    for &cell in &cells {
        let (prestate, kind) = (value(cell, "prestate"), (value(cell, "way"), value(cell, "piece")));
        if !prestates.contains(&prestate) {
            prestates.push(prestate);
        }
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let line = |(way, piece): (&'static str, &'static str)| {
        let own: Vec<Option<usize>> = prestates
            .iter()
            .map(|prestate| {
                let fits = |cell: &usize| {
                    (value(*cell, "way"), value(*cell, "piece"), value(*cell, "prestate"))
                        == (way, piece, *prestate)
                };
                cells.iter().copied().find(fits)
            })
            .collect();
        let amounts = own
            .iter()
            .zip(&prestates)
            .map(|(cell, prestate)| cell.map_or(Vec::new(), |cell| amounts(run, analysis, cell, prestate)));
        Line {
            piece,
            way,
            amounts: amounts.collect(),
            lost: own.iter().flatten().find_map(|cell| lost(run, analysis, *cell)),
        }
    };
    let totals = analysis.sums.iter().filter(|sum| sum.subject == subject);
    let total = |sum: &crate::verdict::Sum| Total {
        prestate: sum.prestate,
        rungs: sum.rungs,
        last: sum.last,
        whole: sum.whole,
    };
    PriceList {
        label: clean(&plan.subjects[subject].label),
        lines: kinds.into_iter().map(line).collect(),
        totals: totals.map(total).collect(),
        prestates,
    }
}

/// By metric.
fn amounts(run: &Recorded, analysis: &Analysis, cell: usize, prestate: &'static str) -> Vec<Option<Amount>> {
    let plan = &run.plan;
    let metrics = plan.metrics(&plan.cells[cell]);
    let amount = |price: &Price| Amount {
        prestate,
        metric: metrics[price.metric].name,
        unit: metrics[price.metric].unit,
        setting: plan.cells[cell].setting.to_string(),
        reference: price.reference.map(|reference| plan.cells[reference].setting.to_string()),
        price: price.price,
        below_zero: price.reference.is_some() && price.is_below_zero(),
        suspect: analysis.suspects.iter().any(|suspect| {
            suspect.cells.contains(&cell) && suspect.metric.is_none_or(|one| one == price.metric)
        }),
    };
    let of_metric = |metric: usize| {
        analysis.prices.iter().find(|price| price.cell == cell && price.metric == metric).map(amount)
    };
    (0..metrics.len()).map(of_metric).collect()
}

/// Why a cell has no sample at all.
fn lost(run: &Recorded, analysis: &Analysis, cell: usize) -> Option<(&'static str, String)> {
    let summary = &analysis.cells[cell];
    if summary.metrics.iter().any(Option::is_some) {
        return None;
    }
    if let Some((class, _, reason)) = summary.failures.first() {
        let own = reason.strip_prefix(class.name()).and_then(|rest| rest.strip_prefix(": "));
        return Some((FailureClass::name(*class), clean(own.unwrap_or(reason))));
    }
    first_skip(run, cell).map(|reason| ("skipped", clean(&reason)))
}
