//! The tables of subjects: medians, intervals, differences from the baseline, verdicts and places of every metric in
//! every setting; the comparisons of pairs; and the noise floor.

use dunnage_analysis::group::in_groups;

use crate::document::{Block, Cell, Cells, Column, Drawn, Item, Measured, Table, Tone};
use crate::plan::Relation;
use crate::report::model::{Experiment, Job, JobShare, Row, Told};
use crate::report::ranking::{Place, places};
use crate::report::text::{
    after_comma, decimals, estimated, in_percent, listed, number, percent, with_interval,
};
use crate::stats::Estimate;
use crate::units::Unit;
use crate::verdict::{Finding, Kind, Verdict};

/// A table whose first column names the subject.
pub(super) fn of_subjects<'a>(title: String, labels: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::of(title, vec![Column::words("subject")]);
    labels.into_iter().for_each(|label| table.row(&[label], vec![Cell::code(label)]));
    table
}

fn labels<'a>(rows: &'a [&Row]) -> impl Iterator<Item = &'a str> {
    rows.iter().map(|row| row.label.as_str())
}

fn layers(rows: &[&Row]) -> (Column, Vec<Cell>) {
    let cells = rows.iter().map(|row| Cell::words(row.layer).tone(Tone::Faint)).collect();
    (Column::words("layer").with_room(), cells)
}

/// Multiples of the baseline, with their intervals.
fn multiples(rows: &[&Row], metric: usize, base: &str) -> (Column, Vec<Cell>) {
    let shown = |ratio: f64| number(ratio, decimals(ratio).min(2));
    let cell = |row: &&Row| {
        let Some(ratio) = row.found(metric).and_then(|found| found.ratio) else {
            return Cell::nothing("–");
        };
        let interval = ratio.interval.map(|ends| format!("{}–{}", shown(ends.low), shown(ends.high)));
        Cell { interval: interval.unwrap_or_default(), ..Cell::words(shown(ratio.value)) }.key(ratio.value)
    };
    let name = format!("× {base}");
    (Column { kind: Cells::Measured, ..Column::words(name) }, rows.iter().map(cell).collect())
}

/// The same without intervals.
fn plain((column, cells): (Column, Vec<Cell>)) -> (Column, Vec<Cell>) {
    let cells = cells.into_iter().map(|cell| Cell { interval: String::new(), ..cell });
    (Column { kind: Cells::Numbers, ..column }, cells.collect())
}

/// The label of the baseline in column headings.
fn baseline(experiment: &Experiment) -> &str {
    experiment.rows().find(|(_, _, row)| row.is_baseline).map_or("the baseline", |(_, _, row)| &row.label)
}

fn place_of(places: &[(&Row, Place)], row: &Row) -> Cell {
    match places.iter().find(|(own, _)| own.label == row.label) {
        // Every place is possible: nothing was told apart.
        Some((_, place)) if place.best == 1 && place.worst == places.len() && place.sharing == 1 => {
            Cell::nothing("–")
        }
        Some((_, place)) => Cell::words(place.text()).key((place.best * 1000 + place.worst) as f64),
        None => Cell::nothing("–"),
    }
}

/// The verdict of a finding, or `in noise`.
pub(super) fn decided(finding: &Finding) -> Cell {
    let cell = verdict(&finding.verdict, finding.kind());
    match finding.noise {
        Some(_) => Cell { text: finding.word().into(), ..cell }.tone(Tone::Open),
        None => cell,
    }
}

/// The word of a verdict, with the number of the suspect that explains it.
pub(super) fn verdict(verdict: &Verdict, kind: Kind) -> Cell {
    let cell = Cell::verdict(kind);
    match verdict {
        Verdict::Suspect(index) => Cell { alarm: Some(index + 1), ..cell },
        _ => cell,
    }
}

fn verdict_of(row: &Row, metric: usize) -> Cell {
    match row.found(metric) {
        _ if row.is_baseline => Cell::nothing("baseline"),
        Some(finding) => decided(finding),
        None if row.lost > 0 => Cell::words("failed").tone(Tone::Alarm),
        None => Cell::nothing("not compared"),
    }
}

