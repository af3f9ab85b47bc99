//! Results that cannot be true of a launch or of an entry into a container.

use crate::units::Unit;
use crate::verdict::{Suspect, View};

/// The quickest of this many bare starts is about the quickest that is possible. Fewer may all be slow because the machine is
/// busy, but hardly twice as slow.
const ENOUGH: usize = 5;

/// No container starts in less time than the quickest process. A user's own command may vary by more.
pub fn shorter_than_a_bare_start(view: &View<'_>) -> Vec<Suspect> {
    let mechanism = "the command returned before its container had run, or something else was started";
    Suspect::each(view, "shorter than a bare start", mechanism, |cell, metric| {
        let is_launch = view.cell(cell).asks().empty_launch == Some(view.metric(cell, metric).name);
        let baseline = view.baseline_cell(cell).filter(|_| is_launch)?;
        let starts = view.columns.get(baseline, metric).iter().flatten().count();
        let least = |cell: usize| Some(view.cells[cell].metrics[metric].as_ref()?.range.0);
        let (own, bare) = (least(cell)?, least(baseline)?);
        let possible = if starts < ENOUGH { bare / 2.0 } else { bare };
        if view.is_bare(cell) || !view.is_bare(baseline) || own >= possible {
            return None;
        }
        let (named, [own, bare]) =
            (view.named(cell, metric), [own, bare].map(|time| Unit::Seconds.format(time)));
        Some(format!("{named} is as low as {own}, but no bare start took less than {bare}"))
    })
}

/// A part cannot take longer than the whole that holds it.
pub fn longer_than_the_whole(view: &View<'_>) -> Vec<Suspect> {
    const PARTS: [(&str, &str); 3] =
        [("first_instruction", "returned"), ("returned", "gone"), ("teardown", "gone")];
    let mechanism = "a stamp from inside is not on the same clock as the stamps from outside";
    Suspect::each(view, "longer than the whole", mechanism, |cell, part| {
        let (_, whole) = PARTS.into_iter().find(|(own, _)| *own == view.metric(cell, part).name)?;
        let whole = view.metric_index(cell, whole)?;
        let both = view.columns.get(cell, part).iter().zip(view.columns.get(cell, whole));
        let mut both = both.filter_map(|(part, whole)| Some(((*part)?, (*whole)?)));
        let (took, all) = both.find(|(part, whole)| part > whole)?;
        let [took, all] = [took, all].map(|time| Unit::Seconds.format(time));
        let [part, whole] = [part, whole].map(|metric| view.named(cell, metric));
        Some(format!("{part} takes {took} in a round where {whole} takes {all}"))
    })
}
