//! A history for a person at a terminal: a line for each cell with a small drawing of its course, the changes in
//! sentences, and the runs. Where few cells are asked for, every run has a line with its interval.

use super::{History, Meaning, Series, Value};
use crate::document::Tone;
use crate::document::axis::Axis;
use crate::document::page::Page;
use crate::report::text::{common_scale, decimals, left, number, right, width};
use crate::report::{Glyphs, Look};
use crate::units::counted;

/// With so few cells there is room for each run.
const FEW: usize = 3;
/// Columns of the drawing at most.
const COURSE: usize = 40;

/// The histories as text.
pub(super) fn render(histories: &[History], look: &Look) -> String {
    let mut page = Page::new(look);
    for history in histories {
        page.gap();
        head(&mut page, history);
        courses(&mut page, history, look.glyphs);
        if history.series.len() <= FEW {
            for series in &history.series {
                runs_of(&mut page, history, series);
            }
        }
        page.section("changes", |page| changes(page, history));
        page.section("runs", |page| runs(page, history));
    }
    page.finish()
}

fn head(page: &mut Page, history: &History) {
    let order = history.by.as_ref().map_or("by date".to_owned(), |tag| format!("by `{tag}`"));
    let (first, last) = (&history.points[0].name, &history.points[history.points.len() - 1].name);
    let text = format!("{} {order}, {first} to {last}", counted(history.points.len(), "run"));
    page.paragraph(Tone::Strong, "", &text);
    page.paragraph(Tone::Faint, "where  ", &history.machine);
    let level = format!("{:.4}", (1.0 - history.level.get()) * 100.0);
    let level = level.trim_end_matches('0').trim_end_matches('.');
    let text = format!(
        "a change is marked at {level} % a cell, so that all together hold at 95 %; {} are needed at least",
        counted(history.needed, "run")
    );
    page.paragraph(Tone::Faint, "how    ", &text);
    for notice in &history.notices {
        page.paragraph(Tone::Open, "! ", notice);
    }
}

fn courses(page: &mut Page, history: &History, glyphs: Glyphs) {
    let mut at = 0;
    while let Some(first) = history.series.get(at) {
        let same = |one: &&Series| {
            (one.experiment, one.metric, &one.setting) == (first.experiment, first.metric, &first.setting)
        };
        let group: Vec<&Series> = history.series[at..].iter().take_while(same).collect();
        at += group.len();
        let setting = if first.setting.is_empty() { String::new() } else { format!(" ({})", first.setting) };
        let title = format!("{}.{}{setting}", first.experiment, first.metric);
        page.section(&title, |page| table(page, history, &group, glyphs));
    }
}

fn table(page: &mut Page, history: &History, group: &[&Series], glyphs: Glyphs) {
    let labels = group.iter().map(|one| width(&one.label)).max().unwrap_or(0).clamp(7, 30);
    let columns = history.points.len().min(COURSE);
    let course = columns.max(6);
    page.line(&[(
        Tone::Faint,
        &format!(
            "  {}  {}  {}  {}  change",
            left("subject", labels),
            right("first", 9),
            right("last", 9),
            left("course", course)
        ),
    )]);
    for series in group {
        let known: Vec<f64> = series.values.iter().flatten().map(|value| value.median.value).collect();
        let shown = |value: Option<&f64>| value.map(|value| series.unit.format(*value)).unwrap_or_default();
        let drawn = drawn(series, columns, glyphs);
        let (tone, what, since) = in_short(history, series);
        // When it was is told again among the changes; a date that is cut in two tells nothing.
        let used = 2 + labels + 2 + 9 + 2 + 9 + 2 + course + 2;
        let text = match used + width(&what) + width(&since) <= page.width {
            true => format!("{what}{since}"),
            false => what,
        };
        page.line(&[
            (Tone::Plain, &format!("  {}  ", left(&series.label, labels))),
            (
                Tone::Plain,
                &format!("{}  {}  ", right(&shown(known.first()), 9), right(&shown(known.last()), 9)),
            ),
            (Tone::Plain, &format!("{}  ", left(&drawn, course))),
            (tone, &text),
        ]);
    }
}

/// The last change that matters in a few words, and since when.
fn in_short(history: &History, series: &Series) -> (Tone, String, String) {
    let matters = series.changes.iter().rev().find(|change| change.meaning != Meaning::TooSmall);
    let Some(change) = matters.or(series.changes.last()) else {
        return (Tone::Faint, "none found".into(), String::new());
    };
    let tone = match change.meaning {
        Meaning::Changed(kind) => Tone::of(kind),
        Meaning::TooSmall => Tone::Faint,
        Meaning::Machine => Tone::Open,
    };
    let more = match series.changes.len() {
        1 => String::new(),
        count => format!(", {count} in all"),
    };
    let share = (change.levels.1 / change.levels.0 - 1.0) * 100.0;
    let sign = if share > 0.0 { "+" } else { "" };
    let share = if change.levels.0 > 0.0 { format!(" {sign}{} %", number(share, 1)) } else { String::new() };
    let since = format!(" since {}{more}", history.points[change.after].name);
    (tone, format!("{}{share}", change.meaning.name()), since)
}

