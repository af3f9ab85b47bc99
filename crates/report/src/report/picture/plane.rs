//! Curves over a horizontal and a vertical axis: together in one plane, distinguished by colour and dashes, or each
//! in its own strip.

use super::letters::{in_two, shorten};
use super::svg::{COLOURS, Canvas, End, LABEL, SIDE, SMALL, WIDTH, short, tick_room};
use super::{Drawing, Picture, Table, colour_of_layer, named};
use crate::axis::{Axis, Range, Tick};
use crate::report::text::with_interval;
use crate::stats::TimeSeries;
use crate::stats::time_series::Point;
use crate::units::Unit;

/// Points further apart than this are marked by dots.
const APART: f64 = 7.0;
/// The quantiles in a table.
const SHARES: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0];
/// The most curves to describe in words.
const TOLD: usize = 6;

/// The sample of a line before its name.
const SAMPLE: f64 = 26.0;
/// The height of a line's name, and of its second line.
const NAME: f64 = 16.0;
const SECOND: f64 = SMALL * 1.2;

/// Curves over two axes.
#[derive(Debug, Clone)]
pub struct Plane {
    /// The horizontal axis.
    pub across: Side,
    /// The vertical axis.
    pub up: Side,
    /// Whether curves share a plane.
    pub strips: Strips,
    /// How values become a curve.
    pub shape: Shape,
    /// From top to bottom.
    pub curves: Vec<Curve>,
}

/// One axis.
#[derive(Debug, Clone)]
pub struct Side {
    /// Its name; empty if not needed.
    pub name: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Its range.
    pub range: Range,
}

/// Whether curves share a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strips {
    /// Together, with their names at the side.
    Together,
    /// Each in its own strip, between its name and its notes.
    Apart,
}

/// How values become a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A line through them, in a band from the lowest to the highest.
    Line,
    /// A stair with a step at each.
    Stair,
    /// A bar from zero for each.
    Bars,
}

/// A subject.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Its label.
    pub label: String,
    /// Its layer.
    pub layer: &'static str,
    /// From left to right; a hole breaks the line.
    pub places: Vec<Option<Place>>,
    /// One line of description.
    pub words: String,
    /// Two short texts next to its strip.
    pub notes: [String; 2],
}

/// A value and its position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// The horizontal axis.
    pub x: f64,
    /// The lowest value, or the low end of the interval.
    pub low: f64,
    /// The value.
    pub value: f64,
    /// The highest.
    pub high: f64,
}

impl Place {
    /// The points of a time series, each in the middle of the positions it represents, which are `every` apart from
    /// `first` on. Values are divided.
    pub fn all(series: &TimeSeries, first: f64, every: f64, divisor: f64) -> Vec<Option<Place>> {
        let step = series.step as f64;
        let x = |index: usize| first + every * (index as f64 * step + (step - 1.0) / 2.0);
        let place = |(index, point): (usize, &Option<Point>)| {
            let [low, value, high] =
                point.map(|one| [one.low, one.median, one.high].map(|own| own / divisor))?;
            Some(Place { x: x(index), low, value, high })
        };
        series.points.iter().enumerate().map(place).collect()
    }

    /// A single value.
    pub fn single(x: f64, value: f64) -> Place {
        Place { x, low: value, value, high: value }
    }
}

impl Curve {
    fn known(&self) -> impl Iterator<Item = &Place> {
        self.places.iter().flatten()
    }
}

/// The names of subjects, and their values at some shares of all: order statistics at equal steps.
pub fn quantiles<'a>(unit: Unit, of: impl Iterator<Item = (&'a str, &'a [f64])>) -> Table {
    let head = |share: f64| match share {
        0.0 => "smallest".to_owned(),
        1.0 => "largest".to_owned(),
        share => format!("{:.0} %", share * 100.0),
    };
    let row = |(label, steps): (&str, &[f64])| {
        let cells = SHARES.map(|share| with_interval(unit, at_share(steps, share), None));
        [label.to_owned()].into_iter().chain(cells).collect()
    };
    let columns = ["subject".to_owned()].into_iter().chain(SHARES.map(head)).collect();
    Table { columns, rows: of.map(row).collect() }
}

