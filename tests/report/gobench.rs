//! The samples in the format of Go's benchmarks.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::process::Command;

use dunnage::outcome::{Outcome, Sample};
use dunnage::record::{Recorded, Row};
use dunnage::report::gobench::{header, lines};

use crate::report::compare;
use crate::report::scripted::{crash, full_ladder, plan, plan_of, run, sample};
use crate::support::{Need, benchstat, lacks};

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

/// A text in the format of benchmarks, read.
#[derive(Default)]
struct Text<'a> {
    /// Keys with their values.
    configuration: Vec<(&'a str, &'a str)>,
    /// Units with what is said of them.
    units: Vec<(&'a str, Vec<(&'a str, &'a str)>)>,
    results: Vec<Line<'a>>,
    /// Lines that the format leaves to others: a reader ignores them.
    ignored: Vec<&'a str>,
}

/// A line of results.
struct Line<'a> {
    name: &'a str,
    iterations: u64,
    values: Vec<(f64, &'a str)>,
}

/// Parses a text by the published grammar (golang.org/design/14313-benchmark-format, and benchstat's lines about units);
/// `None` if a line violates it.
fn read(text: &str) -> Option<Text<'_>> {
    let mut read = Text::default();
    for line in text.lines() {
        if line.is_empty() {
        } else if let Some(rest) = line.strip_prefix("Benchmark") {
            let mut fields = rest.split_whitespace();
            let name = fields.next().filter(|name| !name.starts_with(char::is_lowercase))?;
            let iterations = fields.next()?.parse().ok().filter(|count| *count > 0)?;
            let fields: Vec<&str> = fields.collect();
            let values = fields.chunks(2).map(|pair| Some((pair.first()?.parse().ok()?, *pair.get(1)?)));
            let values: Vec<(f64, &str)> = values.collect::<Option<_>>()?;
            let units: BTreeSet<&str> = values.iter().map(|(_, unit)| *unit).collect();
            if values.is_empty() || units.len() < values.len() {
                return None;
            }
            read.results.push(Line { name, iterations, values });
        } else if let Some(rest) = line.strip_prefix("Unit ") {
            let mut fields = rest.split_whitespace();
            let unit = fields.next()?;
            let facts: Vec<_> = fields.map(|field| field.split_once('=')).collect::<Option<_>>()?;
            if facts.is_empty() || read.units.iter().any(|(own, _)| *own == unit) {
                return None;
            }
            read.units.push((unit, facts));
        } else if let Some((key, value)) = line.split_once(": ").filter(|(key, _)| {
            key.starts_with(char::is_lowercase)
                && !key.contains(|c: char| c.is_whitespace() || c.is_uppercase())
        }) {
            read.configuration.push((key, value));
        } else {
            read.ignored.push(line);
        }
    }
    Some(read)
}

#[test]
fn every_line_follows_the_grammar_and_has_every_number() {
    let run = run(plan(full_ladder()[..3].to_vec(), 3));
    let text = whole(&run, 1.0);
    let Text { configuration, units, results, ignored } = read(&text).expect("the grammar");
    assert_eq!(ignored, Vec::<&str>::new());
    assert_eq!(configuration[0], ("goos", "linux"));
    assert!(configuration.contains(&("cpu", "AMD EPYC 7763 64-Core Processor")));
    assert!(units.iter().all(|(_, facts)| facts == &[("better", "lower")]), "{units:?}");
    assert_eq!(results.len(), run.plan.cells.len() * run.plan.rounds);
    let expected =
        (0..run.plan.rounds).flat_map(|round| (0..run.plan.cells.len()).map(move |cell| (round, cell)));
    for ((round, cell), line) in expected.zip(&results) {
        let sample = sample(&run.plan, cell, round, 1.0);
        let metrics = run.plan.metrics(&run.plan.cells[cell]);
        let expected: Vec<f64> = metrics.iter().filter_map(|metric| metric.value(&sample)).collect();
        let values: Vec<f64> = line.values.iter().map(|(value, _)| *value).collect();
        assert_eq!((values, line.iterations), (expected, 1));
        let label = &run.plan.subjects[run.plan.cells[cell].subject].label;
        let own = format!("Start/subject={}/{}-2", label.replace(' ', "%20"), run.plan.cells[cell].setting);
        assert_eq!((line.name, line.values[0].1), (own.as_str(), "sec/op"));
        assert!(line.values[1..].iter().all(|(_, unit)| unit.ends_with("-sec/op")));
    }
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
    // A reader ignores it.
    let found = read(&failed).expect("the grammar");
    assert_eq!((found.configuration.len(), found.units.len(), found.results.len()), (0, 0, 0));
    assert_eq!(found.ignored, [failed.trim_end()]);
}

#[test]
fn benchstat_finds_what_is_planted() {
    // Debian does not package it. The grammar is tested above.
    if lacks("benchstat_finds_what_is_planted", Need::Benchstat) {
        return;
    }
    let run = run(plan(full_ladder()[..3].to_vec(), 20));
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, factor: f64| {
        let path = directory.path().join(name);
        std::fs::write(&path, whole(&run, factor)).expect("it can be written");
        path
    };
    let done = Command::new(benchstat().expect("it was found"))
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
