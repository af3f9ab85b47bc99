//! What must not be believed, whatever its interval says. Each rule names the evidence and the
//! likely mechanism, and overrules the verdicts that rest on it.

use super::columns::{CellSummary, Columns, MetricSummary};
use super::finding::{Finding, Verdict, sibling};
use super::noise::Noise;
use super::price::Price;
use crate::experiment;
use crate::plan::{Plan, Relation};
use crate::record::{DoubtFacts, IMPORT_RULES, Recorded};
use crate::units::Unit;

/// A rule that fired.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// The name of the rule.
    pub rule: &'static str,
    /// The cells whose numbers are in doubt.
    pub cells: Vec<usize>,
    /// Index into the experiment's metrics; none where all are in doubt.
    pub metric: Option<usize>,
    /// Differences up to this size are in doubt, larger ones stand; none where no size helps. In
    /// the unit of the metric.
    pub up_to: Option<f64>,
    /// What was seen.
    pub evidence: String,
    /// What probably made it so.
    pub mechanism: String,
}

impl Suspect {
    /// Overrules the findings that rest on the numbers in doubt.
    pub(super) fn overrule(&self, index: usize, findings: &mut [Finding]) {
        for finding in findings {
            let concerned = self.cells.contains(&finding.cell) || self.cells.contains(&finding.against);
            let same_metric = self.metric.is_none_or(|metric| metric == finding.metric);
            let size = finding.numbers.map_or(0.0, |numbers| numbers.difference.value.abs());
            let in_reach = self.up_to.is_none_or(|reach| size <= reach);
            if concerned && same_metric && in_reach && finding.verdict != Verdict::Context {
                finding.verdict = Verdict::Suspect(index);
            }
        }
    }
}

/// The rules, each from a run's numbers to what is suspect in them.
type Rule = fn(&View<'_>) -> Vec<Suspect>;

const RULES: [Rule; 5] = [of_the_import, negative, faster_than_bare, control_moved, copies];

/// What a rule may look at.
pub struct View<'a> {
    /// What was recorded.
    pub run: &'a Recorded,
    /// The values that count.
    pub columns: &'a Columns,
    /// The cells, in the order of the plan.
    pub cells: &'a [CellSummary],
    /// What the comparisons came to.
    pub findings: &'a [Finding],
    /// The noise floors.
    pub noise: &'a [Noise],
    /// What settings cost more than their references.
    pub prices: &'a [Price],
}

/// Applies the rules that hold for every question.
pub(super) fn all(view: &View<'_>) -> Vec<Suspect> {
    RULES.iter().flat_map(|rule| rule(view)).collect()
}

impl View<'_> {
    /// The plan of the run.
    pub fn plan(&self) -> &Plan {
        &self.run.plan
    }

    /// The place of a metric among those of a cell's experiment.
    pub fn metric_index(&self, cell: usize, name: &str) -> Option<usize> {
        self.plan().metrics(&self.plan().cells[cell]).iter().position(|metric| metric.name == name)
    }

    /// The label of a cell's subject.
    pub fn label(&self, cell: usize) -> &str {
        &self.plan().subjects[self.plan().cells[cell].subject].label
    }

    /// A metric of a cell, in words.
    pub fn named(&self, cell: usize, metric: usize) -> String {
        let planned = &self.plan().cells[cell];
        let setting =
            if planned.setting.0.is_empty() { String::new() } else { format!(" ({})", planned.setting) };
        format!("{} of `{}`{setting}", self.plan().metrics(planned)[metric].name, self.label(cell))
    }

    /// The same setting of the baseline.
    pub fn baseline_cell(&self, cell: usize) -> Option<usize> {
        let baseline = self.plan().baseline_of(self.plan().cells[cell].experiment);
        sibling(self.plan(), cell, baseline)
    }
}

/// What was suspect in a file while it was imported. Only rules of this program count.
fn of_the_import(view: &View<'_>) -> Vec<Suspect> {
    let plan = view.plan();
    let doubts = view.run.environment.origin.iter().flat_map(|origin| &origin.doubts);
    let suspect = |doubt: &DoubtFacts| {
        let rule = IMPORT_RULES.into_iter().find(|rule| *rule == doubt.rule)?;
        let is_concerned = |cell: &usize| {
            let label = &plan.subjects[plan.cells[*cell].subject].label;
            doubt.labels.is_empty() || doubt.labels.contains(label)
        };
        let cells: Vec<usize> = (0..plan.cells.len()).filter(is_concerned).collect();
        let metric = doubt.metric.as_ref().and_then(|name| view.metric_index(*cells.first()?, name));
        let (evidence, mechanism) = (doubt.evidence.clone(), doubt.mechanism.clone());
        Some(Suspect { rule, cells, metric, up_to: None, evidence, mechanism })
    };
    doubts.filter_map(suspect).collect()
}

