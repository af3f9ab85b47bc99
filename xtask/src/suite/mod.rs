//! Builds the tests and runs each in a process of its own, several at a time, and reports.
//!
//! nextest does the same and was considered: it would have to be compiled on each machine first, for longer than the tests run.

mod build;
mod process;
mod rules;
mod schedule;
mod summary;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::lint::Lints;
use build::Test;
use process::Outcome;
use rules::{RULES, Rule};
use schedule::Schedule;
pub use summary::Summary;

/// Comma-separated needs; a test fails instead of skipping if one of these is missing.
pub const REQUIRE: &str = "DUNNAGE_TEST_REQUIRE";
/// The file to which a skipping test appends its line.
const SKIPS: &str = "DUNNAGE_TEST_SKIPS";
/// Tests in this module take minutes by their nature.
const LONG: &str = "::long::";
/// Tests of this executable need an engine or root.
const REAL: &str = "real::";
/// Tests in this module look at pages in a browser.
const IN_BROWSER: &str = "::in_browser::";
/// A test that runs longer than this is named.
const SLOW: Duration = Duration::from_secs(30);

/// The build and the lints, which wait and run as tests do.
const NOT_TESTS: usize = 2;

/// How often the progress is printed.
const PROGRESS: Duration = Duration::from_secs(60);

/// Which tests to run, and how often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// How much of the suite.
    pub extent: Extent,
    /// Parts of names; a test with any of them runs. All run if there is none.
    pub filters: Vec<String>,
    /// How often each one runs.
    pub repeat: usize,
}

/// How much of the suite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// What needs no engine, no browser and no root.
    Quick,
    /// Everything but what takes minutes by its nature.
    Usual,
    /// Everything.
    Long,
}

impl Choice {
    fn has(&self, name: &str) -> bool {
        let is_in_extent = match self.extent {
            Extent::Quick => !name.starts_with(REAL) && !name.contains(IN_BROWSER),
            Extent::Usual => !name.contains(LONG),
            Extent::Long => true,
        };
        is_in_extent && (self.filters.is_empty() || self.filters.iter().any(|part| name.contains(part)))
    }
}

/// A new directory for the daemon's log and the output of tests.
pub fn scratch() -> Result<PathBuf> {
    let name = format!("dunnage-test-{}-", std::process::id());
    // A run that was killed may have left one with the same number.
    for number in 1..100 {
        let path = std::env::temp_dir().join(format!("{name}{number}"));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path).context("cannot create a directory for temporary files"),
        }
    }
    bail!("there are a hundred directories `{name}…` for temporary files")
}

/// Builds and runs the tests of this choice. `prepare` makes the machine ready meanwhile and says what is required; then the tests
/// that wait for engines run, while cargo builds the others and `lint` runs.
pub fn run(
    choice: &Choice,
    scratch: &Path,
    prepare: impl FnOnce() -> Result<String> + Send,
    lint: impl Fn() -> Result<Lints> + Sync,
) -> Result<Summary> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is in the workspace")?;
    let (required, first) = std::thread::scope(|scope| {
        let prepared = scope.spawn(prepare);
        let built = match choice.extent {
            Extent::Quick => Ok(Vec::new()),
            Extent::Usual | Extent::Long => build::tests(root, &["--test", "real"]),
        };
        let required = prepared.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (required, built)
    });
    let (required, first) = (required?, first?);
    let began = Instant::now();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut queue = Queue { schedule: Schedule::new(processors), works: Vec::new(), names: Vec::new() };
    queue.add(Work::Build, &rules::CARGO, 0);
    queue.add(Work::Lints, &rules::CARGO, 1);
    queue.add_tests(choice, first);
    let mut summary = Summary::default();
    let mut running: BTreeMap<usize, Running> = BTreeMap::new();
    let mut next_line = PROGRESS;
    let mut processors_time = ProcessorsTime { at: Instant::now(), before: None };
    let (tell, ended) = mpsc::channel();
    std::thread::scope(|scope| -> Result<()> {
        while queue.schedule.left() > 0 {
            while let Some(number) = queue.schedule.next() {
                let (tell, required, lint) = (tell.clone(), &required, &lint);
                let work = queue.works[number].clone();
                running.insert(number, Running { since: Instant::now(), is_named: false });
                scope.spawn(move || {
                    let carry_out = || match &work {
                        Work::Test(test) => {
                            End::Test(process::run(test, root, required, scratch, &number.to_string()))
                        }
                        Work::Lints => End::Lints(lint()),
                        Work::Build => End::Build(build::tests(root, REST)),
                    };
                    // Who waits for it must hear of a panic too.
                    let end = catch_unwind(AssertUnwindSafe(carry_out)).unwrap_or(End::Panicked);
                    // The receiver is gone only after a failure of the suite itself.
                    let _ = tell.send((number, end));
                });
            }
            if let Ok((number, end)) = ended.recv_timeout(Duration::from_secs(1)) {
                queue.schedule.ended(number);
                let took = running.remove(&number).map_or(Duration::ZERO, |one| one.since.elapsed());
                match end {
                    End::Lints(found) => summary.lints = found?,
                    End::Build(tests) => {
                        queue.add_tests(choice, tests?);
                        queue.check(choice)?;
                    }
                    End::Test(outcome) => summary.add(queue.name(number), took, outcome),
                    End::Panicked => bail!("the suite itself panicked, as said above"),
                }
            }
            if let Some(share) = processors_time.idle() {
                queue.schedule.idled(share);
            }
            if began.elapsed() > next_line {
                let (known, seconds) = (queue.works.len() - NOT_TESTS, began.elapsed().as_secs());
                let (done, running) = (summary.count(), running.len());
                println!("{done} of {known} tests done after {seconds} s, {running} running");
                next_line += PROGRESS;
            }
            for (number, one) in running.iter_mut().filter(|(_, one)| one.since.elapsed() > SLOW) {
                if let (Work::Test(test), false) = (&queue.works[*number], one.is_named) {
                    println!("slow: {} has run for {} s", test.name, SLOW.as_secs());
                }
                one.is_named = true;
            }
        }
        Ok(())
    })?;
    summary.took = began.elapsed();
    Ok(summary)
}

