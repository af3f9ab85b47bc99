//! hyperfine's JSON (`--export-json`): the time of every run, exit codes and summaries for each command.
//!
//! A command is a subject: an engine or a runtime if it certainly starts a container with that, otherwise without a layer. Its
//! time is `returned` of the experiment `command`: measured from outside, including start and end. Summaries are not imported
//! but computed again, and reported as suspect if they do not match the times. `user` and `system` are means over all runs,
//! so they are kept as facts about the subject.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::foreign::{self, Arm, Foreign, distinct};
use crate::experiment::{Setting, command, command::line, setting::interned};
use crate::outcome::{Failure, FailureClass, Outcome, Sample};
use crate::record::{IssueFacts, since_1970};
use crate::stats;
use crate::subject::{Layer, Spec, kind_of};
use crate::units::{Nanos, Unit};

/// The format's name.
pub const FORMAT: &str = "hyperfine's JSON";
/// The command in the setting of all cells; the labels have the actual commands.
pub(in crate::record) const LABELLED: &str = "as labelled";
const METRIC: &str = "returned";
/// The subject of an ambiguous command.
pub(super) const UNKNOWN: &str = "unknown";
/// Fewer equal times could be a coincidence on a coarse clock.
const FEWEST: usize = 5;
/// Summing the same numbers in another order changes the last digits.
const ROUNDING: f64 = 1e-9;

#[derive(Debug, Deserialize)]
struct ResultFile {
    command: String,
    mean: Option<f64>,
    stddev: Option<f64>,
    median: Option<f64>,
    user: Option<f64>,
    system: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    times: Option<Vec<f64>>,
    exit_codes: Option<Vec<Option<i32>>>,
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
}

/// Reads the content of the file.
pub fn read(file: &Value) -> Result<Foreign> {
    let results = file.get("results").and_then(Value::as_array).context("`results` is not a list")?;
    let commands = results.iter().map(|one| one.get("command").and_then(Value::as_str).unwrap_or_default());
    let labels = distinct(commands);
    let mut arms = Vec::new();
    let mut issues = Vec::new();
    let mut all_times: Vec<Vec<f64>> = Vec::new();
    for (at, (result, label)) in results.iter().zip(&labels).enumerate() {
        let place = || format!("`results[{at}]`");
        let one = ResultFile::deserialize(result).with_context(place)?;
        let times = one
            .times
            .clone()
            .with_context(|| format!("{} has no `times`: dunnage needs the time of every run", place()))?;
        if let Some(codes) = one.exit_codes.as_ref().filter(|codes| codes.len() != times.len()) {
            bail!("{} has {} times but {} exit codes", place(), times.len(), codes.len());
        }
        issues.extend(summaries(label, &one, &times));
        issues.extend(impossible(label, &one.command, &times));
        arms.push(arm(label, &one, &times));
        all_times.push(times);
    }
    issues.extend(copies(&labels, &all_times));
    Ok(Foreign {
        format: FORMAT,
        experiment: command::NAME,
        setting: Setting(vec![("cmd", interned(LABELLED)), ("mode", "run")]),
        arms,
        started: None,
        notes: vec![
            "hyperfine runs one command after the other, in blocks: a change of the machine between two blocks looks like a difference between the commands".into(),
            "with a shell, hyperfine subtracts its estimate of the shell's start, and with `-N` it does not; the file does not show which was used".into(),
            "the file has no information on machine, kernel, programs, date or warm-ups; the run has the date of the file's last change".into(),
            "`user` and `system` are means over all runs, not samples".into(),
        ],
        issues,
    })
}

fn arm(label: &str, one: &ResultFile, times: &[f64]) -> Arm {
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
        Some(0) => Outcome::Measured(Sample::imported([(METRIC, *time)])),
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
        label: label.to_owned(),
        subject: subject_of(&one.command).unwrap_or_else(|| Spec::plain(UNKNOWN)),
        notes: notes.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect(),
        outcomes: times.iter().enumerate().map(outcome).map(|outcome| (outcome, None)).collect(),
    }
}

/// The engine or runtime that a command starts, with the runtime that it names: if it is a single command, `run` of a program
/// of that name, and no later word could name another runtime. Its other options are in the label.
fn subject_of(command: &str) -> Option<Spec> {
    let words = line::split(command).ok().filter(|_| is_one_command(command))?;
    let mut words = words.iter().map(String::as_str);
    let name = Path::new(words.next()?).file_name()?.to_str()?;
    let (mut runtime, mut is_run) = (None, false);
    loop {
        match words.next()? {
            "run" if !is_run => is_run = true,
            "container" if !is_run => {}
            "--runtime" => runtime = Some(words.next()?),
            word if word.starts_with("--runtime=") => runtime = word.split('=').nth(1),
            word if is_run && word.starts_with('-') => {}
            _ if is_run => break,
            _ => return None,
        }
    }
    let spec = Spec { runtime: runtime.map(str::to_owned), ..Spec::plain(name) };
    let is_known = kind_of(&spec).is_ok_and(|kind| kind.layer >= Layer::Runtime);
    (is_known && !words.any(|word| word.starts_with("--runtime"))).then_some(spec)
}

