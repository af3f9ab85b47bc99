//! Where the time of a start goes: the whole for each subject, what each layer below adds to it, and in a word how it compares with
//! the others of its layer. First as installed, then the engines equalised.
//!
//! Deliberately absent: decisions. The words are those of verdicts; the parts are differences of the medians in the same table.

use dunnage_analysis::experiment::Event;

use crate::document::{Cell, Cells, Column, Need, Row as Line, Table, Tone};
use crate::report::model::{Experiment, Ladder, Row, Setting};
use crate::report::ranking::{Place, places};
use crate::report::text::{common_scale, decimals, listed, number, width};
use crate::report::words::{called, done_without, in_words};
use crate::stats::Estimate;
use crate::units::{Better, Scale, Unit};
use crate::verdict::{About, Verdict};

/// A setting in a heading is no wider.
const HEADING: usize = 16;
/// Columns of a bar.
const BAR: usize = 5;

/// What the parts are called, from the lowest layer up.
const PARTS: [&str; 4] = ["kernel", "runtime", "engine", "own"];

/// The table of the first setting; none if nothing is waited for. The equalised engines are left out if there would be more rows than
/// this.
pub(super) fn table(experiment: &Experiment, most: usize) -> Option<Table> {
    let metric = experiment.metrics.first()?;
    let about = experiment.about;
    let is_wait = matches!(about.event, Event::Once(_) | Event::Whole) && metric.better == Better::Less;
    let setting = experiment.settings.first().filter(|_| is_wait && metric.unit == Unit::Seconds)?;
    let installed = setting.ladders.first()?;
    let equalised = setting.ladders.get(1);
    let medians = told(installed).into_iter().filter_map(median);
    let scale = common_scale(metric.unit, medians.clone());
    let largest = medians.fold(0.0, f64::max);
    let of_metrics =
        about.parts.iter().filter_map(|name| experiment.metrics.iter().position(|one| one.name == *name));
    let of_metrics: Vec<usize> = of_metrics.collect();
    let stack = Stack { experiment, setting, places: places(experiment, 0, 0), scale, largest, of_metrics };
    let parts: Vec<&str> = match &stack.of_metrics[..] {
        [] => PARTS.to_vec(),
        all => all.iter().map(|at| called(experiment.metrics[*at].name)).collect(),
    };
    let mut rows: Vec<Vec<Cell>> = stack.rows(installed, equalised);
    let engines = equalised.map(|ladder| stack.rows(&only_engines(ladder), None)).unwrap_or_default();
    if !engines.is_empty() && rows.len() + engines.len() < most {
        rows.push(vec![Cell::words("without own:").tone(Tone::Faint)]);
        rows.extend(engines);
    }
    let whole = Column::numbers(called(metric.name));
    let bar = Column { need: Need::WithRoom, ..Column::words("") };
    let parts = parts.into_iter().map(Column::numbers);
    let beside = Column { kind: Cells::Following, ..Column::words("compared") };
    // A long command has a line of its own.
    let values = in_words(&setting.values);
    let (title, values) =
        if width(&values) > HEADING { (values, String::new()) } else { (String::new(), values) };
    let state = [values, scale.symbol.to_owned()];
    let state = listed(state.iter().filter(|one| !one.is_empty()), ", ");

    let columns = [Column::words(state), whole, bar].into_iter().chain(parts).chain([beside]);
    let line = |row: &Vec<Cell>| Line { subjects: vec![row[0].text.clone()], ..Line::default() };
    let mut table = Table { title, rows: rows.iter().map(line).collect(), ..Table::default() };

    for (at, column) in columns.enumerate() {
        let cells: Vec<Cell> = rows.iter().map(|row| row.get(at).cloned().unwrap_or_default()).collect();
        // A part that no subject has is no column.
        if at == 0 || cells.iter().any(|cell| !cell.text.is_empty()) {
            table.add((column, cells));
        }
    }
    if !stack.of_metrics.is_empty() {
        let is_compared =
            table.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.text.ends_with("slower"));
        let slower = if is_compared { "; slower: median difference within rounds" } else { "" };
        return Some(table.note(format!("parts are medians and need not add up{slower}")));
    }
    let own =
        equalised.map(|ladder| listed(done_without(&ladder.shared_keys), ", ")).filter(|own| !own.is_empty());
    let own = own.map(|own| format!("own: the engine's {own}"));

    let of_floor = stack
        .has_another_floor(installed)
        .then(|| "kernel: a floor entering its cgroup as they do".to_owned());
    let parts = "parts are differences of these medians".to_owned();
    let parts = (own.is_some() && of_floor.is_none()).then_some(parts);
    let note = listed(own.into_iter().chain(parts).chain(of_floor), "; ");

    Some(if note.is_empty() { table } else { table.note(note) })
}