/// Time does not run backwards and CPU is not given back. A difference of two launches goes below zero by
/// noise; there the whole interval of the median must lie below.
fn negative(view: &View<'_>) -> Vec<Suspect> {
    let mut found = Vec::new();
    for (cell, summary) in view.cells.iter().enumerate() {
        let planned = &view.plan().cells[cell];
        let differences = experiment::find(planned.experiment).map_or(&[][..], |one| one.about().differences);
        for (metric, values) in summary.metrics.iter().enumerate() {
            let known = &view.plan().metrics(planned)[metric];
            let is_difference = differences.contains(&known.name);
            let reach = |values: &MetricSummary| match is_difference {
                true => values.median.interval.map(|interval| interval.high),
                false => Some(values.range.0),
            };
            let Some(reach) = values.as_ref().and_then(reach).filter(|reach| *reach < 0.0) else { continue };
            let unit = known.unit;
            found.push(Suspect {
                rule: "negative",
                cells: vec![cell],
                metric: Some(metric),
                up_to: None,
                evidence: format!(
                    "{} {} {}",
                    view.named(cell, metric),
                    if is_difference { "has a median of at most" } else { "reaches" },
                    unit.format_signed(reach)
                ),
                mechanism:
                    "a clock that was set, or a difference of two readings of which one is not what it seems"
                        .into(),
            });
        }
    }
    found
}

/// Whether a cell is of a process on the host.
pub fn is_bare(view: &View<'_>, cell: usize) -> bool {
    view.plan().subjects[view.plan().cells[cell].subject].layer == crate::plan::Layer::Bare
}

/// A container is a process with more to do: beyond the noise it cannot be faster than one.
fn faster_than_bare(view: &View<'_>) -> Vec<Suspect> {
    let mut found = Vec::new();
    for finding in view.findings {
        let relation = &view.plan().comparisons[finding.comparison].relation;
        if *relation != Relation::Baseline || !finding.kind().is_better() || !is_bare(view, finding.against) {
            continue;
        }
        let Some(numbers) = finding.numbers else { continue };
        let own = &view.plan().cells[finding.cell];
        let floors = view.noise.iter().filter(|noise| {
            let cell = &view.plan().cells[noise.cell];
            noise.metric == finding.metric
                && cell.experiment == own.experiment
                && cell.setting == own.setting
                && is_bare(view, noise.cell)
        });
        if floors.clone().any(|noise| noise.floor.hides(numbers.difference.value)) {
            continue;
        }
        found.push(Suspect {
            rule: "faster than bare",
            cells: vec![finding.cell],
            metric: Some(finding.metric),
            up_to: None,
            evidence: format!(
                "{} is {} from a bare process",
                view.named(finding.cell, finding.metric),
                Unit::Seconds.format_signed(numbers.difference.value)
            ),
            mechanism: "other bits on the two sides, or a part of the work that was left out".into(),
        });
    }
    found
}

/// A subject differs from itself: the instrument, not the subject, made the difference.
fn control_moved(view: &View<'_>) -> Vec<Suspect> {
    let mut found = Vec::new();
    for finding in view.findings {
        let is_control = view.plan().comparisons[finding.comparison].relation == Relation::Twin;
        if !is_control || !matches!(finding.verdict, Verdict::More | Verdict::Less) {
            continue;
        }
        let Some(numbers) = finding.numbers else { continue };
        let unit = view.plan().metrics(&view.plan().cells[finding.cell])[finding.metric].unit;
        found.push(Suspect {
            rule: "control moved",
            cells: vec![finding.cell, finding.against],
            metric: Some(finding.metric),
            // What the control did may have happened to others too, but not more than that.
            up_to: Some(
                numbers.difference.interval.map_or(numbers.difference.value.abs(), |all| all.farthest_end()),
            ),
            evidence: format!(
                "{} differs by {} from the same subject under its own label",
                view.named(finding.cell, finding.metric),
                unit.format_signed(numbers.difference.value)
            ),
            mechanism:
                "the order within rounds, or state that one label's launches leave and the other's find"
                    .into(),
        });
    }
    found
}

/// Two measurements never agree to the nanosecond in every round.
fn copies(view: &View<'_>) -> Vec<Suspect> {
    /// Fewer equal values could be chance on a coarse clock.
    const FEWEST: usize = 5;
    let mut found = Vec::new();
    for first in 0..view.cells.len() {
        for second in first + 1..view.cells.len() {
            if view.plan().cells[first].experiment != view.plan().cells[second].experiment {
                continue;
            }
            let (one, other) = (view.columns.get(first, 0), view.columns.get(second, 0));
            let values = one.iter().flatten().count();
            let constant = one.iter().flatten().all(|value| Some(value) == one.iter().flatten().next());
            if values < FEWEST || constant || one != other {
                continue;
            }
            found.push(Suspect {
                rule: "two columns that are copies",
                cells: vec![first, second],
                metric: None,
                up_to: None,
                evidence: format!(
                    "{} and {} have the same value in each of {values} rounds",
                    view.named(first, 0),
                    view.named(second, 0)
                ),
                mechanism: "one of them was copied, not measured".into(),
            });
        }
    }
    found
}
