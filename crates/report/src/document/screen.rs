//! Fits a document to one screen: as many points as there is room for, the most important first.

use std::collections::BTreeSet;

use super::{Document, Item, Look, Style, terminal};
use crate::report::text::{width, wrap};

/// Lines of a screen, minus the one in which a verb says where it wrote something.
pub const SCREEN: usize = 29;
/// The same where several runs, or a machine, are in it.
pub const TALL: usize = 39;
/// The least columns of a screen.
const COLUMNS: usize = 80;
/// Columns before the text of a point, without its name.
const INDENT: usize = 6;
/// Points that are tried although they seem to have no room: each is a rendering of the whole.
const TRIES: usize = 3;

/// A document with as many of these points as fit into so many lines, those of the lowest rank first, in their original
/// order. `whole` makes it from the points and the number left out. A narrower terminal
/// shows the same in more lines.
pub fn fitted(
    look: &Look,
    most: usize,
    points: &[(usize, Item)],
    whole: impl Fn(Vec<Item>, usize) -> Document,
) -> Document {
    let of = |chosen: &BTreeSet<usize>| {
        let items = chosen.iter().map(|&index| points[index].1.clone()).collect();
        whole(items, points.len() - chosen.len())
    };
    let lines = |chosen: &BTreeSet<usize>| lines(&of(chosen), look);
    let names = points.iter().map(|(_, item)| width(&item.name)).max().unwrap_or(0);
    let room = look.width.max(COLUMNS).saturating_sub(names + INDENT);
    let needs = |item: &Item| wrap("", &item.text, room).len() + item.details.len();
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|&index| points[index].0);
    let mut chosen = BTreeSet::new();
    let mut left = most.saturating_sub(lines(&chosen));
    for &index in &order {
        if let Some(rest) = left.checked_sub(needs(&points[index].1)) {
            left = rest;
            chosen.insert(index);
        }
    }
    // A list needs a line before it, and its marks some room.
    while lines(&chosen) > most
        && let Some(last) = order.iter().rev().find(|index| chosen.contains(index))
    {
        chosen.remove(last);
    }
    // The estimate may have been too high.
    let left_out: Vec<usize> = order.into_iter().filter(|index| !chosen.contains(index)).collect();
    for index in left_out.into_iter().take(TRIES) {
        chosen.insert(index);
        if lines(&chosen) > most {
            chosen.remove(&index);
        }
    }
    of(&chosen)
}

/// The lines that a document takes on a terminal that is wide enough.
pub fn lines(document: &Document, look: &Look) -> usize {
    let look = Look { style: Style::Plain, width: look.width.max(COLUMNS), ..look.clone() };
    terminal::render(document, &look).lines().count()
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