/// The name of a row. On the equalised ladder that is the name of the same engine as installed, if there is only one.
fn name_of<'a>(setting: &Setting, ladder: &Ladder, row: &'a Row) -> &'a str {
    if !ladder.equalised {
        return &row.label;
    }
    let Some((engine, _)) = row.short.split_once(':') else { return &row.short };
    let is_of = |other: &&Row| other.short.split(':').next() == Some(engine);
    let is_installed = |one: &Ladder| {
        !one.equalised && one.rows.iter().any(|row| row.layer == "engine" && row.label == engine)
    };
    let is_alone = ladder.rows.iter().filter(is_of).count() == 1;
    if is_alone && setting.ladders.iter().any(is_installed) { engine } else { &row.short }
}

/// The rows without variants, which show a cause.
fn told(ladder: &Ladder) -> Vec<&Row> {
    ladder.rows.iter().filter(|row| row.variant_of.is_none()).collect()
}

fn only_engines(ladder: &Ladder) -> Ladder {
    let mut own = ladder.clone();
    own.rows.retain(|row| row.layer == "engine");
    own
}

fn median(row: &Row) -> Option<f64> {
    row.value(0).filter(|_| !row.is_suspect(0)).map(|value| value.summary.median.value)
}

/// What all rows of a setting share.
struct Stack<'a> {
    experiment: &'a Experiment,
    setting: &'a Setting,
    places: Vec<(&'a Row, Place)>,
    scale: Scale,
    /// The largest median, which has the longest bar.
    largest: f64,
    /// The metrics that are parts of the whole; none if the layers are.
    of_metrics: Vec<usize>,
}

