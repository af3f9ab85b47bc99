//! A comparison for a person at a terminal: what differs around it, a table for each metric that is decided, and
//! verdicts in words. Metrics of context stand in the other formats. What it comes to stands last, where a person at a
//! terminal is when all is printed.

use super::rows::{Part, Row, Table, tables};
use super::summary::in_words;
use super::{Comparison, Experiment};
use crate::document::Tone;
use crate::document::page::Page;
use crate::report::Look;
use crate::report::text::{left, right, width};
use crate::units::counted;

/// The comparison as text.
pub(super) fn render(comparison: &Comparison, look: &Look) -> String {
    let mut page = Page::new(look);
    head(&mut page, comparison);
    for notice in &comparison.notices {
        page.paragraph(Tone::Open, "! ", notice);
    }
    around(&mut page, comparison);
    for experiment in &comparison.experiments {
        of_experiment(&mut page, experiment);
    }
    page.section("in words", |page| {
        for experiment in &comparison.experiments {
            for (kind, sentence) in in_words(experiment) {
                page.paragraph(Tone::of(kind), "  ", &format!("{}: {sentence}", experiment.name));
            }
        }
    });
    page.section("only on one side", |page| {
        for (side, alone) in ["old", "new"].into_iter().zip(&comparison.alone) {
            for (index, one) in alone.iter().enumerate() {
                let lead = if index == 0 { format!("  only {side}  ") } else { " ".repeat(12) };
                page.paragraph(Tone::Plain, &lead, one);
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
            let lead = if index == 0 { side } else { "     " };
            page.paragraph(Tone::Strong, lead, &run.in_short().join(" · "));
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

fn of_experiment(page: &mut Page, experiment: &Experiment) {
    for table in tables(experiment, |metric| metric.is_decisive) {
        let given = table.given.map_or(String::new(), |text| format!(" ({text})"));
        let title = format!("{} of {}{given}", table.metric.name, experiment.name);
        page.section(&title, |page| rows(page, &table));
    }
}

/// Columns of a median, and of the longest verdict.
const MEDIAN: usize = 9;
const VERDICT: usize = 15;
/// A page of so many columns has room for differences beside ratios.
const WIDE: usize = 110;
/// Fewer columns than these are none for a label.
const LABEL: usize = 8;

struct Widths {
    label: usize,
    setting: usize,
    /// None where there is no room beside the ratio.
    difference: usize,
    change: usize,
}

impl Widths {
    fn of(page: &Page, table: &Table<'_>) -> Widths {
        let widest = |text: &dyn Fn(&Row<'_>) -> usize| table.rows.iter().map(text).max().unwrap_or_default();
        let setting = widest(&|row| width(row.setting)).min(24);
        let difference = match page.width >= WIDE {
            true => widest(&|row| row.difference.as_ref().map_or(0, |(_, text)| width(text))).max(9) + 2,
            false => 0,
        };
        let change = widest(&|row| width(change(row, difference))).max(9);
        let taken = 2 + 1 + setting + 2 * (MEDIAN + 1) + difference + 2 + change + 2 + VERDICT;
        let room = page.width.saturating_sub(taken);
        let label = widest(&|row| width(&row.line.label));
        // A label that is cut may read like another one; where it does not fit it has a line of its own.
        Widths {
            label: if room < LABEL.min(label) { 1 } else { label.min(room) },
            setting,
            difference,
            change,
        }
    }
}

/// The change as a ratio, or as a difference where there is no ratio and no column of differences.
fn change<'a>(row: &'a Row<'_>, difference: usize) -> &'a str {
    let plain = row.difference.as_ref().filter(|_| difference == 0);
    row.change.as_ref().or(plain).map_or("", |(_, text)| text)
}

fn rows(page: &mut Page, table: &Table<'_>) {
    let widths = Widths::of(page, table);
    let ratios = table.rows.iter().filter(|row| row.part != Part::Together).all(|row| row.change.is_some());
    let what = if ratios || widths.difference > 0 { "new ÷ old" } else { "change" };
    page.line(&[(
        Tone::Faint,
        &format!(
            "  {} {} {} {}{}  {what}",
            left("", widths.label),
            left("", widths.setting),
            right("old", MEDIAN),
            right("new", MEDIAN),
            left("  new − old", widths.difference),
        ),
    )]);
    for one in &table.rows {
        row(page, &widths, one);
    }
}

fn row(page: &mut Page, widths: &Widths, row: &Row<'_>) {
    let mut label = if row.part == Part::First { row.line.label.as_str() } else { "" };
    if width(label) > widths.label {
        page.line(&[(Tone::Strong, &format!("  {label}"))]);
        label = "";
    }
    let median = |side: usize| match (&row.medians[side], row.part) {
        (Some((_, text)), _) => right(text, MEDIAN),
        (None, Part::Together) => right("", MEDIAN),
        (None, _) => right("–", MEDIAN),
    };
    let difference = row.difference.as_ref().map_or(String::new(), |(_, text)| format!("  {text}"));
    let tone = if row.part == Part::Together { Tone::Faint } else { Tone::Plain };
    page.line(&[
        (Tone::Strong, &format!("  {} ", left(label, widths.label))),
        (tone, &left(row.setting, widths.setting)),
        (Tone::Plain, &format!(" {} {}", median(0), median(1))),
        (Tone::Plain, &left(&difference, widths.difference)),
        (Tone::Plain, &format!("  {}", left(change(row, widths.difference), widths.change))),
        (Tone::Plain, "  "),
        (row.verdict.map_or(Tone::Plain, Tone::of), row.verdict.map_or("", |kind| kind.word())),
    ]);
}
