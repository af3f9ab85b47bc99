//! A comparison for an issue, a wiki or a comment on a change: what it comes to, then what differs around it, so that
//! whoever reads the tables can judge them. Metrics of context stand in the page and in JSON.

use std::fmt::Write;

use super::rows::{Part, Row, Table, tables};
use super::summary::in_words;
use super::{Comparison, Experiment};
use crate::document::markdown::{escaped, sentence};
use crate::report::Look;

/// The comparison as Markdown.
pub(super) fn render(comparison: &Comparison, _: &Look) -> String {
    let mut text = String::from("## Old and new runs\n\n");
    for (side, runs) in ["old", "new"].into_iter().zip(&comparison.sides) {
        for run in runs {
            let _ = writeln!(text, "- {side}: {}", escaped(&run.in_short().join(", ")));
        }
    }
    text.push('\n');
    for one in &comparison.summary {
        let _ = writeln!(text, "- **{}**", sentence(one));
    }
    for notice in &comparison.notices {
        let _ = writeln!(text, "- {}", sentence(notice));
    }
    differences(&mut text, comparison);
    for experiment in &comparison.experiments {
        of_experiment(&mut text, experiment);
    }
    for (side, alone) in ["old", "new"].into_iter().zip(&comparison.alone) {
        if !alone.is_empty() {
            let _ = writeln!(text, "\nOnly {side}: {}", sentence(&alone.join("; ")));
        }
    }
    text
}

fn differences(text: &mut String, comparison: &Comparison) {
    text.push_str("\n### What differs around them\n\n");
    if comparison.differences.is_empty() {
        text.push_str("Nothing that was recorded: machine, probe, programs, daemons.\n");
        return;
    }
    text.push_str("| | what | of | old | new |\n| --- | --- | --- | --- | --- |\n");
    for one in &comparison.differences {
        let subjects = one.subjects.join(", ");
        let cells = [one.meaning.name(), &one.what, &subjects, &one.old, &one.new].map(escaped);
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
}

fn of_experiment(text: &mut String, experiment: &Experiment) {
    for table in tables(experiment, |metric| metric.is_decisive) {
        one_table(text, experiment.name, &table);
    }
    let told = in_words(experiment);
    if !told.is_empty() {
        text.push('\n');
    }
    for (_, one) in told {
        let _ = writeln!(text, "- {}", sentence(&one));
    }
}

/// Whether rows tell their setting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Columns {
    Settings,
    OneSetting,
}

fn one_table(text: &mut String, experiment: &str, table: &Table<'_>) {
    let given = table.given.map_or(String::new(), |text| format!(" ({})", escaped(text)));
    let columns = match table.rows.iter().all(|row| row.setting.is_empty()) {
        true => Columns::OneSetting,
        false => Columns::Settings,
    };
    let [head, rule] = if columns == Columns::Settings { [" setting |", " --- |"] } else { ["", ""] };
    let _ = writeln!(text, "\n### {} of {experiment}{given}\n", table.metric.name);
    let _ = writeln!(text, "| subject |{head} old | new | new − old | new ÷ old | verdict |");
    let _ = writeln!(text, "| --- |{rule} ---: | ---: | ---: | ---: | --- |");
    for row in &table.rows {
        let cells: Vec<String> = cells(row, columns).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
}

fn cells(row: &Row<'_>, columns: Columns) -> impl Iterator<Item = String> {
    let of = |value: &Option<(f64, String)>| value.as_ref().map_or(String::new(), |(_, text)| escaped(text));
    let median = |side: usize| match row.part {
        Part::Together => String::new(),
        _ => row.medians[side].as_ref().map_or("–".into(), |(_, text)| escaped(text)),
    };
    let verdict = match (row.verdict, row.part) {
        (None, _) => String::new(),
        (Some(kind), Part::Together) => format!("**{}**", kind.word()),
        (Some(kind), _) => kind.word().to_owned(),
    };
    let setting = (columns == Columns::Settings).then(|| escaped(row.setting));
    let rest = [median(0), median(1), of(&row.difference), of(&row.change), verdict];
    [escaped(&row.line.label)].into_iter().chain(setting).chain(rest)
}
