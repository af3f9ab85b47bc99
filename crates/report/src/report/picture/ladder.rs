//! What does each layer add? Bars for subjects, each in parts: what a bare process takes, what the kernel's part of a
//! container adds, then the runtime, then the engine, then what the engine does as it comes.

use super::axis::Axis;
use super::letters::{in_two, width};
use super::svg::{Canvas, End, LABEL, SIDE, SMALL, tick_room};
use super::{Drawing, Picture, Table, named};
use crate::report::model::{Experiment, Report, Row, Setting};
use crate::report::text::{clean, joined};
use crate::stats::Estimate;
use crate::units::{Unit, counted};

const LABEL_ROOM: f64 = 118.0;
/// Where bars begin, and what is left for their values.
const FOOT: f64 = SIDE + LABEL_ROOM + 10.0;
const VALUE_ROOM: f64 = 78.0;
const BAR: f64 = 17.0;
const ROW: f64 = 44.0;

/// What parts are called, and their colours, from the bottom up.
const PARTS: [(&str, usize); 5] =
    [("bare process", 0), ("kernel (floor)", 1), ("runtime", 3), ("engine", 4), ("its defaults", 2)];

/// Stacked bars under the same conditions, panel by panel.
#[derive(Debug, Clone)]
pub struct Ladder {
    /// The unit of the values.
    pub unit: Unit,
    /// Conditions, and the bars under them.
    pub panels: Vec<(String, Vec<Bar>)>,
}

/// One subject.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Its label.
    pub label: String,
    /// What it is called beside the bar.
    pub short: String,
    /// Which part ends where; each begins where the one before ends.
    pub parts: Vec<(usize, f64)>,
    /// Its own median.
    pub whole: Estimate,
    /// What it is on equal ground and its median there, where it takes longer there than as installed.
    pub even: Option<(String, f64)>,
}

/// The picture of the first experiment about launches in which layers stand above each other.
pub(super) fn picture(report: &Report) -> Option<Picture> {
    let told = |experiment: &Experiment| {
        let panels: Vec<(String, Vec<Bar>)> = experiment
            .settings
            .iter()
            .map(|setting| (clean(&setting.text), bars(setting)))
            .filter(|(_, bars)| bars.iter().filter(|bar| bar.parts.len() > 1).count() > 0)
            .collect();
        (!panels.is_empty() && experiment.rows().any(|(_, _, row)| row.floor_share.is_some()))
            .then_some((experiment.name, panels))
    };
    let (experiment, panels) = report.experiments.iter().find_map(told)?;
    let metric = report.experiments.iter().find(|one| one.name == experiment)?.metrics.first()?;
    let unit = metric.unit;
    let used = |part: usize| {
        panels.iter().flat_map(|(_, bars)| bars).any(|bar| bar.parts.iter().any(|(own, _)| *own == part))
    };
    let mut caption = vec![format!(
        "Medians of {} over {}. Each part of a bar ends at the median of that layer alone, so that its length is what the \
         layer adds; the thin line at the end is the interval of the whole at 95 %.",
        metric.name,
        counted(report.rounds.complete, "round")
    )];
    if used(4) {
        caption.push(
            "Layers are compared on equal ground; “its defaults” is what the engine takes more as it was installed: \
             network, log and the like."
                .into(),
        );
        caption.extend(leaves_out(&panels, unit));
        let uneven = only_as_installed(&panels);
        if !uneven.is_empty() {
            caption.push(format!(
                "Not so {}, measured as installed only: the engine's part holds what it does otherwise than the others.",
                joined(&uneven, "and")
            ));
        }
    }
    Some(Picture {
        name: named(&["summary"]),
        experiment,
        title: format!("What each layer adds until a command has {} ({experiment})", metric.name),
        caption,
        alternative: alternative(&panels, unit),
        table: table(&panels, unit),
        drawing: Drawing::Ladder(Ladder { unit, panels }),
    })
}

/// Engines that stand beside equalised ones and were not equalised themselves.
fn only_as_installed(panels: &[(String, Vec<Bar>)]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for bar in panels.iter().flat_map(|(_, bars)| bars) {
        let is_alone = bar.even.is_none() && bar.parts.last().is_some_and(|(part, _)| *part == 3);
        if is_alone && !labels.contains(&bar.label) {
            labels.push(bar.label.clone());
        }
    }
    labels
}

