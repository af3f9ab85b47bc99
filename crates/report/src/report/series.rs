//! A run as the newest point of a time series in other programs: OpenMetrics for node exporter's textfile
//! collector, Bencher Metric Format, and `customSmallerIsBetter` for github-action-benchmark. Each subject in each
//! setting gives the median of each metric with its interval. Suspects are left out, and OpenMetrics counts them.
//!
//! Deliberately absent: single samples (see csv and gobench), and verdicts (see `compare`).

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use super::Report;
use super::model::{Metric, Setting, Value};
use super::text::shorten;
use crate::units::{Better, Unit};

/// The longest name that Bencher accepts, in characters.
const LONGEST_NAME: usize = 1024;

/// One value with its experiment, subject and setting.
struct Point<'a> {
    experiment: &'static str,
    setting: &'a Setting,
    subject: &'a str,
    metric: &'a Metric,
    value: &'a Value,
}

impl Point<'_> {
    /// Its experiment, subject and setting, joined by this separator.
    fn place(&self, between: &str) -> String {
        let parts = [self.experiment, self.subject, &self.setting.text];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        shorten(&parts.join(between), LONGEST_NAME)
    }
}

/// All values that are not suspect, by metric.
fn points(report: &Report) -> impl Iterator<Item = Point<'_>> {
    report.experiments.iter().flat_map(|experiment| {
        experiment.metrics.iter().enumerate().flat_map(move |(index, metric)| {
            experiment.settings.iter().flat_map(move |setting| {
                let believed = setting.subjects().into_iter().filter(move |row| !row.is_suspect(index));
                believed.filter_map(move |row| {
                    let (experiment, subject) = (experiment.name, row.label.as_str());
                    let value = row.value(index).filter(|value| value.summary.median.value.is_finite())?;
                    Some(Point { experiment, setting, subject, metric, value })
                })
            })
        })
    })
}

/// The unit as OpenMetrics and Prometheus name it; empty without one.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Seconds => "seconds",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "bytes_per_second",
        Unit::PerSecond => "per_second",
        Unit::Ratio | Unit::Share => "ratio",
        Unit::Count => "",
    }
}

/// OpenMetrics 1.0 (<https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md>): only gauges
/// without time stamps, which are the same in the older text format of Prometheus that the textfile collector reads.
pub fn openmetrics(report: &Report) -> String {
    let mut text = String::new();
    let started: Option<jiff::Timestamp> = report.started.parse().ok();
    if let Some(started) = started {
        let name = "dunnage_run_start_time_seconds";
        head(&mut text, name, "seconds", "Start time of the run since unix epoch in seconds.");
        let _ = writeln!(text, "{name} {}", started.as_second());
    }
    let help = "Number of rules that found suspect numbers, which are left out.";
    head(&mut text, "dunnage_suspects", "", help);
    let _ = writeln!(text, "dunnage_suspects {}", report.suspects.len());
    let all: Vec<Point<'_>> = points(report).collect();
    // A family must be one block.
    for family in
        all.chunk_by(|one, next| (one.experiment, one.metric.name) == (next.experiment, next.metric.name))
    {
        let Metric { name, meaning, unit: base, .. } = family[0].metric;
        let unit = unit(*base);
        let stem = format!("dunnage_{}_{name}", family[0].experiment).replace('-', "_");
        let end = if unit.is_empty() { String::new() } else { format!("_{unit}") };
        let parts = [
            ("", "median over rounds"),
            ("_low", "lower end of the median's interval"),
            ("_high", "upper end of the median's interval"),
        ];
        for (index, (part, what)) in parts.into_iter().enumerate() {
            let full = format!("{stem}{part}{end}");
            head(&mut text, &full, unit, &format!("{name}, {what}: {meaning}"));
            for point in family {
                let value = match (index, point.value.summary.median.interval) {
                    (0, _) => point.value.summary.median.value,
                    (1, Some(ends)) => ends.low,
                    (_, Some(ends)) => ends.high,
                    (_, None) => continue,
                };
                let [subject, setting] = [point.subject, &point.setting.text].map(label);
                let _ = writeln!(text, "{full}{{subject=\"{subject}\",setting=\"{setting}\"}} {value}");
            }
        }
    }
    text.push_str("# EOF\n");
    text
}

/// The header of a family. The two formats escape different characters here, so none of them is used.
fn head(text: &mut String, name: &str, unit: &str, help: &str) {
    let _ = writeln!(text, "# TYPE {name} gauge");
    if !unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {}", help.replace(['"', '\\', '\n'], " "));
}

/// The value of a label.
fn label(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

/// Bencher Metric Format (<https://bencher.dev/docs/reference/bencher-metric-format>): a benchmark is a subject in a
/// setting, a measure is a metric with its base unit.
pub fn bmf(report: &Report) -> String {
    let mut all = Map::new();
    for point in points(report) {
        let unit = unit(point.metric.unit).replace('_', "-");
        let name = point.metric.name.replace('_', "-");
        let measure = if unit.is_empty() { name } else { format!("{name}-{unit}") };
        let mut metric = json!({"value": point.value.summary.median.value});
        if let Some(ends) = point.value.summary.median.interval {
            metric["lower_value"] = json!(ends.low);
            metric["upper_value"] = json!(ends.high);
        }
        all.entry(point.place("/")).or_insert_with(|| json!({}))[measure] = metric;
    }
    format!("{:#}\n", Json::Object(all))
}

/// The format `customSmallerIsBetter` of github-action-benchmark
/// (<https://github.com/benchmark-action/github-action-benchmark>, `BenchmarkResult` in `src/extract.ts`): only
/// metrics where less is better. Times are in milliseconds, since its charts show the numbers unchanged.
pub fn github_benchmark(report: &Report) -> String {
    let one = |point: Point<'_>| {
        let (unit, factor) = match point.metric.unit {
            Unit::Seconds => ("ms", 1e3),
            other => (other.name(), 1.0),
        };
        let mut result = json!({
            "name": point.place(" ") + " " + point.metric.name,
            "unit": unit,
            "value": point.value.summary.median.value * factor,
            "extra": format!("median of {} rounds", point.value.summary.median.rounds),
        });
        if let Some(ends) = point.value.summary.median.interval {
            result["range"] = json!(format!("{} to {}", ends.low * factor, ends.high * factor));
        }
        result
    };
    let all = points(report).filter(|point| point.metric.better == Better::Less).map(one);
    format!("{:#}\n", Json::Array(all.collect()))
}
