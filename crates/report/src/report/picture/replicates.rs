//! Values that replicate within a sample, such as bursts under a limit: over time, in a strip for each subject; and
//! times also as a distribution.

use super::plane::{Curve, Place, Plane, Shape, Side, Strips, at_share, quantiles};
use super::{Picture, distribution, row_of, subjects, under};
use crate::axis::Range;
use crate::experiment::{Replicates, Shown};
use crate::report::model::{Experiment, Replicated, Row, Setting};
use crate::report::text::capital;
use crate::units::{Unit, counted};

/// Pictures of every declared series in every setting that has it.
pub(super) fn pictures(experiment: &Experiment) -> Vec<Picture> {
    let mut pictures = Vec::new();
    for setting in &experiment.settings {
        for (index, declared) in experiment.about.replicates.iter().enumerate() {
            let own = |label: &str| {
                let row = row_of(setting, label)?;
                Some((row, row.replicates.get(index)?.as_ref()?))
            };
            let known: Vec<_> = subjects(experiment).iter().filter_map(|row| own(&row.label)).collect();
            pictures.extend(over_time(experiment, setting, declared, &known));
            if declared.shown == Shown::Waits {
                pictures.extend(waits(experiment, setting, declared, &known));
            }
        }
    }
    pictures
}

fn over_time(
    experiment: &Experiment,
    setting: &Setting,
    declared: &Replicates,
    known: &[(&Row, &Replicated)],
) -> Option<Picture> {
    let every = known.iter().find_map(|(_, own)| own.every)?;
    // Strips share one axis, so they must be in step.
    let known: Vec<_> = known.iter().filter(|(_, own)| own.every == Some(every)).collect();
    let curve = |(row, own): &&(&Row, &Replicated)| {
        let shown = |share| declared.unit.format(at_share(&own.steps, share));
        let [least, middle, most] = [0.0, 0.5, 1.0].map(shown);
        let count = counted(own.count, "value");
        Curve {
            label: row.label.clone(),
            layer: row.layer,
            places: Place::all(&own.time_series, 0.0, every, 1.0),
            words: format!("{}: {count} from {least} to {most}, median {middle}", row.label),
            notes: [format!("largest {most}"), format!("median {middle}")],
        }
    };
    let (shape, range, how) = match declared.shown {
        Shown::Waits => (
            Shape::Line,
            Range::Ratio,
            format!(
                "Each value is at its {}; all strips have the same logarithmic axis; a line that ends early has no more \
                 values.",
                declared.along
            ),
        ),
        Shown::Parts => (
            Shape::Bars,
            Range::FromZero,
            "Each bar is one value; all strips have the same axis, from zero.".to_owned(),
        ),
        Shown::Places => (
            Shape::Line,
            Range::FromZero,
            format!(
                "Each value stands at its number of {}; all strips have the same axis, from zero.",
                declared.along
            ),
        ),
    };
    let is_by_place = declared.shown == Shown::Places;
    let (along, over) = if is_by_place { (Unit::Count, declared.along) } else { (Unit::Seconds, "time") };
    let plane = Plane {
        across: Side { name: declared.along.to_owned(), unit: along, range: Range::Exact },
        up: Side { name: String::new(), unit: declared.unit, range },
        strips: Strips::Apart,
        shape,
        curves: known.iter().map(curve).collect(),
    };
    let title = format!("{}: {}{}", experiment.name, declared.what, under(setting));
    let caption = vec![how, "From the first counted sample of each subject.".into()];
    let steps = known.iter().map(|(row, own)| (row.label.as_str(), own.steps.as_slice()));
    let table = quantiles(declared.unit, steps);
    let file = [experiment.name, declared.series.text(), "over-time", &setting.values];
    plane.picture(&file, title, caption, &format!("{} over {over}", capital(declared.what)), table)
}

fn waits(
    experiment: &Experiment,
    setting: &Setting,
    declared: &Replicates,
    known: &[(&Row, &Replicated)],
) -> Option<Picture> {
    distribution::picture(
        &[experiment.name, declared.series.text(), "distribution", &setting.values],
        format!("{}: how the {} is distributed{}", experiment.name, declared.what, under(setting)),
        "values",
        Side { name: String::new(), unit: declared.unit, range: Range::Ratio },
        known.iter().map(|(row, own)| (row.label.clone(), own.steps.clone())).collect(),
    )
}
