//! A comparison for a person at a terminal: what differs around it, a table for each metric that is decided, and
//! verdicts in words. Metrics of context stand in the other formats.

use super::{Comparison, Experiment, InSetting, Line, Verdict, words};
use crate::report::Look;
use crate::report::terminal::page::{Page, Tone};
use crate::report::text::{in_percent, left, right};
use crate::units::{Unit, counted};

/// The comparison as text.
pub(super) fn render(comparison: &Comparison, look: &Look) -> String {
    let mut page = Page::new(look);
    head(&mut page, comparison);
    for notice in &comparison.notices {
        page.paragraph(Tone::Open, "! ", notice);
    }
    around(&mut page, comparison);
    for experiment in &comparison.experiments {
        tables(&mut page, experiment);
    }
    page.section("in words", |page| in_words(page, comparison));
    page.section("only on one side", |page| {
        for (side, alone) in ["old", "new"].into_iter().zip(&comparison.alone) {
            if !alone.is_empty() {
                page.paragraph(Tone::Plain, &format!("  only {side}  "), &alone.join(", "));
            }
        }
    });
    page.section("in short", |page| {
        for sentence in &comparison.summary {
            page.paragraph(Tone::Plain, "  ", sentence);
        }
    });
    page.finish()
}

fn head(page: &mut Page, comparison: &Comparison) {
    for (side, runs) in ["old  ", "new  "].into_iter().zip(&comparison.sides) {
        for (index, run) in runs.iter().enumerate() {
            let tags: Vec<_> = run.tags.iter().map(|(key, value)| format!(" · {key}={value}")).collect();
            let rounds = match run.rounds {
                (have, planned) if have == planned => counted(planned, "round"),
                (have, planned) => format!("{have} of {}", counted(planned, "round")),
            };
            let text =
                format!("{} · run {} · {} · {rounds}{}", run.place, run.run, run.started, tags.concat());
            page.paragraph(Tone::Strong, if index == 0 { side } else { "     " }, &text);
        }
    }
    let level = format!("{:.4}", (1.0 - comparison.level.get()) * 100.0);
    let level = level.trim_end_matches('0').trim_end_matches('.');
    let text =
        format!("{} at {level} %, so that all together hold at 95 %", counted(comparison.family, "interval"));
    page.paragraph(Tone::Faint, "how  ", &text);
}

fn around(page: &mut Page, comparison: &Comparison) {
    page.section("what differs around them", |page| {
        if comparison.differences.is_empty() {
            page.line(&[(Tone::Plain, "  nothing that was recorded: machine, probe, programs, daemons")]);
        }
        for one in &comparison.differences {
            let tone = if one.meaning.is_another_fruit() { Tone::Open } else { Tone::Plain };
            let of = if one.subjects.is_empty() {
                String::new()
            } else {
                format!(" of {}", one.subjects.join(", "))
            };
            let text = format!("{}{of}: {} → {}", one.what, one.old, one.new);
            page.paragraph(tone, &format!("  {}  ", left(one.meaning.name(), 10)), &text);
        }
    });
}

fn tables(page: &mut Page, experiment: &Experiment) {
    let decisive = (0..experiment.metrics.len()).filter(|metric| experiment.metrics[*metric].is_decisive);
    for metric in decisive {
        let lines: Vec<&Line> = experiment.lines.iter().filter(|line| line.metric == metric).collect();
        let name = experiment.metrics[metric].name;
        page.section(&format!("{name} of {}", experiment.name), |page| table(page, experiment, &lines));
    }
}

/// Widths of a row: subject, setting, median old, median new.
const MEDIAN: usize = 9;

struct Widths {
    label: usize,
    setting: usize,
    difference: usize,
}

fn widths(page: &Page, lines: &[&Line]) -> Widths {
    let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let setting = widest(
        &mut lines.iter().flat_map(|line| &line.settings).map(|one| crate::report::text::width(&one.values)),
    );
    let several = lines.iter().any(|line| line.settings.len() > 1);
    let setting = if several { setting.max(8) } else { setting }.min(24);
    let label = widest(&mut lines.iter().map(|line| crate::report::text::width(&line.label)));
    // What is left of the line: ratio, verdict and gaps take their own.
    let room = page.width.saturating_sub(2 + setting + 2 + 2 * (MEDIAN + 1) + 22 + 2 + 15);
    let difference = if page.width >= 110 { 30 } else { 0 };
    Widths { label: label.min(room.saturating_sub(difference).max(8)), setting, difference }
}

