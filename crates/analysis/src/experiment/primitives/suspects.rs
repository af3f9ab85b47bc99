//! What cannot be a price, at a level that all prices of a run share.

use crate::stats::{Family, Pairs};
use crate::verdict::price::{JUDGED, Price, below_zero};
use crate::verdict::{Suspect, View};

/// Nothing costs less than nothing.
pub fn negative(view: &View<'_>) -> Vec<Suspect> {
    let judged = view.prices.iter().filter(|price| price.metric == JUDGED && below_zero(&price.shared));
    let suspect = |price: &Price| {
        let reference = price.reference?;
        let evidence = format!(
            "{} is {} from {} in the same rounds",
            view.named(price.cell, JUDGED),
            view.metric(price.cell, JUDGED).unit.format_signed(price.price.value),
            view.named(reference, JUDGED)
        );
        let mechanism = "a piece that makes others cheaper, so that the difference is not its own price; or a part \
             of the work that was left out";
        Some(Suspect::of("negative price", (price.cell, JUDGED), evidence, mechanism))
    };
    judged.filter_map(suspect).collect()
}

/// No launch with something more is done sooner than a bare spawn, where the references end.
pub fn shorter_than_a_spawn(view: &View<'_>) -> Vec<Suspect> {
    let references: Vec<_> =
        view.prices.iter().filter(|price| price.metric == JUDGED && price.reference.is_some()).collect();
    let experiment = |cell: usize| view.cell(cell).experiment;
    let before = |cell: usize| references.iter().find(|price| price.cell == cell)?.reference;
    let suspect = |price: &&Price| {
        let spawn = std::iter::successors(before(price.cell), |cell| before(*cell)).last()?;
        // One step from there, it is the price itself that the rule above looks at.
        if price.reference == Some(spawn) {
            return None;
        }
        let pairs =
            Pairs::align(view.columns.get(spawn, JUDGED), view.columns.get(price.cell, JUDGED)).ok()?;
        let like = references.iter().filter(|one| experiment(one.cell) == experiment(price.cell));
        let difference = pairs.difference(Family::of(like.count()).per_comparison());
        let evidence = format!(
            "{} is {} from {}",
            view.named(price.cell, JUDGED),
            view.metric(price.cell, JUDGED).unit.format_signed(difference.value),
            view.named(spawn, JUDGED)
        );
        let mechanism = "the launch came back before its program had run, or pieces of it were left out";
        let is_below = below_zero(&difference);
        is_below.then(|| Suspect::of("shorter than a bare spawn", (price.cell, JUDGED), evidence, mechanism))
    };
    references.iter().copied().filter_map(|price| suspect(&price)).collect()
}
