//! What must not be believed, even with a narrow interval. Each rule names the evidence and the likely
//! mechanism, and overrules the verdicts that rest on it.

use super::finding::{Finding, Verdict};
use super::noise::Noise;
use super::view::View;
use crate::experiment::command::names::PROGRAM_SHA256;
use crate::experiment::network;
use crate::experiment::storage::names::DURABILITY;
use crate::launch::names::{NETWORK, ROOT_DURABILITY};
use crate::names::Fact;
use crate::plan::{Layer, Relation};
use crate::record::{IMPORT_RULES, IssueFacts, Recorded};

/// A rule that fired.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// The name of the rule.
    pub rule: &'static str,
    /// The cells whose numbers are suspect.
    pub cells: Vec<usize>,
    /// Index into the experiment's metrics; none if all are suspect.
    pub metric: Option<usize>,
    /// Differences up to this size are suspect, larger ones are not; none if all are. In the unit of the
    /// metric.
    pub up_to: Option<f64>,
    /// What was seen.
    pub evidence: String,
    /// What probably caused it; empty if unknown.
    pub mechanism: String,
}

impl Suspect {
    /// One metric of a cell is suspect, at any size of a difference.
    pub fn of(rule: &'static str, at: (usize, usize), evidence: String, mechanism: &str) -> Suspect {
        let ((cell, metric), mechanism) = (at, mechanism.to_owned());
        Suspect { rule, cells: vec![cell], metric: Some(metric), up_to: None, evidence, mechanism }
    }

    /// A suspect for each metric of a cell in which a rule sees something.
    pub fn each(
        view: &View<'_>,
        rule: &'static str,
        mechanism: &str,
        seen: impl Fn(usize, usize) -> Option<String>,
    ) -> Vec<Suspect> {
        let one = |(cell, metric)| Some(Suspect::of(rule, (cell, metric), seen(cell, metric)?, mechanism));
        view.all().filter_map(one).collect()
    }

    /// Whether a difference of this size in a metric of any of these cells rests on suspect numbers.
    pub(crate) fn concerns(&self, cells: &[usize], metric: usize, size: f64) -> bool {
        cells.iter().any(|cell| self.cells.contains(cell))
            && self.metric.is_none_or(|own| own == metric)
            && self.up_to.is_none_or(|reach| size <= reach)
    }

    /// Overrules the findings that rest on suspect numbers.
    pub(super) fn overrule(&self, index: usize, findings: &mut [Finding]) {
        for finding in findings {
            let size = finding.difference.map_or(0.0, |difference| difference.value.abs());
            let concerned = self.concerns(&[finding.cell, finding.against], finding.metric, size);
            if concerned && finding.verdict != Verdict::Context {
                finding.verdict = Verdict::Suspect(index);
            }
        }
    }
}

/// What was suspect in a file when it was imported. Only this program's rules count.
pub(super) fn of_the_import(view: &View<'_>) -> Vec<Suspect> {
    let plan = view.plan();
    let issues = view.run.environment.origin.iter().flat_map(|origin| &origin.issues);
    let suspect = |issue: &IssueFacts| {
        let rule = IMPORT_RULES.into_iter().find(|rule| *rule == issue.rule)?;
        let is_concerned =
            |cell: &usize| issue.labels.is_empty() || issue.labels.contains(&plan.entry(*cell).label);
        let cells: Vec<usize> = (0..plan.cells.len()).filter(is_concerned).collect();
        let metric = issue.metric.as_ref().and_then(|name| view.metric_index(*cells.first()?, name));
        let (evidence, mechanism) = (issue.evidence.clone(), issue.mechanism.clone());
        Some(Suspect { rule, cells, metric, up_to: None, evidence, mechanism })
    };
    issues.filter_map(suspect).collect()
}

/// Time does not run backwards, and CPU time is not given back. Noise can make the difference of two launches
/// negative; there the whole interval of the median must be below zero.
pub(super) fn negative(view: &View<'_>) -> Vec<Suspect> {
    let mechanism = "a clock was set, or a difference is computed from a wrong reading";
    Suspect::each(view, "negative", mechanism, |cell, metric| {
        let values = view.cells[cell].metrics[metric].as_ref()?;
        let known = view.metric(cell, metric);
        if known.is_signed {
            return None;
        }
        let differences = view.cell(cell).asks().differences;
        let (seen, reach) = match differences.contains(&known.name) {
            true => ("has a median of at most", values.median.interval?.high),
            false => ("is as low as", values.range.0),
        };
        (reach < 0.0)
            .then(|| format!("{} {seen} {}", view.named(cell, metric), known.unit.format_signed(reach)))
    })
}

