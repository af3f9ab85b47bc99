//! Two tables: how fast each place is, and whether its bytes reached the device; and the answer in sentences, in which
//! numbers that are no disk's are not ranked.

use super::names::{DEVICE, FILESYSTEM, MOUNT};
use super::{BIND, NAME, TMPFS, place};
use crate::experiment::storage::class::Class;
use crate::experiment::storage::suspects::{class_of, fact};
use crate::names::Fact;
use crate::plan::Relation;
use crate::text::{estimated, listed, percent};
use crate::units::Unit;
use crate::verdict::View;
use crate::verdict::finding::{Finding, Verdict};
use crate::verdict::table::{Answer, Column, ExperimentTable, Item, Screen};

/// The metrics of the first table, with their headings.
const SPEEDS: [(&str, &str); 5] = [
    ("write_gb", "GB written"),
    ("read_gb", "GB read"),
    ("fsync", "fsync"),
    ("random_read", "random read"),
    ("random_write", "random write"),
];

/// The columns of the answer: subject, place, class, and what is written and read first.
const ANSWER: [usize; 6] = [0, 1, 3, 4, 5, 6];

/// Both tables.
pub fn all(view: &View<'_>) -> Vec<ExperimentTable> {
    let plan = view.plan();
    let is_shown = |cell: &usize| plan.entry(*cell).twin_of.is_none();
    let cells: Vec<usize> = view.cells_of(NAME).filter(is_shown).collect();
    if cells.is_empty() {
        return Vec::new();
    }
    vec![speeds(view, &cells), durability(view, &cells)]
}

/// What differs between the settings of a run, in words.
fn written(view: &View<'_>, cell: usize) -> String {
    let setting = &view.cell(cell).setting;
    let more = ["size", "sync", "io"].into_iter().filter_map(|key| setting.get(key));
    listed(more.filter(|value| *value != "plain"), ", ")
}

fn head(view: &View<'_>, cell: usize) -> Vec<Item> {
    let place = place(&view.cell(cell).setting).to_owned();
    [view.label(cell).to_owned(), place, written(view, cell), class_of(view, cell).word().to_owned()]
        .map(Item::Text)
        .to_vec()
}

fn heads() -> impl Iterator<Item = Column> {
    ["subject", "place", "bytes", "class"].into_iter().map(Column::of_texts)
}

fn value(view: &View<'_>, cell: usize, metric: &str) -> Item {
    let found = view.metric_index(cell, metric).and_then(|metric| view.cells[cell].metrics[metric].as_ref());
    found.map_or_else(|| Item::Nothing("no data".into()), |one| Item::Interval(one.median))
}

fn speeds(view: &View<'_>, cells: &[usize]) -> ExperimentTable {
    let row = |&cell: &usize| {
        let mut row = head(view, cell);
        row.extend(SPEEDS.iter().map(|(metric, _)| value(view, cell, metric)));
        row.push(value(view, cell, "read_gb_again"));
        row
    };
    let is_first = |at: &usize| {
        let is_variant = view.plan().entry(cells[*at]).variant_of.is_some();
        !is_variant && written(view, cells[*at]) == written(view, cells[0])
    };
    let first: Vec<usize> = (0..cells.len()).filter(is_first).collect();
    let columns = SPEEDS.iter().map(|(_, heading)| Column::of_values(heading, Unit::Seconds));
    let columns = heads().chain(columns).chain([Column::of_values("GB read again", Unit::Seconds)]).collect();
    ExperimentTable {
        rows: cells.iter().map(row).collect(),
        notes: vec![
            format!(
                "a GB: 10⁹ bytes, reckoned from files of {}; read: from the device",
                written(view, cells[0])
            ),
            "medians with their 95 % intervals; GB read again: from the page cache".to_owned(),
            "only numbers of the class `durable` are a disk's; the next table says why others are not"
                .to_owned(),
        ],
        answers: answers(view, cells),
        screen: Screen::Part { columns: ANSWER.to_vec(), rows: first },
        ..ExperimentTable::new(NAME, "speeds", "time to write and read, by place".to_owned(), columns)
    }
}

fn durability(view: &View<'_>, cells: &[usize]) -> ExperimentTable {
    let row = |&cell: &usize| {
        let mut row = head(view, cell);
        row.extend(["device_share", "append_share", "flushes"].map(|metric| value(view, cell, metric)));
        let told = |name: Fact| {
            fact(view, cell, name)
                .map_or_else(|| Item::Nothing("not found".into()), |fact| Item::Text(fact.to_owned()))
        };
        row.extend([MOUNT, FILESYSTEM, DEVICE].map(told));
        row.push(match class_of(view, cell) {
            Class::Unproven(why) => Item::Text(why),
            other => other
                .fault()
                .map_or_else(|| Item::Nothing(String::new()), |(_, why)| Item::Text(why.to_owned())),
        });
        row
    };
    let shares = ["at the device", "of appends"].map(|name| Column::of_values(name, Unit::Share));
    let texts = ["mount", "filesystem", "device", "why"].map(Column::of_texts);
    let flushes = Column::of_values("flushes", Unit::Ratio);
    let columns = heads().chain(shares).chain([flushes]).chain(texts).collect();
    ExperimentTable {
        rows: cells.iter().map(row).collect(),
        notes: vec![
            "`at the device`: bytes that arrived there until the last sync returned, by its own counters, as a share of the files'; \
             `of appends`: likewise for records of 4 KiB, for each of which a whole block and the journal arrive; `flushes`: of the device's \
             cache, for each synced append"
                .to_owned(),
            "durable: at least 95 % and at most 150 % arrived, and others were quiet before; volatile: the mount makes syncs do nothing; \
             unproven: the counters do not tell"
                .to_owned(),
        ],
        ..ExperimentTable::new(NAME, "durability", "did the bytes reach the disk?".to_owned(), columns)
    }
}

