//! How does it grow? A metric over a number that the settings differ in, such as the size of a job: a line a subject
//! through its medians, in a band of their intervals.

use super::axis::{Axis, Spread};
use super::distribution::{HEIGHT, PLOT, legend, legend_height};
use super::svg::{COLOURS, Canvas, End, SMALL, short, tick_room};
use super::{Drawing, Picture, Table, named};
use crate::report::model::{Experiment, Setting};
use crate::report::text::{clean, with_interval};
use crate::stats::Estimate;
use crate::units::{Unit, counted};

/// Two points are no course.
const FEWEST: usize = 3;
/// Numbers further apart than this stand by their ratio.
const WIDE: f64 = 20.0;

/// Lines over a number.
#[derive(Debug, Clone)]
pub struct Over {
    /// What the number is called.
    pub along: String,
    /// The unit of the values.
    pub unit: Unit,
    /// In the order of their last values, the largest first.
    pub curves: Vec<Grown>,
}

/// A subject.
#[derive(Debug, Clone)]
pub struct Grown {
    /// Its label.
    pub label: String,
    /// The number, and the median there.
    pub points: Vec<(f64, Estimate)>,
}

/// A picture for each decisive metric where all settings differ in one number alone.
pub(super) fn pictures(experiment: &Experiment) -> Vec<Picture> {
    let texts: Vec<&str> = experiment.settings.iter().map(|setting| setting.text.as_str()).collect();
    let Some((along, numbers)) = one_number(&texts) else { return Vec::new() };
    let decisive = (0..experiment.metrics.len()).filter(|&index| experiment.metrics[index].decisive);
    decisive.filter_map(|metric| picture(experiment, metric, &along, &numbers)).collect()
}

fn picture(experiment: &Experiment, metric: usize, along: &str, numbers: &[f64]) -> Option<Picture> {
    let unit = experiment.metrics[metric].unit;
    let mut settings: Vec<(f64, &Setting)> = numbers.iter().copied().zip(&experiment.settings).collect();
    settings.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let curve = |label: &str| {
        let at = |(number, setting): &(f64, &Setting)| {
            let row =
                setting.ladders.iter().flat_map(|ladder| &ladder.rows).find(|row| row.label == label)?;
            Some((*number, row.values.get(metric)?.as_ref()?.median))
        };
        Grown { label: label.to_owned(), points: settings.iter().filter_map(at).collect() }
    };
    let subjects = super::grid::subjects(experiment).into_iter().filter(|row| row.variant_of.is_none());
    let mut curves: Vec<Grown> = subjects.map(|row| curve(&row.label)).collect();
    curves.retain(|curve| curve.points.len() >= FEWEST);
    let last = |curve: &Grown| curve.points.last().map_or(0.0, |(_, median)| median.value);
    curves.sort_by(|one, other| last(other).total_cmp(&last(one)));
    let told = |estimate: &Estimate| {
        with_interval(unit, estimate.value, estimate.interval.map(|one| (one.low, one.high)))
    };
    let grown = |curve: &Grown| {
        let (first, last) = (curve.points.first()?, curve.points.last()?);
        Some(format!(
            "{} from {} at {} to {} at {}",
            curve.label,
            told(&first.1),
            first.0,
            told(&last.1),
            last.0
        ))
    };
    let words: Vec<_> = curves.iter().filter_map(grown).collect();
    let row = |(number, setting): &(f64, &Setting)| {
        let of = |curve: &Grown| {
            let own = curve.points.iter().find(|(own, _)| own == number);
            own.map_or("-".to_owned(), |(_, median)| told(median))
        };
        [number.to_string(), clean(&setting.text)].into_iter().chain(curves.iter().map(of)).collect()
    };
    let heads = [along.to_owned(), "setting".to_owned()];
    let name = experiment.metrics[metric].name;
    if curves.is_empty() {
        return None;
    }
    let table = Table {
        columns: heads.into_iter().chain(curves.iter().map(|curve| curve.label.clone())).collect(),
        rows: settings.iter().map(row).collect(),
    };
    Some(Picture {
        name: named(&[experiment.name, name, "over", along]),
        experiment: experiment.name,
        title: format!("{}: {name} over {along}", experiment.name),
        caption: vec!["Lines go through medians; the bands are their intervals at 95 %.".into()],
        alternative: format!(
            "{name} of {} over {along}: {}.",
            counted(curves.len(), "subject"),
            words.join("; ")
        ),
        table,
        drawing: Drawing::Over(Over { along: along.to_owned(), unit, curves }),
    })
}

