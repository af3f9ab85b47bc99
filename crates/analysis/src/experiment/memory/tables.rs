//! Two tables: what one more container costs and who pays it, and where that is; and in sentences what the figures of subjects
//! differ by, and what is missing from the balance.

use super::names::{ENDED, FORMULA, GROWN};
use super::{NAME, most};
use crate::launch::names::HELPERS;
use crate::stats::{Decision, Estimate, decide};
use crate::subject::instruments::Formula;
use crate::text::estimated;
use crate::units::Unit;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item, Screen};
use crate::verdict::{Finding, Verdict, View};

/// The metrics of the tables, with their headings and units.
type Shown = (&'static str, &'static str, Unit);

const PAYERS: [Shown; 8] = [
    ("sum", "one more", Unit::Bytes),
    ("container", "container", Unit::Bytes),
    ("helpers", "helpers", Unit::Bytes),
    ("caller", "caller", Unit::Bytes),
    ("uncharged", "uncharged", Unit::Bytes),
    ("unexplained", "unexplained", Unit::Bytes),
    ("first", "first", Unit::Bytes),
    ("fixed", "without any", Unit::Bytes),
];
const PLACES: [Shown; 12] = [
    ("anon", "anon", Unit::Bytes),
    ("kernel", "kernel", Unit::Bytes),
    ("file", "file", Unit::Bytes),
    ("reclaimable", "reclaimable", Unit::Bytes),
    ("charged", "memory.current", Unit::Bytes),
    ("helper_count", "helpers", Unit::Count),
    ("helpers", "PSS", Unit::Bytes),
    ("helpers_rss", "RSS", Unit::Bytes),
    ("grown", "grown", Unit::Bytes),
    ("left", "left behind", Unit::Bytes),
    ("dying", "dying cgroups", Unit::Count),
    ("free", "`free` says", Unit::Bytes),
];

const OF_KERNEL: [Shown; 5] = [
    ("kernel", "kernel", Unit::Bytes),
    ("stacks", "stacks", Unit::Bytes),
    ("page_tables", "page tables", Unit::Bytes),
    ("per_cpu", "each CPU's own", Unit::Bytes),
    ("slab", "slabs", Unit::Bytes),
];

const TOOLS: [Shown; 4] = [
    ("tool", "its tool says", Unit::Bytes),
    ("weighed", "weight", Unit::Bytes),
    ("unused", "unused", Unit::Bytes),
    ("left_out", "left out", Unit::Bytes),
];

/// Four pages, and a share.
const PAGES: f64 = 16_384.0;
const ROUNDED: f64 = 0.01;

/// As many containers as it takes to see the price of a runtime.
const ENOUGH: usize = 10;

/// A share of what a container costs below which nothing is missing from the balance.
const CLOSED: f64 = 0.05;

/// The first columns answer: what one more costs, and who pays.
const ANSWER: usize = 7;

/// The tables.
pub fn all(view: &View<'_>) -> Vec<ExperimentTable> {
    let is_shown = |cell: &usize| view.plan().entry(*cell).twin_of.is_none();
    let cells: Vec<usize> = view.cells_of(NAME).filter(is_shown).collect();
    // A ramp that ended at its first container has nothing to show but why.
    let is_empty = |cell: &usize| estimate(view, *cell, "container").is_none() && cut(view, *cell).is_none();
    if cells.iter().all(is_empty) {
        return Vec::new();
    }
    let missing = cells
        .iter()
        .flat_map(|cell| [cut(view, *cell), open(view, *cell), disturbed(view, *cell)])
        .flatten()
        .collect::<Vec<_>>();
    let differences: Vec<String> = differences(view);
    let few = cells.iter().any(|cell| most(&view.cell(*cell).setting) < ENOUGH).then(|| {
        format!(
            "with fewer than {ENOUGH} containers, room that there is in the kernel's slabs (uncharged, below zero) is as large as the price \
             of a runtime's container"
        )
    });
    let with_tool: Vec<usize> =
        cells.iter().copied().filter(|cell| estimate(view, *cell, "tool").is_some()).collect();
    let of_tools = ExperimentTable {
        rows: with_tool.iter().map(|cell| said(view, *cell)).collect(),
        notes: vec![
            "of one container: what the tool says is its weight and what is charged and unused, less what the formula leaves out".to_owned(),
        ],
        answers: Answer::all("are the tools right?", tools(view, &with_tool).unwrap_or_default()),
        ..table("tools", "what the engine's own tool says of a container, and why", &TOOLS, Some("formula"))
    };
    let all = vec![
        ExperimentTable {
            rows: cells.iter().map(|cell| row(view, *cell, &PAYERS)).collect(),
            notes: vec![
                                                "who pays for each container after the first: its own cgroup, its engine's helpers, the caller (what clients left), or no \
                 cgroup (kernel memory)"
                    .to_owned(),


                "unexplained: the machine's own change less all that is known; first: what the first container adds more; without any: \
                 the engine's daemons before the first one"
                    .to_owned(),
            ]
            .into_iter()
            .chain(few)
            .collect(),
                        answers: [
                Answer::all("what does one cost?", cells.iter().filter_map(|cell| price(view, *cell))),
                Answer::decided("who needs more?", differences),
                Answer::decided("what disturbs it?", missing),
            ]
            .concat(),
                        screen: Screen::Part { columns: (0..ANSWER).collect(), rows: (0..cells.len()).collect() },
            ..table("payers", "what one more container costs in memory, and who pays", &PAYERS, None)
        },
        ExperimentTable {
            rows: cells.iter().map(|cell| placed(view, *cell)).collect(),
            notes: vec![
                "anon, kernel, file: of the container's own cgroup, from `memory.stat`; reclaimable: what the kernel can take back without writing, \
                 which cgroup v1 does not tell; memory.current: the same as the kernel charges it, \
                 with pages that are not in use"
                    .to_owned(),
                "PSS divides a page among the helpers that map it, RSS counts it once for each; grown, left behind, dying: what is still \
                 there once all containers are gone, for each one; `free` says: what it shows as used more, by the kernel's estimate of what it \
                 could give to programs"
                    .to_owned(),
            ],
            ..table("places", "where the memory of one more container is", &PLACES, Some("which helpers"))
        },
    ];
    let is_split = |cell: &&usize| estimate(view, **cell, "slab").is_some();
    let of_kernel = ExperimentTable {
        rows: cells.iter().filter(is_split).map(|cell| row(view, *cell, &OF_KERNEL)).collect(),
        ..table("kernel", "the kernel memory of one more container's cgroup", &OF_KERNEL, None)
    };
    all.into_iter()
        .chain(cells.iter().any(|cell| is_split(&cell)).then_some(of_kernel))
        .chain((!with_tool.is_empty()).then_some(of_tools))
        .collect()
}

