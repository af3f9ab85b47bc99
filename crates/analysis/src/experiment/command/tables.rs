//! What each subject takes more than the baseline for the same command, split: its start, measured in the
//! same rounds, and a rest that is named as one. Over several settings, a fixed part and one that grows with
//! the command.

use super::{METRICS, NAME};
use crate::stats::{self, Alpha, Estimate, Pairs, Rng};
use crate::units::Unit;
use crate::verdict::View;
use crate::verdict::table::{Column, ExperimentTable, Item};

/// The stream of the run's seed that resampling uses.
const STREAM: u64 = 0x636f_6d6d_616e_6400;

/// Both tables, each where there is something to show.
pub fn experiment_tables(view: &View<'_>) -> Vec<ExperimentTable> {
    [split(view), line(view)].into_iter().flatten().collect()
}

fn metric(name: &str) -> usize {
    METRICS.iter().position(|metric| metric.name == name).expect("the experiment has this metric")
}

/// The median of the paired differences of a metric.
fn difference(view: &View<'_>, (cell, against): (usize, usize), name: &str) -> Item {
    let values = |cell| view.columns.get(cell, metric(name));
    match Pairs::align(values(against), values(cell)) {
        Some(pairs) => Item::Interval(pairs.difference(Alpha::FIVE_PERCENT)),
        None => Item::Nothing("no round has both values".into()),
    }
}

/// A difference with its interval, as a sentence tells it.
fn told(estimate: Estimate) -> String {
    let shown = |value| Unit::Seconds.format_signed(value);
    match estimate.interval {
        Some(interval) => {
            format!("{} [{}, {}]", shown(estimate.value), shown(interval.low), shown(interval.high))
        }
        None => format!("{} (too few rounds for an interval)", shown(estimate.value)),
    }
}

fn split(view: &View<'_>) -> Option<ExperimentTable> {
    let cells = view.beside_baseline(NAME);
    let setting_of = |cell: usize| &view.run.plan.cells[cell].setting;
    let (first, _) = *cells.first()?;
    let shows_settings = cells.iter().any(|(cell, _)| setting_of(*cell) != setting_of(first));
    let baseline = view.baseline(NAME);
    let mut columns = vec![Column::of_texts("subject")];
    columns.extend(shows_settings.then(|| Column::of_texts("setting")));
    let parts = [
        ("more in all", "returned"),
        ("start", "start"),
        ("unexplained rest", "beyond_start"),
        ("of it inside", "command"),
    ];
    columns.extend(parts.map(|(title, _)| Column::of_values(title, Unit::Seconds)));
    let row = |&(cell, against): &(usize, usize)| {
        let setting = shows_settings.then(|| Item::Text(setting_of(cell).to_string()));
        let parts = parts.map(|(_, name)| difference(view, (cell, against), name));
        [Item::Text(view.label(cell).to_owned())].into_iter().chain(setting).chain(parts).collect()
    };
    let sentence = |&(cell, against): &(usize, usize)| {
        let value = |name| match difference(view, (cell, against), name) {
            Item::Interval(estimate) => Some(estimate),
            _ => None,
        };
        let [all, start, rest] = [value("returned")?, value("start")?, value("beyond_start")?];
        let label = view.label(cell);
        if all.interval.is_none() {
            return Some(format!(
                "{label} against `{baseline}`: too few rounds with both of them ({}) to say which takes more",
                all.rounds
            ));
        }
        let [all, start, rest] = [all, start, rest].map(told);
        Some(format!(
            "{label} less `{baseline}` for the same command: {all}; of it {start} by its start, and {rest} that are not explained"
        ))
    };
    // Of many settings the table says enough.
    let summary = if shows_settings { Vec::new() } else { cells.iter().filter_map(sentence).collect() };
    let title = format!("what each takes more than `{baseline}` for the same command, and why");
    Some(ExperimentTable {
        rows: cells.iter().map(row).collect(),
        notes: vec![
            "medians of differences within each round, with their 95 % intervals; medians of parts need not add up to the \
             median of the whole"
                .into(),
            "`start` is what a launch of each costs that runs nothing, measured right before; the rest is what is there \
             only with the command, and nothing here says why; `of it inside` is the part between fork and end of the \
             command itself"
                .into(),
        ],
        summary,
        ..ExperimentTable::new(NAME, "overhead", title, columns)
    })
}

/// By round, the points of a subject: the baseline's own time of the command in a setting, and what the
/// subject takes more in all.
fn points(view: &View<'_>, cells: &[(usize, usize)]) -> Vec<Vec<(f64, f64)>> {
    let rounds = view.columns.get(cells[0].0, 0).len();
    let mut all = vec![Vec::new(); rounds];
    for &(cell, against) in cells {
        let Some(known) = view.columns.sample(against, metric("command")) else { continue };
        let x = known.median();
        let own = view.columns.get(cell, metric("returned"));
        let others = view.columns.get(against, metric("returned"));
        for (round, (own, other)) in all.iter_mut().zip(own.iter().zip(others)) {
            round.extend(own.zip(*other).map(|(own, other)| (x, own - other)));
        }
    }
    all
}

fn line(view: &View<'_>) -> Option<ExperimentTable> {
    let plan = &view.run.plan;
    let cells = view.beside_baseline(NAME);
    let mut rng = Rng::for_stream(plan.seed, STREAM);
    let mut rows = Vec::new();
    for (index, entry) in plan.subjects.iter().enumerate() {
        let own: Vec<_> =
            cells.iter().copied().filter(|(cell, _)| plan.cells[*cell].subject == index).collect();
        if own.len() < 2 {
            continue;
        }
        let Some(found) = stats::line(&points(view, &own), &mut rng, Alpha::FIVE_PERCENT) else {
            continue;
        };
        let item = |estimate: Estimate| Item::Interval(estimate);
        rows.push(vec![Item::Text(entry.label.clone()), item(found.fixed), item(found.proportional)]);
    }
    let baseline = view.baseline(NAME);
    let title = format!("what each takes more than `{baseline}`, whatever the command, and with its length");
    let columns = vec![
        Column::of_texts("subject"),
        Column::of_values("fixed", Unit::Seconds),
        Column::of_values("proportional", Unit::Share),
    ];
    (!rows.is_empty()).then(|| ExperimentTable {
        rows,
        notes: vec![format!(
            "the line of least squares through all settings: what a subject takes more, over the median time that the \
             command takes on `{baseline}`; its 95 % intervals by resampling rounds; two settings always lie on a line, \
             more show whether there is one"
        )],
        ..ExperimentTable::new(NAME, "fixed-and-proportional", title, columns)
    })
}
