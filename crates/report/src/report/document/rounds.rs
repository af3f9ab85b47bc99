//! Raw rounds over time, one small drawing for each cell, to show spikes, steps and drift. Every drawing has its own
//! axis with its ends at the side, and the numbers below.

use crate::axis::{Axis, Range};
use crate::document::{Cell, Column, Drawing, Rounds, Row as Line, Table};
use crate::report::model::{Experiment, Row, Setting, Value};
use crate::report::text::{after_comma, common_scale, decimals, number, with_interval};
use crate::stats::TimeSeries;
use crate::units::Unit;
use crate::verdict::MetricSummary;

/// The height of a drawing in its own units.
const HEIGHT: f64 = 100.0;
/// The smallest reach of an axis on either side of the median, as a share of it: noise must not look like drift.
const LEAST_REACH: f64 = 0.05;

/// A cell that can be drawn, with the heading of its drawing.
type Member<'a> = (&'a str, &'a Row, &'a Value);

/// The rounds of a metric by setting; in one group if every setting has the same single subject.
pub(super) fn rounds(experiment: &Experiment, metric: usize) -> Vec<(Rounds, Table)> {
    let definition = &experiment.metrics[metric];
    let settings: Vec<(&Setting, Vec<Member>)> =
        experiment.settings.iter().map(|setting| (setting, members(setting, metric))).collect();
    let all = || settings.iter().flat_map(|(_, members)| members);
    let one = all().next().map_or("", |(label, ..)| label);
    if settings.len() > 1 && settings.iter().all(|(_, own)| own.len() < 2) && all().all(|own| own.0 == one) {
        let by_setting = settings.iter().flat_map(|(setting, own)| {
            own.iter().map(|(_, row, value)| (setting.values.as_str(), *row, *value))
        });
        let title = format!("{} of {one}", definition.name);
        return Vec::from_iter(group(title, definition.unit, &by_setting.collect::<Vec<_>>()));
    }
    let of_setting = |(setting, members): (&Setting, Vec<Member>)| {
        let title = format!("{}{}", definition.name, after_comma(&setting.text));
        group(title, definition.unit, &members)
    };
    settings.into_iter().filter_map(of_setting).collect()
}

/// The subjects of a setting that have values, each once.
fn members(setting: &Setting, metric: usize) -> Vec<Member<'_>> {
    let all = setting.subjects().into_iter();
    all.filter_map(|row| Some((row.label.as_str(), row, row.value(metric)?))).collect()
}

/// None if nothing can be drawn.
fn group(title: String, unit: Unit, members: &[Member]) -> Option<(Rounds, Table)> {
    let drawn = members.iter().filter_map(|member| Some((*member, drawing(*member, unit)?)));
    let (members, drawings): (Vec<Member>, Vec<Drawing>) = drawn.unzip();
    (!drawings.is_empty())
        .then(|| (Rounds { title: title.clone(), drawings }, numbers(&title, unit, &members)))
}

/// The values of every subject by round, in one unit.
fn numbers(title: &str, unit: Unit, drawn: &[Member]) -> Table {
    let scale = common_scale(unit, drawn.iter().map(|(.., value)| value.summary.median.value));
    let longest = drawn.iter().map(|(.., value)| value.shape.time_series.points.len()).max().unwrap_or(0);
    let step = drawn.iter().map(|(.., value)| value.shape.time_series.step).max().unwrap_or(1);
    let head = |index: usize| {
        let first = index * step + 1;
        Column::numbers(if step == 1 { first.to_string() } else { format!("{first}–{}", first + step - 1) })
    };
    let line = |(name, row, value): &Member| {
        let cell = |index: usize| match value.shape.time_series.points.get(index) {
            Some(Some(point)) => {
                let shown = point.median / scale.divisor;
                Cell::words(number(shown, decimals(shown)))
            }
            _ => Cell::nothing("–"),
        };
        let cells = std::iter::once(Cell::code(name)).chain((0..longest).map(cell));
        Line { subjects: vec![row.label.clone()], cells: cells.collect() }
    };
    let of_rounds = if step == 1 { "by round".to_owned() } else { format!("medians of {step} rounds") };
    let in_unit = if scale.symbol.is_empty() { String::new() } else { format!(", in {}", scale.symbol) };
    let columns = std::iter::once(Column::words("subject")).chain((0..longest).map(head));
    let mut table = Table::of(format!("{title}, {of_rounds}{in_unit}"), columns.collect());
    table.rows = drawn.iter().map(line).collect();
    table
}

fn drawing((name, row, value): Member, unit: Unit) -> Option<Drawing> {
    let axis = axis(value, unit)?;
    let points = value.shape.time_series.points.len();
    let MetricSummary { median, range, .. } = &value.summary;
    let shown = |value: f64| with_interval(unit, value, None);
    let [middle, low, high] = [median.value, range.0, range.1].map(shown);
    Some(Drawing {
        name: name.to_owned(),
        label: row.label.clone(),
        alternative: format!(
            "{name}: {} rounds in order, median {middle}, from {low} to {high}",
            median.rounds
        ),
        points,
        step: value.shape.time_series.step,
        line: line(&value.shape.time_series, &axis, if row.lost == 0 { Holes::Bridged } else { Holes::Gaps }),
        band: (value.shape.time_series.step > 1).then(|| band(&value.shape.time_series, &axis)),
        middle: format!("M0 {:.0}H{points}", axis.at(median.value)),
        ends: [axis.ends().0, axis.ends().1].map(shown),
        axis,
        scale: unit.scale_for(median.value),
    })
}

