//! Checks for what on this machine would distort or prevent measuring, and how to fix it.
//!
//! One explicit list, with a slice for each group. A check is a function of a [`View`], which holds the facts and the files to
//! read, so every check is tested on planted machines. Checks change nothing: they suggest fixes for the user to apply.
//! Deliberately absent: engines and runtimes, which `subject::survey` checks in the same way.

mod activity;
mod cgroups;
mod kernel;
mod measured;
mod privileges;
mod processors;
pub mod storage;
mod view;

pub use measured::{Measured, Moves};
#[cfg(test)]
pub(crate) use view::planted;
pub use view::{StateDirectory, View};

use std::fmt;

use serde::Serialize;

use crate::report::text::clean;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The check does not apply here, or the machine does not provide the information.
    #[serde(rename = "n/a")]
    NotApplicable,
    /// As it should be.
    Ok,
    /// Fine, but a reader of the results must know it.
    Note,
    /// Measuring is possible but distorted, or not comparable with a default machine.
    Warning,
    /// Something cannot be measured at all.
    Problem,
}

/// By its name.
impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(out)
    }
}

/// How to fix a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fix {
    /// A command that fixes it as it is.
    Command(String),
    /// What the user has to do or decide.
    Advice(String),
}

/// The text of either.
#[cfg(test)]
impl std::ops::Deref for Fix {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Fix::Command(words) | Fix::Advice(words) => words,
        }
    }
}

/// The finding of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The result.
    pub state: State,
    /// What was found, with its value, in one line.
    #[serde(rename = "found")]
    pub what: String,
    /// How to fix it.
    #[serde(flatten)]
    pub fix: Option<Fix>,
}

impl Finding {
    fn new(state: State, what: impl Into<String>) -> Finding {
        Finding { state, what: clean(&what.into()), fix: None }
    }

    /// Nothing to fix.
    pub fn ok(what: impl Into<String>) -> Finding {
        Finding::new(State::Ok, what)
    }

    /// Worth knowing.
    pub fn note(what: impl Into<String>) -> Finding {
        Finding::new(State::Note, what)
    }

    /// A distortion.
    pub fn warning(what: impl Into<String>) -> Finding {
        Finding::new(State::Warning, what)
    }

    /// An obstacle to measuring.
    pub fn problem(what: impl Into<String>) -> Finding {
        Finding::new(State::Problem, what)
    }

    /// Not applicable.
    pub fn not_applicable(what: impl Into<String>) -> Finding {
        Finding::new(State::NotApplicable, what)
    }

    /// This finding, or an ok with the other text.
    fn unless(self, is_fine: bool, fine: impl Into<String>) -> Option<Finding> {
        Some(if is_fine { Finding::ok(fine) } else { self })
    }

    /// Adds a command that fixes it.
    pub fn command(self, command: impl Into<String>) -> Finding {
        Finding { fix: Some(Fix::Command(command.into())), ..self }
    }

    /// Adds advice, if no command fixes it.
    pub fn advice(self, advice: impl Into<String>) -> Finding {
        Finding { fix: Some(Fix::Advice(advice.into())), ..self }
    }
}

/// A check: its name, why it matters, and the function that finds the answer and the fix.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Its name in reports.
    pub name: &'static str,
    /// Why it matters for measuring.
    pub matters: &'static str,
    /// The finding; none if the machine does not provide the information.
    run: fn(&View) -> Option<Finding>,
}

const fn check(name: &'static str, matters: &'static str, run: fn(&View) -> Option<Finding>) -> Check {
    Check { name, matters, run }
}

/// Every check, in the order of reports, under its group's heading.
pub static CHECKS: &[(&str, &[Check])] = &[
    ("privileges", privileges::CHECKS),
    ("control groups", cgroups::CHECKS),
    ("storage", storage::CHECKS),
    ("activity", activity::CHECKS),
    ("processors and clocks", processors::CHECKS),
    ("kernel", kernel::CHECKS),
];

impl Check {
    fn answer(&self, view: &View) -> Finding {
        (self.run)(view).unwrap_or_else(|| Finding::not_applicable("not reported by this machine"))
    }
}

/// Every check with its group and its finding.
pub fn run(view: &View) -> impl Iterator<Item = (&'static str, &'static Check, Finding)> {
    let all = CHECKS.iter().flat_map(|(group, checks)| checks.iter().map(|check| (*group, check)));
    all.map(|(group, check)| (group, check, check.answer(view)))
}

/// The finding of a check on the planted machine after a change.
#[cfg(test)]
fn found(name: &str, change: impl Fn(&mut View)) -> Finding {
    let mut view = planted();
    change(&mut view);
    run(&view).find(|(_, check, _)| check.name == name).expect("a check").2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_typeable() {
        let mut names: Vec<_> = CHECKS.iter().flat_map(|(_, all)| *all).map(|check| check.name).collect();
        let count = names.len();
        assert!(
            names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '6'))
        );
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_good_machine_has_nothing_to_mend() {
        for (_, check, finding) in run(&view::planted()) {
            assert!(finding.state <= State::Ok, "{}: {finding:?}", check.name);
            assert_eq!(finding.fix, None, "{}", check.name);
        }
    }

    #[test]
    fn a_machine_that_tells_nothing_is_not_accused() {
        for (_, check, finding) in run(&view::silent()) {
            let accused = finding.state > State::Ok;
            // A machine without any cgroups is a finding: mounts are always readable.
            assert!(!accused || check.name == "cgroup-mode", "{}: {finding:?}", check.name);
        }
    }
}
