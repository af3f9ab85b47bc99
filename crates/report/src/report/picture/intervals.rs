//! Medians with their intervals over the values of single rounds, a row a subject, from the lowest layer up: how
//! large is it, how sure is that, and what lies behind it?

use super::axis::Axis;
use super::letters::shorten;
use super::svg::{Canvas, End, LABEL, SIDE, SMALL, WIDTH, tick_room};
use super::{Drawing, Picture, Table, colour_of_layer, named};
use crate::report::model::{Change, Experiment, Ladder, Metric, Report, Row, Setting, Value};
use crate::report::text::{decimals, number, with_interval};
use crate::units::{Unit, counted};
use crate::verdict::Verdict;

/// Beyond these rows variants are left out of a picture.
const CROWDED: usize = 24;
/// A picture with more rows than these would have to be scrolled.
const MOST_ROWS: usize = 40;
/// Up to so many metrics have pictures of their own.
const FEW_METRICS: usize = 4;

const LAYER_AT: f64 = SIDE;
const LABEL_AT: f64 = SIDE + 56.0;
const LABEL_ROOM: f64 = 178.0;
const PLOT: (f64, f64) = (LABEL_AT + LABEL_ROOM + 10.0, WIDTH - SIDE - 206.0);
const MEDIAN_AT: f64 = WIDTH - SIDE - 132.0;
const MULTIPLE_AT: f64 = WIDTH - SIDE - 72.0;
const VERDICT_AT: f64 = WIDTH - SIDE - 62.0;
const ROW: f64 = 23.0;

/// Panels under each other on one axis.
#[derive(Debug, Clone)]
pub struct Intervals {
    /// The unit of the axis.
    pub unit: Unit,
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

/// Subjects under the same conditions.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Under which; empty where there is nothing to tell apart.
    pub title: String,
    /// Panels with the same number share an axis: an index into the experiment's metrics.
    pub metric: usize,
    /// What multiples are of.
    pub baseline: String,
    /// A row a subject.
    pub rows: Vec<Line>,
}

/// A subject.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its label.
    pub label: String,
    /// Its label without what the panel's title tells.
    pub short: String,
    /// Its layer.
    pub layer: &'static str,
    /// Whether the experiment made it of another.
    pub kind: Kind,
    /// What is drawn; none where it has no sample.
    pub value: Option<Value>,
    /// The median as it is shown.
    pub median: String,
    /// How many times the baseline.
    pub multiple: String,
    /// What was decided.
    pub verdict: Option<Verdict>,
    /// The same in a word; empty where there is nothing to say.
    pub word: &'static str,
    /// All of it in words.
    pub words: String,
}

/// Where a subject comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Somebody asked for it.
    Asked,
    /// The experiment made it of another, by another value of one key.
    Variant,
}

/// Pictures of the decisive metrics, or of the first where none decides.
pub(super) fn pictures(report: &Report, experiment: &Experiment) -> Vec<Picture> {
    if experiment.speaks_for_itself() {
        return Vec::new();
    }
    let mut metrics: Vec<usize> =
        (0..experiment.metrics.len()).filter(|&metric| experiment.metrics[metric].decisive).collect();
    if metrics.is_empty() {
        metrics = (0..experiment.metrics.len().min(1)).collect();
    }
    let few = metrics.len() <= FEW_METRICS;
    let mut groups: Vec<Vec<(usize, Panel)>> = Vec::new();
    for &metric in &metrics {
        let mut own: Vec<(usize, Panel)> = Vec::new();
        for setting in &experiment.settings {
            own.extend(panels(experiment, setting, metric).into_iter().map(|panel| (metric, panel)));
        }
        for panel in own {
            let rows =
                |group: &Vec<(usize, Panel)>| group.iter().map(|(_, one)| one.rows.len()).sum::<usize>();
            let unit = |metric: usize| experiment.metrics[metric].unit;
            match groups.last_mut() {
                Some(group)
                    if rows(group) + panel.1.rows.len() <= MOST_ROWS
                        && unit(group[0].0) == unit(metric)
                        && (group[0].0 == metric || !few) =>
                {
                    group.push(panel);
                }
                _ => groups.push(vec![panel]),
            }
        }
    }
    groups.into_iter().filter_map(|group| picture(report, experiment, group)).collect()
}