fn table(page: &mut Page, experiment: &Experiment, lines: &[&Line]) {
    if lines.is_empty() {
        return;
    }
    let widths = widths(page, lines);
    page.line(&[(
        Tone::Faint,
        &format!(
            "  {} {} {} {}{}  {}",
            left("", widths.label),
            left("", widths.setting),
            right("old", MEDIAN),
            right("new", MEDIAN),
            if widths.difference > 0 { left("  new − old", widths.difference) } else { String::new() },
            "new ÷ old"
        ),
    )]);
    for line in lines {
        let unit = experiment.metrics[line.metric].unit;
        let alone = line.settings.len() == 1;
        for (index, one) in line.settings.iter().enumerate() {
            let label = if index == 0 { line.label.as_str() } else { "" };
            let verdict = if alone { line.verdict.word() } else { "" };
            row(page, &widths, unit, label, one, (tone(line), verdict));
        }
        if !alone {
            let shown = line.together.map_or(String::new(), |all| words::change(all.scale, &all.change));
            let blank = widths.label
                + 1
                + left("together", widths.setting).len()
                + 2 * (MEDIAN + 1)
                + widths.difference;
            let lead = format!("  {} {}", left("", widths.label), left("together", widths.setting));
            let lead = left(&lead, blank + 2);
            page.line(&[
                (Tone::Faint, &lead),
                (Tone::Plain, "  "),
                (Tone::Plain, &left(&shown, 22)),
                (Tone::Plain, "  "),
                (tone(line), line.verdict.word()),
            ]);
        }
    }
}

fn row(page: &mut Page, widths: &Widths, unit: Unit, label: &str, one: &InSetting, verdict: (Tone, &str)) {
    let median = |value: Option<f64>| right(&value.map_or("–".into(), |value| unit.format(value)), MEDIAN);
    let difference = match one.difference {
        Some(found) if widths.difference > 0 => {
            left(&format!("  {}", words::difference(unit, &found)), widths.difference)
        }
        _ => left("", widths.difference),
    };
    let ratio = match (&one.ratio, &one.difference) {
        (Some(ratio), _) => in_percent(ratio),
        (None, Some(found)) if widths.difference == 0 => words::difference(unit, found),
        _ => String::new(),
    };
    page.line(&[
        (Tone::Strong, &format!("  {} ", left(label, widths.label))),
        (Tone::Plain, &left(&one.values, widths.setting)),
        (Tone::Plain, &format!(" {} {}", median(one.medians[0]), median(one.medians[1]))),
        (Tone::Plain, &difference),
        (Tone::Plain, &format!("  {}", left(&ratio, 22))),
        (Tone::Plain, "  "),
        (verdict.0, verdict.1),
    ]);
}

/// What the tables do not say: why something is open, or not to be believed. What is the same needs no more
/// words, and what is merely undecided is told of the first metric.
fn in_words(page: &mut Page, comparison: &Comparison) {
    for experiment in &comparison.experiments {
        let is_told = |line: &&Line| match line.verdict {
            Verdict::Context | Verdict::Same => false,
            Verdict::Undecided { .. } | Verdict::TooFew { .. } => line.metric == 0,
            _ => true,
        };
        let told = experiment.lines.iter().filter(is_told);
        for line in told {
            page.paragraph(tone(line), "  ", &format!("{}: {}", experiment.name, line.sentence));
        }
    }
}

fn tone(line: &Line) -> Tone {
    match line.verdict {
        Verdict::Slower => Tone::Worse,
        Verdict::Faster => Tone::Better,
        Verdict::Same | Verdict::Context => Tone::Plain,
        Verdict::Suspect(_) | Verdict::NoData => Tone::Alarm,
        _ => Tone::Open,
    }
}
