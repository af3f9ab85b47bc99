//! The formats for series of other programs, each parsed by a parser of its published grammar.

use std::collections::{BTreeMap, BTreeSet};

use dunnage::report::{self, Rendering, Report};
use nom_openmetrics::parser::{openmetrics, prometheus};
use serde::Deserialize;

use crate::report::scripted::{full_ladder, metric, plan, run};

/// A run of eight subjects; one label contains characters that texts escape.
fn scripted() -> Report {
    let mut subjects = full_ladder()[..8].to_vec();
    subjects[2].label = "a \"b\"\\c".into();
    crate::report::report(&run(plan(subjects, 12)))
}

fn rendered(name: &str, report: &Report) -> String {
    let format = report::FORMATS.iter().find(|format| format.name == name).expect("a format");
    let Rendering::Text(render) = &format.rendering else { panic!("{name} is no text") };
    render(report)
}

/// A metric under the schema that <https://bencher.dev/bmf.json> publishes: benchmarks by name, in each measures by name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BencherMetric {
    value: f64,
    lower_value: Option<f64>,
    upper_value: Option<f64>,
}

/// `BenchmarkResult` in `src/extract.ts` of benchmark-action/github-action-benchmark, of which the file is an
/// array.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BenchmarkResult {
    name: String,
    value: f64,
    unit: String,
    range: Option<String>,
    extra: Option<String>,
}

/// The median and interval of `returned` of a subject after quiet.
fn returned(report: &Report, subject: &str) -> [f64; 3] {
    let setting = report.experiments[0].settings.iter().find(|one| one.text == "prestate=idle").unwrap();
    let rows = setting.subjects();
    let row = rows.iter().find(|row| row.label == subject).expect("a row");
    let median = row.value(metric("returned")).expect("a value").summary.median;
    let interval = median.interval.expect("twelve rounds have one");
    [median.value, interval.low, interval.high]
}

#[test]
fn openmetrics_is_what_both_of_its_parsers_read() {
    let report = scripted();
    let text = rendered("openmetrics", &report);
    let (rest, families) = openmetrics(&text).expect("OpenMetrics");
    assert_eq!(rest, "");
    // node exporter's textfile collector reads the older format, in which `# EOF` is a comment (this parser
    // accepts none at the end) and time stamps are refused.
    let (rest, older) =
        prometheus(text.strip_suffix("# EOF\n").expect("its end")).expect("Prometheus' format");
    assert_eq!((rest, older.is_empty()), ("", false));
    // Seven metrics in three lines each, and two of the run.
    assert_eq!(families.len(), 7 * 3 + 2);
    let [median, low, high] = returned(&report, "docker");
    for (name, value) in [("", median), ("_low", low), ("_high", high)] {
        let line = format!(
            "dunnage_start_returned{name}_seconds{{subject=\"docker\",setting=\"prestate=idle\"}} {value}\n"
        );
        assert!(text.contains(&line), "{line}{text}");
    }
    assert!(text.contains(r#"{subject="a \"b\"\\c",setting="prestate=primed"}"#), "{text}");
    assert!(text.contains("\ndunnage_suspects 0\n") && text.ends_with("\n# EOF\n"));
    assert!(openmetrics(&text.replace("# EOF\n", "")).is_err(), "the parser takes anything");
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    assert!(samples.clone().all(|line| line.rsplit('}').next().unwrap().split_whitespace().count() <= 2));
}

#[test]
fn bencher_reads_medians_with_their_intervals() {
    let report = scripted();
    let all: BTreeMap<String, BTreeMap<String, BencherMetric>> =
        serde_json::from_str(&rendered("bmf", &report)).expect("the published schema");
    let found = &all["start/docker/prestate=idle"]["returned-seconds"];
    let [median, low, high] = returned(&report, "docker");
    assert_eq!((found.value, found.lower_value, found.upper_value), (median, Some(low), Some(high)));
    assert_eq!(all.len(), 16);
    // Names and slugs have an end.
    assert!(
        all.iter().all(|(name, own)| name.len() <= 1024 && own.keys().all(|measure| measure.len() <= 64))
    );
}

#[test]
fn github_action_benchmark_reads_what_is_better_when_it_is_less() {
    let report = scripted();
    let all: Vec<BenchmarkResult> =
        serde_json::from_str(&rendered("github-benchmark", &report)).expect("what the action reads");
    let one = all.iter().find(|one| one.name == "start docker prestate=idle returned").expect("a result");
    let [median, low, high] = returned(&report, "docker").map(|seconds| seconds * 1e3);
    assert_eq!((one.value, one.unit.as_str()), (median, "ms"));
    assert_eq!(one.range, Some(format!("{low} to {high}")));
    assert_eq!(one.extra.as_deref(), Some("median of 12 rounds"));
    let names: BTreeSet<&str> = all.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names.len(), all.len());
}
