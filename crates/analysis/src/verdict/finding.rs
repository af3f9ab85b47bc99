//! The result of a comparison in one setting and metric: what it is about, numbers, and a verdict.

use std::sync::Arc;

use serde::Serialize;

use super::columns::{Columns, in_parallel};
use super::kind::Kind;
use crate::experiment::{Metric, Weight};
use crate::plan::{Comparison, Plan, Relation, Role};
use crate::record::Recorded;
use crate::stats::{self, Decision, Estimate, tail};
use crate::text::clean;
use crate::units::{Better, Unit};

/// What a finding is about, in names that mean the same outside its run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct About {
    /// The machine on which it was measured.
    pub host: Arc<str>,
    /// The run.
    pub run: Arc<str>,
    /// The experiment's name.
    pub experiment: &'static str,
    /// The conditions.
    pub setting: String,
    /// The label of the subject.
    pub subject: String,
    /// The label of what it is compared with.
    pub against: String,
    /// Why, and the one thing in which they differ, if it is one.
    #[serde(flatten)]
    pub relation: Relation,
    /// The metric's name.
    pub metric: &'static str,
    /// The name of its unit.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
}

/// The result of one comparison in one setting and metric.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// What it is about.
    #[serde(flatten)]
    pub about: About,
    /// Index into the plan's comparisons.
    #[serde(skip)]
    pub comparison: usize,
    /// The cell of the subject.
    #[serde(skip)]
    pub cell: usize,
    /// The cell that it is compared with.
    #[serde(skip)]
    pub against: usize,
    /// Index into the experiment's metrics.
    #[serde(skip)]
    pub metric: usize,
    /// Median of the paired differences, with its interval at the level that its experiment shares; for tails, the difference
    /// of the quantiles at 95 %. None if no round has both values.
    pub difference: Option<Estimate>,
    /// Median of the paired ratios, if the baseline is far enough above the timer's resolution.
    pub ratio: Option<Estimate>,
    /// The smallest difference that matters, in the unit of the metric.
    pub matters: Option<f64>,
    /// Rounds in which either side failed: their values could be anything, or longer than all others.
    #[serde(skip_serializing_if = "crate::is_zero")]
    pub failed_rounds: usize,
    /// The conclusion.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The noise floor of its layers, if a difference was decided that does not exceed it.
    #[serde(rename = "hidden_by_noise_floor")]
    pub noise: Option<f64>,
}

impl Finding {
    /// The kind of its verdict.
    pub fn kind(&self) -> Kind {
        self.verdict.kind(self.about.unit, self.about.better)
    }

    /// The verdict in a word for people. A difference below the noise floor has its own word: readers who see
    /// only this word must not take it as decided.
    pub fn word(&self) -> &'static str {
        if self.noise.is_some() { "in noise" } else { self.kind().word() }
    }
}

/// The numbers behind a verdict.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Numbers {
    /// Median of the paired differences, with its interval at the level that its experiment shares.
    pub difference: Estimate,
    /// Median of the paired ratios, if the baseline is far enough above the timer's resolution.
    pub ratio: Option<Estimate>,
    /// The smallest difference that matters, in the unit of the metric.
    pub matters: f64,
}

/// The result of a comparison. What a difference is called depends on the metric: [`Kind::of_difference`].
/// In files, its numbers are next to the word of its [`Kind`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Verdict {
    /// Any difference is smaller than what matters.
    Same,
    /// More of it.
    More,
    /// Less of it.
    Less,
    /// Not decided.
    Undecided {
        /// The program would just have seen an effect of this size.
        smallest_visible: f64,
        /// How many rounds a new run would need, and for what.
        new_run: Option<stats::NewRun>,
    },
    /// Too few rounds for any verdict at this level.
    TooFew {
        /// Complete rounds.
        #[serde(skip)]
        have: usize,
        /// Rounds needed.
        #[serde(rename = "rounds_needed")]
        need: usize,
    },
    /// The numbers must not be believed; index into the suspects.
    Suspect(#[serde(serialize_with = "suspect")] usize),
    /// One side has no values.
    NoData,
    /// Shown with its interval, but outside the family: nothing is decided.
    Context,
}

fn suspect<S: serde::Serializer>(index: &usize, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map([("suspect", index)])
}

impl From<Decision> for Verdict {
    fn from(decision: Decision) -> Verdict {
        match decision {
            Decision::Same => Verdict::Same,
            Decision::Less => Verdict::Less,
            Decision::More => Verdict::More,
            Decision::Undecided { smallest_visible, new_run } => {
                Verdict::Undecided { smallest_visible, new_run }
            }
            Decision::TooFew { have, need } => Verdict::TooFew { have, need },
        }
    }
}

