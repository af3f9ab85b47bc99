//! The tables of subjects: every metric in every setting with medians, intervals, differences from the baseline,
//! verdicts and places; what pairs of subjects say; and what twins show.

use super::asked;
use super::table::{Cell, Head, Line, Medians, Table, aligned, setting_name};
use crate::report::model::{Change, Experiment, Job, JobShare, Pair, PairKind, Row};
use crate::report::ranking::{Place, places};
use crate::report::text::{decimals, in_percent, number, percent, with_interval};
use crate::stats::Estimate;
use crate::units::Unit;
use crate::verdict::Verdict;

/// All subjects of a setting, each once, in the order of the ladders.
pub(super) fn subjects(experiment: &Experiment, setting: usize) -> Vec<&Row> {
    let mut rows: Vec<&Row> = Vec::new();
    for row in experiment.settings[setting].ladders.iter().flat_map(|ladder| &ladder.rows) {
        if rows.iter().all(|known| known.label != row.label) {
            rows.push(row);
        }
    }
    rows
}

/// How a subject begins its line: who it is, and its layer.
fn head_of(row: &Row) -> [Cell; 2] {
    [Cell::code(row.label.clone()), Cell { tone: "faint", ..Cell::text(row.layer) }]
}

fn heads_of() -> [Head; 2] {
    [Head::text("subject"), Head::text("layer")]
}

fn line_of(row: &Row) -> Line {
    Line { subjects: vec![row.label.clone()], cells: head_of(row).to_vec() }
}

/// How many times the baseline, with its interval.
fn multiples(rows: &[Option<&Row>], metric: usize) -> Vec<[Cell; 2]> {
    let ratios: Vec<Option<Estimate>> =
        rows.iter().map(|row| change_of((*row)?, metric).and_then(|change| change.ratio)).collect();
    let shown = |ratio: f64| number(ratio, decimals(ratio).min(2));
    let texts: Vec<String> =
        ratios.iter().map(|ratio| ratio.map_or(String::new(), |ratio| shown(ratio.value))).collect();
    let cell = |(ratio, text): (&Option<Estimate>, String)| {
        let Some(ratio) = ratio else { return [Cell::nothing("–"), Cell::default()] };
        let interval = ratio.interval.map_or(Cell::default(), |ends| {
            Cell::text(format!("{} to {}", shown(ends.low), shown(ends.high))).key(ends.low)
        });
        [Cell::text(text).key(ratio.value), interval]
    };
    ratios.iter().zip(aligned(&texts)).map(cell).collect()
}

/// The label that stands for the baseline in heads.
pub(super) fn baseline(experiment: &Experiment) -> &str {
    experiment.rows().find(|(_, _, row)| row.is_baseline).map_or("the baseline", |(_, _, row)| &row.label)
}

fn place_of(places: &[(&Row, Place)], row: &Row) -> Cell {
    match places.iter().find(|(own, _)| own.label == row.label) {
        // Anything is possible: nothing was told apart.
        Some((_, place)) if place.best == 1 && place.worst == places.len() && place.sharing == 1 => {
            Cell::nothing("–")
        }
        Some((_, place)) => Cell::text(place.text()).key((place.best * 1000 + place.worst) as f64),
        None => Cell::nothing("–"),
    }
}

fn change_of(row: &Row, metric: usize) -> Option<&Change> {
    row.against_baseline.get(metric).and_then(Option::as_ref)
}

fn verdict_of(row: &Row, metric: usize) -> Cell {
    match change_of(row, metric) {
        _ if row.is_baseline => Cell::nothing("baseline"),
        Some(change) => Cell::change(change),
        None if row.lost > 0 => Cell { tone: "alarm", ..Cell::text("failed") },
        None => Cell::nothing("not compared"),
    }
}