/// Engines that take less as they were installed than on equal ground, since they leave out what others do.
fn leaves_out(panels: &[(String, Vec<Bar>)], unit: Unit) -> Option<String> {
    let told = |(title, bars): &(String, Vec<Bar>)| -> Vec<String> {
        let one = |bar: &Bar| {
            let (even, value) = bar.even.as_ref()?;
            let when = if title.is_empty() { String::new() } else { format!(" ({title})") };
            Some(format!(
                "{} takes {}, and {even} {}{when}",
                bar.label,
                unit.format(bar.whole.value),
                unit.format(*value)
            ))
        };
        bars.iter().filter_map(one).collect()
    };
    let all: Vec<String> = panels.iter().flat_map(told).collect();
    (!all.is_empty()).then(|| {
        format!(
            "Less as installed than on equal ground, since something is left out that the others do: {}. Such a bar ends \
             where it does as installed.",
            all.join("; ")
        )
    })
}

/// Whether this is the subject on equal ground, which may need a key of its own there: `containerd:seccomp=default`
/// of `containerd`.
fn is_of(even: &str, own: &str) -> bool {
    even.strip_prefix(own)
        .is_some_and(|rest| rest.is_empty() || (rest.starts_with(':') && !own.contains(':')))
}

/// Engines in the order of their layers' medians, and what they stand on.
fn bars(setting: &Setting) -> Vec<Bar> {
    let installed = setting.ladders.iter().find(|ladder| !ladder.equalised);
    let equalised = setting.ladders.iter().find(|ladder| ladder.equalised);
    let Some(rows) = installed.or(equalised).map(|ladder| &ladder.rows) else { return Vec::new() };
    let median = |row: &Row| Some(row.values.first()?.as_ref()?.median);
    let of_layer = |layer: &str| rows.iter().find(|row| row.layer == layer && row.variant_of.is_none());
    let below = |parts: &mut Vec<(usize, f64)>, row: Option<&Row>, part: usize| {
        parts.extend(row.and_then(median).map(|median| (part, median.value)));
    };
    let bar = |row: &Row| {
        let whole = median(row)?;
        let mut parts = Vec::new();
        if row.layer != "bare" {
            below(&mut parts, of_layer("bare"), 0);
        }
        if row.layer == "runtime" || row.layer == "engine" {
            below(&mut parts, of_layer("floor"), 1);
        }
        let mut beyond = None;
        let mut own = match row.layer {
            "bare" => 0,
            "floor" => 1,
            "runtime" => 2,
            _ => 3,
        };
        if row.layer == "engine" {
            let runtime =
                rows.iter().find(|one| one.layer == "runtime" && row.runtime.as_ref() == Some(&one.label));
            below(&mut parts, runtime, 2);
            let even = equalised.and_then(|ladder| {
                ladder.rows.iter().find(|one| one.layer == "engine" && is_of(&one.short, &row.short))
            });
            if let Some(even) = even.filter(|even| installed.is_some() && even.label != row.label) {
                match median(even).filter(|median| median.value > whole.value) {
                    Some(more) => beyond = Some((even.label.clone(), more.value)),
                    None => {
                        below(&mut parts, Some(even), 3);
                        own = 4;
                    }
                }
            }
        }
        parts.push((own, whole.value));
        // What takes no longer than what it stands on adds nothing that could be drawn.
        let mut ends = 0.0;
        parts.retain(|(_, end)| {
            let longer = *end > ends;
            ends = f64::max(ends, *end);
            longer
        });
        Some(Bar { label: row.label.clone(), short: row.short.clone(), parts, whole, even: beyond })
    };
    rows.iter().filter(|row| row.variant_of.is_none() && !row.is_suspect(0)).filter_map(bar).collect()
}

/// The parts by themselves, as they are told: `0.80 ms + 10.1 ms`.
fn sum(bar: &Bar, unit: Unit) -> Vec<(usize, f64, String)> {
    let mut before = 0.0;
    let part = |(part, end): &(usize, f64)| {
        let own = end - before;
        before = *end;
        (*part, own, unit.format(own))
    };
    bar.parts.iter().map(part).collect()
}

fn alternative(panels: &[(String, Vec<Bar>)], unit: Unit) -> String {
    let of_bar = |bar: &Bar| {
        let parts: Vec<_> =
            sum(bar, unit).into_iter().map(|(part, _, text)| format!("{} {text}", PARTS[part].0)).collect();
        format!("{} {}: {}", bar.label, unit.format(bar.whole.value), parts.join(", "))
    };
    let of_panel = |(title, bars): &(String, Vec<Bar>)| {
        let highest = bars.iter().max_by(|one, other| one.whole.value.total_cmp(&other.whole.value));
        let told = highest.map_or(String::new(), of_bar);
        if title.is_empty() { told } else { format!("{title}: {told}") }
    };
    let told: Vec<_> = panels.iter().map(of_panel).collect();
    format!("Stacked bars, what each layer adds. The longest: {}.", told.join("; "))
}