fn table(name: &'static str, title: &str, shown: &[Shown], last: Option<&str>) -> ExperimentTable {
    let values = shown.iter().map(|(_, heading, unit)| Column::of_values(heading, *unit));
    let columns = [Column::of_texts("subject")].into_iter().chain(values).chain(last.map(Column::of_texts));
    ExperimentTable::new(NAME, name, title.to_owned(), columns.collect())
}

fn estimate(view: &View<'_>, cell: usize, metric: &str) -> Option<Estimate> {
    view.cells[cell].metrics[view.metric_index(cell, metric)?].as_ref().map(|one| one.median)
}

fn row(view: &View<'_>, cell: usize, shown: &[Shown]) -> Vec<Item> {
    let value = |(metric, ..): &Shown| match estimate(view, cell, metric) {
        Some(found) if *metric == "sum" => Item::Interval(found),
        found => Item::value(found.map(|one| one.value), "not known"),
    };
    [Item::Text(view.label(cell).to_owned())].into_iter().chain(shown.iter().map(value)).collect()
}

/// The last fact with this name that was recorded for a cell.
fn fact<'a>(view: &View<'a>, cell: usize, name: crate::names::Fact) -> Option<&'a str> {
    view.run.facts(cell, name).flatten().next_back()
}

fn placed(view: &View<'_>, cell: usize) -> Vec<Item> {
    let mut row = row(view, cell, &PLACES);
    let helpers = fact(view, cell, HELPERS);
    row.push(helpers.map_or_else(|| Item::Nothing("not known".to_owned()), |all| Item::Text(all.to_owned())));
    row
}

