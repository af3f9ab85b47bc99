//! What the tests did: failures as they come, and at the end the skips, the slowest tests and the sums.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::process::Outcome;
use crate::lint::Lints;

/// How many of the slowest tests are named.
const SLOWEST: usize = 10;

/// The results of a run of the suite.
#[derive(Default)]
pub struct Summary {
    /// How long all of it took.
    pub took: Duration,
    /// What the lints found.
    pub lints: Lints,
    passed: usize,
    skips: Vec<String>,
    notes: Vec<String>,
    skipped: usize,
    /// How often each test failed.
    failed: BTreeMap<String, usize>,
    times: Vec<(Duration, String)>,
}

impl Summary {
    /// Adds the end of a test, and prints a failure.
    pub fn add(&mut self, name: &str, took: Duration, outcome: Outcome) {
        self.times.push((took, name.to_owned()));
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Noted(lines) => {
                self.passed += 1;
                self.notes.extend(lines.lines().map(|line| format!("{name}: {line}")));
            }
            Outcome::Skipped(lines) => {
                self.skipped += 1;
                self.skips.extend(lines.lines().map(str::to_owned));
            }
            Outcome::Failed(said) => {
                *self.failed.entry(name.to_owned()).or_default() += 1;
                println!("\n---- FAILED after {:.1} s: {name}\n{}----", took.as_secs_f64(), said);
            }
        }
    }

    /// How many tests have ended.
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// Whether nothing is wrong.
    pub fn is_fine(&self) -> bool {
        self.failed.is_empty() && self.lints == Lints::Clean
    }

    /// Prints everything, the sums in the last line.
    pub fn print(&mut self, scratch: &Path) {
        self.times.sort_by(|one, other| other.cmp(one));
        println!("\nslowest of {} tests in {:.0} s:", self.times.len(), self.took.as_secs_f64());
        for (took, name) in self.times.iter().take(SLOWEST) {
            println!("{:>7.1} s  {name}", took.as_secs_f64());
        }
        self.skips.sort();
        println!("\n{}{}{} skip(s) with a reason", lines(&self.notes), lines(&self.skips), self.skips.len());
        for (name, times) in &self.failed {
            println!("FAILED {times} time(s): {name}");
        }
        if self.lints == Lints::Dirty {
            println!("format or lints have problems, see above");
        }
        let has_logs = || std::fs::read_dir(scratch).is_ok_and(|mut all| all.next().is_some());
        if !self.is_fine() && has_logs() {
            println!("logs are kept in {}", scratch.display());
        }
        println!("{self}");
    }
}

fn lines(all: &[String]) -> String {
    all.iter().map(|line| format!("{line}\n")).collect()
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed: usize = self.failed.values().sum();
        write!(f, "{} passed, {failed} failed, {} skipped", self.passed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_test_has_not_passed_and_counts_once() {
        let mut summary = Summary::default();
        let two = "skipped: docker_starts: docker: no daemon\nskipped: docker_starts: crun: not there\n";
        for outcome in [Outcome::Passed, Outcome::Skipped(two.to_owned()), Outcome::Passed] {
            summary.add("a test", Duration::ZERO, outcome);
        }
        assert_eq!(summary.to_string(), "2 passed, 0 failed, 1 skipped");
        assert_eq!((summary.is_fine(), summary.skips.len()), (true, 2));
        summary.add("a test", Duration::ZERO, Outcome::Failed("why\n".to_owned()));
        assert_eq!(summary.to_string(), "2 passed, 1 failed, 1 skipped");
        assert!(!summary.is_fine());
    }
}
