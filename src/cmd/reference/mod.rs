//! `dunnage reference`: what others published, with its sources, its faults and what of ours is the same.

mod document;
mod markdown;
mod page;

use std::io::{IsTerminal, Write};

use anyhow::Result;

use crate::cli::Referred;
use crate::exit::{self, Special};
use crate::reference::counterpart::{self, Counterpart};
use crate::reference::{self, Number, Source};

/// Runs the verb.
pub fn run(name: Option<&str>, format: Referred) -> Result<i32> {
    let chosen = name.map(source_named).transpose()?;
    let text = match format {
        Referred::Terminal => {
            let look = super::report::look(std::path::Path::new(""), std::io::stdout().is_terminal());
            page::render(chosen, &look)
        }
        Referred::Json => document::render(chosen),
        Referred::Md => markdown::render(chosen),
        Referred::Csv => table(chosen)?,
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(exit::FINE)
}

fn source_named(name: &str) -> Result<&'static Source> {
    let unknown = || {
        let names: Vec<_> = reference::sources().iter().map(|one| format!("`{}`", one.name)).collect();
        Special::Usage(format!("there is no source `{name}`\n\nhint: sources are {}", names.join(", ")))
    };
    Ok(reference::find(name).ok_or_else(unknown)?)
}

/// The source that was asked for, else all of them.
fn those(chosen: Option<&'static Source>) -> impl Iterator<Item = &'static Source> {
    reference::sources().iter().filter(move |source| chosen.is_none_or(|one| one.name == source.name))
}

/// How many numbers of a source have a counterpart among our metrics.
fn with_counterpart(source: &Source) -> usize {
    source.numbers.iter().filter(|one| matches!(counterpart::of(one), Counterpart::Metric(_))).count()
}

/// `start returned`, or why there is none.
fn counterpart_in_words(number: &Number) -> String {
    match counterpart::of(number) {
        Counterpart::None(why) => format!("none: {why}"),
        other => other.in_words(),
    }
}

/// One row a number, in the columns of the collection and one more.
fn table(chosen: Option<&'static Source>) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "source",
        "experiment",
        "subject",
        "params",
        "metric",
        "unit",
        "rep",
        "value",
        "ci_low",
        "ci_high",
        "n",
        "note",
        "counterpart",
    ])?;
    for source in those(chosen) {
        for one in &source.numbers {
            let count = |count: Option<u32>| count.map(|count| count.to_string()).unwrap_or_default();
            let end = |at: usize| one.interval.map(|ends| ends[at].to_string()).unwrap_or_default();
            writer.write_record([
                &source.name,
                &one.experiment,
                &one.subject,
                &one.conditions_in_words(),
                &one.metric,
                &one.unit,
                &count(one.repetition),
                &one.printed,
                &end(0),
                &end(1),
                &count(one.repetitions),
                &one.note,
                &counterpart_in_words(one),
            ])?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}