/// Whether a shell would run only this command.
fn is_one_command(command: &str) -> bool {
    let mut quote = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => drop(letters.next()),
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if letter == open => quote = None,
            ('`' | '$', None | Some('"')) | (';' | '|' | '&' | '(' | '\n', None) => return false,
            _ => {}
        }
    }
    true
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A suspect about times.
fn issue(rule: &str, labels: &[&str], evidence: String, mechanism: &str) -> IssueFacts {
    IssueFacts { metric: Some(METRIC.into()), ..foreign::issue(rule, labels, evidence, mechanism) }
}

/// Summaries that do not match the times.
fn summaries(label: &str, one: &ResultFile, times: &[f64]) -> Option<IssueFacts> {
    let sample = stats::Sample::new(times)?;
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    let spread = (times.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
    let given = [
        ("mean", one.mean, Some(mean)),
        ("median", one.median, Some(sample.median())),
        ("min", one.min, Some(sample.min())),
        ("max", one.max, Some(sample.max())),
        ("stddev", one.stddev, spread),
    ];
    let size = sample.max().abs().max(sample.min().abs()).max(ROUNDING);
    let wrong = given.into_iter().filter_map(|(name, given, computed)| {
        let (given, computed) = (given?, computed?);
        let is_off = (given - computed).abs() > ROUNDING * size;
        is_off.then(|| format!("`{name}` is {}, but the times give {}", shown(given), shown(computed)))
    });
    let wrong: Vec<String> = wrong.collect();
    let evidence = format!("`{}`: {}", one.command, wrong.join(", "));
    let mechanism = "the file was edited, or the times are from another run";
    (!wrong.is_empty()).then(|| issue("not what its raw data give", &[label], evidence, mechanism))
}

fn shown(seconds: f64) -> String {
    Unit::Seconds.format_signed(seconds).trim_start_matches('+').to_owned()
}

/// Runs that took no time, or longer than the time since 1970.
fn impossible(label: &str, command: &str, times: &[f64]) -> Vec<IssueFacts> {
    let none = times.iter().filter(|time| **time == 0.0).count();
    let no_time = (none > 0).then(|| {
        let evidence = format!("`{command}`: {none} of {} runs took exactly 0 s", times.len());
        let mechanism = "the shell's start was subtracted and negative results became zero: the command is too short for a shell, measure it with `-N`";
        issue("no time at all", &[label], evidence, mechanism)
    });
    let age = since_1970() as f64 / 1e9;
    let longest = times.iter().copied().fold(0.0, f64::max);
    let too_long = (longest > age).then(|| {
        let evidence =
            format!("`{command}`: a run took {longest:e} s, but only {age:e} s have passed since 1970");
        issue(
            "longer than there was time",
            &[label],
            evidence,
            "the unit is not seconds, or the file is damaged",
        )
    });
    no_time.into_iter().chain(too_long).collect()
}

/// Commands with exactly the same times.
pub(super) fn copies(labels: &[String], times: &[Vec<f64>]) -> Vec<IssueFacts> {
    let of = |(second, own): (usize, &Vec<f64>)| {
        let is_telling = own.len() >= FEWEST && own.iter().any(|time| *time != own[0]);
        let first = times[..second].iter().position(|other| is_telling && other == own)?;
        let both = [labels[first].as_str(), &labels[second]];
        let evidence =
            format!("`{}` and `{}` have the same time in each of {} runs", both[0], both[1], own.len());
        Some(issue("columns that are copies", &both, evidence, "one of them was copied, not measured"))
    };
    times.iter().enumerate().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<String> {
        let file = serde_json::from_str(text).unwrap();
        read(&file).unwrap().issues.into_iter().map(|one| one.rule).collect()
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
        // A single run has no spread.
        assert_eq!(rules(&file(r#""mean":0.1,"stddev":null,"#, "[0.1]")), [""; 0]);
    }

    #[test]
    fn a_subject_is_read_from_a_command_only_where_that_is_certain() {
        for (command, subject) in [
            ("docker run --rm alpine true", "docker"),
            ("/usr/bin/podman container run x sh -c 'a; b | c'", "podman"),
            ("docker run --rm --runtime=crun alpine", "docker+crun"),
            ("podman --runtime runc run x", "podman+runc"),
            ("crun run --bundle=b c1", "crun"),
        ] {
            assert_eq!(
                subject_of(command).map(|spec| spec.to_string()).as_deref(),
                Some(subject),
                "{command}"
            );
        }
        for command in [
            "true",
            "docker exec c true",
            "docker pull alpine",
            "docker --context far run alpine",
            "docker run --name a --runtime crun alpine",
            "docker run alpine; sleep 1",
            "docker run \"$(image)\"",
            "sudo docker run alpine",
            "DOCKER_HOST=x docker run alpine",
            "time docker run alpine",
            "crun+runc run x",
            "docker run",
            "docker 'run",
            "",
        ] {
            assert_eq!(subject_of(command), None, "{command}");
        }
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
            (r#"{"results":{}}"#, "`results` is not a list"),
            (r#"{"results":[{"times":[1]}]}"#, "`results[0]`: missing field `command`"),
            (r#"{"results":[{"command":"a"}]}"#, "`results[0]` has no `times`"),
            (r#"{"results":[{"command":"a","times":["x"]}]}"#, "`results[0]`: invalid type: string"),
            (r#"{"results":[{"command":"a","times":[1,2],"exit_codes":[0]}]}"#, "2 times but 1 exit codes"),
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