/// The number in which texts differ and nothing else, and what stands before it.
fn one_number(texts: &[&str]) -> Option<(String, Vec<f64>)> {
    let (first, rest) = texts.split_first()?;
    let before =
        |text: &&str| first.bytes().zip(text.bytes()).take_while(|(one, other)| one == other).count();
    let after = |text: &&str| {
        first.bytes().rev().zip(text.bytes().rev()).take_while(|(one, other)| one == other).count()
    };
    let is_of_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let before = first.get(..rest.iter().map(before).min()?)?.trim_end_matches(is_of_number);
    let after = first.get(first.len() - rest.iter().map(after).min()?..)?.trim_start_matches(is_of_number);
    let number =
        |text: &&str| text.get(before.len()..text.len().checked_sub(after.len())?)?.parse::<f64>().ok();
    let numbers: Vec<f64> = texts.iter().filter_map(number).filter(|number| number.is_finite()).collect();
    let mut distinct = numbers.clone();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    let key = before.rsplit(';').next().unwrap_or(before).trim_end_matches('=');
    let key = key.rsplit('=').next().unwrap_or(key);
    (numbers.len() == texts.len() && distinct.len() == texts.len() && distinct.len() >= FEWEST)
        .then(|| (clean(key), numbers))
}

impl Over {
    /// Draws it from a height on, and says where it ends.
    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let numbers = || self.curves.iter().flat_map(|curve| curve.points.iter().map(|(number, _)| *number));
        let ends = self.curves.iter().flat_map(|curve| &curve.points).flat_map(|(_, median)| {
            let (low, high) = band(median);
            [low, high]
        });
        let top = top + 10.0;
        let names = self.curves.iter().map(|curve| legend_height(&curve.label)).sum();
        let foot = top + HEIGHT.max(names);
        let (low, high) = numbers().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), number| {
            (low.min(number), high.max(number))
        });
        let across = match low > 0.0 && high / low > WIDE {
            true => Axis::over(numbers(), Unit::Count, PLOT),
            false => Axis::from_zero(numbers(), Unit::Count, PLOT),
        };
        let (Some(across), Some(up)) = (across, Axis::over(ends, self.unit, (foot, top))) else { return top };
        for tick in across.ticks(tick_room) {
            canvas.line("grid", (tick.at, top), (tick.at, foot));
            canvas.text("faint", (tick.at, foot + SMALL + 5.0), End::Middle, SMALL, &tick.label);
        }
        for tick in up.ticks(|_| 2.0 * SMALL) {
            canvas.line("grid", (PLOT.0, tick.at), (PLOT.1, tick.at));
            canvas.text("faint", (PLOT.0 - 6.0, tick.at + 4.0), End::Last, SMALL, &tick.label);
        }
        let mut y = top;
        for (index, curve) in self.curves.iter().enumerate() {
            let words: Vec<_> = curve
                .points
                .iter()
                .map(|(number, median)| format!("{number}: {}", self.unit.format(median.value)))
                .collect();
            let line = format!("line d{}", index % 4);
            canvas.subject(
                &format!("k{}", (index + 4) % COLOURS),
                &curve.label,
                &format!("{}, {} {}", curve.label, self.along, words.join(", ")),
            );
            let at =
                |number: f64, value: f64| format!("{} {}", short(across.at(number)), short(up.at(value)));
            let upper = curve.points.iter().map(|(number, median)| at(*number, band(median).1));
            let lower = curve.points.iter().rev().map(|(number, median)| at(*number, band(median).0));
            canvas.path("mark band", &format!("M{}Z", upper.chain(lower).collect::<Vec<_>>().join("L")));
            let middle: Vec<_> =
                curve.points.iter().map(|(number, median)| at(*number, median.value)).collect();
            canvas.path(&line, &format!("M{}", middle.join("L")));
            let places =
                curve.points.iter().map(|(number, median)| (across.at(*number), up.at(median.value)));
            canvas.dots("line points", places);
            y += legend(canvas, &line, &curve.label, y);
            canvas.end();
        }
        let spread = if across.spread() == Spread::Logarithmic { ", by ratio" } else { "" };
        let along = format!("{}{spread}", self.along);
        canvas.text("faint", (PLOT.1, foot + 2.0 * SMALL + 12.0), End::Last, SMALL, &along);
        foot + 2.0 * SMALL + 16.0
    }
}

/// The interval, or the median itself where there are too few rounds for one.
fn band(median: &Estimate) -> (f64, f64) {
    median.interval.map_or((median.value, median.value), |interval| (interval.low, interval.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_in_one_number_lie_on_an_axis() {
        let found = |texts: &[&str]| one_number(texts);
        let jobs =
            ["cmd=sort;mode=run;sweep=n=10", "cmd=sort;mode=run;sweep=n=20", "cmd=sort;mode=run;sweep=n=400"];
        assert_eq!(found(&jobs), Some(("n".into(), vec![10.0, 20.0, 400.0])));
        // What numbers share at their ends belongs to them.
        assert_eq!(
            found(&["w=100ms", "w=200ms", "w=1500ms"]),
            Some(("w".into(), vec![100.0, 200.0, 1500.0]))
        );
        assert_eq!(found(&["w=1ms", "w=2ms"]), None, "two are no course");
        assert_eq!(found(&["a=1;b=2", "a=2;b=1", "a=3;b=3"]), None);
        assert_eq!(found(&["prestate=idle", "prestate=primed", "prestate=x"]), None);
        assert_eq!(found(&["", "", ""]), None);
        assert_eq!(found(&["é=1", "é=2", "è=3"]), None);
    }
}