/// A panel a ladder; what stands below the engines is shown once.
fn panels(experiment: &Experiment, setting: &Setting, metric: usize) -> Vec<Panel> {
    let of_ladder = |ladder: &Ladder| {
        let is_first = setting.ladders.first().is_some_and(|first| std::ptr::eq(first, ladder));
        let mut rows: Vec<&Row> =
            ladder.rows.iter().filter(|row| is_first || row.layer == "engine").collect();
        if rows.len() > CROWDED {
            rows.retain(|row| row.variant_of.is_none());
        }
        let lines = rows.into_iter().map(|row| line(&experiment.metrics[metric], metric, row));
        Panel {
            title: title_of(experiment, setting, ladder, metric),
            metric,
            baseline: ladder.baseline.clone(),
            rows: lines.collect(),
        }
    };
    let has_value = |panel: &Panel| panel.rows.iter().any(|line| line.value.is_some());
    setting.ladders.iter().map(of_ladder).filter(has_value).collect()
}

fn title_of(experiment: &Experiment, setting: &Setting, ladder: &Ladder, metric: usize) -> String {
    let decisive = experiment.metrics.iter().filter(|metric| metric.decisive).count();
    let mut parts = Vec::new();
    if decisive > FEW_METRICS {
        parts.push(experiment.metrics[metric].name.to_owned());
    }
    if !setting.text.is_empty() && (experiment.settings.len() > 1 || decisive <= FEW_METRICS) {
        parts.push(crate::report::text::clean(&setting.text));
    }
    if ladder.equalised || setting.ladders.len() > 1 {
        let keys =
            if ladder.shared_keys.is_empty() { String::new() } else { format!(" ({})", ladder.shared_keys) };
        parts.push(format!("{}{keys}", ladder.name));
    }
    parts.join(", ")
}

fn line(metric: &Metric, index: usize, row: &Row) -> Line {
    let value = row.values.get(index).cloned().flatten();
    let change = row.against_baseline.get(index).and_then(Option::as_ref);
    let told = |value: &Value| {
        let interval = value.median.interval.map(|one| (one.low, one.high));
        with_interval(metric.unit, value.median.value, interval)
    };
    let mut words = match &value {
        Some(value) => {
            format!(
                "{}: {} {}, {}",
                row.label,
                metric.name,
                told(value),
                counted(value.median.rounds, "round")
            )
        }
        None if row.lost > 0 => format!("{}: no sample, see failures", row.label),
        None => format!("{}: no value", row.label),
    };
    let multiple = multiple(row, change);
    if let Some(change) = change {
        words.push_str(&format!(", {}", change.word()));
    }
    Line {
        label: row.label.clone(),
        short: row.short.clone(),
        layer: row.layer,
        kind: if row.variant_of.is_some() { Kind::Variant } else { Kind::Asked },
        median: value
            .as_ref()
            .map_or("-".into(), |value| metric.unit.format(value.median.value).replace('-', "−")),
        multiple,
        verdict: change.map(|change| change.verdict.clone()),
        word: change.map_or("", Change::word),
        value,
        words,
    }
}

fn multiple(row: &Row, change: Option<&Change>) -> String {
    match change.and_then(|change| change.ratio) {
        _ if row.is_baseline => "1×".into(),
        Some(ratio) => format!("{}×", number(ratio.value, decimals(ratio.value).min(2))),
        None => String::new(),
    }
}

