//! A run built from measurements that were not taken in rounds: subjects with one cell each, and their samples in the order
//! of the file. Each sample gets its own round, so that no two can be paired.

use std::borrow::Cow;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{Imported, Source, entry, environment};
use crate::experiment::{self, Setting};
use crate::outcome::Outcome;
use crate::plan::{Cell, Entry, Plan, again};
use crate::record::{self, IssueFacts, Order, RoundContext, Row, SubjectFacts};
use crate::report::text::clean;
use crate::subject::Spec;

/// The content of a file.
#[derive(Debug)]
pub struct Foreign {
    /// The name of the format.
    pub format: &'static str,
    /// The experiment for the same question.
    pub experiment: &'static str,
    /// The setting of all measurements.
    pub setting: Setting,
    /// The subjects, in the order of the file.
    pub arms: Vec<Arm>,
    /// When the measurement began, in nanoseconds since 1970, if known.
    pub started: Option<u64>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// Suspects in the file.
    pub issues: Vec<IssueFacts>,
}

/// One subject with its samples.
#[derive(Debug)]
pub struct Arm {
    /// Its label, distinct from all others.
    pub label: String,
    /// The subject.
    pub subject: Spec,
    /// Further facts, by name.
    pub notes: Vec<(&'static str, String)>,
    /// The outcome of each repetition, and when it began, if known.
    pub outcomes: Vec<(Outcome, Option<u64>)>,
}

/// The maximum length of a label in a plan.
const LONGEST_LABEL: usize = 300;
/// More samples in blocks would be more cells times rounds than the analysis allows.
const MOST_SAMPLES: usize = 200_000;

/// Writes the run.
pub fn write(source: &Source<'_>, made: Foreign, directory: &Path) -> Result<Imported> {
    let total: usize = made.arms.iter().map(|arm| arm.outcomes.len()).sum();
    if total == 0 {
        bail!("`{}` contains no measurements", source.path.display());
    }
    if total > MOST_SAMPLES {
        bail!("`{}` contains {total} measurements, too many for one import", source.path.display());
    }
    let experiment = experiment::find(made.experiment).expect("an experiment of this program");
    let entries = made.arms.iter().map(|arm| Entry {
        offers: vec![experiment.needs],
        runtime: None,
        ..entry(&arm.label, arm.subject.clone())
    });
    let cell = |subject| Cell { experiment: experiment.name, setting: made.setting.clone(), subject };
    let plan = again::in_blocks(Plan {
        subjects: entries.collect(),
        cells: (0..made.arms.len()).map(cell).collect(),
        rounds: total,
        ..Plan::default()
    });
    record::plan_file::check(&plan)
        .with_context(|| format!("`{}` contains too much for one run", source.path.display()))?;
    let started = made.started.unwrap_or(source.changed);
    let origin = source.origin(made.format, Order::Blocks, made.notes, made.issues);
    let run: String = source.sha256.chars().take(8).collect();
    let mut environment = environment(source, &run, "", started, &origin);
    for arm in &made.arms {
        let notes = arm.notes.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect();
        environment.subjects.insert(arm.label.clone(), SubjectFacts { components: Vec::new(), notes });
    }
    let mut writer = record::create(directory, &run, &environment, &plan)?;
    let mut failures = 0;
    let arms = made.arms.iter().enumerate();
    let samples = arms.flat_map(|(cell, arm)| arm.outcomes.iter().map(move |outcome| (cell, outcome)));
    for (round, (cell, (outcome, began))) in samples.enumerate() {
        failures += usize::from(!matches!(outcome, Outcome::Measured(_)));
        writer.begin_round(round)?;
        writer.sample(&Row {
            cell,
            round,
            position: 0,
            predecessor: None,
            started: began.unwrap_or(started),
            outcome: Cow::Borrowed(outcome),
        })?;
        writer.end_round(round, &RoundContext::default())?;
    }
    Ok(Imported { origin, samples: total - failures, failures })
}

/// A suspect about the subjects with these labels.
pub fn issue(rule: &str, labels: &[&str], evidence: String, mechanism: &str) -> IssueFacts {
    IssueFacts {
        rule: rule.into(),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        metric: None,
        evidence: clean(&evidence),
        mechanism: mechanism.into(),
    }
}

/// Distinct labels for a table: cleaned, no longer than a plan allows, and numbered if equal.
pub fn distinct<'a>(labels: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for label in labels.map(clean) {
        let label = if label.is_empty() { "(no name)".to_owned() } else { label };
        let short: String = match label.chars().count() > LONGEST_LABEL - 10 {
            true => label.chars().take(LONGEST_LABEL - 11).chain(['…']).collect(),
            false => label,
        };
        let mut own = short.clone();
        let mut number = 2;
        while all.contains(&own) {
            own = format!("{short} ({number})");
            number += 1;
        }
        all.push(own);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_told_apart_and_fit_into_a_plan() {
        let long = "x".repeat(400);
        let labels = distinct(["a", "a", "a (2)", "", &long, &long].into_iter());
        assert_eq!(labels[..4], ["a", "a (2)", "a (2) (2)", "(no name)"]);
        assert!(labels[4..].iter().all(|label| label.chars().count() <= LONGEST_LABEL));
        assert_ne!(labels[4], labels[5]);
    }
}
