//! Cumulative distributions: a rising curve for each subject over a logarithmic axis. A steep curve means steady
//! values, a step is a second mode, and a long flat end is a tail.

use super::plane::{Curve, Place, Plane, Shape, Side, Strips, at_share, quantiles};
use super::{Picture, drawn, metrics, under};
use crate::axis::Range;
use crate::report::model::{Experiment, Report, Row, Setting};
use crate::units::{Unit, counted};

/// The fewest values for a curve.
const FEWEST: usize = 5;

/// A picture of the first metric for each setting.
pub(super) fn pictures(report: &Report, experiment: &Experiment) -> Vec<Picture> {
    let Some(&index) = metrics(experiment).first() else { return Vec::new() };
    let metric = &experiment.metrics[index];
    let of_setting = |setting: &Setting| {
        let steps = |row: &&Row| Some(row.value(index)?.shape.steps.clone());
        let curves = drawn(setting).into_iter().filter_map(|row| Some((row.label.clone(), steps(&row)?)));
        let rounds = counted(report.rounds.complete, "round");
        picture(
            &[experiment.name, "distribution", metric.name, &setting.values],
            format!(
                "{}: how {} is distributed over {rounds}{}",
                experiment.name,
                metric.name,
                under(setting)
            ),
            "rounds",
            Side { name: metric.name.to_owned(), unit: metric.unit, range: Range::Ratio },
            curves.filter(|(_, steps)| steps.len() >= FEWEST).collect(),
        )
    };
    experiment.settings.iter().filter_map(of_setting).collect()
}

/// A picture of subjects with order statistics at equal steps, from the smallest to the largest value; `of` names the
/// values, in the plural. None without subjects.
pub(super) fn picture(
    name: &[&str],
    title: String,
    of: &str,
    across: Side,
    mut subjects: Vec<(String, Vec<f64>)>,
) -> Option<Picture> {
    subjects.sort_by(|(_, one), (_, other)| at_share(one, 0.5).total_cmp(&at_share(other, 0.5)));
    let unit = across.unit;
    let [take, longest, no_longer] = match unit {
        Unit::Seconds => ["take", "longest", "took no longer"],
        _ => ["have", "largest", "had no more"],
    };
    let table = quantiles(unit, subjects.iter().map(|(label, steps)| (label.as_str(), steps.as_slice())));
    let curve = |(label, steps): (String, Vec<f64>)| {
        let [half, most, all] = [0.5, 0.95, 1.0].map(|share| unit.format(at_share(&steps, share)));
        let words =
            format!("{label}: half of the {of} {take} up to {half}, 95 % up to {most}, the {longest} {all}");
        let share = |index: usize| (index + 1) as f64 / steps.len() as f64;
        let places = steps.iter().enumerate().map(|(index, value)| Some(Place::single(*value, share(index))));
        Curve { label, layer: "", places: places.collect(), words, notes: Default::default() }
    };
    let curves: Vec<Curve> = subjects.into_iter().map(curve).collect();
    let up = Side { name: String::new(), unit: Unit::Share, range: Range::FromZero };
    let plane = Plane { across, up, strips: Strips::Together, shape: Shape::Stair, curves };
    let caption = vec![format!(
        "At each value, the height is the share of {of} that {no_longer}. Subjects are in the order of their medians; \
         lines differ in colour and dashes."
    )];
    plane.picture(name, title, caption, "Cumulative distributions", table)
}
