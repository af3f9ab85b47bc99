//! What came of predictions: each link of each chain, in every setting that it is about, against its finding.
//!
//! A link holds where the verdict is the one that was predicted, and does not where it is another one; what is not
//! decided, suspect, or not above the noise floor speaks neither for it nor against it.

use super::Analysis;
use super::summary::{Decided, Way};
use crate::experiment::Setting;
use crate::plan::prediction::Order;
use crate::record::Recorded;
use serde::{Serialize, Serializer};

/// What came of a prediction or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// All of it is as predicted.
    Held,
    /// Some of it is otherwise.
    DidNotHold,
    /// Nothing of it is otherwise, and some of it is not decided.
    NotDecided,
}

/// In its words.
impl Serialize for Came {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.words())
    }
}

impl Came {
    /// The words used in reports and files.
    pub fn words(self) -> &'static str {
        match self {
            Came::Held => "held",
            Came::DidNotHold => "did not hold",
            Came::NotDecided => "not decided",
        }
    }

    /// Of several parts together.
    fn of_all(parts: impl IntoIterator<Item = Came>) -> Came {
        let worse = |one: Came, other: Came| match (one, other) {
            (Came::DidNotHold, _) | (_, Came::DidNotHold) => Came::DidNotHold,
            (Came::NotDecided, _) | (_, Came::NotDecided) => Came::NotDecided,
            _ => Came::Held,
        };
        parts.into_iter().reduce(worse).unwrap_or(Came::NotDecided)
    }
}

/// A prediction, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Index into the plan's predictions.
    pub prediction: usize,
    /// All of it.
    pub came: Came,
    /// By link, and for each link by setting; a link of which nothing was measured stands there once, without setting.
    pub links: Vec<LinkOutcome>,
}

/// A link in one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkOutcome {
    /// Its place in the chain.
    pub link: usize,
    /// The setting; none where the plan has no cells for it.
    pub setting: Option<Setting>,
    /// Index into the findings.
    pub finding: Option<usize>,
    /// What came of it.
    pub came: Came,
}

/// What came of all predictions of a run.
pub fn outcomes(run: &Recorded, analysis: &Analysis) -> Vec<Outcome> {
    let outcome = |prediction: usize| {
        let links = links(run, analysis, prediction);
        Outcome { prediction, came: Came::of_all(links.iter().map(|link| link.came)), links }
    };
    (0..run.plan.predictions.len()).map(outcome).collect()
}

fn links(run: &Recorded, analysis: &Analysis, prediction: usize) -> Vec<LinkOutcome> {
    let plan = &run.plan;
    let prediction = &plan.predictions[prediction];
    let mut all = Vec::new();
    for (place, link) in prediction.links().enumerate() {
        let before = all.len();
        if let Some((comparison, is_subject)) =
            plan.comparison_of(prediction.experiment, link.first, link.second)
        {
            let order = if is_subject { link.order } else { turned(link.order) };
            for (index, finding) in analysis.findings.iter().enumerate() {
                let setting = &plan.cells[finding.cell].setting;
                if finding.comparison != comparison
                    || finding.metric != prediction.metric
                    || !prediction.is_about(setting)
                {
                    continue;
                }
                let came = match Decided::of(analysis, index) {
                    Some(decided) if decided.way() == way(order) => Came::Held,
                    Some(_) => Came::DidNotHold,
                    None => Came::NotDecided,
                };
                all.push(LinkOutcome {
                    link: place,
                    setting: Some(setting.clone()),
                    finding: Some(index),
                    came,
                });
            }
        }
        if all.len() == before {
            all.push(LinkOutcome { link: place, setting: None, finding: None, came: Came::NotDecided });
        }
    }
    all
}

/// The same relation, read from the other side.
fn turned(order: Order) -> Order {
    match order {
        Order::Less => Order::More,
        Order::Same => Order::Same,
        Order::More => Order::Less,
    }
}

/// What a finding must say of its subject.
fn way(order: Order) -> Way {
    match order {
        Order::Less => Way::Less,
        Order::Same => Way::Same,
        Order::More => Way::More,
    }
}