fn formula(view: &View<'_>, cell: usize) -> Option<&'static str> {
    Some(fact(view, cell, FORMULA)?.parse::<Formula>().ok()?.words())
}

/// Whether a tool's figure is not what its formula gives: pages come and go between two readings, and tools print few digits.
fn is_off(view: &View<'_>, cell: usize) -> bool {
    let value = |metric| estimate(view, cell, metric).map(|one| one.value);
    value("off_formula")
        .zip(value("tool"))
        .is_some_and(|(off, tool)| off.abs() > PAGES.max(tool.abs() * ROUNDED))
}

fn said(view: &View<'_>, cell: usize) -> Vec<Item> {
    let mut row = row(view, cell, &TOOLS);
    row.push(match (formula(view, cell), is_off(view, cell)) {
        (None, _) => Item::Nothing("not known of this version".to_owned()),
        (Some(words), false) => Item::Text(words.to_owned()),
        (Some(words), true) => Item::Text(format!("not that of its version ({words})")),
    });
    row
}

/// What the tools of the two subjects say that are farthest apart, what a container costs in each, and where the difference is.
fn tools(view: &View<'_>, cells: &[usize]) -> Option<Vec<String>> {
    let of = |cell: usize, metric: &str| Some(estimate(view, cell, metric)?.value);
    let by_tool = |cell: &&usize| of(**cell, "tool").unwrap_or(0.0);
    let most = *cells.iter().max_by(|one, other| by_tool(one).total_cmp(&by_tool(other)))?;
    let least = *cells.iter().min_by(|one, other| by_tool(one).total_cmp(&by_tool(other)))?;
    let ratio = |metric: &str| Some(of(most, metric)? / of(least, metric)?);
    let words = |cell| formula(view, cell).unwrap_or("by a formula that is not known of this version");
    let has_rounds = |cell| estimate(view, cell, "tool").is_some_and(|one| one.interval.is_some());
    (most != least && has_rounds(most) && has_rounds(least)).then_some(())?;
    let apart = |metric: &str| Some(of(most, metric)? - of(least, metric)?);
    let bytes = |value: f64| Unit::Bytes.format(value);
    // What a tool says is the weight and what is charged and unused, less what its formula leaves out.
    let parts = format!(
        "of the {} between them, {} are in the containers themselves, {} are charged and not in use, and {} come from what the formulas leave out",
        bytes(apart("tool")?),
        bytes(apart("weighed")?),
        bytes(apart("unused")?),
        bytes(-apart("left_out")?),
    );
    let ratios = format!(
        "of one container {}'s own tool says {} ({}) and {}'s {} ({}): {:.1} times as much; the containers weigh {:.1} times as much, \
         and one more costs {:.1} times as much",
        view.label(most),
        Unit::Bytes.format(of(most, "tool")?),
        words(most),
        view.label(least),
        Unit::Bytes.format(of(least, "tool")?),
        words(least),
        ratio("tool")?,
        ratio("weighed")?,
        ratio("sum")?,
    );
    Some(vec![ratios, parts])
}

/// What one more container costs, and how much of it is its helpers'.
fn price(view: &View<'_>, cell: usize) -> Option<String> {
    let (sum, helpers) = (estimate(view, cell, "sum")?, estimate(view, cell, "helpers")?);
    let of_helpers = if helpers.value > 0.0 {
        format!(", of which {} in helpers", Unit::Bytes.format(helpers.value))
    } else {
        String::new()
    };
    Some(format!("{}: {}{of_helpers}", view.label(cell), estimated(Unit::Bytes, &sum)))
}

/// Why there were fewer containers than were asked for.
fn cut(view: &View<'_>, cell: usize) -> Option<String> {
    fact(view, cell, ENDED).map(|why| format!("{}: {why}", view.label(cell)))
}

/// What is missing from the balance of a subject, where it is certain that something is.
fn open(view: &View<'_>, cell: usize) -> Option<String> {
    let (rest, sum) = (estimate(view, cell, "unexplained")?, estimate(view, cell, "sum")?);
    let is_decided = matches!(decide(&rest, sum.value.abs() * CLOSED), Decision::More | Decision::Less);
    // One round has no interval.
    let is_large = rest.interval.is_none() && rest.value.abs() > sum.value.abs() / 2.0;
    (is_decided || is_large).then(|| {
        format!(
            "{}: something is missing: the machine's memory changes by {} for each container that no payer accounts for",
            view.label(cell),
            estimated(Unit::Bytes, &rest)
        )
    })
}

/// Which other processes grew or shrank meanwhile, where that matters.
fn disturbed(view: &View<'_>, cell: usize) -> Option<String> {
    let (others, sum) = (estimate(view, cell, "others")?, estimate(view, cell, "sum")?);
    let names = view
        .run
        .facts(cell, GROWN)
        .flatten()
        .next_back()
        .map(|all| format!(" (first: {all})"))
        .unwrap_or_default();
    (others.value.abs() > sum.value.abs() * CLOSED).then(|| {
        format!(
            "{}: other processes changed by {} for each container meanwhile, which is no part of its price{names}",
            view.label(cell),
            estimated(Unit::Bytes, &others)
        )
    })
}

/// What subjects differ by, where that is decided: for as many containers as ran.
fn differences(view: &View<'_>) -> Vec<String> {
    let told = |finding: &Finding| {
        let (cell, against) = (finding.cell, finding.against);
        let is_ours = view.cell(cell).experiment == NAME && view.metric(cell, finding.metric).name == "sum";
        let is_decided = matches!(finding.verdict, Verdict::More | Verdict::Less) && finding.noise.is_none();
        let difference = finding.difference.filter(|_| is_ours && is_decided)?;
        let count = most(&view.cell(cell).setting) as f64;
        let of_helpers = estimate(view, cell, "helpers")?.value - estimate(view, against, "helpers")?.value;
        let word = if finding.verdict == Verdict::More { "more" } else { "less" };
        Some(format!(
            "{count} containers of {} take {} {word} than of {}, of which helpers are {}",
            view.label(cell),
            estimated(Unit::Bytes, &difference.map(|value| value.abs() * count)),
            view.label(against),
            Unit::Bytes.format((of_helpers * difference.value.signum()) * count),
        ))
    };
    view.findings.iter().filter_map(told).collect()
}
