//! Sums up the passed, failed and skipped tests over all test executables.

use std::collections::BTreeSet;
use std::fmt;

/// Sums of the `test result:` lines of a `cargo test`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Totals {
    /// Tests that ran to their end.
    pub passed: usize,
    /// Tests that failed, and executables that ended without a result.
    pub failed: usize,
    /// Tests that returned early with a reason, and ignored tests.
    pub skipped: usize,
}

impl Totals {
    /// Adds a line of output if it is a result in libtest's format:
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`.
    pub fn add_line(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let Some((_, counts)) = result.split_once(". ") else {
            return;
        };
        for (number, what) in counts.split("; ").filter_map(|count| count.split_once(' ')) {
            let Ok(number) = number.parse::<usize>() else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }

    /// Moves skipped tests from passed, as libtest counts them, to skipped. The lines are `skipped: <test>: <need>: <reason>`; a test
    /// with two of them counts once.
    pub fn take_out_skipped(&mut self, lines: &str) {
        let tests: BTreeSet<&str> =
            lines.lines().filter_map(|line| line.strip_prefix("skipped: ")?.split(": ").next()).collect();
        self.passed = self.passed.saturating_sub(tests.len());
        self.skipped += tests.len();
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_summed_and_a_skipped_test_has_not_passed() {
        let mut totals = Totals::default();
        for line in [
            "running 4 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.2s",
            "a test result: ok. 9 passed;",
        ] {
            totals.add_line(line);
        }
        assert_eq!(totals, Totals { passed: 5, failed: 1, skipped: 1 });
        totals.take_out_skipped(
            "skipped: docker_starts: docker: no daemon\n\
             skipped: docker_starts: crun: not there: at all\n\
             skipped: podman_starts: podman: not installed\n",
        );
        assert_eq!(totals.to_string(), "3 passed, 1 failed, 3 skipped");
    }
}
