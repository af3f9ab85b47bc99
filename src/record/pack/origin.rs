//! What of an import's origin may be given away: labels and texts may quote what stood in the file.

use super::words::Words;
use crate::record::environment;

/// Where imported samples come from: the name of the file, and texts that may quote what stood in it.
pub fn clean(origin: environment::Origin, words: &mut Words) -> environment::Origin {
    let doubt = |one: environment::DoubtFacts, words: &mut Words| environment::DoubtFacts {
        labels: one.labels.iter().map(|own| super::clean::label(own, words)).collect(),
        evidence: words.text(&one.evidence),
        ..one
    };
    environment::Origin {
        file: words.text(&origin.file),
        notes: origin.notes.iter().map(|note| words.text(note)).collect(),
        doubts: origin.doubts.into_iter().map(|one| doubt(one, words)).collect(),
        ..origin
    }
}
