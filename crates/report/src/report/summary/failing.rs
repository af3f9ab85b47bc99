//! Which subjects fail more often than others.

use super::{Claim, One, Topic};
use crate::distinct;
use crate::outcome::FailureClass;
use crate::report::text::joined;
use crate::units::counted;
use crate::verdict::{FailureShares, Finding};

impl<'a> One<'a> {
    /// A sentence for each cell that was shown to fail more often than others.
    pub(super) fn failing(&self) -> Vec<Claim> {
        let finding = |shares: &FailureShares| {
            let fits = |one: &&&Finding| {
                one.comparison == shares.comparison && shares.cells == [one.cell, one.against]
            };
            self.findings.iter().find(fits).copied()
        };
        let shown = self.analysis.failure_shares.iter();
        // What cannot be measured did not fail.
        let is_tried = |cell: usize| {
            let failures = &self.analysis.cells[cell].failures;
            failures.is_empty() || failures.iter().any(|(class, ..)| *class != FailureClass::Unsupported)
        };
        let shown = shown.filter_map(|shares| Some((shares.more_often?, shares, finding(shares)?)));
        let shown = shown.filter(|(more, ..)| is_tried(*more));
        let shown: Vec<(usize, &FailureShares, &'a Finding)> = shown.collect();
        let of_cell = |cell: usize| {
            let own: Vec<_> = shown.iter().filter(|(more, ..)| *more == cell).collect();
            let side = |shares: &FailureShares| usize::from(shares.cells[1] == cell);
            let others = own.iter().map(|(_, shares, _)| {
                let other = 1 - side(shares);
                let cell = &self.plan.cells[shares.cells[other]];
                // Of two settings of a subject, the other one has to be named too.
                let is_same = cell.subject == self.plan.cells[shares.cells[1 - other]].subject;
                let setting = if is_same { self.in_setting(&cell.setting) } else { String::new() };
                let label = self.label(cell.subject);
                format!("{label}{setting} ({} of {})", shares.failed[other], shares.rounds)
            });
            let others = joined(&others.collect::<Vec<_>>(), "and");
            let (_, first, finding) = own[0];
            let text = format!(
                "{}{} fails more often than {others}: in {} of {}",
                self.label(self.plan.cells[cell].subject),
                self.in_setting(self.setting_of(finding)),
                first.failed[side(first)],
                counted(first.rounds, "round"),
            );
            self.claim(Topic::Failures, text, own.iter().map(|(.., finding)| *finding).collect())
        };
        distinct(shown.iter().map(|(cell, ..)| *cell)).into_iter().map(of_cell).collect()
    }
}
