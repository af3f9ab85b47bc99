//! The ladder: one line per subject from the lowest layer up, with its median, a drawing on a
//! logarithmic axis, its multiple of the baseline and the verdict.

use crate::document::Tone;
use crate::document::axis::Axis;
use crate::document::page::Page;
use crate::report::model::{Change, Experiment, Ladder, Row, Setting};
use crate::report::text::{align_points, common_scale, decimals, left, number, right, width, with_interval};

/// Columns that labels may take at 80; a wider page gives them a third of what it has more.
const LABELS: usize = 22;
const LAYER: usize = 7;
const VERDICT: usize = 9;

/// What a change is for the eye; noise may hide it.
pub(super) fn tone_of(change: &Change) -> Tone {
    if change.hidden_by_noise.is_some() { Tone::Open } else { Tone::of(change.kind) }
}

/// The columns for labels on this page.
pub(super) fn label_room<'a>(page: &Page, labels: impl Iterator<Item = &'a str>) -> usize {
    let most = LABELS + (page.width - 80) / 3;
    labels.map(width).max().unwrap_or(0).clamp(5, most)
}

/// One ladder of the first metric.
pub(super) fn ladder(page: &mut Page, experiment: &Experiment, setting: &Setting, ladder: &Ladder) {
    let Some(metric) = experiment.metrics.first() else { return };
    page.title(Tone::Strong, &title(experiment, setting, ladder));
    let medians: Vec<Option<f64>> =
        ladder.rows.iter().map(|row| Some(row.values.first()?.as_ref()?.median.value)).collect();
    let scale = common_scale(metric.unit, medians.iter().flatten().copied());
    let shown = |median: &Option<f64>| match median {
        Some(value) => number(value / scale.divisor, decimals(value / scale.divisor)),
        None => "-".into(),
    };
    let values = align_points(&medians.iter().map(shown).collect::<Vec<_>>());
    let multiples = align_points(&ladder.rows.iter().map(multiple).collect::<Vec<_>>());
    let wide =
        |texts: &[String], least: usize| texts.iter().map(|text| width(text)).max().unwrap_or(0).max(least);
    let head = if scale.symbol.is_empty() { "median".to_owned() } else { scale.symbol.to_owned() };
    let multiple_head = match width(&ladder.baseline) {
        0..=6 => format!("× {}", ladder.baseline),
        _ => "× base".to_owned(),
    };
    let (value_room, multiple_room) =
        (wide(&values, width(&head)), wide(&multiples, width(&multiple_head).min(8)));
    let labels = label_room(page, ladder.rows.iter().map(|row| row.short.as_str()));
    let drawing = page.width.saturating_sub(LAYER + labels + value_room + multiple_room + VERDICT + 7);
    let ends = ladder.rows.iter().filter_map(|row| row.values.first()?.as_ref()).flat_map(|value| {
        let interval = value.median.interval.map_or(value.range, |one| (one.low, one.high));
        [value.median.value, interval.0, interval.1]
    });
    let axis = Axis::over(ends, metric.unit, drawing);
    let (axis_labels, ticks) = axis.map(|axis| axis.drawn()).unwrap_or_default();
    let blank = " ".repeat(LAYER + labels + value_room + 3);
    page.line(&[
        (Tone::Faint, &left("", LAYER + 1 + labels + 1)),
        (Tone::Faint, &right(&head, value_room)),
        (Tone::Faint, &format!(" {} ", left(&axis_labels, drawing))),
        (Tone::Faint, &left(&multiple_head, multiple_room)),
    ]);
    page.line(&[(Tone::Faint, &blank), (Tone::Faint, &ticks)]);
    let mut layer = "";
    for ((row, value), multiple) in ladder.rows.iter().zip(&values).zip(&multiples) {
        let own = if row.layer == layer { "" } else { row.layer };
        layer = row.layer;
        let first = row.values.first().and_then(Option::as_ref);
        let drawn = match (first, axis) {
            (Some(value), Some(axis)) => axis.draw(
                value.median.value,
                value.median.interval.map(|one| (one.low, one.high)),
                &value.points,
            ),
            (None, _) if row.lost > 0 => "no sample, see failures".to_owned(),
            _ => String::new(),
        };
        let change = row.against_baseline.first().and_then(Option::as_ref);
        let verdict = change.map_or("", Change::word);
        page.line(&[
            (Tone::Faint, &left(own, LAYER + 1)),
            (Tone::Strong, &format!("{} ", left(&row.short, labels))),
            (Tone::Plain, &left(value, value_room + 1)),
            (if first.is_some() { Tone::Plain } else { Tone::Alarm }, &left(&drawn, drawing + 1)),
            (Tone::Plain, &left(multiple, multiple_room + 1)),
            (change.map_or(Tone::Plain, tone_of), &left(verdict, VERDICT)),
        ]);
    }
}

fn title(experiment: &Experiment, setting: &Setting, ladder: &Ladder) -> String {
    let metric = experiment.metrics.first().map_or("", |metric| metric.name);
    let keys =
        if ladder.shared_keys.is_empty() { String::new() } else { format!(" ({})", ladder.shared_keys) };
    let setting = if setting.text.is_empty() { String::new() } else { format!(", {}", setting.text) };
    format!("{} {metric}{setting}, {}{keys}", experiment.name, ladder.name)
}

/// How many times the baseline.
fn multiple(row: &Row) -> String {
    if row.is_baseline {
        return "1".into();
    }
    let change = row.against_baseline.first().and_then(Option::as_ref);
    match change.and_then(|change: &Change| change.ratio) {
        Some(ratio) => number(ratio.value, decimals(ratio.value).min(2)),
        None => "-".into(),
    }
}

/// What twins show about the first metric, by layer.
pub(super) fn noise(page: &mut Page, experiment: &Experiment, setting: &Setting) {
    let Some(metric) = experiment.metrics.first() else { return };
    let of_layer = |noise: &crate::report::model::Noise| {
        let moved = if noise.holds_zero { "" } else { " (its twins differ)" };
        format!("{} {}{moved}", noise.layer, with_interval(metric.unit, noise.units, None))
    };
    let parts: Vec<_> = setting.noise.iter().filter(|noise| noise.metric == 0).map(of_layer).collect();
    if !parts.is_empty() {
        page.paragraph(Tone::Plain, "noise floor (twins): ", &parts.join(" · "));
    }
}

/// What the floor explains of the engines' and runtimes' times.
pub(super) fn floor_shares(page: &mut Page, experiment: &Experiment, ladder: &Ladder) {
    let Some(metric) = experiment.metrics.first() else { return };
    let part = |row: &Row| {
        let share = row.floor_share?.value;
        let median = row.values.first()?.as_ref()?.median.value;
        let whole = with_interval(metric.unit, median, None);
        Some(format!("{}'s {whole} {}", row.short, crate::report::text::percent(share)))
    };
    let mut rows: Vec<&Row> = ladder.rows.iter().collect();
    // Below the engines both ladders say the same.
    rows.retain(|row| (!ladder.equalised || row.layer == "engine") && !row.is_suspect(0));
    rows.reverse();
    let parts: Vec<_> = rows.into_iter().filter_map(part).collect();
    if !parts.is_empty() {
        page.paragraph(Tone::Plain, "the floor explains: ", &format!("of {}", parts.join("; of ")));
    }
}
