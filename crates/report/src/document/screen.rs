//! Fits a document to one screen: as many points as there is room for, the most important first.

use std::collections::BTreeSet;

use super::{Document, Item, Look, Style, terminal};
use crate::report::text::wrap;

/// Lines of a screen, minus the one in which a verb says where it wrote something.
const LINES: usize = 39;
/// The least columns of a screen.
const COLUMNS: usize = 80;
/// Points to try; so many never fit.
const TRIED: usize = 60;

/// A document with as many of these points as fit on one screen, those of the lowest rank first, in their original
/// order. `whole` makes it from the points and the number left out. A narrower terminal
/// shows the same in more lines.
pub fn fitted(
    look: &Look,
    points: &[(usize, Item)],
    whole: impl Fn(Vec<Item>, usize) -> Document,
) -> Document {
    let look = Look { style: Style::Plain, width: look.width.max(COLUMNS), ..look.clone() };
    let of = |chosen: &BTreeSet<usize>| {
        let items = chosen.iter().map(|&index| points[index].1.clone()).collect();
        whole(items, points.len() - chosen.len())
    };
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|&index| points[index].0);
    let mut chosen = BTreeSet::new();
    for index in order.into_iter().take(TRIED) {
        chosen.insert(index);
        if terminal::render(&of(&chosen), &look).lines().count() > LINES {
            chosen.remove(&index);
        }
    }
    of(&chosen)
}

/// Points of one line each, cut if they do not fit.
pub fn in_a_line(look: &Look, items: impl IntoIterator<Item = Item>) -> Vec<Item> {
    let items: Vec<Item> = items.into_iter().collect();
    let room =
        |of: fn(&Item) -> &String| items.iter().map(|item| of(item).chars().count()).max().unwrap_or(0);
    let taken = 6 + room(|item| &item.mark) + room(|item| &item.name);
    let room = look.width.saturating_sub(taken).max(20);
    let cut = |text: &str| match &wrap("", text, room)[..] {
        [_, _, ..] => format!("{} …", wrap("", text, room - 2)[0]),
        _ => text.to_owned(),
    };
    items.iter().map(|item| Item { text: cut(&item.text), ..item.clone() }).collect()
}