impl Verdict {
    /// Its kind, for a metric.
    pub fn kind(&self, unit: Unit, better: Better) -> Kind {
        match self {
            Verdict::Same => Kind::Same,
            Verdict::More | Verdict::Less => Kind::of_difference(*self == Verdict::More, unit, better),
            Verdict::Undecided { .. } => Kind::Undecided,
            Verdict::TooFew { .. } => Kind::TooFew,
            Verdict::Suspect(_) => Kind::Suspect,
            Verdict::NoData => Kind::NoData,
            Verdict::Context => Kind::Context,
        }
    }
}

/// The index of the cell with the same experiment and setting and another subject.
pub fn sibling(plan: &Plan, cell: usize, subject: usize) -> Option<usize> {
    let own = &plan.cells[cell];
    plan.cell_of(own.experiment, &own.setting, subject)
}

/// The results of the wanted comparisons and metrics.
pub(super) fn findings(
    run: &Recorded,
    columns: &Columns,
    is_wanted: impl Fn(&Comparison, &Metric) -> bool,
) -> Vec<Finding> {
    let plan = &run.plan;
    let metrics = |(index, cell, against): (usize, usize, usize)| {
        let metrics = plan.metrics(&plan.cells[cell]).iter().enumerate();
        let wanted = metrics.filter(|(_, metric)| is_wanted(&plan.comparisons[index], metric));
        wanted.map(move |(metric, _)| (index, cell, against, metric)).collect::<Vec<_>>()
    };
    let wanted: Vec<_> = plan.compared().flat_map(metrics).collect();
    let names = [&run.environment.host, &run.run].map(|text| Arc::<str>::from(clean(text)));
    let timer = run.environment.timer.step as f64 / 1e9;
    let one = |&(comparison, cell, against, metric): &(usize, usize, usize, usize)| {
        let planned = &plan.cells[cell];
        let definition = &plan.metrics(planned)[metric];
        let margin = plan.margin_of(planned.experiment, definition);
        let tails = [cell, against].map(|cell| columns.tail(cell, metric));
        let apart = tails[0].zip(tails[1]).map(|(own, other)| tail::apart(&own, &other));
        let pairs = columns.pairs(against, cell, metric).filter(|_| apart.is_none());
        let role = plan.role(comparison, cell, metric);
        let alpha = plan.alpha_for(planned.experiment, role);
        let compared = pairs.as_ref().map(|pairs| stats::compare(pairs, margin, alpha));
        let is_context = definition.weight == Weight::Context || role == Role::Described;
        Finding {
            about: about(run, &names, (comparison, cell, metric)),
            comparison,
            cell,
            against,
            metric,
            difference: apart.or(compared.as_ref().map(|one| one.difference)),
            failed_rounds: pairs.as_ref().map_or(0, |pairs| pairs.failed.count()),
            ratio: pairs.and_then(|pairs| pairs.ratio(timer, alpha)),
            matters: compared.as_ref().map(|one| one.matters),
            verdict: match compared {
                None if apart.is_some() => Verdict::Context,
                None => Verdict::NoData,
                Some(_) if is_context => Verdict::Context,
                Some(compared) => compared.decision.into(),
            },
            noise: None,
        }
    };
    let mut findings = in_parallel(&wanted, one);
    // Metrics that only one side can have (the requests of a subject over an API) are not gaps.
    let is_context =
        |finding: &Finding| plan.metrics(&plan.cells[finding.cell])[finding.metric].weight == Weight::Context;
    findings.retain(|finding| finding.difference.is_some() || !is_context(finding));
    findings
}

fn about(run: &Recorded, names: &[Arc<str>; 2], (comparison, cell, metric): (usize, usize, usize)) -> About {
    let [host, name] = names.clone();
    let (plan, cell) = (&run.plan, &run.plan.cells[cell]);
    let comparison = &plan.comparisons[comparison];
    let metric = &plan.metrics(cell)[metric];
    About {
        host,
        run: name,
        experiment: cell.experiment,
        setting: cell.setting.to_string(),
        subject: clean(&plan.subjects[comparison.subject].label),
        against: clean(&plan.subjects[comparison.against].label),
        relation: comparison.relation.clone(),
        metric: metric.name,
        unit: metric.unit,
        better: metric.better,
    }
}
