//! critest's benchmark JSON (`critest -benchmark --benchmarking-output-dir`): for each container or pod sandbox, the durations
//! of the CRI requests of its life, one after the other.
//!
//! A request about a container is a verb of `lifecycle`: create, start, stop, remove. A pod sandbox has stop and remove;
//! its combined create and start, status requests and images have no counterpart among dunnage's metrics.

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::foreign::{self, Arm, Foreign};
use crate::experiment::Setting;
use crate::outcome::{Failure, FailureClass, Outcome, Sample};
use crate::record::IssueFacts;
use crate::report::csv::instant;
use crate::subject::Spec;
use crate::units::{Nanos, Unit};

/// The format's name.
pub const FORMAT: &str = "critest's benchmark JSON";

/// Any runtime behind the CRI.
pub const SUBJECT: &str = "cri";
/// Requests and the metrics with the same meaning.
const VERBS: [(&str, &str); 6] = [
    ("CreateContainer", "create"),
    ("StartContainer", "start"),
    ("StopContainer", "stop"),
    ("RemoveContainer", "remove"),
    ("StopPod", "stop"),
    ("RemovePod", "remove"),
];

/// Since September 2001, nanoseconds since 1970 have nineteen digits.
const NINETEEN_DIGITS: i64 = 1_000_000_000_000_000_000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    operations_names: Vec<String>,
    num_parallel: i64,
    datapoints: Option<Vec<Datapoint>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Datapoint {
    sample_index: i64,
    start_time: i64,
    end_time: i64,
    operations_durations_ns: Option<Vec<i64>>,
}

/// Reads the content of the file.
pub fn read(value: &Value) -> Result<Foreign> {
    let file = File::deserialize(value)?;
    let metric = |name: &String| VERBS.iter().find(|(own, _)| own == name).map(|(_, metric)| *metric);
    let metrics: Vec<Option<&'static str>> = file.operations_names.iter().map(metric).collect();
    if metrics.iter().all(Option::is_none) {
        bail!(
            "none of its operations has a counterpart in dunnage: {}\n\nhint: import `container_benchmark_data.json` or `pod_benchmark_data.json`",
            file.operations_names.join(", ")
        );
    }
    let mut points = file.datapoints.unwrap_or_default();
    points.sort_by_key(|point| point.sample_index);
    let is_pod = file.operations_names.iter().any(|name| name.ends_with("Pod"));
    let label = if is_pod { "CRI pod sandbox" } else { "CRI container" };
    let issues = points.iter().flat_map(|point| issues(label, point)).collect();
    let outcomes =
        points.iter().map(|point| (outcome(point, &metrics), u64::try_from(point.start_time).ok()));
    let arm = Arm {
        label: label.into(),
        subject: Spec::plain(SUBJECT),
        notes: Vec::new(),
        outcomes: outcomes.collect(),
    };
    let named = file.operations_names.iter().map(String::as_str).zip(&metrics);
    let left_out: Vec<&str> = named.filter(|(_, metric)| metric.is_none()).map(|(name, _)| name).collect();
    let mut notes = vec![
        "the file has no information on machine, kernel and image, nor on which CRI runtime answered".to_owned(),
        "a CRI request returns when the runtime answers it; the program inside is not dunnage's probe, and its reaction to being stopped is part of `stop`".to_owned(),
    ];
    if !left_out.is_empty() {
        notes.push(format!("not imported, because dunnage has no counterpart: {}", left_out.join(", ")));
    }
    if file.num_parallel > 1 {
        notes.push(format!(
            "{} lifecycles ran at the same time and slowed each other down",
            file.num_parallel
        ));
    }
    Ok(Foreign {
        format: FORMAT,
        experiment: "lifecycle",
        setting: Setting::default(),
        started: points.iter().filter_map(|point| u64::try_from(point.start_time).ok()).min(),
        arms: vec![arm],
        notes,
        issues,
    })
}

