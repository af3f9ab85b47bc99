//! The comparisons of an experiment in words, the most important first.

use serde::Serialize;

use super::Metric;
use crate::plan::{Plan, Relation};
use crate::record::Recorded;
use crate::report::words::{phrase, predicate};
use crate::units::Unit;
use crate::verdict::{Analysis, Finding, Kind, Verdict};

/// The setting and metric of a number, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The setting as `key=value` joined by `;`, empty when there is none.
    pub setting: String,
    /// The metric's name.
    pub metric: &'static str,
    /// The base unit of its values.
    pub unit: Unit,
}

/// One comparison in one metric and setting, with its words.
#[derive(Debug, Clone, Serialize)]
pub struct Told {
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
    /// Its verdict in a word, by the unit and direction of the metric.
    #[serde(rename = "verdict")]
    pub kind: Kind,
    /// The beginning of a sentence about the two subjects. It names a cause only if one thing differs.
    pub phrase: String,
    /// The end of that sentence.
    pub predicate: String,
}

/// The comparisons of one experiment.
pub(super) struct Compared<'a> {
    pub run: &'a Recorded,
    pub analysis: &'a Analysis,
    pub name: &'static str,
    pub metrics: &'a [Metric],
}

impl Compared<'_> {
    /// The setting of a cell and a metric by name.
    pub fn place(&self, cell: usize, metric: usize) -> Place {
        let Metric { name, unit, .. } = self.metrics[metric];
        Place { setting: self.run.plan.cells[cell].setting.to_string(), metric: name, unit }
    }

    /// The findings about a cell against the baseline, by metric.
    pub fn with_baseline(&self, cell: usize) -> Vec<Option<Finding>> {
        let baseline = self.run.plan.baseline_of(self.name);
        // The plan keeps one of several reasons to compare a pair; here only the baseline counts.
        let fits = |finding: &&Finding| {
            let comparison = &self.run.plan.comparisons[finding.comparison];
            finding.cell == cell && comparison.against == baseline && !comparison.relation.is_of_settings()
        };
        let found: Vec<_> = self.analysis.findings.iter().filter(fits).collect();
        let of_metric = |metric| found.iter().find(|finding| finding.metric == metric);
        (0..self.metrics.len()).map(|metric| of_metric(metric).copied().cloned()).collect()
    }

    /// All comparisons, with those of twins apart; the most important pair first.
    pub fn told(&self) -> (Vec<Told>, Vec<Told>) {
        let own = self.run.plan.comparisons.iter().enumerate().filter(|(_, one)| one.experiment == self.name);
        let mut pairs: Vec<(usize, f64, Vec<Told>)> = own
            .map(|(index, comparison)| {
                let findings = self.analysis.findings.iter().filter(|finding| finding.comparison == index);
                let told: Vec<Told> = findings.map(|finding| told(&self.run.plan, finding)).collect();
                let first = told.iter().filter(|one| one.finding.metric == 0);
                let weight = first.map(|one| weight(&one.finding)).fold(0.0, f64::max);
                (rank(&comparison.relation), weight, told)
            })
            .collect();
        pairs.sort_by(|one, other| one.0.cmp(&other.0).then(other.1.total_cmp(&one.1)));
        let all = pairs.into_iter().flat_map(|(.., told)| told);
        all.partition(|one| one.finding.about.relation != Relation::Twin)
    }
}

fn told(plan: &Plan, finding: &Finding) -> Told {
    Told {
        kind: finding.kind(),
        phrase: phrase(plan, finding.comparison),
        predicate: predicate(finding),
        finding: finding.clone(),
    }
}

/// Comparisons with a cause first, then steps, then the rest.
fn rank(relation: &Relation) -> usize {
    match relation {
        Relation::OneKey { .. } | Relation::OneSetting { .. } => 0,
        Relation::Step => 1,
        Relation::Choice | Relation::KeyAndMore { .. } => 2,
        Relation::Baseline => 3,
        Relation::Predicted => 4,
        Relation::Several => 5,
        Relation::Twin => 6,
    }
}

/// The weight of a finding: decided differences by their size, then undecided ones, then those that are the same.
fn weight(finding: &Finding) -> f64 {
    let ratio = finding.ratio.map_or(0.0, |ratio| ratio.value.ln().abs());
    match finding.verdict {
        Verdict::Suspect(_) => 3e6,
        Verdict::More | Verdict::Less if finding.noise.is_none() => 2e6 + ratio,
        Verdict::More | Verdict::Less | Verdict::Undecided { .. } => 1e6 + ratio,
        Verdict::Same | Verdict::Context => 1.0 + ratio,
        Verdict::TooFew { .. } | Verdict::NoData => 0.0,
    }
}