fn verdict_column(rows: &[&Row], metric: usize) -> (Column, Vec<Cell>) {
    (Column::words("verdict"), rows.iter().map(|row| verdict_of(row, metric)).collect())
}

/// Medians with their intervals, or with the single values if they are too few for an interval.
fn medians(experiment: &Experiment, rows: &[&Row], metric: usize) -> (Column, Vec<Cell>) {
    let definition = &experiment.metrics[metric];
    let values: Vec<Option<Estimate>> =
        rows.iter().map(|row| row.value(metric).map(|value| value.summary.median)).collect();
    let (column, mut cells) = Column::measured(definition.name, definition.unit, &values);
    for (row, cell) in rows.iter().zip(&mut cells) {
        // Values that are too few for an interval are shown one by one; of a tail at most 101 steps.
        if let (Some(value), Some(measured @ Measured { interval: None, .. })) =
            (row.value(metric), &mut cell.measured)
        {
            measured.points.clone_from(&value.shape.steps);
        }
    }
    (column, cells)
}

/// One metric in one setting: a row for each subject with everything known about it.
pub(super) fn verdicts(experiment: &Experiment, setting: usize, metric: usize) -> Table {
    let definition = &experiment.metrics[metric];
    let rows = experiment.settings[setting].subjects();
    let has = |row: &&Row| row.value(metric).is_some() || row.lost > 0;
    let rows: Vec<&Row> = rows.into_iter().filter(has).collect();
    let differences: Vec<_> =
        rows.iter().map(|row| row.found(metric).and_then(|found| found.difference)).collect();
    let base = baseline(experiment);
    let named = after_comma(&experiment.settings[setting].text);
    let mut table = of_subjects(format!("{} {}{named}", experiment.name, definition.name), labels(&rows));
    table.add(layers(&rows));
    let places = places(experiment, setting, metric);
    let place = rows.iter().map(|row| place_of(&places, row)).collect();
    table.add((Column::numbers("place").with_room(), place));
    table.drawn = Some(Drawn { column: table.columns.len(), unit: definition.unit });
    table.add(medians(experiment, &rows, metric));
    if experiment.rows().any(|(_, _, row)| row.found(metric).is_some()) {
        let (column, cells) =
            Column::measured(&format!("difference from {base}"), definition.unit, &differences);
        table.add((column.with_room(), cells));
        let (column, cells) = multiples(&rows, metric, base);
        table.add((column.with_room(), cells));
        table.add(verdict_column(&rows, metric));
    }
    table
}

/// What each subject adds to the user's job, if that is known for this experiment and setting.
fn of_job(
    experiment: &Experiment,
    setting: usize,
    rows: &[&Row],
    job: Option<&Job>,
) -> Option<(Column, Vec<Cell>)> {
    let job = job?;
    let setting = &experiment.settings[setting].text;
    let is_own = |share: &&JobShare| {
        share.finding.about.experiment == experiment.name && share.finding.about.setting == *setting
    };
    let own: Vec<&JobShare> = job.shares.iter().filter(is_own).collect();
    let of = |row: &&Row| own.iter().find(|one| one.finding.about.subject == row.label);
    let share = |row: &&Row| of(row).map(|one| one.share);
    let (column, cells) = Column::measured("", Unit::Share, &rows.iter().map(share).collect::<Vec<_>>());
    let unit = column.name.trim_start_matches(", ").to_owned();
    // A number and its unit stay on one line.
    let name = format!("{unit} of {}", Unit::Seconds.format(job.length).replace(' ', "\u{a0}"));
    (!own.is_empty()).then(|| plain((Column { name, ..column }, cells)))
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
    let ranked = places.iter().map(|(row, _)| *row);
    let all = in_groups(ranked.chain(experiment.settings[setting].subjects()), |row| &row.label);
    // Variants of a subject, which explain it, are in the section.
    let rows = all.into_iter().map(|(_, all)| all[0]).filter(|row| row.variant_of.is_none());
    let rows: Vec<&Row> = rows.collect();
    let text = &experiment.settings[setting].text;
    let mut table =
        of_subjects(if text.is_empty() { definition.name.into() } else { text.clone() }, labels(&rows));
    table.add((Column::numbers("place"), rows.iter().map(|row| place_of(&places, row)).collect()));
    table.drawn = Some(Drawn { column: 2, unit: definition.unit });
    table.add(medians(experiment, &rows, metric));
    table.add(plain(multiples(&rows, metric, baseline(experiment))));
    if let Some(of_job) = of_job(experiment, setting, &rows, job) {
        table.add(of_job);
    }
    table.add(verdict_column(&rows, metric));
    table
}

