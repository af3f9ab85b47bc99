//! Go's text format of benchmark results, which benchstat reads: one line for each cell and round, with every
//! metric of the sample. Only counted rounds are included. The grammar is that of
//! <https://golang.org/design/14313-benchmark-format>.
//!
//! The first metric of an experiment has only its unit (`sec/op`), the others have their name before it
//! (`gone-sec/op`). Configuration lines are only those that Go writes, and which subjects follow a script: benchstat
//! compares only results with the same configuration.

use std::fmt::Write as _;

use super::text::{capital, clean};
use crate::distinct;
use crate::experiment::Metric;
use crate::outcome::Outcome;
use crate::record::{Recorded, Row};
use crate::subject::kinds::FAKE;
use crate::units::{Better, Unit};

/// The configuration, and the better direction of each unit.
pub fn header(run: &Recorded) -> String {
    let machine = |name: &str| run.environment.machine.get(name).map(|fact| clean(fact)).unwrap_or_default();
    let architecture = match machine("architecture").as_str() {
        "x86_64" => "amd64".to_owned(),
        "aarch64" => "arm64".to_owned(),
        other => other.to_owned(),
    };
    let mut text = String::from("goos: linux\n");
    for (key, value) in [("goarch", architecture), ("pkg", "dunnage".to_owned()), ("cpu", machine("cpu"))] {
        // A key without a value would unset it.
        if !value.is_empty() {
            let _ = writeln!(text, "{key}: {value}");
        }
    }
    // Values that follow a script are never compared with measured ones.
    let scripted =
        run.plan.subjects.iter().filter(|entry| entry.spec.name == FAKE.name && entry.twin_of.is_none());
    let scripted: Vec<_> = scripted.map(|entry| part(&clean(&entry.label))).collect();
    if !scripted.is_empty() {
        let _ = writeln!(text, "scripted: {}", scripted.join(" "));
    }
    let all = run.plan.cells.iter().flat_map(|cell| run.plan.metrics(cell).iter().enumerate());
    for (unit, better) in distinct(all.map(|(index, metric)| (unit(index, metric), metric.better))) {
        let _ = match better {
            Better::Less => writeln!(text, "Unit {unit} better=lower"),
            Better::More => writeln!(text, "Unit {unit} better=higher"),
            Better::Neither => Ok(()),
        };
    }
    text
}

/// Appends the line of one sample of a counted round.
pub fn lines(run: &Recorded, row: &Row<'_>, out: &mut String) {
    let Some(cell) = run.plan.cells.get(row.cell) else { return };
    let is_complete = run.contexts.get(row.round).is_some_and(Option::is_some);
    if row.round < run.plan.warmups || !is_complete {
        return;
    }
    let mut name = format!("Benchmark{}", capital(cell.experiment));
    let label = clean(&run.plan.subjects[cell.subject].label);
    let _ = write!(name, "/subject={}", part(&label));
    for (key, value) in &cell.setting.0 {
        let _ = write!(name, "/{}={}", part(key), part(&clean(value)));
    }
    // Go ends a name with the number of CPUs; otherwise digits at the end of a value would be read as that.
    let cpus = run.environment.machine.get("cpu_usable").and_then(|cpus| cpus.parse::<u32>().ok());
    let _ = write!(name, "-{}", cpus.unwrap_or(1));
    match row.outcome.as_ref() {
        Outcome::Measured(sample) => {
            let metrics = run.plan.metrics(cell).iter().enumerate();
            let values = metrics.filter_map(|(index, metric)| {
                let value = metric.value(sample).filter(|value| value.is_finite())?;
                Some(format!(" {value} {}", unit(index, metric)))
            });
            let values: String = values.collect();
            if !values.is_empty() {
                let _ = writeln!(out, "{name} 1{values}");
            }
        }
        Outcome::Skipped(reason) => {
            let _ = writeln!(out, "--- SKIP: {name}: {}", clean(reason));
        }
        Outcome::Failed(failure) => {
            let _ = writeln!(out, "--- FAIL: {name}: {}: {}", failure.class.name(), clean(&failure.reason));
        }
    }
}

/// The unit of a metric, as Go's tools name it.
fn unit(index: usize, metric: &Metric) -> String {
    let unit = match metric.unit {
        Unit::Seconds => "sec/op",
        Unit::Bytes => "B/op",
        Unit::BytesPerSecond => "B/s",
        Unit::PerSecond => "op/s",
        Unit::Count => "count/op",
        Unit::Ratio | Unit::Share => "ratio",
    };
    if index == 0 { unit.to_owned() } else { format!("{}-{unit}", metric.name) }
}

/// A part of a name, percent-encoded where it would end the name or begin another part.
fn part(text: &str) -> String {
    let kept = |letter: char| !(letter.is_whitespace() || letter.is_control() || matches!(letter, '/' | '%'));
    let part = |letter: char| match kept(letter) {
        true => letter.to_string(),
        false => letter.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect(),
    };
    text.chars().map(part).collect()
}