/// The axis from the bottom to the top of a drawing; none if all values are zero.
fn axis(value: &Value, unit: Unit) -> Option<Axis> {
    let (low, high) = value.summary.range;
    let median = value.summary.median.value;
    let reach = median.abs() * LEAST_REACH;
    let range = if low > 0.0 && high / low > 4.0 { Range::Ratio } else { Range::Exact };
    let ends = [low.min(median - reach), high.max(median + reach)];
    Axis::over(range, ends, unit, (HEIGHT, 0.0)).filter(|_| ends[0] < ends[1])
}

/// The meaning of rounds without a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holes {
    /// The experiment did not run in them: nothing is missing.
    Bridged,
    /// A value is missing.
    Gaps,
}

/// A path through the medians.
fn line(course: &TimeSeries, axis: &Axis, holes: Holes) -> String {
    let mut path = String::new();
    let mut is_drawn = false;
    for (index, point) in course.points.iter().enumerate() {
        if let Some(point) = point {
            let verb = if is_drawn { 'L' } else { 'M' };
            path.push_str(&format!("{verb}{index}.5 {:.2}", axis.at(point.median)));
            // A point between two gaps would be invisible.
            let is_last = course.points.get(index + 1).is_none_or(Option::is_none);
            if !is_drawn && is_last {
                path.push_str("h0");
            }
        }
        is_drawn = point.is_some() || (is_drawn && holes == Holes::Bridged);
    }
    path
}

/// The area from the smallest to the largest values.
fn band(course: &TimeSeries, axis: &Axis) -> String {
    let mut path = String::new();
    for (index, point) in course.points.iter().enumerate() {
        let Some(point) = point else { continue };
        let (top, bottom) = (axis.at(point.high), axis.at(point.low));
        path.push_str(&format!("M{index} {top:.0}h1V{bottom:.0}h-1z"));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{self, Alpha, Estimate, Sample};
    use crate::verdict::Shape;

    fn value(values: &[Option<f64>], most: usize) -> Value {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        let sample = Sample::new(known.clone()).unwrap();
        let ends =
            known.iter().fold((f64::INFINITY, 0.0f64), |(low, high), one| (low.min(*one), high.max(*one)));
        Value {
            metric: "time",
            unit: Unit::Seconds,
            summary: MetricSummary {
                median: Estimate::of_median(&sample, Alpha::FIVE_PERCENT),
                range: ends,
                mean: f64::NAN,
                deviation: f64::NAN,
            },
            shape: Shape {
                quartiles: ends,
                steps: Vec::new(),
                time_series: stats::time_series(values, most),
            },
        }
    }

    #[test]
    fn a_hole_is_a_gap_and_a_spike_reaches_the_top() {
        let values = [Some(1e-3), Some(1e-3), None, Some(9e-3), Some(1e-3)];
        let value = value(&values, 200);
        let axis = axis(&value, Unit::Seconds).unwrap();
        assert!(axis.is_logarithmic() && axis.at(9e-3) < 4.0);
        let path = line(&value.shape.time_series, &axis, Holes::Gaps);
        assert_eq!(path.matches('M').count(), 2, "{path}");
        assert_eq!(line(&value.shape.time_series, &axis, Holes::Bridged).matches('M').count(), 1);
        assert!(path.contains("M3.5 "), "{path}");
    }

    #[test]
    fn a_round_between_two_holes_is_seen() {
        let value = value(&[Some(1e-3), Some(1e-3), None, Some(2e-3), None, Some(1e-3), Some(1e-3)], 200);
        let axis = axis(&value, Unit::Seconds).unwrap();
        let path = line(&value.shape.time_series, &axis, Holes::Gaps);
        assert_eq!(path.matches("h0").count(), 1, "{path}");
        assert!(path.contains("M3.5 0.00h0M5.5"), "{path}");
    }

    #[test]
    fn noise_does_not_fill_the_height_and_a_constant_has_an_axis() {
        let value = value(&[Some(2.0), Some(2.001), Some(2.0)], 200);
        let axis = axis(&value, Unit::Seconds).unwrap();
        assert!((axis.at(2.001) - 50.0).abs() < 2.0);
        assert!(super::axis(&self::value(&[Some(0.0), Some(0.0)], 9), Unit::Count).is_none());
    }

    #[test]
    fn many_rounds_have_a_band_and_few_have_none() {
        let row = |values: &Value| drawing(("bare", &row_named("bare"), values), Unit::Seconds).unwrap();
        let many: Vec<_> = (0..1000).map(|round| Some(1.0 + f64::from(round % 7))).collect();
        let drawn = row(&value(&many, 200));
        assert_eq!((drawn.points, drawn.step, drawn.band.is_some()), (200, 5, true));
        assert!(row(&value(&many[..20], 200)).band.is_none());
    }

    fn row_named(label: &str) -> Row {
        Row {
            label: label.into(),
            short: label.into(),
            subject: label.into(),
            layer: "bare",
            is_baseline: true,
            variant_of: None,
            lacks: Vec::new(),
            runtime: None,
            values: Vec::new(),
            against_baseline: Vec::new(),
            floor_share: None,
            floor: None,
            replicates: Vec::new(),
            lost: 0,
        }
    }
}
