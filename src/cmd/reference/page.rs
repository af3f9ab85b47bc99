//! Published results for a person at a terminal: a list of sources, or one of them with all that it says.

use crate::reference::{self, Number, Source, check, counterpart, joined};
use crate::report::Look;
use crate::report::model::{Caution, Standing};
use crate::report::terminal::page::{Page, Tone};
use crate::report::text::clean;
use crate::units::counted;

/// The page.
pub fn render(chosen: Option<&'static Source>, look: &Look) -> String {
    let mut page = Page::new(look);
    match chosen {
        Some(source) => one(&mut page, source),
        None => list(&mut page),
    }
    page.gap();
    page.paragraph(Tone::Faint, "", reference::provenance());
    page.finish()
}

fn list(page: &mut Page) {
    let all = reference::sources();
    let numbers = all.iter().map(|source| source.numbers.len()).sum();
    page.line(&[(
        Tone::Strong,
        &format!("published results: {}, {}", counted(all.len(), "source"), counted(numbers, "number")),
    )]);
    page.paragraph(
        Tone::Faint,
        "",
        "Shown beside ours where asked for, each with its cautions; they enter no verdict and no average.",
    );
    for source in all {
        page.gap();
        page.line(&[(Tone::Strong, &format!("{:<12} ", source.name)), (Tone::Plain, &clean(&source.title))]);
        let indent = " ".repeat(13);
        page.paragraph(Tone::Plain, &indent, &source.experiments.join(", "));
        page.paragraph(
            Tone::Plain,
            &indent,
            &format!(
                "{}, {} with a counterpart among our metrics; {}; {} by our rules",
                counted(source.numbers.len(), "number"),
                super::with_counterpart(source),
                counted(source.cautions.len(), "caution"),
                counted(check::doubts(source).len(), "suspect finding"),
            ),
        );
    }
    page.gap();
    page.line(&[(
        Tone::Faint,
        "dunnage reference SOURCE          one of them, with its numbers and cautions",
    )]);
    page.line(&[(Tone::Faint, "dunnage report DIR --reference    beside the numbers of a run")]);
}

fn one(page: &mut Page, source: &Source) {
    page.line(&[(Tone::Strong, &format!("{}: {}", source.name, clean(&source.title)))]);
    let place = match (&source.url, &source.revision) {
        (Some(url), Some(revision)) => format!("{url} at {revision}"),
        (Some(url), None) => url.clone(),
        (None, _) => "not public".to_owned(),
    };
    let facts = [
        ("where    ", place),
        ("licence  ", source.licence.clone()),
        ("language ", source.language.clone()),
        ("hardware ", source.hardware.clone()),
        ("kernel   ", source.kernel.clone()),
        ("engines  ", source.engines.clone()),
        ("method   ", source.method.clone()),
    ];
    for (name, text) in facts {
        page.paragraph(Tone::Plain, name, &clean(&text));
    }
    let general: Vec<_> = source.cautions.iter().filter(|one| one.about.is_empty()).collect();
    if !general.is_empty() {
        page.title(Tone::Open, "cautions about all of it");
        cautions(page, &general);
    }
    let doubts = check::doubts(source);
    for name in &source.experiments {
        page.title(Tone::Strong, name);
        let about: Vec<_> = source.cautions.iter().filter(|one| one.about.contains(name)).collect();
        cautions(page, &about);
        for doubt in doubts.iter().filter(|doubt| doubt.experiment == *name) {
            page.paragraph(
                Tone::Alarm,
                "  suspect: ",
                &format!("{}: {}", doubt.rule, clean(&doubt.evidence)),
            );
            page.paragraph(Tone::Plain, "    probably: ", &doubt.mechanism);
        }
        page.gap();
        numbers(page, source, name);
    }
}

fn cautions(page: &mut Page, all: &[&Caution]) {
    for caution in all {
        let head = if caution.standing == Standing::Guess { "  caution, a guess: " } else { "  caution: " };
        page.paragraph(Tone::Open, head, &clean(&caution.text));
    }
}

/// Numbers of one quantity in the same conditions, by subject.
struct Quantity<'a> {
    name: String,
    counterpart: String,
    subjects: Vec<(&'a str, Vec<&'a Number>)>,
}

fn numbers(page: &mut Page, source: &Source, experiment: &str) {
    let mut all: Vec<Quantity<'_>> = Vec::new();
    for one in source.numbers.iter().filter(|one| one.experiment == experiment) {
        let name = format!("{}  {}", one.metric, joined(&one.without(&["stat"])));
        let counterpart = match counterpart::of(one) {
            counterpart::Counterpart::None(why) => format!("none: {why}"),
            other => other.in_words(),
        };
        let known = |known: &Quantity<'_>| known.name == name && known.counterpart == counterpart;
        let at = all.iter().position(known).unwrap_or_else(|| {
            all.push(Quantity { name, counterpart, subjects: Vec::new() });
            all.len() - 1
        });
        let subjects = &mut all[at].subjects;
        match subjects.iter_mut().find(|(subject, _)| *subject == one.subject) {
            Some((_, numbers)) => numbers.push(one),
            None => subjects.push((&one.subject, vec![one])),
        }
    }
    let mut told = String::new();
    for quantity in all {
        if told != quantity.counterpart {
            page.paragraph(Tone::Faint, "  counterpart: ", &quantity.counterpart);
            told.clone_from(&quantity.counterpart);
        }
        page.paragraph(Tone::Strong, "  ", &quantity.name);
        let widest = quantity.subjects.iter().map(|(subject, _)| subject.len()).max().unwrap_or(0);
        for (subject, numbers) in &quantity.subjects {
            page.paragraph(Tone::Plain, &format!("    {subject:<widest$}  "), &in_words(numbers));
        }
    }
}

/// `313.9 299.8 305.1 ms; mean 307.8 ms of 10; min 299.8 ms`, and what is noted of them, once.
fn in_words(numbers: &[&Number]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let single: Vec<&str> = numbers
        .iter()
        .filter(|one| one.repetition.is_some() && one.condition("stat").is_none())
        .map(|one| one.printed.as_str())
        .collect();
    if let Some(first) = numbers.first().filter(|_| !single.is_empty()) {
        parts.push(format!("{} {}", single.join(" "), first.unit));
    }
    for one in numbers.iter().filter(|one| one.repetition.is_none() || one.condition("stat").is_some()) {
        let interval = one.interval.map(|[low, high]| format!(" [{low}, {high}]")).unwrap_or_default();
        let of = one.repetitions.map(|count| format!(" of {count}")).unwrap_or_default();
        parts.push(format!("{} {}{interval} {}{of}", one.statistic(), one.printed, one.unit));
    }
    let mut notes: Vec<&str> =
        numbers.iter().map(|one| one.note.as_str()).filter(|note| !note.is_empty()).collect();
    notes.dedup();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    clean(&format!("{}{notes}", parts.join("; ")))
}