/// What the processors did, from one look to the next.
struct ProcessorsTime {
    at: Instant,
    before: Option<[u64; 2]>,
}

impl ProcessorsTime {
    /// The share of the time since the last look in which processors were idle, if that is a second ago.
    fn idle(&mut self) -> Option<f64> {
        if self.before.is_some() && self.at.elapsed() < Duration::from_secs(1) {
            return None;
        }
        let now = idle_and_all(&fs::read_to_string("/proc/stat").ok()?)?;
        self.at = Instant::now();
        let before = self.before.replace(now)?;
        // The kernel may count ticks of waiting for a disk back.
        let [idle, all] = [0, 1].map(|which| now[which].saturating_sub(before[which]));
        (all > 0).then(|| idle as f64 / all as f64)
    }
}

/// The idle ticks, those with a disk at work included, and all of them, of the first line of `/proc/stat`.
fn idle_and_all(stat: &str) -> Option<[u64; 2]> {
    let ticks: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
    Some([ticks.get(3)? + ticks.get(4)?, ticks.iter().sum()])
}

/// What cargo builds while the tests on real engines run.
const REST: &[&str] = &["--lib", "--bin", "xtask", "--test", "quick"];

struct Running {
    since: Instant,
    is_named: bool,
}

/// Everything that is to run, by number.
struct Queue {
    schedule: Schedule<'static>,
    works: Vec<Work>,
    /// Of all tests that were built.
    names: Vec<String>,
}

#[derive(Clone)]
enum Work {
    Build,
    Lints,
    Test(Test),
}

enum End {
    Build(Result<Vec<Test>>),
    Lints(Result<Lints>),
    Test(Outcome),
    Panicked,
}

impl Queue {
    fn add(&mut self, work: Work, rule: &'static Rule, place: usize) {
        self.works.push(work);
        self.schedule.add(rule, place);
    }

    /// Adds those that were chosen.
    fn add_tests(&mut self, choice: &Choice, tests: Vec<Test>) {
        self.names.extend(tests.iter().map(|test| test.name.clone()));
        for test in tests.into_iter().filter(|test| choice.has(&test.name)) {
            let place = rules::of(&test.name, RULES);
            for _ in 0..choice.repeat {
                self.add(Work::Test(test.clone()), &RULES[place], place);
            }
        }
    }

    fn name(&self, number: usize) -> &str {
        match &self.works[number] {
            Work::Test(test) => &test.name,
            Work::Build | Work::Lints => "cargo",
        }
    }

    /// Every rule has a test, every part of a name chooses one, and something is run.
    fn check(&self, choice: &Choice) -> Result<()> {
        let has_test = |place| self.names.iter().any(|name| rules::of(name, RULES) == place);
        let unused = (0..RULES.len()).filter(|place| choice.extent != Extent::Quick && !has_test(*place));
        let unused: Vec<_> = unused.map(|place| RULES[place].beginning).collect();
        ensure!(unused.is_empty(), "rules that no test has in `xtask/src/suite/rules.rs`: {unused:?}");
        for part in &choice.filters {
            let own: Vec<_> = self.names.iter().filter(|name| name.contains(part)).collect();
            let left_out = if choice.extent == Extent::Usual { "`--long`" } else { "the whole suite" };
            ensure!(
                own.is_empty() || own.iter().any(|name| choice.has(name)),
                "only {left_out} has the tests with `{part}` in their names"
            );
            // Without them the others are not built.
            let hint = if choice.extent == Extent::Quick { " among those of `--quick`" } else { "" };
            ensure!(!own.is_empty(), "no test{hint} has `{part}` in its name");
        }
        ensure!(self.works.len() > NOT_TESTS, "no test was chosen");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_ticks_are_those_without_a_process() {
        assert_eq!(idle_and_all("cpu  1 2 3 40 50 6 7 8 9 9\ncpu0 1 2 3"), Some([90, 117]));
        assert_eq!(idle_and_all("cpu  1 2"), None);
    }

    #[test]
    fn a_choice_is_an_extent_and_parts_of_names() {
        let names = ["dunnage::units::a", "real::stack::long::b", "real::floor::c", "quick::in_browser::d"];
        let chosen = |extent, filters: &[&str]| {
            let filters = filters.iter().map(|part| (*part).to_owned()).collect();
            let choice = Choice { extent, filters, repeat: 1 };
            names.into_iter().filter(|name| choice.has(name)).collect::<Vec<_>>()
        };
        assert_eq!(chosen(Extent::Quick, &[]), names[..1]);
        assert_eq!(chosen(Extent::Usual, &[]), [names[0], names[2], names[3]]);
        assert_eq!(chosen(Extent::Long, &["floor", "long::b"]), names[1..3]);
    }
}