/// One metric in one setting: a line a subject with all that is known.
pub(super) fn verdicts(experiment: &Experiment, setting: usize, metric: usize) -> Table {
    let definition = &experiment.metrics[metric];
    let rows = subjects(experiment, setting);
    let has = |row: &&Row| row.values.get(metric).is_some_and(Option::is_some) || row.lost > 0;
    let rows: Vec<&Row> = rows.into_iter().filter(has).collect();
    let values: Vec<_> = rows.iter().map(|row| row.values.get(metric).and_then(Option::as_ref)).collect();
    let medians = Medians::of(definition.unit, &values);
    let differences: Vec<_> =
        rows.iter().map(|row| change_of(row, metric).and_then(|change| change.difference)).collect();
    let differences = Medians::of_estimates(definition.unit, &differences);
    let multiples = multiples(&rows.iter().map(|row| Some(*row)).collect::<Vec<_>>(), metric);
    let places = places(experiment, setting, metric);
    let base = baseline(experiment);
    let mut heads = heads_of().to_vec();
    heads.extend([
        Head::number("place"),
        Head::number(medians.named(definition.name)),
        Head::range("95 % interval"),
    ]);
    if experiment.rows().any(|(_, _, row)| change_of(row, metric).is_some()) {
        heads.extend([
            Head::number(differences.named(&format!("more than {base}"))),
            Head::range("interval"),
            Head::number(format!("× {base}")),
            Head::range("interval"),
            Head::text("verdict"),
        ]);
    }
    let columns = heads.len();
    let line = |index: usize| {
        let row = rows[index];
        let [median, interval] = medians.cells[index].clone();
        let [difference, difference_interval] = differences.cells[index].clone();
        let [multiple, multiple_interval] = multiples[index].clone();
        let mut cells = head_of(row).to_vec();
        cells.extend([
            place_of(&places, row),
            median,
            interval,
            difference,
            difference_interval,
            multiple,
            multiple_interval,
            verdict_of(row, metric),
        ]);
        cells.truncate(columns);
        Line { subjects: vec![row.label.clone()], cells }
    };
    let text = setting_name(experiment, setting);
    let named = if text.is_empty() { String::new() } else { format!(", {text}") };
    Table {
        caption: format!("{} {}{named}", experiment.name, definition.name),
        lines: (0..rows.len()).map(line).collect(),
        heads,
        ..Table::default()
    }
}

/// What each subject adds to the reader's job, where it is told for this experiment and setting.
fn of_job(
    experiment: &Experiment,
    setting: usize,
    rows: &[&Row],
    job: Option<&Job>,
) -> Option<(Head, Vec<Cell>)> {
    let job = job?;
    let setting = &experiment.settings[setting].text;
    let is_own = |share: &&JobShare| share.experiment == experiment.name && share.setting == *setting;
    let own: Vec<&JobShare> = job.shares.iter().filter(is_own).collect();
    let share = |row: &&Row| own.iter().find(|share| share.label == row.label).map(|share| share.share);
    let medians = Medians::of_estimates(Unit::Share, &rows.iter().map(share).collect::<Vec<_>>());
    let head = Head::number(format!("{} of {}", medians.unit, asked::length(job).replace(' ', "\u{a0}")));
    let cells = medians.cells.into_iter().map(|[median, _]| median);
    (!own.is_empty()).then(|| (head, cells.collect()))
}

/// One metric in one setting, the first place first: the answer at a glance.
pub(super) fn at_a_glance(
    experiment: &Experiment,
    setting: usize,
    metric: usize,
    job: Option<&Job>,
) -> Table {
    let definition = &experiment.metrics[metric];
    let places = places(experiment, setting, metric);
    let mut rows: Vec<&Row> = places.iter().map(|(row, _)| *row).collect();
    for row in subjects(experiment, setting) {
        if rows.iter().all(|known| known.label != row.label) {
            rows.push(row);
        }
    }
    // Variants that the experiment made of a subject explain it; they stand in the section.
    rows.retain(|row| row.variant_of.is_none());
    let value = |row: &&Row| row.values.get(metric).and_then(Option::as_ref).map(|one| one.median);
    let medians = Medians::of_estimates(definition.unit, &rows.iter().map(value).collect::<Vec<_>>());
    let multiples = multiples(&rows.iter().map(|row| Some(*row)).collect::<Vec<_>>(), metric);
    let (job_head, job_cells) = of_job(experiment, setting, &rows, job).unzip();
    let line = |index: usize| {
        let row = rows[index];
        let [median, interval] = medians.cells[index].clone();
        let [multiple, _] = multiples[index].clone();
        let share = job_cells.as_ref().map(|cells| cells[index].clone());
        let [name, _] = head_of(row);
        let mut cells = vec![name, place_of(&places, row), median, interval, multiple];
        cells.extend(share);
        cells.push(verdict_of(row, metric));
        Line { subjects: vec![row.label.clone()], cells }
    };
    let lines = (0..rows.len()).map(line).collect();
    let mut heads = vec![
        Head::text("subject"),
        Head::number("place"),
        Head::number(medians.named(definition.name)),
        Head::range("95 % interval"),
        Head::number(format!("× {}", baseline(experiment))),
    ];
    heads.extend(job_head);
    heads.push(Head::text("verdict"));
    let text = setting_name(experiment, setting);
    let caption = if text.is_empty() { definition.name.to_owned() } else { text.to_owned() };
    Table { caption, heads, lines, ..Table::default() }
}