fn table(panels: &[(String, Vec<Bar>)], unit: Unit) -> Table {
    let mut columns = vec!["setting".to_owned(), "subject".to_owned()];
    columns.extend(PARTS.iter().map(|(name, _)| (*name).to_owned()));
    columns.push("whole [interval]".to_owned());
    let row = |title: &String, bar: &Bar| {
        let parts = sum(bar, unit);
        let mut row = vec![title.clone(), bar.label.clone()];
        for index in 0..PARTS.len() {
            let own = parts.iter().find(|(part, ..)| *part == index);
            row.push(own.map_or(String::new(), |(_, _, text)| text.clone()));
        }
        let interval = bar.whole.interval.map(|one| (one.low, one.high));
        row.push(crate::report::text::with_interval(unit, bar.whole.value, interval));
        row
    };
    let rows = panels.iter().flat_map(|(title, bars)| bars.iter().map(move |bar| row(title, bar)));
    Table { columns, rows: rows.collect() }
}

impl Ladder {
    /// Draws it from a height on, and says where it ends.
    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let bars = || self.panels.iter().flat_map(|(_, bars)| bars);
        let end = |bar: &Bar| bar.whole.interval.map_or(bar.whole.value, |interval| interval.high);
        let room = (FOOT, canvas.width - SIDE - VALUE_ROOM);
        let Some(axis) = Axis::from_zero(bars().map(end), self.unit, room) else { return top };
        let ticks = axis.ticks(tick_room);
        let mut y = self.legend(canvas, top + LABEL);
        for (title, bars) in &self.panels {
            if !title.is_empty() {
                y += LABEL * 1.5;
                canvas.text("ink title", (SIDE, y), End::Start, LABEL, title);
            }
            y += SMALL + 6.0;
            ticks.iter().for_each(|tick| canvas.text("faint", (tick.at, y), End::Middle, SMALL, &tick.label));
            y += 6.0;
            let foot = y + ROW * bars.len() as f64;
            ticks.iter().for_each(|tick| canvas.line("grid", (tick.at, y), (tick.at, foot)));
            canvas.line("axis", (FOOT, y), (FOOT, foot));
            for bar in bars {
                self.bar(canvas, &axis, bar, y + 5.0);
                y += ROW;
            }
            y += 4.0;
        }
        y
    }

    fn legend(&self, canvas: &mut Canvas, y: f64) -> f64 {
        let (mut x, mut y) = (SIDE, y);
        for (index, (name, colour)) in PARTS.iter().enumerate() {
            let is_used = |bar: &Bar| bar.parts.iter().any(|(part, _)| *part == index);
            if self.panels.iter().flat_map(|(_, bars)| bars).any(is_used) {
                let own = 16.0 + width(name, LABEL);
                if x + own > canvas.width - SIDE {
                    (x, y) = (SIDE, y + LABEL * 1.5);
                }
                canvas.group(&format!("k{colour}"));
                canvas.rectangle("mark", (x, y - 9.0), (11.0, 11.0));
                canvas.end();
                canvas.text("ink", (x + 16.0, y), End::Start, LABEL, name);
                x += own + 20.0;
            }
        }
        y + 4.0
    }

    fn bar(&self, canvas: &mut Canvas, axis: &Axis, bar: &Bar, y: f64) {
        let parts = sum(bar, self.unit);
        let told: Vec<&str> = parts.iter().map(|(_, _, text)| text.as_str()).collect();
        let words: Vec<_> =
            parts.iter().map(|(part, _, text)| format!("{} {text}", PARTS[*part].0)).collect();
        canvas.subject("", &bar.label, &format!("{}: {}", bar.label, words.join(", ")));
        for (index, line) in in_two(&bar.short, LABEL, LABEL_ROOM).iter().enumerate() {
            let base = y + BAR / 2.0 + 4.0 + LABEL * 1.2 * index as f64;
            canvas.text("ink", (SIDE, base), End::Start, LABEL, line);
        }
        let mut from = axis.at(0.0);
        for (part, end) in &bar.parts {
            let to = axis.at(*end);
            canvas.group(&format!("k{}", PARTS[*part].1));
            // A gap between parts, unless it would leave nothing of them.
            let gap = if to - from > 3.0 { 1.0 } else { 0.0 };
            canvas.rectangle("mark", (from, y), (to - from - gap, BAR));
            canvas.end();
            from = to;
        }
        if let Some(interval) = bar.whole.interval {
            let middle = y + BAR / 2.0;
            canvas.line("axis", (axis.at(interval.low), middle), (axis.at(interval.high), middle));
        }
        let whole = self.unit.format(bar.whole.value);
        canvas.text("ink title", (canvas.width - SIDE, y + BAR / 2.0 + 4.0), End::Last, LABEL, &whole);
        if told.len() > 1 {
            canvas.text("faint", (FOOT + 4.0, y + BAR + SMALL + 2.0), End::Start, SMALL, &told.join(" + "));
        }
        canvas.end();
    }
}