/// What each place adds to the host's own directory, for bytes that are comparable; what is not on the disk; and what
/// does not matter.
fn answers(view: &View<'_>, cells: &[usize]) -> Vec<Answer> {
    let (mut faults, mut all) = (Vec::new(), Vec::new());
    for &cell in cells {
        if let Some((seen, mechanism)) = class_of(view, cell).fault() {
            let instead = instead(view, cell).unwrap_or_default();
            let named = view.plan().named(cell);
            faults.push(format!("{named}: {seen}: {mechanism}; these are not disk speeds{instead}"));
        }
    }
    let is_first = |cell: &&usize| written(view, **cell) == written(view, cells[0]);
    let durable = cells.iter().filter(|cell| class_of(view, **cell) == Class::Durable).count();
    if durable == cells.len() {
        faults.push(
            "yes: in every place bytes had arrived at the device when the last sync returned".to_owned(),
        );
    }
    for metric in ["write_gb", "fsync"] {
        let told = cells.iter().filter(is_first).filter_map(|cell| against_the_host(view, *cell, metric));
        let (same, other): (Vec<_>, Vec<_>) = told.partition(|(_, is_same)| *is_same);
        let names = |all: Vec<(String, bool)>| listed(all.into_iter().map(|(told, _)| told), ", ");
        if !other.is_empty() {
            all.push(format!("`{metric}` compared with the host: {}", names(other)));
        }
        if !same.is_empty() {
            all.push(format!("`{metric}` is the same as on the host in {}", names(same)));
        }
    }
    [
        Answer::all("on the disk?", faults),
        Answer::all("slower than the host?", all),
        Answer::all("is it comparable?", elsewhere(view, cells)),
    ]
    .concat()
}

/// What the same place takes for a variant of its subject that is on the disk.
fn instead(view: &View<'_>, cell: usize) -> Option<String> {
    let (plan, label) = (view.plan(), view.label(cell));
    let is_one = |other: &usize| {
        let is_variant = plan.entry(*other).variant_of.as_deref() == Some(label);
        is_variant
            && view.cell(*other).setting == view.cell(cell).setting
            && class_of(view, *other) == Class::Durable
    };
    let other = view.cells_of(NAME).find(is_one)?;
    let told = |metric: &str, what: &str| {
        let found = view.cells[other].metrics[view.metric_index(other, metric)?].as_ref()?;
        Some(format!("{what} {}", estimated(Unit::Seconds, &found.median)))
    };
    let told = [told("write_gb", "a GB written"), told("fsync", "fsync")];
    Some(format!("; `{}` is on the disk: {}", view.label(other), listed(told.into_iter().flatten(), ", ")))
}

/// The difference of a place from the same place of the baseline, if it is decided, and whether it is none that matters.
fn against_the_host(view: &View<'_>, cell: usize, metric: &str) -> Option<(String, bool)> {
    let metric = view.metric_index(cell, metric)?;
    let of_cell = |one: &&Finding| {
        let relation = &view.plan().comparisons[one.comparison].relation;
        (one.cell, one.metric) == (cell, metric) && *relation == Relation::Baseline
    };
    let finding = view.findings.iter().find(of_cell)?;
    if !matches!(finding.verdict, Verdict::Same | Verdict::More | Verdict::Less) {
        return None;
    }
    let is_comparable = matches!(class_of(view, cell), Class::Durable | Class::Cached | Class::Memory);
    let difference =
        finding.difference.filter(|_| is_comparable && place(&view.cell(cell).setting) != TMPFS)?;
    let named = format!("{} ({})", view.label(cell), place(&view.cell(cell).setting));
    let is_same = finding.verdict == Verdict::Same;
    let base = view.median(finding.against, metric).filter(|value| *value > 0.0)?;
    let told = if is_same {
        named
    } else {
        let sign = if difference.value < 0.0 { "−" } else { "+" };
        let share = percent(difference.value.abs() / base);
        format!("{named} {} {sign}{share} ({})", finding.kind().word(), estimated(Unit::Seconds, &difference))
    };
    Some((told, is_same))
}

/// Where files of a place are on another filesystem than the host's, which no number of a container explains.
fn elsewhere(view: &View<'_>, cells: &[usize]) -> Vec<String> {
    let at = |cell: usize| Some((fact(view, cell, FILESYSTEM)?, fact(view, cell, DEVICE)?));
    let host = cells.iter().find(|cell| view.is_bare(**cell) && place(&view.cell(**cell).setting) == BIND);
    let Some(host) = host.and_then(|cell| at(*cell)) else { return Vec::new() };
    let others = cells.iter().filter(|cell| {
        place(&view.cell(**cell).setting) != TMPFS && at(**cell).is_some_and(|own| own != host)
    });
    let named = others.map(|cell| {
        let (filesystem, device) = at(*cell).unwrap_or_default();
        format!("{} ({}) is on {filesystem} of {device}", view.label(*cell), place(&view.cell(*cell).setting))
    });
    let named = listed(named, ", ");
    let (filesystem, device) = host;
    let told = format!(
        "not on the host's filesystem ({filesystem} of {device}), so not comparable with it: {named}"
    );
    if named.is_empty() { Vec::new() } else { vec![told] }
}