/// One lifecycle. If the numbers of durations and operations differ, they cannot be matched.
fn outcome(point: &Datapoint, metrics: &[Option<&'static str>]) -> Outcome {
    let durations = point.operations_durations_ns.as_deref().unwrap_or_default();
    if durations.len() != metrics.len() {
        let reason = format!(
            "sample {} has {} durations of {} operations",
            point.sample_index,
            durations.len(),
            metrics.len()
        );
        return Outcome::Failed(Failure::new(FailureClass::WrongOutput, reason));
    }
    let given = metrics
        .iter()
        .zip(durations)
        .filter_map(|(metric, duration)| Some(((*metric)?, Nanos(*duration).seconds())));
    Outcome::Measured(Sample::imported(given))
}

/// Impossible stamps, and parts that take longer than the whole.
fn issues(label: &str, point: &Datapoint) -> Vec<IssueFacts> {
    let issue = |rule: &str, evidence: String, mechanism: &str| {
        foreign::issue(rule, &[label], format!("sample {}: {evidence}", point.sample_index), mechanism)
    };
    let mut found = Vec::new();
    for (name, stamp) in [("startTime", point.start_time), ("endTime", point.end_time)] {
        if stamp < NINETEEN_DIGITS {
            let evidence =
                format!("`{name}` is {stamp}, which is not a current time in nanoseconds since 1970");
            found.push(issue(
                "malformed stamp",
                evidence,
                "a fraction of a second was printed without its zeros, or the unit is another",
            ));
        }
    }
    if !found.is_empty() {
        return found;
    }
    let whole = point.end_time - point.start_time;
    let parts: i128 = point.operations_durations_ns.iter().flatten().map(|part| i128::from(*part)).sum();
    let shown = |nanos: i128| Unit::Seconds.format(nanos as f64 / 1e9);
    if whole < 0 {
        let time = |stamp: i64| instant(u64::try_from(stamp).unwrap_or(0));
        let evidence =
            format!("it ends at {} but begins at {}", time(point.end_time), time(point.start_time));
        found.push(issue("impossible stamp", evidence, "the clock was set between the readings"));
    } else if parts > i128::from(whole) {
        let evidence = format!(
            "its operations take {} together, but the whole takes {}",
            shown(parts),
            shown(i128::from(whole))
        );
        found.push(issue(
            "longer than there was time",
            evidence,
            "the durations are of another sample, or the stamps of another clock",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str =
        r#"["CreateContainer","StartContainer","StatusContainer","StopContainer","RemoveContainer"]"#;

    fn file(start: &str, end: &str, durations: &str) -> String {
        format!(
            r#"{{"operationsNames":{NAMES},"numParallel":1,"datapoints":[{{"sampleIndex":0,"startTime":{start},"endTime":{end},"operationsDurationsNs":{durations},"metaInfo":null}}]}}"#
        )
    }

    fn made(text: &str) -> Foreign {
        read(&serde_json::from_str(text).unwrap()).unwrap()
    }

    fn rules(start: &str, end: &str, durations: &str) -> Vec<String> {
        made(&file(start, end, durations)).issues.into_iter().map(|one| one.rule).collect()
    }

    #[test]
    fn requests_are_verbs_and_the_status_is_none() {
        let made = made(&file(
            "1700000000000000000",
            "1700000001000000000",
            "[1000000,2000000,3000,4000000,5000000]",
        ));
        let (Outcome::Measured(sample), Some(1_700_000_000_000_000_000)) = &made.arms[0].outcomes[0] else {
            panic!("{:?}", made.arms[0])
        };
        let given: Vec<_> = sample.given.iter().map(|(name, value)| (name.as_ref(), *value)).collect();
        assert_eq!(given, [("create", 0.001), ("start", 0.002), ("stop", 0.004), ("remove", 0.005)]);
        assert!(made.notes.iter().any(|note| note.ends_with(": StatusContainer")));
        assert_eq!(made.issues, []);
    }

    #[test]
    fn stamps_have_their_digits_and_their_order_and_parts_fit_into_the_whole() {
        let whole = "[1000000,2000000,3000000,4000000,990000000]";
        assert_eq!(rules("1700000000000000000", "1700000001000000000", whole), [""; 0]);
        let more = "[1000000,2000000,3000000,4000000,990000001]";
        assert_eq!(rules("1700000000000000000", "1700000001000000000", more), ["longer than there was time"]);
        assert_eq!(rules("1700000000000000001", "1700000000000000000", "[0,0,0,0,0]"), ["impossible stamp"]);
        // A fraction of a second without its leading zero.
        assert_eq!(rules("170000000012345678", "1700000001000000000", whole), ["malformed stamp"]);
        assert_eq!(rules("1700000000", "1700000001", "[0,0,0,0,0]").len(), 2);
        assert_eq!(rules("-700000000000000000", "1700000001000000000", whole), ["malformed stamp"]);
    }

    #[test]
    fn another_number_of_durations_is_a_failure() {
        let made = made(&file("1700000000000000000", "1700000001000000000", "[1,2]"));
        assert!(
            matches!(&made.arms[0].outcomes[0].0, Outcome::Failed(failure) if failure.reason == "sample 0 has 2 durations of 5 operations")
        );
    }

    #[test]
    fn what_has_no_counterpart_is_refused() {
        let images = r#"{"operationsNames":["PullImage","StatusImage"],"numParallel":1,"datapoints":[]}"#;
        let error = read(&serde_json::from_str(images).unwrap()).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("none of its operations has a counterpart in dunnage: PullImage, StatusImage")
        );
        let pods = r#"{"operationsNames":["CreatePod","StatusPod","StopPod","RemovePod"],"numParallel":5,"datapoints":null}"#;
        let pods = made(pods);
        assert_eq!(pods.arms[0].label, "CRI pod sandbox");
        assert!(
            pods.notes.iter().any(|note| note.ends_with("CreatePod, StatusPod"))
                && pods.notes.iter().any(|note| note.starts_with("5 lifecycles"))
        );
    }
}
