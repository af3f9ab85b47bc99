//! What does each layer add? A bar for each subject, with parts for the bare process, the kernel's part of a
//! container, the runtime, the engine, and the defaults of the engine.

use super::Picture;
use super::rows::{Panel, Row, Rows};
use crate::distinct;
use crate::report::model::{Experiment, Metric, Report, Row as Subject, Setting};
use crate::report::text::{clean, in_brackets, joined};
use crate::stats::Estimate;
use crate::units::{Unit, counted};

/// The names and colours of the parts, from the bottom up.
const PARTS: [(&str, usize); 5] =
    [("bare process", 0), ("kernel (floor)", 1), ("runtime", 3), ("engine", 4), ("its defaults", 2)];

/// One subject.
struct Bar<'a> {
    row: &'a Subject,
    /// The parts and their ends; each begins at the end of the previous one.
    parts: Vec<(usize, f64)>,
    /// Its own median.
    whole: Estimate,
    /// The equalised subject and its median, if it takes longer equalised than as installed.
    even: Option<(&'a str, f64)>,
}

/// The picture of the whole run: what each layer adds, in the first experiment about launches that has layers. None if
/// no experiment has layers.
pub fn summary(report: &Report) -> Option<Picture> {
    let told = |experiment: &'_ &Experiment| experiment.rows().any(|(_, _, row)| row.floor_share.is_some());
    report.experiments.iter().filter(told).find_map(|experiment| of_experiment(report, experiment))
}

fn of_experiment(report: &Report, experiment: &Experiment) -> Option<Picture> {
    let metric = experiment.metrics.first()?;
    let settings = experiment.settings.iter().map(|setting| (clean(&setting.text), bars(setting)));
    let settings: Vec<(String, Vec<Bar<'_>>)> =
        settings.filter(|(_, bars)| bars.iter().any(|bar| bar.parts.len() > 1)).collect();
    let bars = || settings.iter().flat_map(|(_, bars)| bars);
    let mut caption = vec![format!(
        "Medians of {} over {}. Each part of a bar ends at the median of that layer alone, so its length is what the layer \
         adds; the thin line at the end is the 95 % interval of the whole.",
        metric.name,
        counted(report.rounds.complete, "round")
    )];
    if bars().any(|bar| bar.parts.iter().any(|(part, _)| *part == 4)) {
        caption.push(
            "Layers are compared with equalised settings; “its defaults” is what the engine adds as installed: network, log \
             and the like."
                .into(),
        );
        caption.extend(leaves_out(&settings, metric.unit));
        let uneven = only_as_installed(bars());
        if !uneven.is_empty() {
            caption.push(format!(
                "Except {}, measured as installed only: there the engine's part includes its defaults.",
                joined(&uneven, "and")
            ));
        }
    }
    let panel = |(title, bars): &(String, Vec<Bar<'_>>)| {
        Panel::of_bars(title.clone(), metric.unit, bars.iter().map(|bar| row(metric, bar)).collect())
    };
    let panels: Vec<Panel> = settings.iter().map(panel).collect();
    let until = if metric.unit == Unit::Seconds { "until a command has" } else { "to" };
    let title = format!("What each layer adds {until} {} ({})", metric.name, experiment.name);
    let rows = Rows::stacked(&PARTS, "whole [interval]", panels)?;
    Some(rows.picture(&["summary"], title, caption, "Stacked bars, what each layer adds"))
}

fn row(metric: &Metric, bar: &Bar<'_>) -> Row {
    let (mut lengths, mut from) = ([None; PARTS.len()], 0.0);
    for &(part, end) in &bar.parts {
        lengths[part] = Some(end - from);
        from = end;
    }
    Row::stacked(bar.row, metric.unit, &bar.whole, lengths.into_iter().zip(PARTS.map(|(_, colour)| colour)))
}

/// Engines that were not equalised, although others were.
fn only_as_installed<'a>(bars: impl Iterator<Item = &'a Bar<'a>>) -> Vec<String> {
    let alone = bars.filter(|bar| bar.even.is_none() && bar.parts.last().is_some_and(|(part, _)| *part == 3));
    distinct(alone.map(|bar| bar.row.label.clone()))
}

/// Engines that take less as installed than equalised, since their defaults leave out what others do.
fn leaves_out(settings: &[(String, Vec<Bar<'_>>)], unit: Unit) -> Option<String> {
    let mut all: Vec<String> = Vec::new();
    for (title, bars) in settings {
        let when = in_brackets(title);
        all.extend(bars.iter().filter_map(|bar| {
            let (even, value) = bar.even?;
            let [own, value] = [bar.whole.value, value].map(|value| unit.format(value));
            Some(format!("{} takes {own}, and {even} {value}{when}", bar.row.label))
        }));
    }
    (!all.is_empty()).then(|| {
        format!(
            "Faster as installed than equalised, since the defaults leave out something that the others do: {}. Such a bar \
             ends at the time as installed.",
            all.join("; ")
        )
    })
}

/// Whether this is the equalised subject, which may need an additional key: `containerd:seccomp=default` for
/// `containerd`.
fn is_of(even: &str, own: &str) -> bool {
    even.strip_prefix(own)
        .is_some_and(|rest| rest.is_empty() || (rest.starts_with(':') && !own.contains(':')))
}

/// Subjects with the layers below them, from the lowest layer up.
fn bars<'a>(setting: &'a Setting) -> Vec<Bar<'a>> {
    let installed = setting.ladders.iter().find(|ladder| !ladder.equalised);
    let equalised = setting.ladders.iter().find(|ladder| ladder.equalised);
    let Some(rows) = installed.or(equalised).map(|ladder| &ladder.rows) else { return Vec::new() };
    let median = |row: &Subject| Some(row.value(0)?.summary.median);
    let of_layer = |layer: &str| rows.iter().find(|row| row.layer == layer && row.variant_of.is_none());
    let bar = |row: &'a Subject| {
        let whole = median(row)?;
        let own = ["bare", "floor", "runtime"].iter().position(|layer| row.layer == *layer).unwrap_or(3);
        let runtime =
            rows.iter().find(|one| one.layer == "runtime" && row.runtime.as_ref() == Some(&one.label));
        let below = [of_layer("bare"), of_layer("floor"), runtime].into_iter().enumerate().take(own);
        let mut parts: Vec<(usize, f64)> =
            below.filter_map(|(part, row)| Some((part, median(row?)?.value))).collect();
        // An equalised engine takes less than as installed, unless its defaults leave out what others do.
        let even = equalised.filter(|_| own == 3 && installed.is_some()).and_then(|ladder| {
            ladder.rows.iter().find(|one| one.layer == "engine" && is_of(&one.short, &row.short))
        });
        let even = even.filter(|even| even.label != row.label);
        let even = even.and_then(|even| Some((even.label.as_str(), median(even)?.value)));
        let beyond = even.filter(|(_, value)| *value > whole.value);
        match even.filter(|_| beyond.is_none()) {
            Some((_, value)) => parts.extend([(3, value), (4, whole.value)]),
            None => parts.push((own, whole.value)),
        }
        // A layer that takes no longer than the one below adds nothing to draw.
        let mut ends = 0.0;
        parts.retain(|(_, end)| {
            let longer = *end > ends;
            ends = f64::max(ends, *end);
            longer
        });
        Some(Bar { row, parts, whole, even: beyond })
    };
    rows.iter().filter(|row| row.variant_of.is_none() && !row.is_suspect(0)).filter_map(bar).collect()
}
