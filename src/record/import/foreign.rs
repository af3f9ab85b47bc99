//! A run in the making from measurements of others that were not taken in rounds: subjects, one cell each, and their
//! samples in the order of the file. Each sample stands in a round of its own, so that nothing can pair two of them.

use std::borrow::Cow;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{Imported, Source, environment};
use crate::experiment::{self, Setting};
use crate::outcome::Outcome;
use crate::plan::again::{self, Measured, Pairing};
use crate::plan::{Cell, Entry, Ladder};
use crate::record::{self, DoubtFacts, Order, Origin, RoundContext, Row, SubjectFacts};
use crate::report::text::clean;
use crate::subject::{Layer, Spec};
use crate::units::Nanos;

/// What a file was found to hold.
#[derive(Debug)]
pub struct Foreign {
    /// Whose format it is.
    pub format: &'static str,
    /// The experiment that asks the same question.
    pub experiment: &'static str,
    /// The setting of all of it.
    pub setting: Setting,
    /// What was measured, in the order of the file.
    pub arms: Vec<Arm>,
    /// When measuring began, in nanoseconds since 1970, where the file says so.
    pub started: Option<u64>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// What is suspect in the file.
    pub doubts: Vec<DoubtFacts>,
}

/// One subject with its samples.
#[derive(Debug)]
pub struct Arm {
    /// Its label, as distinct as the file makes it.
    pub label: String,
    /// What it is, in the grammar of subjects.
    pub subject: &'static str,
    /// Its layer.
    pub layer: Layer,
    /// More about it, by name.
    pub notes: Vec<(&'static str, String)>,
    /// What became of each repetition, and when it began, where the file says so.
    pub outcomes: Vec<(Outcome, Option<u64>)>,
}

/// As long as labels in plans may be.
const LONGEST_LABEL: usize = 300;
/// More samples than this in blocks would be more cells times rounds than can be analysed.
const MOST_SAMPLES: usize = 200_000;

/// Writes the run.
pub fn write(source: &Source<'_>, made: Foreign, directory: &Path) -> Result<Imported> {
    let total: usize = made.arms.iter().map(|arm| arm.outcomes.len()).sum();
    if total == 0 {
        bail!("`{}` holds no measurement", source.path.display());
    }
    if total > MOST_SAMPLES {
        bail!("`{}` holds {total} measurements, more than can be imported at once", source.path.display());
    }
    let experiment = experiment::find(made.experiment).expect("an experiment of this program");
    let labels = distinct(made.arms.iter().map(|arm| clean(&arm.label)));
    let entries = made.arms.iter().zip(&labels).map(|(arm, label)| Entry {
        label: label.clone(),
        spec: Spec::parse(arm.subject).expect("a subject in the grammar"),
        layer: arm.layer,
        ladder: Ladder::AsInstalled,
        twin_of: None,
        runtime: None,
        launch: Nanos(0),
        offers: vec![experiment.about().needs],
        only_in: Vec::new(),
        variant_of: None,
    });
    let cell = |subject| Cell { experiment: experiment.about().name, setting: made.setting.clone(), subject };
    let plan = again::of(Measured {
        subjects: entries.collect(),
        cells: (0..made.arms.len()).map(cell).collect(),
        rounds: total,
        warmups: 0,
        quotas: Vec::new(),
        pairing: Pairing::None,
    });
    record::plan_file::check(&plan)
        .with_context(|| format!("`{}` holds more than one run can", source.path.display()))?;
    let started = made.started.unwrap_or(source.changed);
    let named = |facts: &DoubtFacts| DoubtFacts {
        labels: facts
            .labels
            .iter()
            .filter_map(|arm| Some(labels.get(arm.parse::<usize>().ok()?)?.clone()))
            .collect(),
        ..facts.clone()
    };
    let origin = Origin {
        format: made.format.to_owned(),
        file: source.name.clone(),
        sha256: source.sha256.clone(),
        order: Order::Blocks,
        notes: made.notes.clone(),
        doubts: made.doubts.iter().map(named).collect(),
    };
    let run: String = source.sha256.chars().take(8).collect();
    let mut environment = environment(source, &run, "unknown", started, origin);
    for (arm, label) in made.arms.iter().zip(&labels) {
        let notes = arm.notes.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect();
        environment.subjects.insert(label.clone(), SubjectFacts { components: Vec::new(), notes });
    }
    let mut writer = record::create(directory, &run, &environment, &plan)?;
    let mut round = 0;
    let mut failures = 0;
    for (cell, arm) in made.arms.iter().enumerate() {
        for (outcome, began) in &arm.outcomes {
            failures += usize::from(!matches!(outcome, Outcome::Measured(_)));
            writer.begin_round(round)?;
            writer.imported(&Row {
                cell,
                round,
                position: 0,
                predecessor: None,
                started: began.unwrap_or(started),
                outcome: Cow::Borrowed(outcome),
            })?;
            writer.end_round(round, &RoundContext::default())?;
            round += 1;
        }
    }
    let doubts = made.doubts.iter().map(|one| (one.rule.clone(), clean(&one.evidence)));
    Ok(Imported {
        format: made.format,
        samples: total - failures,
        failures,
        doubts: doubts.collect(),
        notes: made.notes,
    })
}

/// Labels that a table can tell apart: no longer than a plan takes them, and numbered where two are alike.
fn distinct(labels: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for label in labels {
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
        let labels = distinct(["a", "a", "a (2)", "", &long, &long].into_iter().map(str::to_owned));
        assert_eq!(labels[..4], ["a", "a (2)", "a (2) (2)", "(no name)"]);
        assert!(labels[4..].iter().all(|label| label.chars().count() <= LONGEST_LABEL));
        assert_ne!(labels[4], labels[5]);
    }
}
