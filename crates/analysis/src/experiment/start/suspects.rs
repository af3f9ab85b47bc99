//! What cannot be true of a launch or of an entry into a container, whatever its interval says.

use crate::units::Unit;
use crate::verdict::{Suspect, View};

/// No container starts in less time than the quickest process. What a command of a person's takes may vary by more.
pub fn shorter_than_a_bare_start(view: &View<'_>) -> Vec<Suspect> {
    let suspect = |cell: usize| {
        let launch = view.cell(cell).asks().empty_launch?;
        let (metric, baseline) = (view.metric_index(cell, launch)?, view.baseline_cell(cell)?);
        let least = |cell: usize| Some(view.cells[cell].metrics[metric].as_ref()?.range.0);
        let (own, bare) = (least(cell)?, least(baseline)?);
        if view.is_bare(cell) || !view.is_bare(baseline) || own >= bare {
            return None;
        }
        let evidence = format!(
            "{} takes {} at least once, and no bare start took less than {}",
            view.named(cell, metric),
            Unit::Seconds.format(own),
            Unit::Seconds.format(bare)
        );
        let mechanism = "the command came back before its container had run, or something else was started";
        Some(Suspect::of("shorter than a bare start", (cell, metric), evidence, mechanism))
    };
    (0..view.cells.len()).filter_map(suspect).collect()
}

/// A part cannot take longer than the whole that holds it.
pub fn longer_than_the_whole(view: &View<'_>) -> Vec<Suspect> {
    const PARTS: [(&str, &str); 3] =
        [("first_instruction", "returned"), ("returned", "gone"), ("teardown", "gone")];
    let suspect = |(cell, (part, whole)): (usize, (&str, &str))| {
        let (part, whole) = (view.metric_index(cell, part)?, view.metric_index(cell, whole)?);
        let both = view.columns.get(cell, part).iter().zip(view.columns.get(cell, whole));
        let mut both = both.filter_map(|(part, whole)| Some(((*part)?, (*whole)?)));
        let (took, all) = both.find(|(part, whole)| part > whole)?;
        let evidence = format!(
            "{} takes {} in a round where {} takes {}",
            view.named(cell, part),
            Unit::Seconds.format(took),
            view.named(cell, whole),
            Unit::Seconds.format(all)
        );
        let mechanism = "a stamp from inside that is not on the clock of the stamps from outside";
        Some(Suspect::of("longer than the whole", (cell, part), evidence, mechanism))
    };
    (0..view.cells.len()).flat_map(|cell| PARTS.map(|parts| (cell, parts))).filter_map(suspect).collect()
}
