//! What on this machine would distort measuring or prevent it, and how is it fixed?
//!
//! One explicit list, of a slice for each group. A check is a function of a [`View`], which holds what it takes more than
//! reading one file to know, and where to read the rest; so every check is tested on planted machines. Checks change nothing:
//! what they propose is for a person to do. Deliberately absent: engines and runtimes, which `subject::survey` looks at in the same manner.

mod activity;
mod cgroups;
mod kernel;
mod measured;
mod privileges;
mod processors;
mod storage;
mod view;

pub use measured::{Measured, Moves};
#[cfg(test)]
pub(crate) use view::planted;
pub use view::{StateDirectory, View};

use std::fmt;

use serde::Serialize;

use crate::report::text::clean;

/// How things stand with one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The question does not arise here, or the machine does not tell.
    #[serde(rename = "n/a")]
    NotApplicable,
    /// As it should be.
    Ok,
    /// As it may be; but whoever reads the figures must know it.
    Note,
    /// Measuring is possible but distorted, or not comparable with a default machine.
    Warning,
    /// Something cannot be measured at all.
    Problem,
}

/// By its word.
impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(out)
    }
}

/// How to fix what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fix {
    /// Typed as it stands, it fixes it.
    Command(String),
    /// What a person has to do or to decide.
    Advice(String),
}

/// The words of either.
#[cfg(test)]
impl std::ops::Deref for Fix {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Fix::Command(words) | Fix::Advice(words) => words,
        }
    }
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How things stand.
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

    /// As it should be.
    pub fn ok(what: impl Into<String>) -> Finding {
        Finding::new(State::Ok, what)
    }

    /// To be known.
    pub fn note(what: impl Into<String>) -> Finding {
        Finding::new(State::Note, what)
    }

    /// Distorts.
    pub fn warning(what: impl Into<String>) -> Finding {
        Finding::new(State::Warning, what)
    }

    /// Prevents.
    pub fn problem(what: impl Into<String>) -> Finding {
        Finding::new(State::Problem, what)
    }

    /// Does not arise.
    pub fn not_applicable(what: impl Into<String>) -> Finding {
        Finding::new(State::NotApplicable, what)
    }

    /// This, unless all is fine; then what is so.
    fn unless(self, is_fine: bool, fine: impl Into<String>) -> Option<Finding> {
        Some(if is_fine { Finding::ok(fine) } else { self })
    }

    /// With a command that fixes it.
    pub fn command(self, command: impl Into<String>) -> Finding {
        Finding { fix: Some(Fix::Command(command.into())), ..self }
    }

    /// With advice where no command does.
    pub fn advice(self, advice: impl Into<String>) -> Finding {
        Finding { fix: Some(Fix::Advice(advice.into())), ..self }
    }
}

/// A question about the machine: why it matters, how the answer is read, what is wanted, and how to fix what is not so.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Its name in reports.
    pub name: &'static str,
    /// What it matters for in measuring.
    pub matters: &'static str,
    /// Answers it; not where the machine does not tell.
    run: fn(&View) -> Option<Finding>,
}

const fn check(name: &'static str, matters: &'static str, run: fn(&View) -> Option<Finding>) -> Check {
    Check { name, matters, run }
}

/// Every check, in the order of reports, under the heading of its group.
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
        (self.run)(view).unwrap_or_else(|| Finding::not_applicable("the machine does not tell"))
    }
}

/// Every check with its group and with what it finds.
pub fn run(view: &View) -> impl Iterator<Item = (&'static str, &'static Check, Finding)> {
    let all = CHECKS.iter().flat_map(|(group, checks)| checks.iter().map(|check| (*group, check)));
    all.map(|(group, check)| (group, check, check.answer(view)))
}

/// What a check finds on the planted machine after a change.
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
            // No control groups at all is a finding of its own: their mounts are always readable.
            assert!(!accused || check.name == "cgroup-mode", "{}: {finding:?}", check.name);
        }
    }
}