/// Metrics beside each other, medians with their intervals, nothing decided.
pub(super) fn context(experiment: &Experiment, setting: usize, metrics: &[usize]) -> Table {
    let rows = subjects(experiment, setting);
    let has = |row: &&Row| metrics.iter().any(|&metric| row.values.get(metric).is_some_and(Option::is_some));
    let rows: Vec<&Row> = rows.into_iter().filter(has).collect();
    let mut heads = heads_of().to_vec();
    let mut lines: Vec<Line> = rows.iter().map(|row| line_of(row)).collect();
    for &metric in metrics {
        let definition = &experiment.metrics[metric];
        let values: Vec<_> = rows.iter().map(|row| row.values.get(metric).and_then(Option::as_ref)).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let medians = Medians::of(definition.unit, &values);
        heads.extend([Head::number(medians.named(definition.name)), Head::range("95 % interval")]);
        lines.iter_mut().zip(medians.cells).for_each(|(line, cells)| line.cells.extend(cells));
    }
    let text = setting_name(experiment, setting);
    let named = if text.is_empty() { String::new() } else { format!(", {text}") };
    let names: Vec<_> = metrics.iter().map(|&metric| experiment.metrics[metric].name).collect();
    let caption = format!("{}, for context: {}{named}", experiment.name, names.join(", "));
    Table { caption, heads, lines, ..Table::default() }
}

/// Whether a pair belongs to a group.
type Belongs = fn(&PairKind) -> bool;

/// Whether the table of verdicts says all of it: a difference from the baseline that is decided.
fn is_told(pair: &Pair, change: &Change) -> bool {
    let is_decided = matches!(change.verdict, Verdict::More | Verdict::Less | Verdict::Same);
    pair.kind == PairKind::Baseline && is_decided && change.hidden_by_noise.is_none()
}

/// What pairs say, by what they can show.
pub(super) fn pairs(experiment: &Experiment) -> Vec<Table> {
    let groups: [(&str, Belongs); 4] = [
        ("One thing differs: what it costs or saves", |kind| matches!(kind, PairKind::OneKey(_))),
        ("What each step adds", |kind| matches!(kind, PairKind::Step)),
        ("Several things differ at once, so no cause is named", |kind| {
            matches!(kind, PairKind::Choice | PairKind::Predicted | PairKind::Several)
        }),
        ("Not decided against the baseline", |kind| matches!(kind, PairKind::Baseline)),
    ];
    let table = |(caption, belongs): (&str, Belongs)| {
        let own: Vec<&Pair> = experiment.pairs.iter().filter(|pair| belongs(&pair.kind)).collect();
        Table { caption: caption.into(), ..of_pairs(experiment, &own) }
    };
    groups.into_iter().map(table).filter(|table| !table.is_empty()).collect()
}

/// What twins show: the noise floor of each layer.
pub(super) fn noise(experiment: &Experiment) -> Table {
    let mut lines = Vec::new();
    for setting in &experiment.settings {
        for noise in &setting.noise {
            let metric = &experiment.metrics[noise.metric];
            if !metric.decisive {
                continue;
            }
            lines.push(Line {
                subjects: vec![noise.label.clone()],
                cells: vec![
                    Cell::code(noise.label.clone()),
                    Cell { tone: "faint", ..Cell::text(noise.layer) },
                    Cell::text(setting.text.clone()),
                    Cell::text(metric.name),
                    Cell::text(with_interval(metric.unit, noise.units, None)).key(noise.units),
                    match noise.share {
                        Some(share) => Cell::text(percent(share)).key(share),
                        None => Cell::nothing("–"),
                    },
                    match noise.holds_zero {
                        true => Cell::text("agree"),
                        false => Cell { tone: "open", ..Cell::text("differ") },
                    },
                ],
            });
        }
    }
    let heads = heads_of().into_iter().chain(["setting", "metric"].map(Head::text));
    let heads = heads.chain(["noise floor", "of the median"].map(Head::number)).chain([Head::text("twins")]);
    Table {
        caption: "Noise floor: the same subject measured twice under two labels".into(),
        notes: vec!["A difference that does not rise above it is marked “within noise”.".into()],
        heads: heads.collect(),
        lines,
    }
}

fn of_pairs(experiment: &Experiment, pairs: &[&Pair]) -> Table {
    let mut lines = Vec::new();
    for pair in pairs {
        let is_decisive = |change: &&Change| experiment.metrics[change.metric].decisive;
        for change in pair.changes.iter().filter(is_decisive).filter(|change| !is_told(pair, change)) {
            let metric = &experiment.metrics[change.metric];
            let ratio = change.ratio.map_or(Cell::nothing("–"), |ratio| {
                Cell::text(in_percent(&Estimate { interval: None, ..ratio })).key(ratio.value)
            });
            let size = change.difference.map_or(f64::NAN, |difference| difference.value);
            lines.push(Line {
                subjects: vec![pair.subject.clone(), pair.against.clone()],
                cells: vec![
                    Cell::text(pair.phrase.clone()),
                    Cell::text(setting_name(experiment, change.setting)),
                    Cell::text(metric.name),
                    Cell::text(change.predicate.clone()).key(size),
                    ratio,
                    Cell::change(change),
                ],
            });
        }
    }
    let heads = ["comparison", "setting", "metric", "what follows"].map(Head::text).into_iter();
    let heads = heads.chain([Head::number("ratio"), Head::text("verdict")]).collect();
    Table { heads, lines, ..Table::default() }
}