/// Several metrics, medians with their intervals, without verdicts.
pub(super) fn context(experiment: &Experiment, setting: usize, metrics: &[usize]) -> Table {
    let rows = experiment.settings[setting].subjects();
    let has = |row: &Row, metric: usize| row.value(metric).is_some();
    let metrics = metrics.iter().copied().filter(|metric| rows.iter().any(|row| has(row, *metric)));
    let metrics: Vec<usize> = metrics.collect();
    let rows: Vec<&Row> =
        rows.iter().copied().filter(|row| metrics.iter().any(|&metric| has(row, metric))).collect();
    let named = after_comma(&experiment.settings[setting].text);
    let names: Vec<_> = metrics.iter().map(|&metric| experiment.metrics[metric].name).collect();
    let mut table =
        of_subjects(format!("{}, for context: {}{named}", experiment.name, names.join(", ")), labels(&rows));
    table.add(layers(&rows));
    metrics.into_iter().for_each(|metric| table.add(medians(experiment, &rows, metric)));
    table
}

/// The kernel's share of engines and runtimes, by the floor that resembles them most, and what another way into their
/// cgroups would save.
pub(super) fn floor_shares(experiment: &Experiment, setting: usize) -> Option<Block> {
    let setting = &experiment.settings[setting];
    let rows = setting.subjects().into_iter().filter(|row| !row.is_suspect(0));
    let told = rows.filter_map(|row| Some((row, row.floor.as_ref()?, row.floor_share?)));
    let groups = in_groups(told, |(_, floor, _)| *floor).into_iter();
    let items = groups.map(|((label, unlike), all)| {
        let shares =
            all.iter().map(|(row, _, share)| format!("{} {}", row.label, estimated(Unit::Share, share)));
        let shares = listed(shares, ", ");
        let is_saved = |one: &&Finding| {
            let of_this = (&one.about.subject, &one.about.setting) == (label, &setting.text);
            let is_of_cgroup = one.about.relation == Relation::OneKey { key: "cgroup".into() };
            of_this && is_of_cgroup && one.metric == 0 && one.verdict == Verdict::More && one.noise.is_none()
        };
        let saved = experiment.comparisons.iter().map(|told| &told.finding).find(is_saved);
        let saved = saved.and_then(|Finding { about, difference, .. }| {
            let less = estimated(about.unit, &(*difference)?);
            Some(format!("`{}`, which avoids the write to `cgroup.procs`, takes {less} less", about.against))
        });
        let way = "this floor enters its cgroups in a cheaper way; `floor:cgroup=procs` does it their way";
        let way = unlike.contains(&"cgroup").then(|| way.to_owned());
        let root = other_root(label, unlike).map(|root| format!("this floor's root is {root}"));
        let above = above_all(all.iter().map(|(row, _, share)| (*row, *share)));
        let details = way.into_iter().chain(above.or(root)).chain(saved);
        Item::of(listed([shares].into_iter().chain(details), "; "))
            .named(format!("kernel's share ({label}){}", after_comma(&setting.values)))
    });
    let items: Vec<Item> = items.collect();
    (!items.is_empty()).then_some(Block::List(items))
}

/// How the root of a floor differs from that of the subjects whose share it shows.
fn other_root(label: &str, unlike: &[&str]) -> Option<&'static str> {
    unlike.contains(&"overlay").then(|| match label.contains("overlay=off") {
        true => "a directory, theirs an overlay",
        false => "an overlay, theirs a directory",
    })
}

