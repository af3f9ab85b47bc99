//! Compact tables: medians with their intervals, one line per subject, three metrics beside each
//! other.

use super::ladder::label_room;
use crate::document::Tone;
use crate::document::page::Page;
use crate::report::model::{Experiment, Metric, Row, Setting, Value};
use crate::report::text::{
    align_points, bound, common_scale, decimals, left, number, right, width, with_interval,
};
use crate::units::Scale;

/// Metrics that fit beside each other in 80 columns.
const BESIDE: usize = 3;

/// The tables of a setting: metrics with verdicts, then the first of the others.
pub(super) fn tables(page: &mut Page, experiment: &Experiment, setting: &Setting) {
    let baseline = rows(setting).find(|row| row.is_baseline);
    let size = |metric: &usize| {
        let value = baseline.and_then(|row| row.values.get(*metric)?.as_ref());
        value.map_or(f64::INFINITY, |value| value.median.value)
    };
    let of_weight = |decisive: bool| {
        let fits = |metric: &usize| experiment.metrics[*metric].decisive == decisive;
        (0..experiment.metrics.len()).filter(fits).collect::<Vec<_>>()
    };
    // Times from one start to several ends read best in the order in which they end. More than fit
    // beside each other are the parts of a whole, which stay in the order in which they come.
    let mut decisive = of_weight(true);
    if decisive.len() <= BESIDE {
        decisive.sort_by(|one, other| size(one).total_cmp(&size(other)));
    }
    let context = of_weight(false);
    let has = |row: &Row, metric: usize| row.values.get(metric).is_some_and(Option::is_some);
    let of_some = |metric: &usize| {
        !baseline.is_some_and(|row| has(row, *metric)) && rows(setting).any(|row| has(row, *metric))
    };
    let (of_some, context): (Vec<usize>, Vec<usize>) = context.into_iter().partition(of_some);
    let (context, rest) = context.split_at(context.len().min(BESIDE));
    let named = if setting.text.is_empty() { String::new() } else { format!(", {}", setting.text) };
    for (metrics, what) in [(&decisive[..], "times"), (context, "CPU and parts, for context")] {
        for beside in metrics.chunks(BESIDE) {
            page.title(Tone::Strong, &format!("{} {what}{named}", experiment.name));
            table(page, experiment, lines(setting), beside);
        }
    }
    for beside in of_some.chunks(BESIDE) {
        page.title(Tone::Strong, &format!("{} parts that only some have{named}", experiment.name));
        let concerned = |row: &Row| beside.iter().any(|metric| has(row, *metric));
        table(page, experiment, only(lines(setting), concerned), beside);
    }
    for &metric in rest {
        in_short(page, &experiment.metrics[metric], metric, setting, baseline);
    }
}

/// A metric that deserves no table: its value in the baseline, and the range over all subjects.
fn in_short(page: &mut Page, metric: &Metric, index: usize, setting: &Setting, baseline: Option<&Row>) {
    let value = |row: &Row| row.values.get(index).and_then(Option::as_ref).map(|value| value.median);
    let mut medians: Vec<f64> = rows(setting).filter_map(value).map(|median| median.value).collect();
    medians.sort_by(f64::total_cmp);
    let (Some(row), [low, .., high]) = (baseline, &medians[..]) else { return };
    let Some(median) = value(row) else { return };
    let own = with_interval(metric.unit, median.value, median.interval.map(|one| (one.low, one.high)));
    let [low, high] = [low, high].map(|value| with_interval(metric.unit, *value, None));
    let text = format!("{}: {own} in {}; {low} to {high} over all", metric.name, row.short);
    page.paragraph(Tone::Plain, "", &text);
}

/// A row of the table: a subject, or the title of the subjects that follow.
enum Line<'a> {
    Subject(&'a Row),
    Title(String),
}

