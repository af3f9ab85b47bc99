//! Does one side fail more often than the other? Rounds in which both failed, or neither, say nothing about that; the
//! others are a sign test. The shares of failures are a family of their own, with a level of 5 % for all pairs and
//! settings of an experiment: where nothing fails, nothing is asked, and the verdicts lose nothing.

use super::columns::{Columns, Lost};
use crate::outcome::FailureClass;
use crate::plan::{Plan, Role};
use crate::record::{Cause, Recorded};
use crate::stats::more_often;

/// How often both sides of a comparison failed in the rounds in which both were tried.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureShares {
    /// Index into the plan's comparisons.
    pub comparison: usize,
    /// The cells of the subject, and of what it is compared with.
    pub cells: [usize; 2],
    /// Their failures.
    pub failed: [usize; 2],
    /// The rounds in which both were tried.
    pub rounds: usize,
    /// The cell that fails more often, if that is decided.
    pub more_often: Option<usize>,
}

/// The shares of all comparisons in which a side failed.
pub(super) fn shares(plan: &Plan, columns: &Columns) -> Vec<FailureShares> {
    let asked = |(index, ..): &(usize, usize, usize)| plan.comparisons[*index].relation.role() == Role::Asked;
    let all: Vec<_> = plan.compared().filter(asked).collect();
    let in_family =
        |name: &str| all.iter().filter(|(index, ..)| plan.comparisons[*index].experiment == name).count();
    let of = |&(comparison, cell, against): &(usize, usize, usize)| {
        let cells = [cell, against];
        let (mut failed, mut alone, mut rounds) = ([0, 0], [0, 0], 0);
        for round in 0..columns.get(cell, 0).len() {
            let lost = cells.map(|cell| columns.lost(cell, round));
            let tried = |side: usize| lost[side].is_some() || columns.has_any(cells[side], round);
            if lost.contains(&Some(Lost::Skipped)) || !(tried(0) && tried(1)) {
                continue;
            }
            rounds += 1;
            let fails = lost.map(|lost| usize::from(lost.is_some()));
            for side in 0..2 {
                failed[side] += fails[side];
                alone[side] += fails[side] * (1 - fails[1 - side]);
            }
        }
        let level = plan.level(in_family(plan.comparisons[comparison].experiment)).get();
        let is_shown = more_often(alone[0], alone[1]) <= level;
        let more_often = is_shown.then(|| cells[usize::from(alone[1] > alone[0])]);
        (failed != [0, 0]).then_some(FailureShares { comparison, cells, failed, rounds, more_often })
    };
    all.iter().filter_map(of).collect()
}

/// More than this share of a cell's rounds is too much to lose.
const TOO_LARGE: f64 = 0.05;
/// A single failure may be chance.
const FEWEST: usize = 2;

/// How many rounds that count a cell lost, if that is too many of them. What an engine cannot do, or a user may not do, is
/// not lost.
pub fn lost_too_many(run: &Recorded, cell: usize) -> Option<usize> {
    let counts = |cause: &Cause| match cause {
        Cause::Failed(failure) => {
            !matches!(failure.class, FailureClass::Unsupported | FailureClass::Permission)
        }
        Cause::Skipped(_) => true,
    };
    let own = || run.failures.iter().filter(|row| row.cell == cell && row.round >= run.plan.warmups);
    let has_failed = own().any(|row| matches!(row.cause, Cause::Failed(_)) && counts(&row.cause));
    let lost = own().filter(|row| counts(&row.cause)).count();
    let planned = run.plan.rounds_of(run.plan.cells[cell].experiment);
    (has_failed && lost >= FEWEST && lost as f64 > TOO_LARGE * planned as f64).then_some(lost)
}
