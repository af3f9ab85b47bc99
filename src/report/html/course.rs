//! Raw rounds over time, one small drawing a cell, so that spikes, steps and drift show. Every drawing has its
//! own axis; what it spans stands beside it.

use crate::report::model::{Experiment, Row, Setting, Value};
use crate::report::text::{percent, with_interval};
use crate::stats::Course;
use crate::units::Unit;

/// The height of a drawing in its own units.
const HEIGHT: f64 = 100.0;
/// The least that an axis spans, as a factor on either side of the median: noise must not look like drift.
const LEAST_SPAN: f64 = 1.05;

/// The drawings of a metric in a setting.
#[derive(Debug)]
pub(super) struct Courses {
    pub title: String,
    pub drawings: Vec<Drawing>,
}

/// The rounds of one cell.
#[derive(Debug)]
pub(super) struct Drawing {
    pub label: String,
    /// What there is to see, for whoever does not.
    pub alternative: String,
    /// How many points there are.
    pub points: usize,
    /// How many rounds a point stands for.
    pub step: usize,
    /// A path through the medians.
    pub line: String,
    /// The area from the smallest to the largest value, where a point stands for several rounds.
    pub band: Option<String>,
    /// Where the median of all rounds lies.
    pub middle: String,
    /// The ends of the axis with their unit.
    pub ends: [String; 2],
    /// For the script: whether the axis is logarithmic, its ends, what the unit divides by, its symbol.
    pub axis: Axis,
}

/// What the script needs to tell a value from a height.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// The ends, as logarithms where it is logarithmic.
    pub low: f64,
    pub high: f64,
    pub kind: &'static str,
    pub divisor: f64,
    pub symbol: &'static str,
}

/// The rounds of every subject in a setting; none where nothing was measured.
pub(super) fn courses(experiment: &Experiment, setting: &Setting, metric: usize) -> Option<Courses> {
    let definition = &experiment.metrics[metric];
    let mut drawings: Vec<Drawing> = Vec::new();
    for row in setting.ladders.iter().flat_map(|ladder| &ladder.rows) {
        let is_new = drawings.iter().all(|known| known.label != row.label);
        let value = row.values.get(metric).and_then(Option::as_ref).filter(|_| is_new);
        drawings.extend(value.and_then(|value| drawing(row, value, definition.unit)));
    }
    let named = if setting.text.is_empty() { String::new() } else { format!(", {}", setting.text) };
    (!drawings.is_empty()).then(|| Courses { title: format!("{}{named}", definition.name), drawings })
}

fn drawing(row: &Row, value: &Value, unit: Unit) -> Option<Drawing> {
    let axis = Axis::over(value, unit)?;
    let points = value.course.points.len();
    let shown = |value: f64| with_interval(unit, value, None);
    let (low, high) = value.range;
    let drift = drift(&value.course).map_or(String::new(), |share| {
        format!(
            "; the last third lies {} {} the first",
            percent(share.abs()),
            if share < 0.0 { "below" } else { "above" }
        )
    });
    Some(Drawing {
        label: row.label.clone(),
        alternative: format!(
            "{}: {} rounds in order, median {}, from {} to {}{drift}",
            row.label,
            value.median.rounds,
            shown(value.median.value),
            shown(low),
            shown(high)
        ),
        points,
        step: value.course.step,
        line: line(&value.course, &axis),
        band: (value.course.step > 1).then(|| band(&value.course, &axis)),
        middle: format!("M0 {:.0}H{points}", axis.height(value.median.value)),
        ends: [shown(axis.value(axis.low)), shown(axis.value(axis.high))],
        axis,
    })
}

impl Axis {
    fn over(value: &Value, unit: Unit) -> Option<Axis> {
        let (low, high) = value.range;
        let median = value.median.value;
        let scale = unit.scale_for(median);
        let kind = if low > 0.0 && high / low > 4.0 { "log" } else { "linear" };
        let reach = median.abs() * (LEAST_SPAN - 1.0);
        let (low, high) = (low.min(median - reach), high.max(median + reach));
        let (low, high) = if kind == "log" { (low.ln(), high.ln()) } else { (low, high) };
        let is_wide = (high - low).is_finite() && high > low;
        is_wide.then_some(Axis { low, high, kind, divisor: scale.divisor, symbol: scale.symbol })
    }