/// The course in so many columns, each as high as its value is between the lowest and the highest; `!` is a value that
/// must not be believed, and `|` stands before a change where there is room.
fn drawn(series: &Series, columns: usize, glyphs: Glyphs) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const DIGITS: [char; 8] = ['1', '2', '3', '4', '5', '6', '7', '8'];
    let signs = if glyphs == Glyphs::Ascii { DIGITS } else { BARS };
    let count = series.values.len();
    // Of several runs in a column the middle one is drawn.
    let column = |index: usize| -> Option<Value> {
        let (from, to) =
            (index * count / columns, ((index + 1) * count / columns).max(index * count / columns + 1));
        let mut values: Vec<Value> = series.values[from..to].iter().flatten().copied().collect();
        values.sort_by(|one, other| one.median.value.total_cmp(&other.median.value));
        values.get(values.len() / 2).copied()
    };
    let values: Vec<Option<Value>> = (0..columns).map(column).collect();
    let known = || values.iter().flatten().filter(|value| !value.is_suspect).map(|value| value.median.value);
    let (low, high) =
        known().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), one| (low.min(one), high.max(one)));
    // A range so small that nothing in it matters is drawn flat.
    let span = (high - low).max(high.abs() * 0.05);
    let middle = f64::midpoint(low, high);
    let sign = |value: &Option<Value>| match value {
        None => ' ',
        Some(value) if value.is_suspect => '!',
        Some(value) => {
            let share = ((value.median.value - middle) / span + 0.5).clamp(0.0, 1.0);
            signs[(share * 7.0).round() as usize]
        }
    };
    values.iter().map(sign).collect()
}

/// A line for each run: name, median with its interval, and both on an axis.
fn runs_of(page: &mut Page, history: &History, series: &Series) {
    let values: Vec<f64> = series.values.iter().flatten().map(|value| value.median.value).collect();
    let ends = |value: &Value| {
        let interval = value.median.interval.map(|one| [one.low, one.high]);
        interval.into_iter().flatten().chain([value.median.value]).collect::<Vec<_>>()
    };
    let all: Vec<f64> = series.values.iter().flatten().flat_map(ends).collect();
    let names = history.points.iter().map(|point| width(&point.name)).max().unwrap_or(0).clamp(3, 24);
    let columns = page.width.saturating_sub(names + 34).min(60);
    let scale = common_scale(series.unit, values.iter().copied());
    let axis = Axis::over(all, series.unit, columns);
    let title = super::words::cell(series);
    page.section(&title, |page| {
        if let Some(axis) = &axis {
            let (labels, ticks) = axis.drawn();
            let indent = " ".repeat(names + 32);
            page.line(&[(Tone::Faint, &format!("{indent}{labels}"))]);
            page.line(&[(Tone::Faint, &format!("{indent}{ticks}"))]);
        }
        for (index, (point, value)) in history.points.iter().zip(&series.values).enumerate() {
            let change = series.changes.iter().find(|change| change.after == index);
            if let Some(change) = change {
                let text = format!("  {} {}", "·".repeat(names), change.meaning.name());
                page.line(&[(Tone::Open, &text)]);
            }
            let Some(value) = value else {
                page.line(&[
                    (Tone::Plain, &format!("  {}  ", left(&point.name, names))),
                    (Tone::Faint, "no value"),
                ]);
                continue;
            };
            let digits = decimals(value.median.value / scale.divisor);
            let shown = |value: f64| number(value / scale.divisor, digits);
            let interval =
                value.median.interval.map(|one| format!(" [{}, {}]", shown(one.low), shown(one.high)));
            let text =
                format!("{} {}{}", shown(value.median.value), scale.symbol, interval.unwrap_or_default());
            let drawing = axis.as_ref().map(|axis| {
                axis.draw(value.median.value, value.median.interval.map(|one| (one.low, one.high)), &[])
            });
            let mark = if value.is_suspect { "!" } else { " " };
            page.line(&[
                (Tone::Plain, &format!("  {}  {mark}{}  ", left(&point.name, names), left(&text, 26))),
                (Tone::Plain, &drawing.unwrap_or_default()),
            ]);
        }
    });
}

fn changes(page: &mut Page, history: &History) {
    for series in &history.series {
        for change in &series.changes {
            page.paragraph(Tone::Plain, "  ", &format!("{} (p {})", change.sentence, shown_p(change.p)));
        }
    }
}

/// A probability with one digit that counts.
fn shown_p(p: f64) -> String {
    format!("{p:.*}", (-p.log10().floor()).max(1.0) as usize)
}

fn runs(page: &mut Page, history: &History) {
    let names = history.points.iter().map(|point| width(&point.name)).max().unwrap_or(0).min(24);
    for point in &history.points {
        let day = point.started.get(..16).unwrap_or(&point.started).replace('T', " ");
        let when = if history.by.is_some() { format!("{day}  ") } else { String::new() };
        page.line(&[
            (Tone::Plain, &format!("  {}  {when}run {}  ", left(&point.name, names), point.run)),
            (Tone::Faint, &format!("{}, {}", counted(point.rounds, "round"), point.place)),
        ]);
    }
}
