//! What of an import's origin may be given away: labels and texts may quote what stood in the file.

use super::clean::own;
use super::label::{self, Labels};
use super::words::Words;
use crate::record::environment;

/// Where imported samples come from: the name of the file, and texts that may quote what stood in it.
pub fn clean(origin: environment::Origin, labels: Labels, words: &mut Words) -> environment::Origin {
    let doubt = |one: environment::DoubtFacts, words: &mut Words| environment::DoubtFacts {
        labels: one.labels.iter().map(|one| label::label(one, labels, words)).collect(),
        rule: own(&one.rule, words),
        metric: one.metric.map(|metric| own(&metric, words)),
        evidence: words.told(&one.evidence),
        mechanism: words.told(&one.mechanism),
    };
    environment::Origin {
        format: words.text(&origin.format),
        sha256: own(&origin.sha256, words),
        file: words.text(&origin.file),
        notes: origin.notes.iter().map(|note| words.told(note)).collect(),
        doubts: origin.doubts.into_iter().map(|one| doubt(one, words)).collect(),
        ..origin
    }
}
