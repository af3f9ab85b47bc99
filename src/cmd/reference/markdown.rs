//! Published results as Markdown, for an issue or a wiki.

use std::fmt::Write;

use crate::reference::{self, Source, check};
use crate::report::markdown::page;
use crate::report::model::Standing;
use crate::report::text::clean;
use crate::units::counted;

/// The document.
pub fn render(chosen: Option<&'static Source>) -> String {
    let mut out = String::new();
    match chosen {
        Some(source) => one(source, &mut out),
        None => list(&mut out),
    }
    let _ = writeln!(out, "\n{}", escaped(reference::provenance()));
    out
}

/// Text of others that must not become a mark, a tag or another column.
fn escaped(text: &str) -> String {
    page::escaped(&clean(text))
}

fn list(out: &mut String) {
    out.push_str("| source | title | experiments | numbers | with a counterpart | cautions | suspect |\n");
    out.push_str("| --- | --- | --- | ---: | ---: | ---: | ---: |\n");
    for source in reference::sources() {
        let experiments: Vec<_> = source.experiments.iter().map(|name| escaped(name)).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            escaped(&source.name),
            escaped(&source.title),
            experiments.join(", "),
            source.numbers.len(),
            super::with_counterpart(source),
            source.cautions.len(),
            check::doubts(source).len()
        );
    }
}

fn one(source: &Source, out: &mut String) {
    let _ = writeln!(out, "## {}: {}\n", escaped(&source.name), escaped(&source.title));
    let url = source.url.as_deref().map_or("not public".to_owned(), |url| format!("<{url}>"));
    let revision = source.revision.as_deref().map(|one| format!(" at {}", escaped(one))).unwrap_or_default();
    let _ = writeln!(out, "- where: {url}{revision}");
    for (name, text) in [
        ("licence", &source.licence),
        ("hardware", &source.hardware),
        ("kernel", &source.kernel),
        ("engines", &source.engines),
        ("method", &source.method),
    ] {
        let _ = writeln!(out, "- {name}: {}", escaped(text));
    }
    let _ = writeln!(out, "\n### Cautions\n");
    for caution in &source.cautions {
        let about = if caution.about.is_empty() {
            String::new()
        } else {
            format!("{}: ", escaped(&caution.about.join(", ")))
        };
        let guess = if caution.standing == Standing::Guess { "(a guess) " } else { "" };
        let _ = writeln!(out, "- {about}{guess}{}", escaped(&caution.text));
    }
    let doubts = check::doubts(source);
    if !doubts.is_empty() {
        let _ = writeln!(out, "\n### Suspect by dunnage's rules\n");
    }
    for doubt in &doubts {
        let _ = writeln!(
            out,
            "- {}: {}: {}; probably {}",
            escaped(&doubt.experiment),
            doubt.rule,
            escaped(&doubt.evidence),
            doubt.mechanism
        );
    }
    let _ = writeln!(out, "\n### {}\n", counted(source.numbers.len(), "number"));
    out.push_str(
        "| experiment | subject | conditions | metric | what | value | interval | n | counterpart | note |\n",
    );
    out.push_str("| --- | --- | --- | --- | --- | ---: | --- | ---: | --- | --- |\n");
    for one in &source.numbers {
        let interval = one.interval.map(|[low, high]| format!("{low} to {high}")).unwrap_or_default();
        let repetitions = one.repetitions.map(|count| count.to_string()).unwrap_or_default();
        let what = one.repetition.map_or_else(|| one.statistic().to_owned(), |at| format!("repetition {at}"));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {what} | {} {} | {interval} | {repetitions} | {} | {} |",
            escaped(&one.experiment),
            escaped(&one.subject),
            escaped(&one.conditions_in_words()),
            escaped(&one.metric),
            one.printed,
            escaped(&one.unit),
            escaped(&super::counterpart_in_words(one)),
            escaped(&one.note),
        );
    }
}
