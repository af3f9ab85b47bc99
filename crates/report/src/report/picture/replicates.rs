//! What replicates within a sample, such as bursts under a limit: over time, a track a subject; and what was waited
//! for also as a distribution.

use super::distribution::{Curve, Told};
use super::tracks::{Marks, Track, Tracks};
use super::{Drawing, Picture, Table, distribution, named};
use crate::experiment::{Replicates, Shown};
use crate::report::model::{Experiment, Replicated, Row, Setting};
use crate::report::text::clean;
use crate::units::{Unit, counted};

/// Pictures of every declared series in every setting that has it.
pub(super) fn pictures(experiment: &Experiment) -> Vec<Picture> {
    let of_setting = |setting| {
        let of_series = move |(index, declared): (usize, &'static Replicates)| {
            let over_time = over_time(experiment, setting, index, declared);
            let waits = (declared.shown == Shown::Waits).then(|| waits(experiment, setting, index, declared));
            [over_time, waits.flatten()]
        };
        experiment.replicates.iter().enumerate().flat_map(of_series).flatten()
    };
    experiment.settings.iter().flat_map(of_setting).collect()
}

/// Each subject once, with its values, what was made of one below it.
fn rows<'a>(
    experiment: &'a Experiment,
    setting: &'a Setting,
    index: usize,
) -> Vec<(&'a Row, &'a Replicated)> {
    let of_subject = |subject: &Row| {
        let row =
            setting.ladders.iter().flat_map(|ladder| &ladder.rows).find(|row| row.label == subject.label)?;
        Some((row, row.replicates.get(index)?.as_ref()?))
    };
    super::grid::subjects(experiment).into_iter().filter_map(of_subject).collect()
}

fn under(setting: &Setting) -> String {
    if setting.text.is_empty() { String::new() } else { format!(", {}", clean(&setting.text)) }
}

fn over_time(
    experiment: &Experiment,
    setting: &Setting,
    index: usize,
    declared: &'static Replicates,
) -> Option<Picture> {
    let known: Vec<(&Row, &Replicated)> =
        rows(experiment, setting, index).into_iter().filter(|(_, own)| own.every.is_some()).collect();
    let every = known.first()?.1.every?;
    // Tracks share one axis, so they must be in step.
    let known: Vec<(&Row, &Replicated)> =
        known.into_iter().filter(|(_, own)| own.every == Some(every)).collect();
    let shown = |value: f64| declared.unit.format(value);
    let track = |(row, own): &(&Row, &Replicated)| Track {
        label: row.label.clone(),
        layer: row.layer,
        course: own.course.clone(),
        words: format!("{}: {}, {}", row.label, counted(own.count, "value"), ends(declared, own)),
        notes: [("largest", own.steps.len().saturating_sub(1)), ("median", own.steps.len() / 2)].map(
            |(name, at)| own.steps.get(at).map_or(String::new(), |value| format!("{name} {}", shown(*value))),
        ),
    };
    let table_row = |(row, own): &(&Row, &Replicated)| {
        let at = |share: f64| own.steps[(share * (own.steps.len() - 1) as f64).round() as usize];
        let mut texts = vec![row.label.clone(), own.count.to_string()];
        texts.extend([0.0, 0.5, 0.95, 1.0].map(|share| shown(at(share))));
        texts
    };
    let marks = match declared.shown {
        Shown::Waits => Marks::Line,
        Shown::Parts => Marks::Bars,
    };
    let told: Vec<_> =
        known.iter().map(|(row, own)| format!("{}: {}", row.label, ends(declared, own))).collect();
    let columns = ["subject", "values", "smallest", "median", "95 %", "largest"];
    let mut caption = vec![match marks {
        Marks::Line => format!(
            "Each value stands at its {}; all tracks have the same logarithmic axis, and a line that ends early had no more \
             values.",
            declared.along
        ),
        Marks::Bars => "Each bar is one value; all tracks have the same axis, from zero.".to_owned(),
    }];
    caption.push("From the first sample of each subject that counts.".into());
    Some(Picture {
        name: named(&[experiment.name, declared.series, "over-time", &setting.values]),
        experiment: experiment.name,
        title: format!("{}: {}{}", experiment.name, declared.what, under(setting)),
        caption,
        alternative: format!("{} over time. {}.", capital(declared.what), told.join("; ")),
        table: Table {
            columns: columns.map(str::to_owned).to_vec(),
            rows: known.iter().map(table_row).collect(),
        },
        drawing: Drawing::Tracks(Tracks {
            across: (declared.along.to_owned(), Unit::Seconds),
            unit: declared.unit,
            marks,
            step: (every, 0.0),
            tracks: known.iter().map(track).collect(),
        }),
    })
}

/// From where to where its values reach.
fn ends(declared: &Replicates, own: &Replicated) -> String {
    let shown = |value: Option<&f64>| value.map_or("-".to_owned(), |value| declared.unit.format(*value));
    let middle = own.steps.get(own.steps.len() / 2);
    format!("{} to {}, median {}", shown(own.steps.first()), shown(own.steps.last()), shown(middle))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn waits(
    experiment: &Experiment,
    setting: &Setting,
    index: usize,
    declared: &'static Replicates,
) -> Option<Picture> {
    let curve =
        |(row, own): (&Row, &Replicated)| Curve { label: row.label.clone(), steps: own.steps.clone() };
    distribution::picture(Told {
        name: named(&[experiment.name, declared.series, "distribution", &setting.values]),
        experiment: experiment.name,
        title: format!("{}: how the {} is distributed{}", experiment.name, declared.what, under(setting)),
        of: "values",
        unit: declared.unit,
        curves: rows(experiment, setting, index).into_iter().map(curve).collect(),
    })
}