impl Stack<'_> {
    fn rows(&self, ladder: &Ladder, equalised: Option<&Ladder>) -> Vec<Vec<Cell>> {
        let rows = told(ladder);
        let row = |row: &&Row| {
            let whole = match row.value(0).filter(|_| !row.is_suspect(0)) {
                Some(value) => self.whole(&value.summary.median),
                None if row.is_suspect(0) => Cell::words("suspect").tone(Tone::Alarm),
                None if row.lost > 0 => Cell::words("failed").tone(Tone::Alarm),
                None => Cell::nothing("–"),
            };
            let bar = Cell::words(median(row).map_or(String::new(), |one| bar(one / self.largest)));
            let part = |part: Option<f64>| {
                let part = part.map(|part| part / self.scale.divisor);
                Cell::words(part.map_or(String::new(), |part| number(part, decimals(part))))
            };
            let parts: Vec<Option<f64>> = match &self.of_metrics[..] {
                [] => self.parts(row, ladder, equalised).to_vec(),
                all => all.iter().map(|at| row.value(*at).map(|one| one.summary.median.value)).collect(),
            };
            let name = name_of(self.setting, ladder, row);
            // What was added so that all have the same.
            let added = row.short.strip_prefix(name).and_then(|keys| keys.strip_prefix(':'));
            let added = added.map(|keys| format!(" +{}", keys.replace("seccomp=default", "filter")));
            let name = Cell::code(format!("{name}{}", added.unwrap_or_default()));
            let own = parts.into_iter().map(part);
            [name, whole, bar].into_iter().chain(own).chain([self.beside(row, &rows)]).collect()
        };
        rows.iter().map(row).collect()
    }

    /// A value with its interval, in the unit of the table; more than two decimals say nothing next to the others.
    fn whole(&self, one: &Estimate) -> Cell {
        const MOST: usize = 2;
        let own = decimals(one.value / self.scale.divisor).min(MOST);
        let shown = |value: f64| number(value / self.scale.divisor, own);
        let interval = one.interval.map(|ends| format!("[{}, {}]", shown(ends.low), shown(ends.high)));
        Cell { interval: interval.unwrap_or_default(), ..Cell::words(shown(one.value)) }.key(one.value)
    }

    /// What the kernel, the runtime and the engine add, and what the engine has of its own, as far as they were measured apart.
    fn parts(&self, row: &Row, ladder: &Ladder, equalised: Option<&Ladder>) -> [Option<f64>; 4] {
        let of = |is_it: &dyn Fn(&&Row) -> bool| told(ladder).into_iter().find(is_it).and_then(median);
        // The floor that enters its cgroups as this one does, where it was measured.
        let like =
            row.floor.as_ref().and_then(|(label, _)| ladder.rows.iter().find(|one| one.label == *label));
        let floor = like.and_then(median).or_else(|| of(&|one| one.layer == "floor"));
        let (Some(whole), Some(kernel)) = (median(row), floor) else {
            return [None; 4];
        };
        match row.layer {
            "floor" => [Some(whole), None, None, None],
            "runtime" => [Some(kernel), Some(whole - kernel), None, None],
            "engine" => {
                let runtime = of(&|one| one.layer == "runtime" && Some(&one.label) == row.runtime.as_ref());
                let name = name_of(self.setting, ladder, row);
                // What has less of its own than the equalised ones has no part for it.
                let alike = equalised.filter(|_| row.lacks.is_empty()).and_then(|other| {
                    let is_it =
                        |one: &&Row| one.layer == "engine" && name_of(self.setting, other, one) == name;
                    told(other).into_iter().find(is_it).and_then(median)
                });
                let engine = alike.unwrap_or(whole) - runtime.unwrap_or(kernel);
                [
                    Some(kernel),
                    runtime.map(|own| own - kernel),
                    Some(engine),
                    alike.map(|alike| whole - alike),
                ]
            }
            _ => [None; 4],
        }
    }

    /// Whether the kernel's part is that of another floor than the one that is shown.
    fn has_another_floor(&self, ladder: &Ladder) -> bool {
        let shown: Vec<&str> = told(ladder).into_iter().map(|row| row.label.as_str()).collect();
        let is_other = |row: &&Row| {
            let label = row.floor.as_ref().map(|(label, _)| label);
            label.is_some_and(|label| {
                !shown.contains(&label.as_str())
                    && ladder.rows.iter().any(|one| one.label == *label && median(one).is_some())
            })
        };
        told(ladder).iter().any(is_other)
    }

    /// How a subject compares with the quickest one of its layer that has what it has.
    fn beside(&self, row: &Row, rows: &[&Row]) -> Cell {
        let mut own: Vec<&Row> =
            rows.iter().copied().filter(|one| one.layer == row.layer && median(one).is_some()).collect();
        let fewest = own.iter().map(|one| one.lacks.len()).min().unwrap_or(0);
        if row.layer == "engine" && row.lacks.len() > fewest {
            return Cell::nothing(format!("no {}", row.lacks[0]));
        }
        own.retain(|one| row.layer != "engine" || one.lacks.len() == fewest);
        own.sort_by(|one, other| median(one).unwrap_or(0.0).total_cmp(&median(other).unwrap_or(0.0)));
        let [best, others @ ..] = &own[..] else { return Cell::default() };
        if others.is_empty() || median(row).is_none() {
            return Cell::default();
        }
        let place =
            |of: &Row| self.places.iter().find(|(one, _)| one.label == of.label).map(|(_, place)| *place);
        let is_behind = |one: &Row, other: &Row| {
            place(one).zip(place(other)).is_some_and(|(one, other)| one.best > other.worst)
        };
        if best.label == row.label {
            let is_slower = |other: &Row| matches!(self.between(other, row), Some((_, Some(_))));
            let is_first = others.iter().all(|other| is_behind(other, row) || is_slower(other));

            return if is_first { Cell::words("fastest").tone(Tone::Strong) } else { self.open(row, others) };
        }
        match self.between(row, best) {
            Some((_, Some(by))) => {
                let by = by / self.scale.divisor;
                Cell::words(format!("{} slower", number(by, decimals(by).min(1)))).tone(Tone::Worse)
            }
            Some((Verdict::Same, None)) => Cell::words("as fast").tone(Tone::Same),
            Some(_) if !is_behind(row, best) => Cell::words("not decided").tone(Tone::Open),
            _ if is_behind(row, best) => Cell::words("slower").tone(Tone::Worse),
            _ => Cell::nothing("not compared"),
        }
    }

    /// What is said of the quickest one if others may be as quick.
    fn open(&self, row: &Row, others: &[&Row]) -> Cell {
        let verdicts = others.iter().filter_map(|other| self.between(other, row));
        let open = verdicts.filter(|(_, by)| by.is_none()).map(|(verdict, _)| verdict).collect::<Vec<_>>();
        match open.iter().all(|verdict| *verdict == Verdict::Same) {
            true if open.is_empty() => Cell::default(),
            true => Cell::words("as fast").tone(Tone::Same),
            false => Cell::words("not decided").tone(Tone::Open),
        }
    }

    /// The verdict on two subjects, and by how much the first is slower, if that was decided.
    fn between(&self, row: &Row, other: &Row) -> Option<(Verdict, Option<f64>)> {
        let is_it = |about: &About| {
            let ends = (&about.subject, &about.against);
            about.setting == self.setting.text
                && !about.relation.is_of_settings()
                && [(&row.label, &other.label), (&other.label, &row.label)].contains(&ends)
        };
        let found = self.experiment.comparisons.iter().map(|told| &told.finding);
        let found = found.filter(|one| one.metric == 0).find(|one| is_it(&one.about))?;
        let turned = found.about.subject != row.label;
        let by = found.difference?.value * if turned { -1.0 } else { 1.0 };
        let is_decided = matches!(found.verdict, Verdict::More | Verdict::Less) && found.noise.is_none();
        Some((found.verdict.clone(), (is_decided && by > 0.0).then_some(by)))
    }
}

/// A share as a bar of whole and half columns.
fn bar(share: f64) -> String {
    let halves = (share.clamp(0.0, 1.0) * (BAR * 2) as f64).round() as usize;
    format!("{}{}", "━".repeat(halves / 2), "╸".repeat(halves % 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_shares_of_the_widest() {
        assert_eq!((bar(1.0).chars().count(), bar(0.4), bar(0.0)), (BAR, "━━".to_owned(), String::new()));
        assert_eq!(bar(0.1), "╸");
    }
}