/// A container is a process with more to do: it cannot be faster than one by more than the noise.
pub(super) fn faster_than_bare(view: &View<'_>) -> Vec<Suspect> {
    let suspect = |finding: &Finding| {
        let relation = &view.plan().comparisons[finding.comparison].relation;
        let difference = finding.difference?.value;
        let hides = |noise: &Noise| {
            noise.is_beside(view.plan(), finding, &[Layer::Bare]) && noise.floor.hides(difference)
        };
        let is_faster = finding.kind().is_better() && !view.noise.iter().any(hides);
        let is_of_bare = *relation == Relation::Baseline && view.is_bare(finding.against);
        if !is_of_bare || !is_faster || is_of_memory(view, finding.cell) {
            return None;
        }
        let less = finding.about.unit.format_signed(difference);
        let mechanism = unlike(view.run, finding.cell, finding.against);
        let unknown =
            if mechanism.is_empty() { "; nothing recorded about the two sides explains it" } else { "" };
        let named = view.named(finding.cell, finding.metric);
        let evidence = format!("{named} is {less} compared with a bare process{unknown}");
        Some(Suspect::of("faster than bare", (finding.cell, finding.metric), evidence, mechanism))
    };
    view.findings.iter().filter_map(suspect).collect()
}

/// Whether what a cell writes and reads is in memory alone, where which pages a container happens to get makes a difference.
fn is_of_memory(view: &View<'_>, cell: usize) -> bool {
    let is_of_none = view.run.facts(cell, DURABILITY).flatten().any(|fact| fact == "memory");
    is_of_none || view.cell(cell).setting.get("sync") == Some("cached")
}

/// A known way in which two cells differ that can make one of them faster; empty if there is none.
fn unlike(run: &Recorded, cell: usize, against: usize) -> &'static str {
    let facts = [
        (PROGRAM_SHA256, "the two sides executed different files"),
        (ROOT_DURABILITY, "only one root is mounted volatile, and there fsync does nothing"),
        (
            NETWORK,
            "firewall rules and connection tracking of the host's network, which the other one does not have",
        ),
    ];
    // A network namespace makes nothing faster where no packets are measured.
    let is_about = |name: Fact| name != NETWORK || run.plan.cells[cell].asks().shares == Some(network::NAME);
    let differs = |name: Fact| run.facts(cell, name).next() != run.facts(against, name).next();
    facts.iter().find(|(name, _)| is_about(*name) && differs(*name)).map_or("", |(_, told)| told)
}

/// A subject differs from itself: the instrument made the difference, not the subject.
pub(super) fn control_moved(view: &View<'_>) -> Vec<Suspect> {
    let suspect = |finding: &Finding| {
        let is_control = view.plan().comparisons[finding.comparison].relation == Relation::Twin;
        let difference = finding.difference?;
        if !is_control || !matches!(finding.verdict, Verdict::More | Verdict::Less) {
            return None;
        }
        let named = view.named(finding.cell, finding.metric);
        let by = finding.about.unit.format_signed(difference.value);
        let evidence = format!("{named} differs by {by} from the same subject under its own label");
        let mechanism =
            "the order within rounds, or state that one label's launches leave behind and the other's find";
        Some(Suspect {
            cells: vec![finding.cell, finding.against],
            // Other subjects may be affected too, but not by more than that.
            up_to: Some(difference.interval.map_or(difference.value.abs(), |all| all.farthest_end())),
            ..Suspect::of("control moved", (finding.cell, finding.metric), evidence, mechanism)
        })
    };
    view.findings.iter().filter_map(suspect).collect()
}

/// Two measurements never agree to the nanosecond in every round.
pub(super) fn copies(view: &View<'_>) -> Vec<Suspect> {
    /// A smaller number of equal values could be chance on a coarse clock.
    const FEWEST: usize = 5;
    let mut found = Vec::new();
    for first in 0..view.cells.len() {
        for second in first + 1..view.cells.len() {
            if view.cell(first).experiment != view.cell(second).experiment {
                continue;
            }
            let (one, other) = (view.columns.get(first, 0), view.columns.get(second, 0));
            let values = one.iter().flatten().count();
            let constant = one.iter().flatten().all(|value| Some(value) == one.iter().flatten().next());
            if values < FEWEST || constant || one != other {
                continue;
            }
            let [own, copy] = [first, second].map(|cell| view.named(cell, 0));
            let evidence = format!("{own} and {copy} have the same value in each of {values} rounds");
            let mechanism = "one of them was copied, not measured";
            let suspect = Suspect::of("two columns that are copies", (first, 0), evidence, mechanism);
            found.push(Suspect { cells: vec![first, second], metric: None, ..suspect });
        }
    }
    found
}
