//! Which share of the values is no larger than this? A curve a subject, rising over a logarithmic axis: a steep one
//! is steady, a step in it is a second heap, and a long flat end is a tail.

use super::axis::Axis;
use super::letters::in_two;
use super::svg::{COLOURS, Canvas, End, LABEL, SIDE, SMALL, WIDTH, short, tick_room};
use super::{Drawing, Picture, Table, named};
use crate::report::model::{Experiment, Report, Setting};
use crate::report::text::clean;
use crate::units::{Unit, counted};

/// Fewer values make no curve.
const FEWEST: usize = 5;
/// More curves cannot be told apart; variants go first.
const CROWDED: usize = 14;
/// Shares that a table of a distribution tells.
const SHARES: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0];

pub(super) const PLOT: (f64, f64) = (SIDE + 46.0, WIDTH - SIDE - 206.0);
const NAMES_AT: f64 = PLOT.1 + 16.0;
const SAMPLE: f64 = 26.0;
const NAME: f64 = 16.0;
pub(super) const HEIGHT: f64 = 250.0;

/// Curves over one axis.
#[derive(Debug, Clone)]
pub struct Distribution {
    /// The unit of the values.
    pub unit: Unit,
    /// In the order of their medians.
    pub curves: Vec<Curve>,
}

/// The values of a subject.
#[derive(Debug, Clone)]
pub struct Curve {
    /// The subject's label.
    pub label: String,
    /// Order statistics at equal steps, from the smallest to the largest value.
    pub steps: Vec<f64>,
}

impl Curve {
    /// The value below which about this share lies: one of the steps.
    fn at_share(&self, share: f64) -> f64 {
        let last = self.steps.len().saturating_sub(1);
        self.steps.get((share * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
    }
}

/// A picture a setting, of the metric that is told first.
pub(super) fn pictures(report: &Report, experiment: &Experiment) -> Vec<Picture> {
    let decisive = experiment.metrics.iter().position(|metric| metric.decisive);
    if experiment.speaks_for_itself() {
        return Vec::new();
    }
    let metric = decisive.unwrap_or(0);
    experiment
        .settings
        .iter()
        .filter_map(|setting| {
            let curves = curves(setting, metric);
            let metric = experiment.metrics.get(metric)?;
            let under =
                if setting.text.is_empty() { String::new() } else { format!(", {}", clean(&setting.text)) };
            picture(Told {
                name: named(&[experiment.name, "distribution", metric.name, &setting.values]),
                experiment: experiment.name,
                title: format!(
                    "{}: how {} is distributed over {}{under}",
                    experiment.name,
                    metric.name,
                    counted(report.rounds.complete, "round")
                ),
                of: "rounds",
                unit: metric.unit,
                curves,
            })
        })
        .collect()
}

/// Each subject once.
fn curves(setting: &Setting, metric: usize) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    let rows = || setting.ladders.iter().flat_map(|ladder| &ladder.rows);
    let is_crowded = rows().count() > CROWDED;
    for row in rows().filter(|row| !is_crowded || row.variant_of.is_none()) {
        let Some(value) = row.values.get(metric).and_then(Option::as_ref) else { continue };
        if value.steps.len() >= FEWEST && curves.iter().all(|curve| curve.label != row.label) {
            curves.push(Curve { label: row.label.clone(), steps: value.steps.clone() });
        }
    }
    curves
}

/// What a picture of curves is made of.
pub(super) struct Told {
    pub name: String,
    pub experiment: &'static str,
    pub title: String,
    /// What the single values are of, in the plural.
    pub of: &'static str,
    pub unit: Unit,
    pub curves: Vec<Curve>,
}

/// None without a curve.
pub(super) fn picture(told: Told) -> Option<Picture> {
    let Told { name, experiment, title, of, unit, mut curves } = told;
    curves.sort_by(|one, other| one.at_share(0.5).total_cmp(&other.at_share(0.5)));
    let (first, last) = (curves.first()?, curves.last()?);
    let shown = |value: f64| unit.format(value).replace('-', "−");
    let alternative = format!(
        "Cumulative distributions of {}. {}: half of the {of} take up to {}, the longest {}. {}: half up to {}, the \
         longest {}.",
        counted(curves.len(), "subject"),
        first.label,
        shown(first.at_share(0.5)),
        shown(first.at_share(1.0)),
        last.label,
        shown(last.at_share(0.5)),
        shown(last.at_share(1.0)),
    );
    let row = |curve: &Curve| {
        std::iter::once(curve.label.clone()).chain(SHARES.map(|share| shown(curve.at_share(share)))).collect()
    };
    let head = |share: f64| match share {
        0.0 => "smallest".to_owned(),
        1.0 => "largest".to_owned(),
        share => format!("{:.0} %", share * 100.0),
    };
    Some(Picture {
        name,
        experiment,
        title,
        caption: vec![format!(
            "At each value, the height is the share of {of} that took no longer. The subjects stand in the order of their \
             medians; lines differ in colour and in their dashes."
        )],
        alternative,
        table: Table {
            columns: std::iter::once("subject".to_owned()).chain(SHARES.map(head)).collect(),
            rows: curves.iter().map(row).collect(),
        },
        drawing: Drawing::Distribution(Distribution { unit, curves }),
    })
}

impl Distribution {
    /// Draws it from a height on, and says where it ends.
    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let ends = self.curves.iter().flat_map(|curve| [curve.at_share(0.0), curve.at_share(1.0)]);
        let Some(across) = Axis::over(ends, self.unit, PLOT) else { return top };
        let top = top + 10.0;
        let names = self.curves.iter().map(|curve| legend_height(&curve.label)).sum();
        let foot = top + HEIGHT.max(names);
        let up = Axis::between(0.0, 1.0, Unit::Share, (foot, top));
        for tick in across.ticks(tick_room) {
            canvas.line("grid", (tick.at, top), (tick.at, foot));
            canvas.text("faint", (tick.at, foot + SMALL + 5.0), End::Middle, SMALL, &tick.label);
        }
        for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let y = up.at(share);
            canvas.line("grid", (PLOT.0, y), (PLOT.1, y));
            let label = format!("{:.0} %", share * 100.0);
            canvas.text("faint", (PLOT.0 - 8.0, y + 4.0), End::Last, SMALL, &label);
        }
        let mut y = top;
        for (index, curve) in self.curves.iter().enumerate() {
            let class = format!("k{}", (index + 4) % COLOURS);
            let line = format!("line d{}", index % 4);
            let words = format!(
                "{}: half up to {}, 95 % up to {}",
                curve.label,
                self.unit.format(curve.at_share(0.5)),
                self.unit.format(curve.at_share(0.95))
            );
            canvas.subject(&class, &curve.label, &words);
            canvas.path(&line, &path(curve, &across, &up));
            y += legend(canvas, &line, &curve.label, y);
            canvas.end();
        }
        foot + SMALL + 10.0
    }
}

