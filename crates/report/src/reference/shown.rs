//! The words for sources, their numbers, cautions and suspects.

use super::{Caution, Published, Source, Standing, Suspect};
use crate::document::{Block, Cell, Item, Tone};
use crate::report::text::in_brackets;

/// A repetition behind another number.
const SINGLE: &str = "single value";

/// Where to find a source, and how it was measured.
pub fn facts(source: &Source) -> [(&'static str, String); 7] {
    let place = match (&source.url, &source.revision) {
        (Some(url), Some(revision)) => &format!("{url} at {revision}"),
        (Some(url), None) => url,
        (None, _) => "not public",
    };
    [
        ("where", place),
        ("licence", &source.licence),
        ("language", &source.language),
        ("machine", &source.hardware),
        ("kernel", &source.kernel),
        ("engines", &source.engines),
        ("method", &source.method),
    ]
    .map(|(name, text)| (name, text.to_owned()))
}

/// The cautions and suspects.
pub fn remarks<'a>(
    cautions: impl IntoIterator<Item = &'a Caution>,
    suspects: impl IntoIterator<Item = &'a Suspect>,
) -> Block {
    let caution = |one: &Caution| {
        let mark = if one.standing == Standing::Guess { "Caution, a guess" } else { "Caution" };
        let about = if one.about.is_empty() { String::new() } else { format!("{}: ", one.about.join(", ")) };
        Item::of(format!("{about}{}", one.text)).marked(Tone::Open, mark)
    };
    let suspect = |one: &Suspect| {
        Item::of(format!("{}: {}", one.experiment, one.evidence))
            .marked(Tone::Alarm, format!("Suspect, {}", one.rule))
            .detail(format!("Probably: {}", one.mechanism))
    };
    Block::List(cautions.into_iter().map(caution).chain(suspects.into_iter().map(suspect)).collect())
}

/// The published numbers of one quantity, one line each, followed by the repetitions.
pub fn numbers(all: &[Published]) -> Cell {
    let (single, told): (Vec<&Published>, Vec<&Published>) =
        all.iter().partition(|one| one.statistic == SINGLE && one.note.is_empty());
    let values: Vec<_> = single.iter().map(|one| one.printed.as_str()).collect();
    let detail = match values[..] {
        [] => String::new(),
        [only] => format!("{SINGLE}: {only}"),
        _ => format!("{} {SINGLE}s: {}", values.len(), values.join(", ")),
    };
    let line = |one: &Published| {
        let of = one.repetitions.map(|count| format!(" of {count}")).unwrap_or_default();
        format!("{} {}{of}{}", one.statistic, one.printed, in_brackets(&one.note))
    };
    Cell { detail, ..Cell::lines(told.into_iter().map(line)) }
}
