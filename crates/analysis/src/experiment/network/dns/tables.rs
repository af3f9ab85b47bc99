//! The table of names: how long each takes, what a resolver of the engine's adds, and who answered.

use super::names::RESOLVER;
use super::{CONTAINER, DEFAULT, NAME, is_user_defined, which};
use crate::launch::names::HELPERS;
use crate::text::{estimated, listed};
use crate::units::Unit;
use crate::verdict::View;
use crate::verdict::price::JUDGED;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item, Screen, notes};

/// The table, if there are names.
pub fn all(view: &View<'_>) -> Vec<ExperimentTable> {
    let mut cells: Vec<usize> = view.originals_of(NAME).collect();
    cells.sort_by_key(|cell| view.cell(*cell).subject);
    if cells.is_empty() {
        return Vec::new();
    }
    let mut columns = ["subject", "network", "names"].map(Column::of_texts).to_vec();
    let values = [("name", Unit::Seconds), ("network adds", Unit::Seconds), ("queries", Unit::Ratio)];
    columns.extend(values.map(|(name, unit)| Column::of_values(name, unit)));
    columns.extend(["resolver", "helpers"].map(Column::of_texts));
    let notes = notes([
        "medians over rounds; `network adds` is the difference from the usual network of the same subject, round by round; \
         all with their 95 % intervals",
        "queries: how many reached dunnage's resolver for each name",
        "resolver: the one that the container asks, as its `/etc/resolv.conf` says; helpers: the engine's programs that used CPU \
         time meanwhile",
    ]);
    vec![ExperimentTable {
        rows: cells.iter().map(|cell| row(view, *cell)).collect(),
        notes,
        screen: Screen::Part { columns: (0..ANSWER).collect(), rows: (0..cells.len()).collect() },
        answers: Answer::all(
            "what does a network add?",
            cells.iter().filter_map(|cell| sentence(view, *cell)),
        ),
        ..ExperimentTable::new(NAME, "names", "names by network".to_owned(), columns)
    }]
}

/// The first columns answer: subject, network, names, and what a name takes and the network adds.
const ANSWER: usize = 5;

fn row(view: &View<'_>, cell: usize) -> Vec<Item> {
    let setting = &view.cell(cell).setting;
    let adds = match view.price(cell) {
        _ if !is_user_defined(setting) => Item::Nothing("the reference".into()),
        _ if which(setting) == CONTAINER => Item::Nothing("not applicable".into()),
        price => Item::interval(price.map(|own| own.price), "no data"),
    };
    vec![
        Item::Text(view.label(cell).to_owned()),
        Item::Text(setting.get("network").unwrap_or(DEFAULT).to_owned()),
        Item::Text(which(setting).to_owned()),
        Item::interval(view.estimate(cell, JUDGED), "no data"),
        adds,
        Item::interval(view.estimate_of(cell, "queries"), "no data"),
        Item::text(view.fact(cell, RESOLVER), "not read"),
        Item::text(view.fact(cell, HELPERS), "not read"),
    ]
}

/// What a network that a user makes adds.
fn sentence(view: &View<'_>, cell: usize) -> Option<String> {
    let setting = &view.cell(cell).setting;
    let has = is_user_defined(setting) && which(setting) != CONTAINER;
    let price = view.price(cell).filter(|_| has)?;
    let resolver = view.fact(cell, RESOLVER).map(|own| format!("through its resolver {own}"));
    let adds = format!("adds {} to a {} name", estimated(Unit::Seconds, &price.price), which(setting));
    let network = Some("a user-defined network".to_owned());
    Some(format!("{}: {}", view.label(cell), listed(network.into_iter().chain([adds]).chain(resolver), " ")))
}
