//! Why is a subject slower than the baseline? A cause is shown by intervention: leave one thing out, and see
//! how much of the difference disappears.
//!
//! A key is named as the cause if the whole 95 % interval of the share that disappears with it is at or above
//! 80 %. Whether there is a difference at all was decided at the level that all verdicts of the experiment
//! share. A key without effect has a share near zero, so far from the limit that the level does not matter.
//! Only subjects that differ from the slower one in exactly one key count: what can only be left out together
//! with something else is not named. If each of two keys removes the difference, both are named, since
//! neither causes it without the other. Everything else is not resolved, and the shares say how much is
//! known. A difference below the noise floor gets no cause: the same subject may differ from itself by as
//! much.
//!
//! Deliberately absent: the choice of keys to try, which experiments and users make, and all wording.

use super::CALLS;
use crate::plan::{Plan, Relation};
use crate::stats::{self, Share};
use crate::verdict::View;
use crate::verdict::finding::{Finding, sibling};

/// The smallest share of a difference that a cause removes.
pub const LEAST: f64 = 0.8;

/// The effect of leaving one thing out.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// The key in which the other subject differs.
    pub key: String,
    /// Its value there.
    pub value: String,
    /// The other subject's cell.
    pub cell: usize,
    /// The share of the difference that disappears; none if no round has all three values and a difference.
    pub share: Option<Share>,
}

/// Why one cell is slower than the baseline in one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// Index into the findings.
    pub finding: usize,
    /// Everything that was left out, in plan order.
    pub tried: Vec<Tried>,
    /// The conclusion.
    pub found: Found,
}

/// What the shares show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// This one of those tried removes the difference.
    One(usize),
    /// Each of these alone does.
    Each(Vec<usize>),
    /// Certainly none does.
    NotResolved,
    /// Nothing was left out.
    NotTried,
    /// The difference does not rise above the noise floor.
    BelowNoise,
}

/// Where all calls of the subjects that were asked for are compared with the baseline: indices into the
/// findings.
pub fn asked(view: &View<'_>, experiment: &str) -> Vec<usize> {
    let plan = &view.run.plan;
    let is_asked = |finding: &Finding| {
        let (own, other) = (&plan.cells[finding.cell], &plan.cells[finding.against]);
        own.experiment == experiment
            && finding.metric < CALLS.len()
            && plan.baseline_of(experiment) == other.subject
            && plan.is_original(own.subject)
    };
    (0..view.findings.len()).filter(|&index| is_asked(&view.findings[index])).collect()
}

/// The causes of everything in an experiment that is slower than the baseline.
pub fn causes(view: &View<'_>, experiment: &str) -> Vec<Cause> {
    let plan = &view.run.plan;
    let alpha = plan.level(1);
    let with_finding = |index: usize| (index, &view.findings[index]);
    let slower = asked(view, experiment).into_iter().map(with_finding);
    let slower = slower.filter(|(_, finding)| finding.kind().is_worse());
    let cause = |(finding, found): (usize, &Finding)| {
        let column = |cell| view.columns.get(cell, found.metric);
        let tried = others(plan, found.cell).into_iter().map(|(key, value, cell)| {
            let share = stats::share(column(found.against), column(found.cell), column(cell), alpha);
            Tried { key, value, cell, share }
        });
        let tried: Vec<_> = tried.collect();
        let found = match found.noise {
            Some(_) => Found::BelowNoise,
            None => judge(&tried),
        };
        Cause { finding, found, tried }
    };
    slower.map(cause).collect()
}

/// The cells that differ from this one in one key, which this one leaves at its default: key, value, cell.
pub(in crate::experiment) fn others(plan: &Plan, cell: usize) -> Vec<(String, String, usize)> {
    let own = &plan.cells[cell];
    let compared = plan.comparisons.iter().filter(|one| one.experiment == own.experiment);
    let other = |comparison: &crate::plan::Comparison| {
        let Relation::OneKey { key } = &comparison.relation else { return None };
        let other = match own.subject {
            subject if subject == comparison.against => comparison.subject,
            subject if subject == comparison.subject => comparison.against,
            _ => return None,
        };
        let value = plan.subjects[other].spec.get(key)?;
        let is_default = plan.subjects[own.subject].spec.get(key).is_none();
        Some((key.clone(), value.to_owned(), sibling(plan, cell, other)?)).filter(|_| is_default)
    };
    compared.filter_map(other).collect()
}

fn judge(tried: &[Tried]) -> Found {
    let takes_it_away = |one: &Tried| {
        let interval = one.share.and_then(|share| share.removed.interval);
        interval.is_some_and(|interval| interval.low >= LEAST)
    };
    let those: Vec<usize> = (0..tried.len()).filter(|&index| takes_it_away(&tried[index])).collect();
    match those[..] {
        _ if tried.is_empty() => Found::NotTried,
        [] => Found::NotResolved,
        [only] => Found::One(only),
        _ => Found::Each(those),
    }
}
