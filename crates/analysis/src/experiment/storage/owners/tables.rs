//! One table: the first container on an image and later ones, and how the files came to their owners; and what the
//! first one adds in sentences, where that is decided.

use super::{MARGIN, NAME, files, names};
use crate::stats::{Decision, Estimate, decide};
use crate::text::estimated;
use crate::units::Unit;
use crate::verdict::View;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item, Screen};

/// The metrics of the table, with their headings and units.
const VALUES: [(&str, &str, Unit); 5] = [
    ("first", "first container", Unit::Seconds),
    ("later", "later ones", Unit::Seconds),
    ("added", "added by the first", Unit::Seconds),
    ("image", "image loaded", Unit::Seconds),
    ("made_files", "files made", Unit::Count),
];

/// The table.
pub fn all(view: &View<'_>) -> Vec<ExperimentTable> {
    let is_shown = |cell: &usize| view.plan().entry(*cell).twin_of.is_none();
    let cells: Vec<usize> = view.cells_of(NAME).filter(is_shown).collect();
    if cells.is_empty() {
        return Vec::new();
    }
    let heads = ["subject", "files"].into_iter().map(Column::of_texts);
    let values = VALUES.iter().map(|(_, heading, unit)| Column::of_values(heading, *unit));
    let columns = heads.chain(values).chain([Column::of_texts("owners")]).collect();
    let told: Vec<String> = cells.iter().filter_map(|cell| told(view, *cell)).collect();
    vec![ExperimentTable {
        rows: cells.iter().map(|cell| row(view, *cell)).collect(),
        notes: vec![
            "medians with their 95 % intervals; an image is new in every sample, and its three containers run one after the other"
                .to_owned(),
            "owners: `none`: root inside is root outside; `unpacked`: the image's files were given to their users as it was loaded; \
             `chowned`: the engine made a layer in which they belong to them; `idmapped`: the files stay as they are, and their \
             owners are mapped when they are read"
                .to_owned(),
        ],
                answers: Answer::all("what does the first cost?", told),
        screen: Screen::All,
        ..ExperimentTable::new(NAME, "owners", "the first container on an image, and later ones".to_owned(), columns)
    }]
}

fn estimate(view: &View<'_>, cell: usize, metric: &str) -> Option<Estimate> {
    view.cells[cell].metrics[view.metric_index(cell, metric)?].as_ref().map(|one| one.median)
}

/// The last fact about the owners that was recorded for a cell.
fn owners<'a>(view: &View<'a>, cell: usize) -> Option<&'a str> {
    view.run.facts(cell, names::OWNERS).flatten().next_back()
}

fn row(view: &View<'_>, cell: usize) -> Vec<Item> {
    let nothing = |why: &str| Item::Nothing(why.to_owned());
    let value =
        |metric: &str| estimate(view, cell, metric).map_or_else(|| nothing("no data"), Item::Interval);
    let mut row = vec![
        Item::Text(view.label(cell).to_owned()),
        Item::Text(files(&view.cell(cell).setting).to_string()),
    ];
    row.extend(VALUES.iter().map(|(metric, ..)| value(metric)));
    row.push(owners(view, cell).map_or_else(|| nothing("not found"), |word| Item::Text(word.to_owned())));
    row
}

/// What the first container adds.
fn told(view: &View<'_>, cell: usize) -> Option<String> {
    let (added, later) = (estimate(view, cell, "added")?, estimate(view, cell, "later")?);
    let how = match owners(view, cell) {
        Some("chowned") => {
            ": every file is given to its new owner, in a layer that the engine makes once for an image"
        }
        Some("idmapped") => ": the files stay as they are, and their owners are mapped when they are read",
        Some("unpacked") => ": the files were given to their users as the image was loaded",
        _ => "",
    };
    let (name, count) = (view.label(cell), files(&view.cell(cell).setting));
    let decision = decide(&added, MARGIN.at(later.value));
    if owners(view, cell) == Some("none") && decision != Decision::More {
        return Some(format!("{name}: nothing: root inside is root outside, so no file changes its owner"));
    }
    match decision {
        Decision::More => Some(format!(
            "{name}: the first container on an image of {count} files takes {} longer than later ones{how}",
            estimated(Unit::Seconds, &added)
        )),
        Decision::Same => Some(format!(
            "{name}: the first container on an image of {count} files takes as long as later ones{how}"
        )),
        Decision::Undecided { .. } => added.interval.map(|ends| {
            let most = Unit::Seconds.format(ends.high.max(0.0));
            format!(
                "{name}: not decided: at most {most} longer for the first container on an image of {count} \
                 files{how}"
            )
        }),
        Decision::Less | Decision::TooFew { .. } => None,
    }
}
