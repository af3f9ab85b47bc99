//! hyperfine's JSON (`--export-json`): for each command the time of every run, exit codes, and summaries of them.
//!
//! A command is a subject, and its time is `returned` of the experiment `command`: from outside, start and end included.
//! Summaries are not imported but computed again, and what the times do not give is suspect. `user` and `system` are
//! means over all runs, which no sample has; they stand with the subject.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::foreign::{Arm, Foreign};
use crate::experiment::{Setting, command, setting::interned};
use crate::outcome::{Failure, FailureClass, Outcome, Sample};
use crate::record::DoubtFacts;
use crate::subject::Layer;
use crate::units::{Nanos, Unit};

/// Its name for people.
pub const FORMAT: &str = "hyperfine's JSON";
/// The command that stands for all: which one it is, the label says.
pub(in crate::record) const LABELLED: &str = "as labelled";
const METRIC: &str = "returned";
/// Fewer equal times could be chance on a coarse clock.
const FEWEST: usize = 5;
/// Sums of the same numbers in another order differ in the last digits.
const ROUNDING: f64 = 1e-9;

#[derive(Debug, Deserialize)]
struct ResultFile {
    command: String,
    #[serde(default)]
    mean: Option<f64>,
    #[serde(default)]
    stddev: Option<f64>,
    #[serde(default)]
    median: Option<f64>,
    #[serde(default)]
    user: Option<f64>,
    #[serde(default)]
    system: Option<f64>,
    #[serde(default)]
    min: Option<f64>,
    #[serde(default)]
    max: Option<f64>,
    times: Option<Vec<f64>>,
    #[serde(default)]
    exit_codes: Option<Vec<Option<i32>>>,
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
}

/// Reads what the file holds.
pub fn read(file: &Value) -> Result<Foreign> {
    let results = file.get("results").and_then(Value::as_array).context("`results` is no list")?;
    let mut arms = Vec::new();
    let mut doubts = Vec::new();
    let mut all_times: Vec<Vec<f64>> = Vec::new();
    for (at, result) in results.iter().enumerate() {
        let place = || format!("`results[{at}]`");
        let one = ResultFile::deserialize(result).with_context(place)?;
        let times = one.times.clone().with_context(|| {
            format!("{} has no `times`: without single runs nothing can be judged", place())
        })?;
        if let Some(codes) = one.exit_codes.as_ref().filter(|codes| codes.len() != times.len()) {
            bail!("{} has {} times and {} exit codes", place(), times.len(), codes.len());
        }
        doubts.extend(summaries(at, &one, &times));
        doubts.extend(impossible(at, &one.command, &times));
        arms.push(arm(&one, &times));
        all_times.push(times);
    }
    doubts.extend(copies(&arms, &all_times));
    Ok(Foreign {
        format: FORMAT,
        experiment: command::NAME,
        setting: Setting(vec![("cmd", interned(LABELLED)), ("mode", "run")]),
        arms,
        started: None,
        notes: vec![
            "hyperfine runs one command after the other, in blocks: what changed on the machine between two blocks cannot be told from what the commands differ in".into(),
            "through a shell hyperfine subtracts what it thinks the shell's own start takes, and with `-N` it does not; the file does not say which".into(),
            "the file says nothing about machine, kernel, programs, time of day or warm-ups; the run is dated by the file's last change".into(),
            "`user` and `system` are means over all runs there, and no samples".into(),
        ],
        doubts,
    })
}