/// The subjects that are faster than their floor.
fn above_all<'a>(all: impl Iterator<Item = (&'a Row, Estimate)>) -> Option<String> {
    let above: Vec<&Row> = all.filter(|(_, share)| share.value > 1.0).map(|(row, _)| row).collect();
    let (label, unlike) = above.first()?.floor.as_ref()?;
    let why = other_root(label, unlike).map(|root| format!(": its root is {root}")).unwrap_or_default();
    let names = listed(above.iter().map(|row| &row.label), ", ");
    Some(format!("above 100 % it is not a share, since `{label}` takes longer than {names}{why}"))
}

/// Whether a relation belongs to a group.
type Belongs = fn(&Relation) -> bool;

/// Whether the table of verdicts already shows it: a decided difference from the baseline.
fn is_told(finding: &Finding) -> bool {
    let is_decided = matches!(finding.verdict, Verdict::More | Verdict::Less | Verdict::Same);
    finding.about.relation == Relation::Baseline && is_decided && finding.noise.is_none()
}

/// The comparisons of pairs in these metrics, by what they can show.
pub(super) fn pairs(experiment: &Experiment, is_wanted: fn(usize) -> bool) -> Vec<Table> {
    let groups: [(&str, Belongs); 4] = [
        ("One thing differs: its cost or saving", Relation::names_a_cause),
        ("Each step to the next layer", |why| *why == Relation::Step),
        ("Several things differ, so no cause is named", |why| {
            matches!(
                why,
                Relation::Choice | Relation::KeyAndMore { .. } | Relation::Predicted | Relation::Several
            )
        }),
        ("Undecided against the baseline", |why| *why == Relation::Baseline),
    ];
    let table = |(title, belongs): (&str, Belongs)| {
        let words = ["comparison", "setting", "metric", "result"].map(Column::words).into_iter();
        let columns = words.chain([Column::numbers("ratio").with_room(), Column::words("verdict")]);
        let mut table = Table::of(title, columns.collect());
        for told in &experiment.comparisons {
            let Finding { about, metric, .. } = &told.finding;
            let is_decisive = experiment.metrics[*metric].decisive && is_wanted(*metric);
            if belongs(&about.relation) && is_decisive && !is_told(&told.finding) {
                table.row(&[&about.subject, &about.against], of_pair(experiment, told));
            }
        }
        table
    };
    groups.into_iter().map(table).collect()
}

fn of_pair(experiment: &Experiment, told: &Told) -> Vec<Cell> {
    let finding = &told.finding;
    let ratio = finding.ratio.map_or(Cell::nothing("–"), |ratio| {
        Cell::words(in_percent(&Estimate { interval: None, ..ratio })).key(ratio.value)
    });
    let size = finding.difference.map_or(f64::NAN, |difference| difference.value);
    vec![
        Cell::words(&told.phrase),
        Cell::words(experiment.values_of(&finding.about.setting)),
        Cell::words(finding.about.metric),
        Cell::words(&told.predicate).key(size),
        ratio,
        decided(finding),
    ]
}

/// The noise floor of each layer, from twins.
pub(super) fn noise(experiment: &Experiment) -> Table {
    let words = ["subject", "layer", "setting", "metric"].map(Column::words).into_iter();
    let numbers = ["noise floor", "of the median"].map(Column::numbers);
    let mut table = Table::of(
        "Noise floor: the same subject measured twice under two labels",
        words.chain(numbers).chain([Column::words("twins")]).collect(),
    )
    .note("A difference that does not rise above it is marked `in noise`.");
    for (setting, noise) in
        experiment.settings.iter().flat_map(|one| one.noise.iter().map(move |noise| (one, noise)))
    {
        let Some(metric) = experiment.metric(noise.place.metric).filter(|metric| metric.decisive) else {
            continue;
        };
        let cells = vec![
            Cell::code(&noise.label),
            Cell::words(noise.layer).tone(Tone::Faint),
            Cell::words(&setting.text),
            Cell::words(metric.name),
            Cell::words(with_interval(metric.unit, noise.floor.units, None)).key(noise.floor.units),
            noise.floor.relative.map_or(Cell::nothing("–"), |share| Cell::words(percent(share)).key(share)),
            if noise.floor.holds_zero {
                Cell::words("agree")
            } else {
                Cell::words("differ").tone(Tone::Open)
            },
        ];
        table.row(&[&noise.label], cells);
    }
    table
}
