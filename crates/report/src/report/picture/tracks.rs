//! What happened one after the other? A track for each subject under a common time: lines over rounds, in which
//! spikes and drift show, and what replicates within a sample, such as bursts under a limit.

use super::axis::{Axis, Tick};
use super::colour_of_layer;
use super::letters::in_two;
use super::svg::{Canvas, End, LABEL, SIDE, SMALL, WIDTH, short, tick_room};
use crate::stats::Course;
use crate::stats::course::Point;
use crate::units::Unit;

const LABEL_ROOM: f64 = 174.0;
const PLOT: (f64, f64) = (SIDE + LABEL_ROOM + 58.0, WIDTH - SIDE - 116.0);
/// Dots further apart than this are seen as dots.
const APART: f64 = 7.0;

/// Tracks under each other.
#[derive(Debug, Clone)]
pub struct Tracks {
    /// What runs from left to right, with its unit.
    pub across: (String, Unit),
    /// The unit of the values.
    pub unit: Unit,
    /// How values are marked.
    pub marks: Marks,
    /// How far apart two places are from left to right, and where the first one is.
    pub step: (f64, f64),
    /// From top to bottom.
    pub tracks: Vec<Track>,
}

/// How values are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// A line through them, in a band from the smallest to the largest where one place stands for several.
    Line,
    /// A bar from zero for each.
    Bars,
}

/// A subject's values in their order.
#[derive(Debug, Clone)]
pub struct Track {
    /// The subject's label.
    pub label: String,
    /// Its layer.
    pub layer: &'static str,
    /// How many places lie between two points, and the points.
    pub course: Course,
    /// What is said of it in a line.
    pub words: String,
    /// Two short lines of numbers beside it.
    pub notes: [String; 2],
}

impl Track {
    fn points(&self) -> impl Iterator<Item = &Point> {
        self.course.points.iter().flatten()
    }

    /// The smallest and the largest value.
    pub(super) fn range(&self) -> Option<(f64, f64)> {
        let ends = |ends: Option<(f64, f64)>, point: &Point| {
            let (low, high) = ends.unwrap_or((point.low, point.high));
            Some((low.min(point.low), high.max(point.high)))
        };
        self.points().fold(None, ends)
    }
}

/// The two ticks between which a track's height can be read: the outermost of as many as there could be, as far as
/// their names do not meet.
fn outer(up: &Axis) -> Vec<Tick> {
    const ROOM: f64 = SMALL + 3.0;
    let roomy = up.ticks(|_| ROOM);
    if roomy.len() > 1 {
        return [roomy[0].clone(), roomy[roomy.len() - 1].clone()].to_vec();
    }
    let close = up.ticks(|_| 1.0);
    match (close.first(), close.last()) {
        (Some(one), Some(other)) if (one.at - other.at).abs() >= ROOM => vec![one.clone(), other.clone()],
        _ => roomy,
    }
}

impl Tracks {
    /// Draws them from a height on, and says where they end.
    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let ranges: Vec<(f64, f64)> = self.tracks.iter().filter_map(Track::range).collect();
        let ends = || ranges.iter().flat_map(|range| [range.0, range.1]);
        let last = |track: &Track| (track.course.points.len() * track.course.step) as f64;
        let most = self.tracks.iter().map(last).fold(1.0, f64::max);
        let end = self.step.1 + self.step.0 * (most - 1.0).max(1.0);
        let across = Axis::between(self.step.1, end, self.across.1, (PLOT.0 + 6.0, PLOT.1 - 6.0));
        let height = if self.tracks.len() > 12 { 38.0 } else { 46.0 };
        let mut y = top + 4.0;
        let ticks = across.ticks(tick_room);
        for track in &self.tracks {
            let places = (y + height - 6.0, y + 6.0);
            let up = match self.marks {
                Marks::Line => Axis::over(ends(), self.unit, places),
                Marks::Bars => Axis::from_zero(ends(), self.unit, places),
            };
            let Some(up) = up else { return top };
            canvas.line("grid", (SIDE, y), (WIDTH - SIDE, y));
            ticks.iter().for_each(|tick| canvas.line("grid", (tick.at, y), (tick.at, y + height)));
            for tick in outer(&up) {
                // A ratio has no unit, and is no plain number either.
                let times = if self.unit == Unit::Ratio { "×" } else { "" };
                let label = format!("{}{times}", tick.label);
                canvas.text("faint", (PLOT.0 - 6.0, tick.at + 4.0), End::Last, SMALL, &label);
                canvas.line("grid", (PLOT.0, tick.at), (PLOT.1, tick.at));
            }
            let class = format!("k{}", colour_of_layer(track.layer));
            canvas.subject(&class, &track.label, &track.words);
            let name = in_two(&track.label, LABEL, LABEL_ROOM);
            let first = y + height / 2.0 + 4.0 - LABEL * 0.6 * (name.len() - 1) as f64;
            for (index, line) in name.iter().enumerate() {
                let base = first + LABEL * 1.2 * index as f64;
                canvas.text("ink", (SIDE, base), End::Start, LABEL, line);
            }
            for (note, down) in track.notes.iter().zip([-3.0, 10.0]) {
                canvas.text("faint", (WIDTH - SIDE, y + height / 2.0 + down), End::Last, SMALL, note);
            }
            self.one(canvas, track, &across, &up);
            canvas.end();
            y += height;
        }
        canvas.line("axis", (PLOT.0, y), (PLOT.1, y));
        ticks.iter().for_each(|tick| {
            canvas.text("faint", (tick.at, y + SMALL + 5.0), End::Middle, SMALL, &tick.label);
        });
        canvas.text("faint", (SIDE, y + SMALL + 5.0), End::Start, SMALL, &self.across.0);
        y + SMALL + 12.0
    }

    fn one(&self, canvas: &mut Canvas, track: &Track, across: &Axis, up: &Axis) {
        let step = track.course.step;
        // A point that stands for several places stands in their middle.
        let place = |index: usize| {
            across.at(self.step.1 + self.step.0 * ((index * step) as f64 + (step - 1) as f64 / 2.0))
        };
        let known: Vec<(usize, &Point)> = track
            .course
            .points
            .iter()
            .enumerate()
            .filter_map(|(index, point)| Some((index, point.as_ref()?)))
            .collect();
        if self.marks == Marks::Bars {
            let width = (place(1) - place(0)).max(1.0);
            let bar = |(index, point): &(usize, &Point)| {
                let (left, foot) = (place(*index) - width * 0.4, up.at(0.0));
                let (width, height) = (short(width * 0.8), short(up.at(point.high)));
                format!("M{} {}V{height}h{width}V{}Z", short(left), short(foot), short(foot))
            };
            return canvas.path("mark", &known.iter().map(bar).collect::<String>());
        }
        // What is missing in between breaks the line.
        for part in known.chunk_by(|one, other| one.0 + 1 == other.0) {
            let at = |value: f64, index: usize| format!("{} {}", short(place(index)), short(up.at(value)));
            if step > 1 {
                let over = part.iter().map(|(index, point)| at(point.high, *index));
                let under = part.iter().rev().map(|(index, point)| at(point.low, *index));
                let corners: Vec<_> = over.chain(under).collect();
                canvas.path("mark band", &format!("M{}Z", corners.join("L")));
            }
            let corners: Vec<_> = part.iter().map(|(index, point)| at(point.median, *index)).collect();
            canvas.path("line thin", &format!("M{}", corners.join("L")));
        }
        if place(1) - place(0) >= APART {
            canvas
                .dots("line points", known.iter().map(|(index, point)| (place(*index), up.at(point.median))));
        }
    }
}