    /// From the top.
    fn height(&self, value: f64) -> f64 {
        let place = if self.kind == "log" { value.ln() } else { value };
        (HEIGHT * (self.high - place) / (self.high - self.low)).clamp(0.0, HEIGHT)
    }

    fn value(&self, place: f64) -> f64 {
        if self.kind == "log" { place.exp() } else { place }
    }
}

/// A path through the medians; rounds without a value are gaps.
fn line(course: &Course, axis: &Axis) -> String {
    let mut path = String::new();
    let mut is_drawn = false;
    for (index, point) in course.points.iter().enumerate() {
        if let Some(point) = point {
            let verb = if is_drawn { 'L' } else { 'M' };
            path.push_str(&format!("{verb}{index}.5 {:.1}", axis.height(point.median)));
        }
        is_drawn = point.is_some();
    }
    path
}

/// The area from the smallest to the largest values.
fn band(course: &Course, axis: &Axis) -> String {
    let mut path = String::new();
    for (index, point) in course.points.iter().enumerate() {
        let Some(point) = point else { continue };
        let (top, bottom) = (axis.height(point.high), axis.height(point.low));
        path.push_str(&format!("M{index} {top:.0}h1V{bottom:.0}h-1z"));
    }
    path
}

/// By how much the last third of the points lies above the first, as a share of it.
fn drift(course: &Course) -> Option<f64> {
    let known: Vec<f64> = course.points.iter().flatten().map(|point| point.median).collect();
    let third = known.len() / 3;
    let middle = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    };
    let (first, last) = (middle(&known[..third])?, middle(&known[known.len() - third..])?);
    (first > 0.0).then_some(last / first - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{self, Alpha, Estimate, Sample};

    fn value(values: &[Option<f64>], most: usize) -> Value {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        let sample = Sample::new(known.clone()).unwrap();
        let ends =
            known.iter().fold((f64::INFINITY, 0.0f64), |(low, high), one| (low.min(*one), high.max(*one)));
        Value {
            median: Estimate::of_median(&sample, Alpha::FIVE_PERCENT),
            range: ends,
            quartiles: ends,
            points: Vec::new(),
            steps: Vec::new(),
            course: stats::course(values, most),
        }
    }

    #[test]
    fn a_hole_is_a_gap_and_a_spike_reaches_the_top() {
        let values = [Some(1e-3), Some(1e-3), None, Some(9e-3), Some(1e-3)];
        let value = value(&values, 200);
        let axis = Axis::over(&value, Unit::Seconds).unwrap();
        assert_eq!(axis.kind, "log");
        let path = line(&value.course, &axis);
        assert_eq!(path.matches('M').count(), 2, "{path}");
        assert!(path.contains("M3.5 0.0"), "{path}");
    }

    #[test]
    fn noise_does_not_fill_the_height_and_a_constant_has_an_axis() {
        let value = value(&[Some(2.0), Some(2.001), Some(2.0)], 200);
        let axis = Axis::over(&value, Unit::Seconds).unwrap();
        assert!((axis.height(2.001) - 50.0).abs() < 2.0);
        assert!(Axis::over(&self::value(&[Some(0.0), Some(0.0)], 9), Unit::Count).is_none());
    }

    #[test]
    fn many_rounds_have_a_band_and_few_have_none() {
        let row = |values: &Value| drawing(&row_named("bare"), values, Unit::Seconds).unwrap();
        let many: Vec<_> = (0..1000).map(|round| Some(1.0 + f64::from(round % 7))).collect();
        let drawn = row(&value(&many, 200));
        assert_eq!((drawn.points, drawn.step, drawn.band.is_some()), (200, 5, true));
        assert!(row(&value(&many[..20], 200)).band.is_none());
        let rising: Vec<_> = (0..60).map(|round| Some(1.0 + f64::from(round) / 60.0)).collect();
        assert!(row(&value(&rising, 200)).alternative.contains("above the first"));
    }

    fn row_named(label: &str) -> Row {
        Row {
            label: label.into(),
            short: label.into(),
            subject: label.into(),
            layer: "bare",
            is_baseline: true,
            variant_of: None,
            runtime: None,
            values: Vec::new(),
            against_baseline: Vec::new(),
            floor_share: None,
            replicates: Vec::new(),
            lost: 0,
        }
    }
}
