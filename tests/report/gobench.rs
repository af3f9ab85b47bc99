//! The samples in the format of Go's benchmarks.

use std::borrow::Cow;
use std::path::PathBuf;
use std::process::Command;

use dunnage::outcome::{Outcome, Sample};
use dunnage::record::{Recorded, Row};
use dunnage::report::gobench::{header, lines};

use crate::compare;
use crate::scripted::{crash, full_ladder, plan, plan_of, run, sample};

fn row(cell: usize, round: usize, outcome: Outcome) -> Row<'static> {
    Row { cell, round, position: 2, predecessor: None, started: 0, outcome: Cow::Owned(outcome) }
}

/// All samples of a run in which everything is `factor` times as slow.
fn whole(run: &Recorded, factor: f64) -> String {
    let mut text = header(run);
    for round in 0..run.plan.rounds {
        for cell in 0..run.plan.cells.len() {
            let sample = sample(&run.plan, cell, round, factor);
            lines(run, &row(cell, run.plan.warmups + round, Outcome::Measured(sample)), &mut text);
        }
    }
    text
}

/// A line of results: name, and values with their units.
type Result<'a> = (&'a str, Vec<(f64, &'a str)>);

/// Keys with their values.
type Configuration<'a> = Vec<(&'a str, &'a str)>;

/// Parses a text by the published grammar (golang.org/design/14313-benchmark-format); `None` if a line
/// violates it.
fn read(text: &str) -> Option<(Configuration<'_>, Vec<Result<'_>>)> {
    let (mut configuration, mut results) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Benchmark") {
            let mut fields = rest.split_whitespace();
            let name = fields.next().filter(|name| !name.starts_with(char::is_lowercase))?;
            let _iterations: u64 = fields.next()?.parse().ok()?;
            let fields: Vec<&str> = fields.collect();
            let values = fields.chunks(2).map(|pair| Some((pair.first()?.parse().ok()?, *pair.get(1)?)));
            results.push((name, values.collect::<Option<Vec<_>>>().filter(|values| !values.is_empty())?));
        } else if let Some((key, value)) = line.split_once(": ").filter(|(key, _)| {
            key.starts_with(char::is_lowercase)
                && !key.contains(|c: char| c.is_whitespace() || c.is_uppercase())
        }) {
            configuration.push((key, value));
        }
    }
    Some((configuration, results))
}

#[test]
fn every_line_follows_the_grammar_and_has_every_number() {
    let run = run(plan(full_ladder()[..3].to_vec(), 3));
    let text = whole(&run, 1.0);
    let (configuration, results) = read(&text).expect("the grammar");
    assert_eq!(configuration[0], ("goos", "linux"));
    assert!(configuration.contains(&("cpu", "AMD EPYC 7763 64-Core Processor")));
    assert_eq!(results.len(), run.plan.cells.len() * run.plan.rounds);
    let first = sample(&run.plan, 0, 0, 1.0);
    let metrics = run.plan.metrics(&run.plan.cells[0]);
    let expected: Vec<f64> = metrics.iter().filter_map(|metric| metric.value(&first)).collect();
    let values: Vec<f64> = results[0].1.iter().map(|(value, _)| *value).collect();
    assert_eq!(values, expected);
    assert_eq!((results[0].0, results[0].1[0].1), ("Start/subject=bare/prestate=idle-2", "sec/op"));
    assert!(results[0].1[1..].iter().all(|(_, unit)| unit.ends_with("-sec/op")));
    compare("gobench.txt", &text);
}

/// Benchstat would call a change of a descriptive metric a gain or a loss.
#[test]
fn a_unit_has_a_direction_where_its_metric_has_one() {
    let text = header(&run(plan_of(vec!["throttle"], full_ladder()[..3].to_vec(), 3)));
    let directed: Vec<&str> = text.lines().filter(|line| line.starts_with("Unit ")).collect();
    let metrics = dunnage::experiment::find("throttle").expect("it is there").metrics;
    let expected = metrics.iter().filter(|one| one.better != dunnage::units::Better::Neither).count();
    assert!(0 < expected && expected < metrics.len() && directed.len() <= expected, "{text}");
    assert!(!text.contains("usage-"), "{text}");
}

#[test]
fn names_hold_and_what_does_not_count_is_left_out() {
    let mut subjects = full_ladder();
    subjects[2].label = "a b/c%d\te-8".into();
    let mut run = run(plan(subjects, 3));
    run.contexts[3] = None;
    let mut text = String::new();
    let measured = || -> Sample { sample(&run.plan, 2, 0, 1.0) };
    lines(&run, &row(2, 1, Outcome::Measured(measured())), &mut text);
    assert!(text.starts_with("BenchmarkStart/subject=a%20b%2Fc%25d%20e-8/prestate=idle-2 1 "), "{text}");
    let mut nothing = String::new();
    lines(&run, &row(2, 0, Outcome::Measured(measured())), &mut nothing);
    lines(&run, &row(2, 3, Outcome::Measured(measured())), &mut nothing);
    lines(&run, &row(9999, 1, Outcome::Measured(measured())), &mut nothing);
    assert_eq!(nothing, "", "warm-ups, rounds that were not completed, unknown cells");
    let mut failed = String::new();
    lines(&run, &row(2, 1, Outcome::Failed(crash("goos: plan9\nBenchmarkX 1 2 sec/op"))), &mut failed);
    assert_eq!(failed.lines().count(), 1);
    assert!(failed.starts_with("--- FAIL: BenchmarkStart/"), "{failed}");
    assert_eq!(
        read(&failed).map(|(configuration, results)| (configuration.len(), results.len())),
        Some((0, 0))
    );
}

/// `benchstat` in the directory of Go's tools, or on the path.
fn benchstat() -> Option<PathBuf> {
    let variable =
        |name: &str, below: &str| std::env::var_os(name).map(|value| PathBuf::from(value).join(below));
    let own = [variable("GOBIN", ""), variable("GOPATH", "bin"), variable("HOME", "go/bin")];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = own.into_iter().flatten().chain(std::env::split_paths(&path));
    places.map(|place| place.join("benchstat")).find(|file| file.is_file())
}

#[test]
fn benchstat_finds_what_is_planted() {
    let Some(benchstat) = benchstat() else {
        // The grammar is tested above.
        return eprintln!("skipped: gobench::benchstat_finds_what_is_planted: benchstat: not installed");
    };
    let run = run(plan(full_ladder()[..3].to_vec(), 20));
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, factor: f64| {
        let path = directory.path().join(name);
        std::fs::write(&path, whole(&run, factor)).expect("it can be written");
        path
    };
    let done = Command::new(benchstat)
        .args(["-filter", ".unit:sec/op"])
        .args([file("old", 1.0), file("new", 1.5)])
        .output()
        .expect("it starts");
    let (table, complaints) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && complaints.is_empty(), "{complaints}");
    let crun =
        table.lines().find(|line| line.starts_with("Start/subject=crun/prestate=primed-2")).expect(&table);
    assert!(crun.contains("+50.00%"), "{table}");
}
