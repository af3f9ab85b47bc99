//! Reads the tables of published results: sources with their cautions and suspects (TOML), and a row for each
//! number (CSV).

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{Caution, Number, Source, Standing, Suspect};

/// Where the numbers come from.
pub const SOURCES: &str = include_str!("../../../../data/reference/sources.toml");
/// The numbers.
pub const NUMBERS: &str = include_str!("../../../../data/reference/published.csv");
/// The suspects among them: the numbers never change, and neither does what the rules find.
pub const SUSPECTS: &str = include_str!("../../../../data/reference/suspects.toml");
/// How to use them, and their terms.
pub const PROVENANCE: &str = include_str!("../../../../data/reference/README.md");

#[derive(Debug, Deserialize)]
struct NumberRow {
    source: String,
    experiment: String,
    subject: String,
    params: String,
    metric: String,
    unit: String,
    rep: Option<u32>,
    value: String,
    ci_low: Option<f64>,
    ci_high: Option<f64>,
    n: Option<u32>,
    note: String,
}

/// The sources with their numbers, in the order of the first file.
pub fn sources(sources: &str, numbers: &str, suspects: &str) -> Result<Vec<Source>> {
    let file: BTreeMap<String, Source> =
        toml::from_str(sources).context("the file is not a table of sources")?;
    let mut suspects: BTreeMap<String, Vec<Suspect>> =
        toml::from_str(suspects).context("the file is not a table of suspects")?;
    let of = |(name, source): (String, Source)| {
        let cautions = source.cautions.iter().map(|one| caution(&one.text, &source.experiments)).collect();
        let suspects = suspects.remove(&name).unwrap_or_default();
        Source { name, cautions, suspects, ..source }
    };
    let mut all: Vec<Source> = file.into_iter().map(of).collect();
    if let Some(unknown) = suspects.keys().next() {
        bail!("suspects have an unknown source: `{unknown}`");
    }
    let mut reader = csv::Reader::from_reader(numbers.as_bytes());
    for (index, row) in reader.deserialize().enumerate() {
        let row: NumberRow = row.with_context(|| format!("row {} of the numbers", index + 1))?;
        let known = all.iter_mut().find(|source| source.name == row.source);
        let Some(source) = known else { bail!("row {} has an unknown source: `{}`", index + 1, row.source) };
        source.numbers.push(number(row).with_context(|| format!("row {} of the numbers", index + 1))?);
    }
    // TOML tables are sorted by name; the numbers are in the order of their collection.
    let first_row = |source: &Source| numbers.find(&format!("\n{},", source.name));
    all.sort_by_key(first_row);
    Ok(all)
}

fn number(row: NumberRow) -> Result<Number> {
    let pair = |text: &str| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let conditions: Option<Vec<_>> = row.params.split(';').map(pair).collect();
    let value: f64 = row.value.parse().with_context(|| format!("`{}` is not a number", row.value))?;
    Ok(Number {
        conditions: conditions.with_context(|| format!("`{}` is not a list of conditions", row.params))?,
        experiment: row.experiment,
        subject: row.subject,
        metric: row.metric,
        unit: row.unit,
        repetition: row.rep,
        value,
        printed: row.value,
        interval: row.ci_low.zip(row.ci_high).map(|(low, high)| [low, high]),
        repetitions: row.n,
        note: row.note,
    })
}

/// The text as written: its beginning says what it is about, and whether it is proven.
impl From<String> for Caution {
    fn from(text: String) -> Caution {
        Caution { about: Vec::new(), text, standing: Standing::Shown }
    }
}

/// A caution may begin with `Guess:`, and with the experiments it is about: `cpu_run, cpu_exec: …`, `memory (free):
/// …`.
fn caution(text: &str, experiments: &[String]) -> Caution {
    let (standing, text) = match text.strip_prefix("Guess: ") {
        Some(rest) => (Standing::Guess, rest),
        None => (Standing::Shown, text),
    };
    let named = |head: &str| -> Option<Vec<String>> {
        let names = head.split(", ").map(|one| one.split(" (").next().unwrap_or_default());
        names.map(|name| experiments.iter().find(|known| *known == name).cloned()).collect()
    };
    let (about, text) = match text.split_once(": ") {
        Some(("all", rest)) => (Vec::new(), rest),
        Some((head, rest)) => match (named(head), head.split_once(" (")) {
            // Brackets narrow the experiment down and belong to the text.
            (Some(names), Some((_, part))) => (names, &text[text.len() - rest.len() - part.len() - 3..]),
            (Some(names), None) => (names, rest),
            (None, _) => (Vec::new(), text),
        },
        None => (Vec::new(), text),
    };
    Caution { about, text: text.to_owned(), standing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (Vec<String>, String, Standing) {
        let caution = caution(text, &["a".into(), "b".into()]);
        (caution.about, caution.text, caution.standing)
    }

    #[test]
    fn a_caution_names_its_experiments_at_its_head() {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(of("a: wrong"), (owned(&["a"]), "wrong".into(), Standing::Shown));
        assert_eq!(of("a, b: wrong: very"), (owned(&["a", "b"]), "wrong: very".into(), Standing::Shown));
        assert_eq!(of("Guess: b: why"), (owned(&["b"]), "why".into(), Standing::Guess));
        assert_eq!(of("a (part): wrong"), (owned(&["a"]), "(part): wrong".into(), Standing::Shown));
        assert_eq!(of("c: wrong"), (owned(&[]), "c: wrong".into(), Standing::Shown));
        assert_eq!(of("all: wrong"), (owned(&[]), "wrong".into(), Standing::Shown));
    }

    #[test]
    fn every_suspect_is_about_an_experiment_of_its_source_and_by_a_documented_rule() {
        let documented = include_str!("../../../../docs/reference-json.md");
        let all = sources(SOURCES, NUMBERS, SUSPECTS).unwrap();
        let found: Vec<(&Source, &Suspect)> =
            all.iter().flat_map(|source| source.suspects.iter().map(move |one| (source, one))).collect();
        assert_eq!(found.len(), 40);
        for (source, one) in found {
            assert!(source.numbers.iter().any(|number| number.experiment == one.experiment), "{one:?}");
            assert!(documented.contains(&format!("| `{}` |", one.rule)), "{one:?}");
            assert!(!one.evidence.is_empty() && !one.mechanism.is_empty(), "{one:?}");
        }
        assert!(sources(SOURCES, NUMBERS, "none = []").is_err());
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_row() {
        let sources_text = SOURCES;
        let header = NUMBERS.lines().next().unwrap();
        for (row, why) in [
            ("unknown,start,bare,a=b,m,s,1,2,,,,", "has an unknown source"),
            ("course,start,bare,a,m,s,1,2,,,,", "is not a list of conditions"),
            ("course,start,bare,a=b,m,s,1,x,,,,", "is not a number"),
            ("course,start,bare", "row 1"),
        ] {
            let error = sources(sources_text, &format!("{header}\n{row}\n"), "").unwrap_err();
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
    }
}