/// The value below which about this share of them lies: one of the steps.
pub fn at_share(steps: &[f64], share: f64) -> f64 {
    let last = steps.len().saturating_sub(1);
    steps.get((share * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
}

impl Plane {
    /// The picture of them; none without a curve.
    pub fn picture(
        self,
        name: &[&str],
        title: String,
        caption: Vec<String>,
        kind: &str,
        table: Table,
    ) -> Option<Picture> {
        (!self.curves.is_empty()).then(|| Picture {
            name: named(name),
            title,
            caption,
            alternative: format!("{kind}. {}", self.in_words()),
            table,
            drawing: Drawing::Plane(self),
        })
    }

    /// A row for each position, with the values of all curves.
    pub fn table(&self) -> Table {
        let mut places: Vec<f64> = self.curves.iter().flat_map(Curve::known).map(|place| place.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let row = |x: &f64| {
            let of = |curve: &Curve| match curve.known().find(|place| place.x == *x) {
                Some(one) => {
                    let interval = (one.low < one.high).then_some((one.low, one.high));
                    with_interval(self.up.unit, one.value, interval)
                }
                None => "-".to_owned(),
            };
            [x.to_string()].into_iter().chain(self.curves.iter().map(of)).collect()
        };
        let labels = self.curves.iter().map(|curve| curve.label.clone());
        let columns = [self.across.name.clone()].into_iter().chain(labels).collect();
        Table { columns, rows: places.iter().map(row).collect() }
    }

    /// The description of the first curves.
    fn in_words(&self) -> String {
        let told: Vec<&str> = self.curves.iter().take(TOLD).map(|curve| curve.words.as_str()).collect();
        let more = match self.curves.len().saturating_sub(TOLD) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        format!("{}{more}.", told.join("; "))
    }

    /// Draws them from a height on, and returns where they end.
    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let (left, right, height, pad) = match self.strips {
            Strips::Together => {
                let names: f64 = self.curves.iter().map(|curve| legend_height(&curve.label)).sum();
                (SIDE + 62.0, WIDTH - SIDE - 206.0, names.max(250.0), 0.0)
            }
            Strips::Apart => (SIDE + 232.0, WIDTH - SIDE - 116.0, 46.0, 6.0),
        };
        let known = || self.curves.iter().flat_map(Curve::known);
        let across = Axis::over(
            self.across.range,
            known().map(|place| place.x),
            self.across.unit,
            (left + pad, right - pad),
        );
        let Some(across) = across else { return top };
        let ticks = across.ticks(tick_room);
        let in_strips: Vec<&[Curve]> = match self.strips {
            Strips::Together => vec![&self.curves],
            Strips::Apart => self.curves.chunks(1).collect(),
        };
        let mut y = top + 10.0;
        for strip in in_strips {
            let ends = known().flat_map(|place| [place.low, place.high]);
            let up = Axis::over(self.up.range, ends, self.up.unit, (y + height - pad, y + pad));
            let Some(up) = up else { return top };
            ticks.iter().for_each(|tick| canvas.line("grid", (tick.at, y), (tick.at, y + height)));
            for tick in self.ticks_up(&up) {
                // A ratio has no unit, but is not a plain number either.
                let times = if self.up.unit == Unit::Ratio { "×" } else { "" };
                let label = format!("{}{times}", tick.label);
                canvas.text("faint", (left - 6.0, tick.at + 4.0), End::Last, SMALL, &label);
                canvas.line("grid", (left, tick.at), (right, tick.at));
            }
            if self.strips == Strips::Apart {
                canvas.line("grid", (SIDE, y), (WIDTH - SIDE, y));
            }
            let mut name_at = y;
            for (index, curve) in strip.iter().enumerate() {
                let (colour, line) = match self.strips {
                    Strips::Together => ((index + 4) % COLOURS, format!("line d{}", index % 4)),
                    Strips::Apart => (colour_of_layer(curve.layer), "line thin".to_owned()),
                };
                canvas.subject(&format!("k{colour}"), &curve.label, &curve.words);
                self.draw_curve(canvas, curve, &line, &across, &up);
                match self.strips {
                    Strips::Together => {
                        name_at += legend(canvas, &line, &curve.label, (right + 16.0, name_at))
                    }
                    Strips::Apart => beside(canvas, curve, left - 58.0, y + height / 2.0 + 4.0),
                }
                canvas.end();
            }
            y += height;
        }
        canvas.line("axis", (left, y), (right, y));
        y += SMALL + 5.0;
        ticks.iter().for_each(|tick| canvas.text("faint", (tick.at, y), End::Middle, SMALL, &tick.label));
        let spread =
            if across.is_logarithmic() && self.across.unit == Unit::Count { ", by ratio" } else { "" };
        let name = format!("{}{spread}", self.across.name);
        let name = shorten(&name, SMALL, WIDTH - SIDE - right - 30.0);
        canvas.text("faint", (right + 30.0, y), End::Start, SMALL, &name);
        y + 7.0
    }

    /// As many ticks as are readable; for a strip the outermost, and for multiples the 1.
    fn ticks_up(&self, up: &Axis) -> Vec<Tick> {
        const ROOM: f64 = SMALL + 3.0;
        if self.strips == Strips::Together {
            return up.ticks(|_| 2.0 * SMALL);
        }
        // Outer ticks may exist even if there is no room for all between them.
        let all = [up.ticks(|_| ROOM), up.ticks(|_| 1.0)].into_iter();
        let outer = |ticks: Vec<Tick>| Some([ticks.first()?.clone(), ticks.last()?.clone()]);
        let mut outer = all.filter_map(outer);
        let apart = outer.find(|[one, other]| (one.at - other.at).abs() >= ROOM);
        let outer = apart.map_or_else(|| up.ticks(|_| ROOM), Vec::from);
        if self.up.unit != Unit::Ratio {
            return outer;
        }
        let one = Tick { at: up.at(1.0), label: "1".to_owned() };
        let beside = outer.into_iter().filter(|tick| (tick.at - one.at).abs() >= ROOM);
        beside.chain([one.clone()]).collect()
    }

    fn draw_curve(&self, canvas: &mut Canvas, curve: &Curve, line: &str, across: &Axis, up: &Axis) {
        let at = |x: f64, value: f64| format!("{} {}", short(across.at(x)), short(up.at(value)));
        let known: Vec<&Place> = curve.known().collect();
        let Some(first) = known.first() else { return };
        let apart = known.get(1).map_or(f64::INFINITY, |next| across.at(next.x) - across.at(first.x));
        match self.shape {
            Shape::Bars => {
                let width = apart.clamp(1.0, 40.0) * 0.8;
                let foot = short(up.at(0.0));
                let bar = |place: &&Place| {
                    let (left, top) = (short(across.at(place.x) - width / 2.0), short(up.at(place.high)));
                    format!("M{left} {foot}V{top}h{}V{foot}Z", short(width))
                };
                canvas.path("mark", &known.iter().map(bar).collect::<String>());
            }
            Shape::Stair => {
                let mut path = format!("M{}", at(first.x, 0.0));
                for place in &known {
                    path += &format!("H{}V{}", short(across.at(place.x)), short(up.at(place.value)));
                }
                canvas.path(line, &path);
            }
            Shape::Line => {
                for part in curve.places.split(Option::is_none).filter(|part| !part.is_empty()) {
                    let part = || part.iter().flatten();
                    if part().any(|place| place.low < place.high) {
                        let over = part().map(|place| at(place.x, place.high));
                        let under = part().rev().map(|place| at(place.x, place.low));
                        let corners: Vec<_> = over.chain(under).collect();
                        canvas.path("mark band", &format!("M{}Z", corners.join("L")));
                    }
                    let corners: Vec<_> = part().map(|place| at(place.x, place.value)).collect();
                    canvas.path(line, &format!("M{}", corners.join("L")));
                }
                if apart >= APART {
                    let places = known.iter().map(|place| (across.at(place.x), up.at(place.value)));
                    canvas.dots("line points", places);
                }
            }
        }
    }
}

/// The name of a strip on its left, and its notes on its right.
fn beside(canvas: &mut Canvas, curve: &Curve, room: f64, base: f64) {
    let name = in_two(&curve.label, LABEL, room - SIDE);
    let first = base - LABEL * 0.6 * (name.len() - 1) as f64;
    for (index, line) in name.iter().enumerate() {
        canvas.text("ink", (SIDE, first + LABEL * 1.2 * index as f64), End::Start, LABEL, line);
    }
    for (note, down) in curve.notes.iter().zip([-7.0, 6.0]) {
        canvas.text("faint", (WIDTH - SIDE, base + down), End::Last, SMALL, note);
    }
}

/// The height of a line's name.
fn legend_height(label: &str) -> f64 {
    NAME + SECOND * (legend_name(label).0.len() - 1) as f64
}

/// A name on one line, or on two smaller ones.
fn legend_name(label: &str) -> (Vec<String>, f64) {
    const ROOM: f64 = 206.0 - 16.0 - SAMPLE - 6.0;
    match in_two(label, LABEL, ROOM) {
        one if one.len() == 1 && one[0] == label => (one, LABEL),
        _ => (in_two(label, SMALL, ROOM), SMALL),
    }
}

/// A sample of a line and its name, next to the plane; returns the height.
fn legend(canvas: &mut Canvas, line: &str, label: &str, (left, top): (f64, f64)) -> f64 {
    let y = top + NAME / 2.0;
    canvas.line(line, (left, y), (left + SAMPLE, y));
    let (lines, size) = legend_name(label);
    for (index, text) in lines.iter().enumerate() {
        let base = y + 4.0 + SECOND * index as f64;
        canvas.text("ink", (left + SAMPLE + 6.0, base), End::Start, size, text);
    }
    legend_height(label)
}
