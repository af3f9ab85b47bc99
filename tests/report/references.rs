//! Published numbers next to dunnage's, in every format that has room for them: each number with its caveats,
//! and nothing computed from both sides.

use dunnage::reference::counterpart::{self, Counterpart};
use dunnage::reference::{self, Standing, beside};
use dunnage::report::Look;
use dunnage::report::model::Report;
use pulldown_cmark::{Event, Options, Parser};

use crate::report::pictures::everything;
use crate::report::report;
use crate::report::scripted::{full_ladder, plan, run};

/// Only launches, so that everything has room in a comment.
fn launches() -> Report {
    report(&run(plan(full_ladder()[..5].to_vec(), 20)))
}

fn with_references(mut report: Report) -> Report {
    report.references = beside::beside(reference::sources(), &report);
    assert!(!report.references.is_empty(), "nothing is published of it, so nothing is tested");
    report
}

fn rendered(format: &str, report: &Report) -> String {
    crate::report::rendered(format, report, &Look { width: 160, ..Look::default() })
}

/// What a user reads: words without markup, however they are wrapped.
fn words(format: &str, text: &str) -> String {
    let text = match format {
        "html" => without_tags(text),
        "md" => {
            let part = |event| match event {
                Event::Text(text) | Event::Code(text) => text.into_string(),
                Event::Html(text) | Event::InlineHtml(text) => without_tags(&text),
                Event::End(_) => " ".into(),
                _ => String::new(),
            };
            Parser::new_ext(text, Options::ENABLE_TABLES)
                .map(part)
                .collect::<String>()
                .replace('\u{200b}', "")
        }
        "json" => {
            fn texts(value: &serde_json::Value, into: &mut Vec<String>) {
                match value {
                    serde_json::Value::String(text) => into.push(text.clone()),
                    serde_json::Value::Array(all) => all.iter().for_each(|one| texts(one, into)),
                    serde_json::Value::Object(all) => all.values().for_each(|one| texts(one, into)),
                    _ => {}
                }
            }
            let mut all = Vec::new();
            texts(&serde_json::from_str(text).expect("JSON"), &mut all);
            all.join(" ")
        }
        _ => text.to_owned(),
    };
    joined(&text)
}

fn without_tags(text: &str) -> String {
    let outside = text.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    let text = outside.collect::<Vec<_>>().join(" ");
    let entities =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#34;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    entities.into_iter().fold(text, |text, (entity, letter)| text.replace(entity, letter))
}

/// The letters alone: line breaks and code markup depend on the format.
fn joined(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace() && *letter != '`').collect()
}

const FORMATS: [&str; 4] = ["terminal", "html", "md", "json"];

#[test]
fn every_number_stands_there_as_printed_with_the_cautions_of_its_source() {
    let report = with_references(launches());
    for format in FORMATS {
        let text = words(format, &rendered(format, &report));
        let says = |what: &str| assert!(text.contains(&joined(what)), "{format}: {what}");
        for reference in &report.references {
            let source = &reference.source;
            says(&source.title);
            says(&source.hardware);
            assert!(!source.cautions.is_empty(), "{}: a source without cautions tests nothing", source.name);
            for caution in &source.cautions {
                says(&caution.text);
            }
            for suspect in &source.suspects {
                says(&suspect.evidence);
            }
            let rows = reference.tables.iter().flat_map(|table| &table.rows);
            for number in rows.flat_map(|row| &row.published) {
                says(&number.printed);
            }
            reference.tables.iter().for_each(|table| says(&table.differs));
        }
        let guesses = report.references.iter().flat_map(|one| &one.source.cautions);
        if guesses.clone().any(|one| one.standing == Standing::Guess) {
            assert!(text.contains("guess"), "{format}");
        }
    }
}

/// They are only added: without them the report has the same words and numbers.
#[test]
fn nothing_else_in_a_report_knows_of_them() {
    let without = launches();
    let with = with_references(without.clone());
    for format in FORMATS {
        let (without, with) = (rendered(format, &without), rendered(format, &with));
        assert!(with.len() > without.len() + 1000, "{format}");
        if format == "json" {
            let [mut one, mut other] =
                [&without, &with].map(|text| serde_json::from_str::<serde_json::Value>(text).expect("JSON"));
            let take = |report: &mut serde_json::Value| {
                report.as_object_mut().and_then(|all| all.remove("references"))
            };
            assert!(take(&mut other).is_some_and(|all| all.as_array().is_some_and(|all| !all.is_empty())));
            take(&mut one);
            assert_eq!(one, other);
            continue;
        }
        let mut lines = with.lines();
        for line in without.lines() {
            assert!(lines.any(|one| one == line), "{format}: `{line}` is gone, or stands elsewhere");
        }
    }
}

/// All fields of a published number and of dunnage's next to it: none for a verdict, a ratio, or a mean of
/// both.
#[test]
fn no_verdict_is_given_about_them() {
    let report = with_references(report(&everything()));
    let json: serde_json::Value = serde_json::from_str(&rendered("json", &report)).expect("JSON");
    let mut rows = 0;
    let fields = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default()
    };
    for table in json["references"]
        .as_array()
        .expect("sources")
        .iter()
        .flat_map(|one| one["tables"].as_array().expect("tables"))
    {
        for row in table["rows"].as_array().expect("rows") {
            assert_eq!(fields(row), ["conditions", "ours", "published", "subject"]);
            for ours in row["ours"].as_array().expect("ours") {
                assert_eq!(fields(ours), ["label", "median", "setting"]);
                rows += 1;
            }
            for published in row["published"].as_array().expect("published") {
                let known = ["interval", "note", "printed", "repetitions", "statistic", "value"];
                assert_eq!(fields(published), known);
            }
        }
    }
    assert!(rows > 0, "no measured number is next to a published one");
    // dunnage's are the medians of the report, not computed from both.
    let start = report.experiments.iter().find(|one| one.name == "start").expect("launches");
    let tables = report.references.iter().flat_map(|one| &one.tables).filter(|one| one.metric == "returned");
    for ours in tables.flat_map(|table| &table.rows).flat_map(|row| &row.ours) {
        let own =
            start.rows().filter(|(setting, _, row)| row.label == ours.label && setting.text == ours.setting);
        let medians: Vec<f64> =
            own.filter_map(|(_, _, row)| Some(row.values[0].as_ref()?.summary.median.value)).collect();
        assert!(medians.contains(&ours.estimate.value), "{}: {:?}", ours.label, ours.estimate);
    }
}

#[test]
fn half_a_round_trip_never_stands_beside_a_full_one() {
    let numbers = || reference::sources().iter().flat_map(|source| &source.numbers);
    let halves: Vec<_> = numbers().filter(|number| number.note.contains("half of the round")).collect();
    assert!(halves.len() > 4, "{}", halves.len());
    for half in &halves {
        let Counterpart::None(why) = counterpart::of(half) else {
            panic!("{} {} has a counterpart", half.subject, half.conditions_in_words())
        };
        assert!(why.contains("half a round trip"), "{why}");
    }
    // Nor does any other number of their experiment, with any note.
    let theirs: Vec<&str> = halves.iter().map(|half| half.experiment.as_str()).collect();
    let report = with_references(report(&everything()));
    for table in report.references.iter().flat_map(|source| &source.tables) {
        assert!(!theirs.contains(&table.published_experiment.as_str()), "{}", table.published_experiment);
        assert!(!table.metric.contains("round_trip"), "{}", table.metric);
    }
}
