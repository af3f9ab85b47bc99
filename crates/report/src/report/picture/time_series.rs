//! A metric over the rounds: a strip for each subject, in multiples of its own median, so that spikes and drift of
//! fast and slow subjects look alike.

use super::plane::{Curve, Place, Plane, Shape, Side, Strips};
use super::{Picture, drawn, metrics, under};
use crate::axis::Range;
use crate::report::model::{Experiment, Report, Row, Setting};
use crate::report::text::{decimals, number};
use crate::units::{Unit, counted};

/// The fewest rounds worth drawing.
const FEWEST: usize = 3;

/// A picture for each decisive metric in each setting, or else for the first metric.
pub(super) fn pictures(report: &Report, experiment: &Experiment) -> Vec<Picture> {
    let metrics = metrics(experiment);
    let of_setting =
        |setting| metrics.iter().filter_map(move |&index| picture(report, experiment, setting, index));
    experiment.settings.iter().flat_map(of_setting).collect()
}

fn picture(report: &Report, experiment: &Experiment, setting: &Setting, index: usize) -> Option<Picture> {
    let metric = &experiment.metrics[index];
    let rows = drawn(setting);
    let curves: Vec<Curve> = rows.iter().filter_map(|row| curve(row, index)).collect();
    let step = rows.iter().find_map(|row| Some(row.value(index)?.shape.time_series.step))?;
    let mut caption = vec![
        "Each strip is one subject: its values divided by their median, on a shared logarithmic axis."
            .to_owned(),
    ];
    if step > 1 {
        caption.push(format!(
            "Each point is {step} rounds: the line is their median, the band reaches from the smallest to the largest value."
        ));
    }
    let rounds = counted(report.rounds.complete, "round");
    let plane = Plane {
        across: Side { name: "round".into(), unit: Unit::Count, range: Range::Exact },
        up: Side { name: String::new(), unit: Unit::Ratio, range: Range::Ratio },
        strips: Strips::Apart,
        shape: Shape::Line,
        curves,
    };
    let (name, under) = (metric.name, under(setting));
    let title =
        format!("{}: {name} over {rounds}{under}, each subject against its own median", experiment.name);
    let file = [experiment.name, "rounds", name, &setting.values];
    let table = plane.table();
    plane.picture(&file, title, caption, "Values over rounds, as multiples of their medians", table)
}

/// None if there are too few rounds, or no median above zero.
fn curve(row: &Row, index: usize) -> Option<Curve> {
    let value = row.value(index)?;
    let (median, series) = (value.summary.median.value, &value.shape.time_series);
    if median <= 0.0 || series.points.len() < FEWEST {
        return None;
    }
    let [low, high] = [value.summary.range.0, value.summary.range.1].map(|end| {
        let multiple = end / median;
        number(multiple, decimals(multiple).min(3))
    });
    let rounds = counted(value.summary.median.rounds, "round");
    Some(Curve {
        label: row.label.clone(),
        layer: row.layer,
        places: Place::all(series, 1.0, 1.0, median),
        words: format!(
            "{}: {rounds} from {low} to {high} times the median of {}",
            row.label,
            value.unit.format(median)
        ),
        notes: [format!("largest {high}×"), format!("smallest {low}×")],
    })
}