fn arm(one: &ResultFile, times: &[f64]) -> Arm {
    let parameters: Vec<_> =
        one.parameters.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
    let shown = |seconds: Option<f64>| seconds.map(|seconds| Unit::Seconds.format(seconds));
    let notes = [
        ("parameters", Some(parameters.join(", ")).filter(|text| !text.is_empty())),
        ("mean user time", shown(one.user)),
        ("mean system time", shown(one.system)),
    ];
    let code = |at: usize| one.exit_codes.as_ref().map_or(Some(0), |codes| codes[at]);
    let outcome = |(at, time): (usize, &f64)| match code(at) {
        Some(0) => Outcome::Measured(Sample { given: vec![(METRIC.into(), *time)], ..Sample::default() }),
        code => {
            let how = code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
            let reason = format!("the command ended with {how}");
            Outcome::Failed(Failure {
                took: Nanos::from_seconds(*time),
                ..Failure::new(FailureClass::Crash, reason)
            })
        }
    };
    Arm {
        label: one.command.clone(),
        // Who starts it is a process of the host; what it starts in turn the file does not say.
        subject: "bare",
        layer: Layer::Bare,
        notes: notes.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect(),
        outcomes: times.iter().enumerate().map(outcome).map(|outcome| (outcome, None)).collect(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A doubt about one result, which stands for its subject until that has its label.
fn doubt(rule: &str, at: usize, evidence: String, mechanism: &str) -> DoubtFacts {
    DoubtFacts {
        rule: rule.into(),
        labels: vec![at.to_string()],
        metric: Some(METRIC.into()),
        evidence,
        mechanism: mechanism.into(),
    }
}

/// Summaries that the times do not give.
fn summaries(at: usize, one: &ResultFile, times: &[f64]) -> Vec<DoubtFacts> {
    if times.is_empty() {
        return Vec::new();
    }
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    let spread = (times.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
    let given = [
        ("mean", one.mean, Some(mean)),
        ("median", one.median, Some(middle)),
        ("min", one.min, sorted.first().copied()),
        ("max", one.max, sorted.last().copied()),
        ("stddev", one.stddev, spread),
    ];
    let size = sorted[sorted.len() - 1].abs().max(sorted[0].abs()).max(ROUNDING);
    let wrong = given.into_iter().filter_map(|(name, given, computed)| Some((name, given?, computed?)));
    let wrong: Vec<_> = wrong
        .filter(|(_, given, computed)| (given - computed).abs() > ROUNDING * size)
        .map(|(name, given, computed)| {
            format!("`{name}` is {} and the times give {}", shown(given), shown(computed))
        })
        .collect();
    if wrong.is_empty() {
        return Vec::new();
    }
    let evidence = format!("`{}`: {}", one.command, wrong.join(", "));
    vec![doubt("not what its raw data give", at, evidence, "a file that was edited, or times of another run")]
}

fn shown(seconds: f64) -> String {
    Unit::Seconds.format_signed(seconds).trim_start_matches('+').to_owned()
}

/// Runs that took no time, or more than there was since clocks of computers began to count.
fn impossible(at: usize, command: &str, times: &[f64]) -> Vec<DoubtFacts> {
    let none = times.iter().filter(|time| **time == 0.0).count();
    let no_time = (none > 0).then(|| {
        let evidence = format!("`{command}`: {none} of {} runs took exactly 0 s", times.len());
        let mechanism = "the shell's own start was subtracted, and what fell below zero was set to zero: too short a command for a shell, measure with `-N`";
        doubt("no time at all", at, evidence, mechanism)
    });
    let age = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(f64::MAX, |age| age.as_secs_f64());
    let longest = times.iter().copied().fold(0.0, f64::max);
    let too_long = (longest > age).then(|| {
        let evidence = format!("`{command}`: a run took {longest:e} s, and since 1970 {age:e} s have passed");
        doubt("longer than there was time", at, evidence, "another unit than seconds, or a broken file")
    });
    no_time.into_iter().chain(too_long).collect()
}

/// Commands whose times agree to the last digit.
fn copies(arms: &[Arm], times: &[Vec<f64>]) -> Vec<DoubtFacts> {
    let mut found = Vec::new();
    for second in 0..times.len() {
        let own = &times[second];
        let is_telling = own.len() >= FEWEST && own.iter().any(|time| *time != own[0]);
        let Some(first) = (0..second).find(|&first| is_telling && times[first] == *own) else { continue };
        let evidence = format!(
            "`{}` and `{}` have the same time in each of {} runs",
            arms[first].label,
            arms[second].label,
            own.len()
        );
        let facts =
            doubt("columns that are copies", second, evidence, "one of them was copied, not measured");
        found.push(DoubtFacts { labels: vec![first.to_string(), second.to_string()], ..facts });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<String> {
        let file = serde_json::from_str(text).unwrap();
        read(&file).unwrap().doubts.into_iter().map(|one| one.rule).collect()
    }

    fn file(summary: &str, times: &str) -> String {
        format!(r#"{{"results":[{{"command":"true",{summary}"times":{times}}}]}}"#)
    }

    #[test]
    fn summaries_are_computed_again() {
        let good = r#""mean":0.2,"median":0.2,"min":0.1,"max":0.3,"stddev":0.1,"#;
        assert_eq!(rules(&file(good, "[0.1,0.2,0.3]")), [""; 0]);
        assert_eq!(rules(&file(r#""mean":0.2000000001,"#, "[0.1,0.2,0.3]")), [""; 0]);
        for wrong in
            [r#""mean":0.21,"#, r#""median":0.1,"#, r#""min":0.2,"#, r#""max":0.2,"#, r#""stddev":0.08,"#]
        {
            assert_eq!(rules(&file(wrong, "[0.1,0.2,0.3]")), ["not what its raw data give"], "{wrong}");
        }
        // One run has no spread.
        assert_eq!(rules(&file(r#""mean":0.1,"stddev":null,"#, "[0.1]")), [""; 0]);
    }

    #[test]
    fn no_time_and_more_time_than_there_was_are_suspect() {
        assert_eq!(rules(&file("", "[0.0,0.1]")), ["no time at all"]);
        assert_eq!(rules(&file("", "[1e-9,1e8]")), [""; 0]);
        assert_eq!(rules(&file("", "[1e300]")), ["longer than there was time"]);
    }

    #[test]
    fn copies_agree_in_every_run() {
        let two = |one: &str, other: &str| {
            rules(&format!(
                r#"{{"results":[{{"command":"a","times":{one}}},{{"command":"b","times":{other}}}]}}"#
            ))
        };
        assert_eq!(two("[1.1,1.2,1.3,1.4,1.5]", "[1.1,1.2,1.3,1.4,1.5]"), ["columns that are copies"]);
        assert_eq!(two("[1.1,1.2,1.3,1.4,1.5]", "[1.1,1.2,1.3,1.4,1.51]"), [""; 0]);
        assert_eq!(two("[1.1,1.2,1.3,1.4]", "[1.1,1.2,1.3,1.4]"), [""; 0]);
        assert_eq!(two("[1,1,1,1,1]", "[1,1,1,1,1]"), [""; 0]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, why) in [
            (r#"{"results":{}}"#, "`results` is no list"),
            (r#"{"results":[{"times":[1]}]}"#, "`results[0]`: missing field `command`"),
            (r#"{"results":[{"command":"a"}]}"#, "`results[0]` has no `times`"),
            (r#"{"results":[{"command":"a","times":["x"]}]}"#, "`results[0]`: invalid type: string"),
            (r#"{"results":[{"command":"a","times":[1,2],"exit_codes":[0]}]}"#, "2 times and 1 exit codes"),
        ] {
            let error = read(&serde_json::from_str(text).unwrap()).unwrap_err();
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
    }

    #[test]
    fn a_run_that_failed_is_a_failure_and_no_number() {
        let text = r#"{"results":[{"command":"exit 3","times":[0.1,0.2,0.3],"exit_codes":[0,3,null],"parameters":{"n":"3"}}]}"#;
        let made = read(&serde_json::from_str(text).unwrap()).unwrap();
        let reasons: Vec<_> = made.arms[0]
            .outcomes
            .iter()
            .map(|(outcome, _)| match outcome {
                Outcome::Failed(failure) => failure.reason.clone(),
                Outcome::Measured(sample) => format!("{:?}", sample.given),
                Outcome::Skipped(why) => why.clone(),
            })
            .collect();
        let failed = |how: &str| format!("the command ended with {how}");
        assert_eq!(reasons, [r#"[("returned", 0.1)]"#.to_owned(), failed("exit code 3"), failed("a signal")]);
        assert_eq!(made.arms[0].notes, [("parameters", "n=3".to_owned())]);
    }
}
