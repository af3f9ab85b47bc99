//! Results that cannot be a price, at a level that all prices of the experiment share.

use crate::experiment::Weight;
use crate::stats::{Estimate, Pairs};
use crate::verdict::price::{JUDGED, below_zero};
use crate::verdict::{Suspect, View};

/// Nothing costs less than nothing.
pub fn negative(view: &View<'_>) -> Vec<Suspect> {
    let mechanism = "this piece makes others cheaper, so the difference is not its own price; or part of the work was \
         left out";
    Suspect::each(view, "negative price", mechanism, |cell, metric| {
        // Where some metrics decide, others may be less: CPU time is charged elsewhere, a rate falls.
        let is_context = view.metric(cell, metric).weight != Weight::Verdict;
        if is_another_way(view, cell) || (is_context && view.cell(cell).asks().decides()) {
            return None;
        }
        let price = view.price(cell).filter(|price| price.metric == metric && below_zero(&price.shared))?;
        Some(format!("{} in the same rounds", told(view, cell, &price.price, price.reference?)))
    })
}

/// No launch with additional pieces is shorter than a bare spawn, the last of the references.
pub fn shorter_than_a_spawn(view: &View<'_>) -> Vec<Suspect> {
    let before = |cell: usize| view.price(cell)?.reference;
    let mechanism = "the launch returned before its program had run, or pieces of it were left out";
    Suspect::each(view, "shorter than a bare spawn", mechanism, |cell, metric| {
        let reference = before(cell).filter(|_| metric == JUDGED && !is_another_way(view, cell))?;
        let spawn = std::iter::successors(Some(reference), |cell| before(*cell)).last()?;
        // One step from there, the price itself is checked by the rule above.
        if reference == spawn {
            return None;
        }
        let pairs = Pairs::align(view.columns.get(spawn, JUDGED), view.columns.get(cell, JUDGED))?;
        let like = view.cells_of(view.cell(cell).experiment).filter_map(before);
        let difference = pairs.difference(view.plan().level(like.count()));
        below_zero(&difference).then(|| told(view, cell, &difference, spawn))
    })
}

/// Whether it is a launch with as many pieces as its reference, so that either can be shorter.
fn is_another_way(view: &View<'_>, cell: usize) -> bool {
    view.cell(cell).setting.get("way") == Some("stamps")
}

fn told(view: &View<'_>, cell: usize, difference: &Estimate, from: usize) -> String {
    let [own, other] = [cell, from].map(|cell| view.named(cell, JUDGED));
    format!(
        "{own} is {} compared with {other}",
        view.metric(cell, JUDGED).unit.format_signed(difference.value)
    )
}
