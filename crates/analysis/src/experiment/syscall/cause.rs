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

use super::{CALLS, NAME};
use crate::plan::{Plan, Relation};
use crate::stats::{self, Estimate};
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
    /// The share of the difference that disappears; none if no round has all three values and a difference.
    pub removed: Option<Estimate>,
}

/// Why one cell is slower than the baseline in one metric.
#[derive(Debug)]
pub struct Cause<'v> {
    /// What is slower.
    pub finding: &'v Finding,
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

/// Where all calls of the subjects that were asked for are compared with the baseline.
pub fn asked<'v>(view: &'v View<'_>) -> Vec<&'v Finding> {
    let plan = &view.run.plan;
    let is_asked = |finding: &&Finding| {
        let (own, other) = (&plan.cells[finding.cell], &plan.cells[finding.against]);
        own.experiment == NAME
            && finding.metric < CALLS.len()
            && plan.baseline_of(NAME) == other.subject
            && plan.is_original(own.subject)
    };
    view.findings.iter().filter(is_asked).collect()
}

/// The causes of everything that is slower than the baseline.
pub fn causes<'v>(view: &'v View<'_>) -> Vec<Cause<'v>> {
    let plan = &view.run.plan;
    let cause = |finding: &'v Finding| {
        let column = |cell| view.columns.get(cell, finding.metric);
        let tried = others(plan, finding.cell).into_iter().map(|(key, value, cell)| {
            let [bare, own, without] = [finding.against, finding.cell, cell].map(column);
            let share = stats::share(bare, own, without, plan.level(1));
            Tried { key, value, removed: share.map(|share| share.removed) }
        });
        let tried: Vec<_> = tried.collect();
        let found = if finding.noise.is_some() { Found::BelowNoise } else { judge(&tried) };
        Cause { finding, found, tried }
    };
    asked(view).into_iter().filter(|finding| finding.kind().is_worse()).map(cause).collect()
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
        one.removed.and_then(|removed| removed.interval).is_some_and(|interval| interval.low >= LEAST)
    };
    let those: Vec<usize> = (0..tried.len()).filter(|&index| takes_it_away(&tried[index])).collect();
    match those[..] {
        _ if tried.is_empty() => Found::NotTried,
        [] => Found::NotResolved,
        [only] => Found::One(only),
        _ => Found::Each(those),
    }
}
