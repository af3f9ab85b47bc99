//! What a comparison comes to in one setting and metric: what it is about, numbers, and a verdict.

use std::sync::Arc;

use serde::Serialize;

use super::columns::{Columns, in_parallel};
use super::kind::Kind;
use crate::experiment::{Metric, Weight};
use crate::plan::{Comparison, Plan, Relation, Role};
use crate::record::Recorded;
use crate::stats::{self, Alpha, Decision, Estimate, Margin, Pairs};
use crate::units::{Better, Unit};

/// What a finding is about, in names that mean the same outside of its run.
#[derive(Debug, Clone, Serialize)]
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
    /// Why: the word of [`Relation::name`].
    pub relation: &'static str,
    /// The one thing in which they differ, where it is one.
    pub key: Option<String>,
    /// The metric's name.
    pub metric: &'static str,
    /// The name of its unit.
    pub unit: Unit,
    /// Which of its values a person wishes for.
    pub better: Better,
}

/// What one comparison says in one setting about one metric.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What it is about.
    pub about: About,
    /// Index into the plan's comparisons.
    pub comparison: usize,
    /// The cell of the subject.
    pub cell: usize,
    /// The cell of what it is compared with.
    pub against: usize,
    /// Index into the experiment's metrics.
    pub metric: usize,
    /// The numbers, unless no round has both values.
    pub numbers: Option<Numbers>,
    /// What follows from them.
    pub verdict: Verdict,
    /// The noise floor of its layers, where a difference was decided that does not rise above it.
    pub noise: Option<f64>,
}

impl Finding {
    /// Which of the kinds of verdict it is.
    pub fn kind(&self) -> Kind {
        self.verdict.kind(self.about.unit, self.about.better)
    }
}

/// The numbers behind a verdict.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// Median of the paired differences, with its interval at the level that its experiment shares.
    pub difference: Estimate,
    /// Median of the paired ratios, where the baseline is far enough above the timer's floor.
    pub ratio: Option<Estimate>,
    /// The smallest difference that matters, in the unit of the metric.
    pub matters: f64,
}

/// What a comparison comes to. What a difference is called depends on the metric: [`Kind::of_difference`].
/// In files its numbers stand beside the word of its [`Kind`].
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
        /// An effect of this size would just have been seen.
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
    /// The numbers are not to be believed; index into the suspects.
    Suspect(#[serde(serialize_with = "suspect")] usize),
    /// One side has no values.
    NoData,
    /// Shown with its interval, but outside the family: nothing is decided.
    Context,
}

fn suspect<S: serde::Serializer>(index: &usize, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map([("suspect", index)])
}

impl Verdict {
    /// Which of the kinds it is, of a metric.
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
    let fits = |other: &crate::plan::Cell| {
        other.subject == subject && other.experiment == own.experiment && other.setting == own.setting
    };
    plan.cells.iter().position(fits)
}

/// What comparisons say about metrics, of those that are wanted.
pub(super) fn findings(
    run: &Recorded,
    columns: &Columns,
    is_wanted: impl Fn(&Comparison, &Metric) -> bool,
) -> Vec<Finding> {
    let plan = &run.plan;
    let mut wanted = Vec::new();
    for (index, comparison) in plan.comparisons.iter().enumerate() {
        for (cell, planned) in plan.cells.iter().enumerate() {
            if planned.subject != comparison.subject || planned.experiment != comparison.experiment {
                continue;
            }
            if let Some(against) = sibling(plan, cell, comparison.against) {
                let metrics = plan.metrics(planned).iter().enumerate();
                let metrics = metrics.filter(|(_, metric)| is_wanted(comparison, metric));
                wanted.extend(metrics.map(|(metric, _)| (index, cell, against, metric)));
            }
        }
    }
    let (host, name): (Arc<str>, Arc<str>) = (run.environment.host.as_str().into(), run.run.as_str().into());
    let timer = run.environment.timer.step as f64 / 1e9;
    let one = |&(comparison, cell, against, metric): &(usize, usize, usize, usize)| {
        let definition = &plan.metrics(&plan.cells[cell])[metric];
        let margin = plan.margin_of(plan.cells[cell].experiment, definition);
        let pairs = Pairs::align(columns.get(against, metric), columns.get(cell, metric)).ok();
        let role = plan.comparisons[comparison].relation.role();
        let alpha = plan.alpha_for(plan.cells[cell].experiment, role);
        let (numbers, mut verdict) = judge(definition, margin, pairs.as_ref(), timer, alpha);
        if role == Role::Described && numbers.is_some() {
            verdict = Verdict::Context;
        }
        let about = about(run, &host, &name, (comparison, cell, metric));
        Finding { about, comparison, cell, against, metric, numbers, verdict, noise: None }
    };
    let mut findings = in_parallel(&wanted, one);
    // What only one side can have (the requests of one that is asked over an API) is no gap.
    let is_context =
        |finding: &Finding| plan.metrics(&plan.cells[finding.cell])[finding.metric].weight == Weight::Context;
    findings.retain(|finding| finding.numbers.is_some() || !is_context(finding));
    findings
}

fn about(
    run: &Recorded,
    host: &Arc<str>,
    name: &Arc<str>,
    (comparison, cell, metric): (usize, usize, usize),
) -> About {
    let (plan, cell) = (&run.plan, &run.plan.cells[cell]);
    let comparison = &plan.comparisons[comparison];
    let metric = &plan.metrics(cell)[metric];
    About {
        host: Arc::clone(host),
        run: Arc::clone(name),
        experiment: cell.experiment,
        setting: cell.setting.to_string(),
        subject: plan.subjects[comparison.subject].label.clone(),
        against: plan.subjects[comparison.against].label.clone(),
        relation: comparison.relation.name(),
        key: match &comparison.relation {
            Relation::OneKey(key) => Some(key.clone()),
            _ => None,
        },
        metric: metric.name,
        unit: metric.unit,
        better: metric.better,
    }
}

fn judge(
    metric: &Metric,
    margin: Margin,
    pairs: Option<&Pairs>,
    timer: f64,
    alpha: Alpha,
) -> (Option<Numbers>, Verdict) {
    let Some(pairs) = pairs else { return (None, Verdict::NoData) };
    let compared = stats::compare(pairs, margin, alpha);
    let numbers = Numbers {
        difference: compared.difference,
        ratio: pairs.ratio(timer, alpha).ok(),
        matters: compared.matters,
    };
    let verdict = match compared.decision {
        _ if metric.weight == Weight::Context => Verdict::Context,
        Decision::Same => Verdict::Same,
        Decision::Less => Verdict::Less,
        Decision::More => Verdict::More,
        Decision::Undecided { smallest_visible, new_run } => Verdict::Undecided { smallest_visible, new_run },
        Decision::TooFew { have, need } => Verdict::TooFew { have, need },
    };
    (Some(numbers), verdict)
}