/// The room for a name beside the plot.
const NAME_ROOM: f64 = WIDTH - SIDE - NAMES_AT - SAMPLE - 6.0;
/// What a second line of a name takes.
const SECOND: f64 = SMALL * 1.2;

/// How high the name of a line is.
pub(super) fn legend_height(label: &str) -> f64 {
    NAME + SECOND * (name(label).0.len() - 1) as f64
}

/// A name in one line, or in two smaller ones.
fn name(label: &str) -> (Vec<String>, f64) {
    match in_two(label, LABEL, NAME_ROOM) {
        one if one.len() == 1 && one[0] == label => (one, LABEL),
        _ => (in_two(label, SMALL, NAME_ROOM), SMALL),
    }
}

/// How a line looks, and its name, beside the plot from a height on; says how high that is.
pub(super) fn legend(canvas: &mut Canvas, line: &str, label: &str, top: f64) -> f64 {
    let y = top + NAME / 2.0;
    canvas.line(line, (NAMES_AT, y), (NAMES_AT + SAMPLE, y));
    let (lines, size) = name(label);
    for (index, text) in lines.iter().enumerate() {
        let base = y + 4.0 + SECOND * index as f64;
        canvas.text("ink", (NAMES_AT + SAMPLE + 6.0, base), End::Start, size, text);
    }
    legend_height(label)
}

/// A stair with a step at each value.
fn path(curve: &Curve, across: &Axis, up: &Axis) -> String {
    let count = curve.steps.len() as f64;
    let mut path = format!("M{} {}", short(across.at(curve.steps[0])), short(up.at(0.0)));
    for (index, value) in curve.steps.iter().enumerate() {
        let height = up.at((index + 1) as f64 / count);
        path.push_str(&format!("H{}V{}", short(across.at(*value)), short(height)));
    }
    path
}