fn picture(report: &Report, experiment: &Experiment, group: Vec<(usize, Panel)>) -> Option<Picture> {
    let (first, _) = group.first()?;
    let metric = &experiment.metrics[*first];
    let is_one = group.iter().all(|(metric, _)| metric == first);
    let what = if is_one { metric.name } else { "times" };
    let lost_variants = experiment.rows().any(|(_, _, row)| row.variant_of.is_some())
        && !group.iter().any(|(_, panel)| panel.rows.iter().any(|line| line.kind == Kind::Variant));
    let unit = metric.unit;
    let panels: Vec<Panel> = group.into_iter().map(|(_, panel)| panel).collect();
    let mut caption = vec![
        "A mark is the median over rounds, in the shape and colour of its layer; the line is its interval at 95 %; \
         pale dots are single rounds, or where there are many, evenly chosen ones from the smallest to the largest."
            .to_owned(),
        format!("Multiples and verdicts are against {}.", panels.first().map_or("", |panel| &panel.baseline)),
    ];
    if lost_variants {
        caption.push("Subjects that the experiment varied by itself are left out.".into());
    }
    let title = match is_one {
        true => format!("{}: {} in {}", experiment.name, what, rounds(report, experiment)),
        false => format!("{}: medians in {}", experiment.name, rounds(report, experiment)),
    };
    Some(Picture {
        name: named(&[experiment.name, what]),
        experiment: experiment.name,
        title,
        caption,
        alternative: alternative(&panels),
        table: table(&panels, unit),
        drawing: Drawing::Intervals(Intervals { unit, panels }),
    })
}

fn rounds(report: &Report, experiment: &Experiment) -> String {
    counted(experiment.rounds.unwrap_or(report.rounds.complete).min(report.rounds.complete), "round")
}

/// Which is the smallest and which the largest, panel by panel.
fn alternative(panels: &[Panel]) -> String {
    let of_panel = |panel: &Panel| {
        let mut known: Vec<(&Line, f64)> =
            panel.rows.iter().filter_map(|line| Some((line, line.value.as_ref()?.median.value))).collect();
        known.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let before = if panel.title.is_empty() { String::new() } else { format!("{}: ", panel.title) };
        match &known[..] {
            [] => format!("{before}no values."),
            [(only, _)] => format!("{before}{} {}.", only.label, only.median),
            [(least, _), .., (most, _)] => format!(
                "{before}medians of {} from {} ({}) to {} ({}).",
                counted(known.len(), "subject"),
                least.median,
                least.label,
                most.median,
                most.label
            ),
        }
    };
    let told: Vec<_> = panels.iter().map(of_panel).collect();
    format!("Interval plot. {}", told.join(" "))
}

fn table(panels: &[Panel], unit: Unit) -> Table {
    let columns = [
        "panel",
        "layer",
        "subject",
        "median [interval]",
        "quartiles",
        "range",
        "rounds",
        "multiple",
        "verdict",
    ];
    let pair =
        |(low, high): (f64, f64)| format!("{} to {}", unit.format(low), unit.format(high)).replace('-', "−");
    let row = |panel: &Panel, line: &Line| {
        let value = line.value.as_ref();
        let median = value.map_or(String::new(), |value| {
            with_interval(unit, value.median.value, value.median.interval.map(|one| (one.low, one.high)))
        });
        vec![
            panel.title.clone(),
            line.layer.to_owned(),
            line.label.clone(),
            median,
            value.map_or(String::new(), |value| pair(value.quartiles)),
            value.map_or(String::new(), |value| pair(value.range)),
            value.map_or(String::new(), |value| value.median.rounds.to_string()),
            line.multiple.clone(),
            line.word.to_owned(),
        ]
    };
    let rows = panels.iter().flat_map(|panel| panel.rows.iter().map(move |line| row(panel, line)));
    Table { columns: columns.map(str::to_owned).to_vec(), rows: rows.collect() }
}

