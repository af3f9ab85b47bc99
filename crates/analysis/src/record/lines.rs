//! What a line of the samples says became of its cell. Names that experiments use are borrowed, so that a million
//! lines make no million copies of them.

use std::borrow::Cow;

use super::wire::SampleLine;
use crate::outcome::{Artefact, Distribution, Failure, FailureClass, Outcome, Sample};
use crate::units::{Nanos, Stamp};

/// What a line says became of its cell; a line must say exactly one thing.
pub fn outcome(line: SampleLine<'_>) -> Option<Outcome> {
    match (line.stamps, line.skipped, line.failed) {
        (Some(stamps), None, None) => Some(Outcome::Measured(Sample {
            stamps: stamps.0.into_iter().map(|(name, at)| (known(name), Stamp(at))).collect(),
            counters: line
                .counters
                .unwrap_or_default()
                .0
                .into_iter()
                .map(|(name, value)| (known(name), value))
                .collect(),
            series: line
                .series
                .unwrap_or_default()
                .0
                .into_iter()
                .map(|(name, values)| (known(name), values))
                .collect(),
            distributions: line
                .distributions
                .unwrap_or_default()
                .0
                .into_iter()
                .map(|(name, text)| Some((known(name), Distribution::from_text(&text)?)))
                .collect::<Option<_>>()?,
            artefacts: line
                .artefacts
                .unwrap_or_default()
                .0
                .into_iter()
                .map(|(name, path)| Artefact::is_path(&path).then(|| (known(name), Artefact::File(path))))
                .collect::<Option<_>>()?,
            given: line
                .given
                .unwrap_or_default()
                .0
                .into_iter()
                .map(|(name, value)| (known(name), value))
                .collect(),
            missing: line
                .missing
                .unwrap_or_default()
                .0
                .into_iter()
                .map(|(name, why)| (known(name), why))
                .collect(),
            treatment: Vec::new(),
        })),
        (None, Some(reason), None) => Some(Outcome::Skipped(reason)),
        (None, None, Some(failed)) => Some(Outcome::Failed(Failure {
            class: FailureClass::from_name(&failed.class)?,
            reason: failed.reason,
            words: failed.words,
            took: Nanos(failed.took),
        })),
        _ => None,
    }
}

/// Names that experiments use are not copied for every sample.
fn known(name: Cow<'_, str>) -> Cow<'static, str> {
    const NAMES: [&str; 19] = [
        "spawn",
        "first",
        "main",
        "ready",
        "returned",
        "gone",
        "look",
        "client_cpu",
        "engine_cpu",
        "processes",
        "created",
        "attached",
        "started",
        "waited",
        "removed",
        "began",
        "made",
        "undo",
        "undone",
    ];
    match NAMES.into_iter().find(|known| *known == name) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(name.into_owned()),
    }
}
