//! A comparison for an issue, a wiki or a comment on a change: what differs around it comes first, so that whoever
//! reads the tables can judge them.

use std::fmt::Write;

use super::{Comparison, Experiment, Line, words};
use crate::report::Look;
use crate::report::text::in_percent;
use crate::units::counted;

/// The comparison as Markdown.
pub(super) fn render(comparison: &Comparison, _: &Look) -> String {
    let mut text = String::from("## Old and new runs\n\n");
    for (side, runs) in ["old", "new"].into_iter().zip(&comparison.sides) {
        for run in runs {
            let tags: String =
                run.tags.iter().map(|(key, value)| format!(", {}={}", safe(key), safe(value))).collect();
            let (have, planned) = run.rounds;
            let _ = writeln!(
                text,
                "- {side}: {}, run {}, {}, {have} of {}{tags}",
                safe(&run.place),
                safe(&run.run),
                safe(&run.started),
                counted(planned, "round")
            );
        }
    }
    text.push('\n');
    for sentence in &comparison.summary {
        let _ = writeln!(text, "- **{}**", safe(sentence));
    }
    for notice in &comparison.notices {
        let _ = writeln!(text, "- {}", safe(notice));
    }
    differences(&mut text, comparison);
    for experiment in &comparison.experiments {
        tables(&mut text, experiment);
    }
    for (side, alone) in ["old", "new"].into_iter().zip(&comparison.alone) {
        if !alone.is_empty() {
            let all: Vec<_> = alone.iter().map(|one| safe(one)).collect();
            let _ = writeln!(text, "\nOnly {side}: {}", all.join(", "));
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
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            one.meaning.name(),
            safe(&one.what),
            safe(&one.subjects.join(", ")),
            safe(&one.old),
            safe(&one.new)
        );
    }
}

fn tables(text: &mut String, experiment: &Experiment) {
    let decisive = (0..experiment.metrics.len()).filter(|metric| experiment.metrics[*metric].is_decisive);
    for metric in decisive {
        let lines: Vec<&Line> = experiment.lines.iter().filter(|line| line.metric == metric).collect();
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n### {} of {}\n", experiment.metrics[metric].name, experiment.name);
        text.push_str("| subject | setting | old | new | new − old | new ÷ old | verdict |\n");
        text.push_str("| --- | --- | ---: | ---: | ---: | ---: | --- |\n");
        for line in lines {
            rows(text, experiment, line);
        }
    }
}

fn rows(text: &mut String, experiment: &Experiment, line: &Line) {
    let unit = experiment.metrics[line.metric].unit;
    let alone = line.settings.len() == 1;
    for one in &line.settings {
        let median = |value: Option<f64>| value.map_or("–".into(), |value| unit.format(value));
        let difference = one.difference.map_or(String::new(), |found| words::difference(unit, &found));
        let ratio = one.ratio.as_ref().map_or(String::new(), in_percent);
        let verdict = if alone { line.verdict.word() } else { "" };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {difference} | {ratio} | {verdict} |",
            safe(&line.label),
            safe(&one.values),
            median(one.medians[0]),
            median(one.medians[1]),
        );
    }
    if !alone {
        let shown = line.together.map_or(String::new(), |all| words::change(all.scale, &all.change));
        let _ = writeln!(
            text,
            "| {} | together | | | | {shown} | **{}** |",
            safe(&line.label),
            line.verdict.word()
        );
    }
}

/// Text from outside, with everything escaped that Markdown or HTML would take for its own.
fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("&#64;"),
            '#' => out.push_str("&#35;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' => {
                out.push('\\');
                out.push(letter);
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn text_from_outside_is_only_text() {
        assert_eq!(safe("a|b <script> [x](y) `c` @d"), "a\\|b &lt;script&gt; \\[x\\](y) \\`c\\` &#64;d");
    }
}
