//! A comparison as one page that needs nothing else: no script, no network. It says the same as on a terminal,
//! with all metrics.

use std::fmt::Write;

use super::{Comparison, Experiment, Line, Verdict, words};
use crate::report::Look;
use crate::report::text::in_percent;
use crate::units::counted;

const STYLE: &str = include_str!("page.css");

/// The comparison as a page.
pub(super) fn render(comparison: &Comparison, _: &Look) -> String {
    let mut page = String::new();
    let names = comparison
        .sides
        .each_ref()
        .map(|side| side.iter().map(|run| run.place.as_str()).collect::<Vec<_>>().join(", "));
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{} and {}</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<main>\n<h1>Old and new runs</h1>\n",
        safe(&names[0]),
        safe(&names[1])
    );
    sides(&mut page, comparison);
    list(&mut page, "summary", &comparison.summary);
    list(&mut page, "notices", &comparison.notices);
    differences(&mut page, comparison);
    for experiment in &comparison.experiments {
        let _ = writeln!(page, "<section>\n<h2>{}: {}</h2>", experiment.name, safe(experiment.question));
        for metric in 0..experiment.metrics.len() {
            table(&mut page, experiment, metric);
        }
        let told =
            experiment.lines.iter().filter(|line| !matches!(line.verdict, Verdict::Same | Verdict::Context));
        list(&mut page, "words", &told.map(|line| line.sentence.clone()).collect::<Vec<_>>());
        page.push_str("</section>\n");
    }
    alone(&mut page, comparison);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn sides(page: &mut String, comparison: &Comparison) {
    page.push_str("<ul class=\"runs\">\n");
    for (side, runs) in ["old", "new"].into_iter().zip(&comparison.sides) {
        for run in runs {
            let tags: String =
                run.tags.iter().map(|(key, value)| format!(" · {}={}", safe(key), safe(value))).collect();
            let (have, planned) = run.rounds;
            let _ = writeln!(
                page,
                "<li><strong>{side}</strong> {} · run {} · {} · {have} of {}{tags}</li>",
                safe(&run.place),
                safe(&run.run),
                safe(&run.started),
                counted(planned, "round")
            );
        }
    }
    page.push_str("</ul>\n");
}

fn list(page: &mut String, class: &str, sentences: &[String]) {
    if sentences.is_empty() {
        return;
    }
    let _ = writeln!(page, "<ul class=\"{class}\">");
    for sentence in sentences {
        let _ = writeln!(page, "<li>{}</li>", safe(sentence));
    }
    page.push_str("</ul>\n");
}

fn differences(page: &mut String, comparison: &Comparison) {
    page.push_str("<section>\n<h2>What differs around them</h2>\n");
    if comparison.differences.is_empty() {
        page.push_str("<p>Nothing that was recorded: machine, probe, programs, daemons.</p>\n</section>\n");
        return;
    }
    page.push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr><th scope=\"col\">kind</th><th scope=\"col\">what</th>");
    page.push_str("<th scope=\"col\">of</th><th scope=\"col\">old</th><th scope=\"col\">new</th></tr></thead>\n<tbody>\n");
    for one in &comparison.differences {
        let class = if one.meaning.is_another_fruit() { " class=\"open\"" } else { "" };
        let _ = writeln!(
            page,
            "<tr{class}><td>{}</td><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            one.meaning.name(),
            safe(&one.what),
            safe(&one.subjects.join(", ")),
            safe(&one.old),
            safe(&one.new)
        );
    }
    page.push_str("</tbody>\n</table></div>\n</section>\n");
}

fn table(page: &mut String, experiment: &Experiment, metric: usize) {
    let lines: Vec<&Line> = experiment.lines.iter().filter(|line| line.metric == metric).collect();
    if lines.is_empty() {
        return;
    }
    let known = &experiment.metrics[metric];
    let note = if known.is_decisive { "" } else { " (context, not decided)" };
    let _ = write!(
        page,
        "<div class=\"scroll\" tabindex=\"0\"><table>\n<caption>{}{note}<span>{}</span></caption>\n\
         <thead><tr><th scope=\"col\">subject</th><th scope=\"col\">setting</th><th scope=\"col\">old</th>\
         <th scope=\"col\">new</th><th scope=\"col\">new − old</th><th scope=\"col\">new ÷ old</th>\
         <th scope=\"col\">verdict</th></tr></thead>\n<tbody>\n",
        known.name,
        safe(known.meaning)
    );
    for line in lines {
        rows(page, experiment, line);
    }
    page.push_str("</tbody>\n</table></div>\n");
}

fn rows(page: &mut String, experiment: &Experiment, line: &Line) {
    let unit = experiment.metrics[line.metric].unit;
    let is_decisive = experiment.metrics[line.metric].is_decisive;
    let ends_here = line.settings.len() == 1 || !is_decisive;
    for one in &line.settings {
        let median = |value: Option<f64>| value.map_or("–".into(), |value| unit.format(value));
        let difference = one.difference.map_or(String::new(), |found| words::difference(unit, &found));
        let ratio = one.ratio.as_ref().map_or(String::new(), in_percent);
        let verdict = if ends_here && is_decisive { verdict(line) } else { "<td></td>".into() };
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{difference}</td><td>{ratio}</td>{verdict}</tr>",
            safe(&line.label),
            safe(&one.values),
            median(one.medians[0]),
            median(one.medians[1]),
        );
    }
    if !ends_here {
        let shown = line.together.map_or(String::new(), |all| words::change(all.scale, &all.change));
        let _ = writeln!(
            page,
            "<tr class=\"together\"><th scope=\"row\">{}</th><td>together</td><td></td><td></td><td></td><td>{shown}</td>{}</tr>",
            safe(&line.label),
            verdict(line)
        );
    }
}

/// The verdict's word; its sentence stands below the tables.
fn verdict(line: &Line) -> String {
    let class = match line.verdict {
        Verdict::Slower => "worse",
        Verdict::Faster => "better",
        Verdict::Same | Verdict::Context => "plain",
        Verdict::Suspect(_) | Verdict::NoData => "alarm",
        _ => "open",
    };
    format!("<td class=\"{class}\">{}</td>", line.verdict.word())
}

fn alone(page: &mut String, comparison: &Comparison) {
    for (side, alone) in ["old", "new"].into_iter().zip(&comparison.alone) {
        if !alone.is_empty() {
            let _ = writeln!(page, "<p>Only {side}: {}</p>", safe(&alone.join(", ")));
        }
    }
}

/// Text that can stand in an element or a quoted attribute.
fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
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
        assert_eq!(safe("<b a=\"x\" b='y'>&"), "&lt;b a=&quot;x&quot; b=&#39;y&#39;&gt;&amp;");
    }
}