fn table(page: &mut Page, experiment: &Experiment, lines: Vec<Line<'_>>, metrics: &[usize]) {
    let rows: Vec<&Row> = lines
        .iter()
        .filter_map(|line| if let Line::Subject(row) = line { Some(*row) } else { None })
        .collect();
    let columns: Vec<Column> =
        metrics.iter().map(|&metric| Column::of(&experiment.metrics[metric], metric, &rows)).collect();
    let needed: usize = columns.iter().map(|column| column.width() + 2).sum();
    let labels = label_room(page, rows.iter().map(|row| row.short.as_str()))
        .min(page.width.saturating_sub(needed).max(5));
    let mut names = left("", labels);
    let mut heads = left("", labels);
    for column in &columns {
        names.push_str(&format!("  {}", left(&column.name, column.width())));
        heads.push_str(&format!(
            "  {} {}",
            right("median", column.medians_width),
            left("interval", column.intervals_width)
        ));
    }
    page.line(&[(Tone::Plain, &names)]);
    page.line(&[(Tone::Faint, &heads)]);
    let mut index = 0;
    for line in &lines {
        match line {
            Line::Title(title) => page.line(&[(Tone::Faint, title)]),
            Line::Subject(row) => {
                let mut text = String::new();
                for column in &columns {
                    let (median, interval) = (&column.medians[index], &column.intervals[index]);
                    text.push_str(&format!(
                        "  {} {}",
                        right(median, column.medians_width),
                        left(interval, column.intervals_width)
                    ));
                }
                page.line(&[(Tone::Strong, &left(&row.short, labels)), (Tone::Plain, &text)]);
                index += 1;
            }
        }
    }
}

/// All subjects once; those on an equalised ladder under a title of their own.
fn lines(setting: &Setting) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for ladder in &setting.ladders {
        let fresh: Vec<&Row> = ladder.rows.iter().filter(|row| !seen.contains(&row.label.as_str())).collect();
        seen.extend(fresh.iter().map(|row| row.label.as_str()));
        if ladder.equalised && !fresh.is_empty() {
            let keys = if ladder.shared_keys.is_empty() {
                String::new()
            } else {
                format!(" ({})", ladder.shared_keys)
            };
            lines.push(Line::Title(format!("{}{keys}", ladder.name)));
        }
        lines.extend(fresh.into_iter().map(Line::Subject));
    }
    lines
}

/// All rows, those on two ladders twice.
fn rows(setting: &Setting) -> impl Iterator<Item = &Row> {
    setting.ladders.iter().flat_map(|ladder| &ladder.rows)
}

/// The lines of some subjects, with the titles that still have one below them.
fn only<'a>(lines: Vec<Line<'a>>, is_wanted: impl Fn(&Row) -> bool) -> Vec<Line<'a>> {
    let mut kept: Vec<Line<'a>> = Vec::new();
    for line in lines {
        match &line {
            Line::Subject(row) if !is_wanted(row) => continue,
            Line::Title(_) if matches!(kept.last(), Some(Line::Title(_))) => drop(kept.pop()),
            _ => {}
        }
        kept.push(line);
    }
    if matches!(kept.last(), Some(Line::Title(_))) {
        kept.pop();
    }
    kept
}

/// One metric as it stands in the table.
struct Column {
    name: String,
    medians: Vec<String>,
    intervals: Vec<String>,
    medians_width: usize,
    intervals_width: usize,
}

impl Column {
    fn of(metric: &Metric, index: usize, rows: &[&Row]) -> Column {
        let values: Vec<Option<&Value>> =
            rows.iter().map(|row| row.values.get(index).and_then(Option::as_ref)).collect();
        let scale = common_scale(metric.unit, values.iter().flatten().map(|value| value.median.value));
        let medians: Vec<_> =
            values.iter().map(|value| value.map_or("-".into(), |value| median(value, scale))).collect();
        let medians = align_points(&medians);
        let intervals: Vec<_> =
            values.iter().map(|value| value.map_or(String::new(), |value| interval(value, scale))).collect();
        let name = match scale.symbol {
            "" => metric.name.to_owned(),
            symbol => format!("{}, {symbol}", metric.name),
        };
        let widest = |texts: &[String], least: usize| {
            texts.iter().map(|text| width(text)).max().unwrap_or(0).max(least)
        };
        let medians_width = widest(&medians, "median".len());
        let intervals_width =
            widest(&intervals, "interval".len()).max(width(&name).saturating_sub(medians_width + 1));
        Column { name, medians, intervals, medians_width, intervals_width }
    }

    fn width(&self) -> usize {
        self.medians_width + 1 + self.intervals_width
    }
}

fn median(value: &Value, scale: Scale) -> String {
    let median = value.median.value / scale.divisor;
    number(median, decimals(median))
}

/// The interval with as many decimals as its median.
fn interval(value: &Value, scale: Scale) -> String {
    let Some(interval) = value.median.interval else { return String::new() };
    let decimals = decimals(value.median.value / scale.divisor);
    format!(
        "{}–{}",
        bound(interval.low / scale.divisor, decimals),
        bound(interval.high / scale.divisor, decimals)
    )
}
