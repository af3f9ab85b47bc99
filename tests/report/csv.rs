//! The table of all samples.

use std::borrow::Cow;

use dunnage::launch::names::{CLIENT_CPU, ENGINE_CPU};
use dunnage::outcome::Outcome;
use dunnage::record::{Recorded, RoundContext, Row};
use dunnage::report::csv;

use crate::report::compare;
use crate::report::scripted::{crash, full_ladder, plan, run, sample};

fn lines(run: &Recorded, row: &Row<'_>) -> String {
    let mut text = String::new();
    csv::lines(run, row, &mut text);
    text
}

/// Splits a line according to RFC 4180.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut().unwrap().push(other),
        }
    }
    fields
}

fn row(round: usize, outcome: Outcome) -> Row<'static> {
    let started = 1_763_705_739_123_456_789;
    Row { cell: 4, round, position: 2, predecessor: Some(9), started, outcome: Cow::Owned(outcome) }
}

#[test]
fn every_outcome_has_its_lines() {
    let mut run = run(plan(full_ladder(), 3));
    run.contexts[2] = Some(RoundContext { disturbed: Some("steal 12 %".into()), ..RoundContext::default() });
    run.contexts[3] = None;
    let measured = sample(&run.plan, 4, 1, 1.0);
    let mut without_cpu = measured.clone();
    [CLIENT_CPU, ENGINE_CPU].into_iter().for_each(|name| without_cpu.forget(name));
    without_cpu.lacks(&["client_cpu", "engine_cpu"], "taskstats, needs CAP_NET_ADMIN");
    let rows = [
        row(0, Outcome::Measured(measured.clone())),
        row(1, Outcome::Measured(without_cpu)),
        row(2, Outcome::Failed(crash("he said \"no\",\n\x1b[31mtwice"))),
        row(3, Outcome::Skipped("=HYPERLINK(\"http://example.org\")".into())),
    ];
    let mut text = csv::header(&run);
    for row in &rows {
        text.push_str(&lines(&run, row));
    }
    assert!(
        text.lines().skip(1).all(|line| line.starts_with("r-7,workbench,start,prestate=idle,docker,docker,"))
    );
    compare("samples.csv", &text);
}

#[test]
fn values_read_back_as_the_same_numbers() {
    let run = run(plan(full_ladder(), 3));
    for cell in 0..run.plan.cells.len() {
        let sample = sample(&run.plan, cell, 1, 1.0);
        // A metric that a subject cannot have, such as the time of a request, has no line.
        let metrics = run.plan.metrics(&run.plan.cells[cell]);
        let expected: Vec<f64> = metrics.iter().filter_map(|metric| metric.value(&sample)).collect();
        assert!(expected.len() >= 7 && expected.len() < metrics.len());
        let text = lines(&run, &Row { cell, ..row(1, Outcome::Measured(sample)) });
        let column = csv::COLUMNS.split(',').position(|name| name == "value").unwrap();
        let value = |line: &str| {
            let fields = fields(line);
            assert_eq!(fields.len(), csv::COLUMNS.split(',').count(), "{line}");
            fields[column].parse().expect("a number")
        };
        let values: Vec<f64> = text.lines().map(value).collect();
        assert_eq!(values, expected, "{text}");
    }
}

#[test]
fn cells_that_the_plan_does_not_know_give_nothing() {
    let run = run(plan(full_ladder(), 3));
    assert_eq!(lines(&run, &Row { cell: 9999, ..row(1, Outcome::Skipped("x".into())) }), "");
}