impl Intervals {
    /// Draws it from a height on, and says where it ends.
    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let mut y = top;
        for panel in &self.panels {
            let alike = self.panels.iter().filter(|other| other.metric == panel.metric);
            let values = alike.flat_map(|panel| &panel.rows).filter_map(|line| line.value.as_ref());
            let ends = values.flat_map(|value| [value.range.0, value.range.1]);
            let Some(axis) = Axis::over(ends, self.unit, PLOT) else { continue };
            let ticks = axis.ticks(tick_room);
            if !panel.title.is_empty() {
                y += LABEL * 1.4;
                canvas.text("ink title", (SIDE, y), End::Start, LABEL, &panel.title);
            }
            y += SMALL + 8.0;
            ticks.iter().for_each(|tick| canvas.text("faint", (tick.at, y), End::Middle, SMALL, &tick.label));
            canvas.text("faint", (MEDIAN_AT, y), End::Last, SMALL, "median");
            canvas.text("faint", (MULTIPLE_AT, y), End::Last, SMALL, "multiple");
            y += 5.0;
            let foot = y + ROW * panel.rows.len() as f64;
            ticks.iter().for_each(|tick| canvas.line("grid", (tick.at, y), (tick.at, foot)));
            let mut layer = "";
            for line in &panel.rows {
                if line.layer != layer {
                    canvas.line("grid", (SIDE, y), (WIDTH - SIDE, y));
                    canvas.text("faint", (LAYER_AT, y + ROW / 2.0 + 4.0), End::Start, SMALL, line.layer);
                    layer = line.layer;
                }
                row(canvas, &axis, line, y + ROW / 2.0);
                y += ROW;
            }
            canvas.line("grid", (SIDE, y), (WIDTH - SIDE, y));
            y += 8.0;
        }
        y
    }
}

fn row(canvas: &mut Canvas, axis: &Axis, line: &Line, y: f64) {
    let lightness = if line.kind == Kind::Variant { " light" } else { "" };
    let is_suspect = matches!(line.verdict, Some(Verdict::Suspect(_)));
    let hollow = if is_suspect { " hollow" } else { "" };
    let class = format!("k{}{lightness}{hollow}", colour_of_layer(line.layer));
    canvas.subject(&class, &line.label, &line.words);
    let base = y + 4.0;
    canvas.text("ink", (LABEL_AT, base), End::Start, LABEL, &shorten(&line.short, LABEL, LABEL_ROOM));
    match &line.value {
        Some(value) => {
            let places =
                value.steps.iter().enumerate().map(|(index, value)| (axis.at(*value), y + scattered(index)));
            canvas.dots("line dots", places);
            if let Some(interval) = value.median.interval {
                let (low, high) = (axis.at(interval.low), axis.at(interval.high));
                canvas.line("line", (low, y), (high, y));
            }
            canvas.mark(line.layer, (axis.at(value.median.value), y), 4.2);
            canvas.text("ink", (MEDIAN_AT, base), End::Last, LABEL, &line.median);
            canvas.text("faint", (MULTIPLE_AT, base), End::Last, LABEL, &line.multiple);
        }
        None => canvas.text("alarm", (PLOT.0, base), End::Start, SMALL, "no sample"),
    }
    if line.verdict.as_ref().is_some_and(|verdict| *verdict != Verdict::Context) {
        let class = if is_suspect { "alarm" } else { "ink" };
        canvas.text(class, (VERDICT_AT, base), End::Start, SMALL, line.word);
    }
    canvas.end();
}

/// How far from the middle of its row a dot stands, so that equal values do not hide each other: the van der
/// Corput sequence, in which neighbours are far apart.
fn scattered(index: usize) -> f64 {
    let mut share = 0.0;
    let (mut rest, mut weight) = (index + 1, 0.5);
    while rest > 0 {
        share += weight * (rest % 2) as f64;
        (rest, weight) = (rest / 2, weight / 2.0);
    }
    (share - 0.5) * 13.0
}
