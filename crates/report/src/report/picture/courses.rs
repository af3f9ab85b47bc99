//! What was a metric like over the rounds? A track a subject, each as a multiple of its own median, so that spikes and
//! drift of quick and slow subjects show alike.

use super::tracks::{Marks, Track, Tracks};
use super::{Drawing, Picture, Table, named};
use crate::report::model::{Experiment, Metric, Report, Row, Setting};
use crate::report::text::{clean, decimals, number};
use crate::stats::Course;
use crate::stats::course::Point;
use crate::units::{Unit, counted};

/// Fewer rounds have no course.
const FEWEST: usize = 3;
/// With more tracks variants are left out.
const CROWDED: usize = 14;

/// A picture for each decisive metric in each setting, or for the first metric where none decides.
pub(super) fn pictures(report: &Report, experiment: &Experiment) -> Vec<Picture> {
    if experiment.speaks_for_itself() {
        return Vec::new();
    }
    let mut metrics: Vec<usize> =
        (0..experiment.metrics.len()).filter(|&metric| experiment.metrics[metric].decisive).collect();
    if metrics.is_empty() {
        metrics = (0..experiment.metrics.len().min(1)).collect();
    }
    let of_setting =
        |setting| metrics.iter().filter_map(move |&metric| picture(report, experiment, setting, metric));
    experiment.settings.iter().flat_map(of_setting).collect()
}

fn picture(report: &Report, experiment: &Experiment, setting: &Setting, index: usize) -> Option<Picture> {
    let metric = &experiment.metrics[index];
    let rows = || setting.ladders.iter().flat_map(|ladder| &ladder.rows);
    let is_crowded = rows().count() > CROWDED;
    let mut told: Vec<Track> = Vec::new();
    for row in rows().filter(|row| !is_crowded || row.variant_of.is_none()) {
        let is_new = told.iter().all(|track| track.label != row.label);
        told.extend(track(metric, index, row).filter(|_| is_new));
    }
    let step = told.first()?.course.step;
    let under = if setting.text.is_empty() { String::new() } else { format!(", {}", clean(&setting.text)) };
    let mut caption = vec![
        "Each track is one subject, its values divided by their own median, on a logarithmic axis that all share."
            .to_owned(),
    ];
    if step > 1 {
        caption.push(format!(
            "A point stands for {step} rounds: the line is their median, the band reaches from the smallest to the largest."
        ));
    }
    Some(Picture {
        name: named(&[experiment.name, "rounds", metric.name, &setting.values]),
        experiment: experiment.name,
        title: format!(
            "{}: {} over {}{under}, each subject against its own median",
            experiment.name,
            metric.name,
            counted(report.rounds.complete, "round")
        ),
        caption,
        alternative: alternative(&told),
        table: table(&told),
        drawing: Drawing::Tracks(Tracks {
            across: ("round".into(), Unit::Count),
            unit: Unit::Ratio,
            marks: Marks::Line,
            step: (1.0, 1.0),
            tracks: told,
        }),
    })
}

/// None where there are too few rounds or no median that could be divided by.
fn track(metric: &Metric, index: usize, row: &Row) -> Option<Track> {
    let value = row.values.get(index)?.as_ref()?;
    let median = value.median.value;
    if median <= 0.0 || value.course.points.len() < FEWEST {
        return None;
    }
    let divided = |point: &Option<Point>| {
        point.map(|point| Point {
            low: point.low / median,
            median: point.median / median,
            high: point.high / median,
        })
    };
    let course =
        Course { step: value.course.step, points: value.course.points.iter().map(divided).collect() };
    let (low, high) = (value.range.0 / median, value.range.1 / median);
    let words = format!(
        "{}: {} of {} from {} to {} times the median of {}",
        row.label,
        counted(value.median.rounds, "round"),
        metric.name,
        multiple(low),
        multiple(high),
        metric.unit.format(median)
    );
    let notes = [format!("largest {}×", multiple(high)), format!("smallest {}×", multiple(low))];
    Some(Track { label: row.label.clone(), layer: row.layer, course, words, notes })
}

fn multiple(value: f64) -> String {
    number(value, decimals(value).min(3))
}

fn alternative(tracks: &[Track]) -> String {
    let highest = tracks.iter().filter_map(|track| Some((track, track.range()?.1)));
    let highest = highest.max_by(|(_, one), (_, other)| one.total_cmp(other));
    let spike = highest.map_or(String::new(), |(track, high)| {
        format!(" The largest value is {} times its median, of {}.", multiple(high), track.label)
    });
    format!(
        "Values of {} over rounds, as multiples of their medians.{spike}",
        counted(tracks.len(), "subject")
    )
}

fn table(tracks: &[Track]) -> Table {
    let columns = std::iter::once("rounds".to_owned()).chain(tracks.iter().map(|track| track.label.clone()));
    let longest = tracks.iter().map(|track| track.course.points.len()).max().unwrap_or(0);
    let step = tracks.first().map_or(1, |track| track.course.step);
    let row = |index: usize| {
        let from = index * step + 1;
        let rounds = if step == 1 { from.to_string() } else { format!("{from} to {}", from + step - 1) };
        let of = |track: &Track| match track.course.points.get(index) {
            Some(Some(point)) if step == 1 => multiple(point.median),
            Some(Some(point)) => {
                format!("{} [{}, {}]", multiple(point.median), multiple(point.low), multiple(point.high))
            }
            _ => "-".to_owned(),
        };
        std::iter::once(rounds).chain(tracks.iter().map(of)).collect()
    };
    Table { columns: columns.collect(), rows: (0..longest).map(row).collect() }
}
