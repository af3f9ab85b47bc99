//! Raw formats of published times, recognised by the first line: tables of `runtime,metric,value`; pairs of stamps in
//! nanoseconds, before a launch and inside it; durations as printed by bash's `time`.
//!
//! One error is corrected and reported: a stamp whose fraction of a second lost its leading zeros gets them back, because
//! zeros at its end would create a spike. A run that ended at once while others took long counts as a failure.

use anyhow::{Context, Result, ensure};
use dunnage_analysis::group::in_groups;

use super::foreign::{Arm, Foreign, distinct, issue};
use super::hyperfine::{LABELLED, UNKNOWN, copies};
use crate::experiment::{Setting, command, setting::interned};
use crate::outcome::{Failure, FailureClass, Outcome, Sample};
use crate::record::IssueFacts;
use crate::report::text::{listed, quoted};
use crate::stats;
use crate::subject::{Spec, kind_of};
use crate::units::{Nanos, Unit};

/// The format, from the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `runtime,metric,value`.
    Table,
    /// `1630919603728008800,1630919604029460824`.
    Stamps,
    /// `0m1,531s`.
    Durations,
}

const HEADER: &str = "runtime,metric,value";
/// Suffixes of metrics that are times, with their units per second.
const TIMES: [(&str, f64); 5] = [("_seconds", 1.0), ("_s", 1.0), ("_ms", 1e3), ("_us", 1e6), ("_ns", 1e9)];
/// A run failed at once if it ended within `AT_ONCE` seconds while half of the runs took `LONG` or more.
const AT_ONCE: f64 = 0.005;
const LONG: f64 = 0.1;
/// From 2001 to 2286, nanoseconds since 1970 have this many digits, and whole seconds that many.
const DIGITS: usize = 19;
const OF_SECONDS: usize = 10;
/// Number of examples to show.
const EXAMPLES: usize = 3;

/// A line: the label, the subject, the seconds or why there are none, and when it began.
type Run = (String, Spec, Result<f64, String>, Option<u64>);

impl Form {
    /// The format of a file with this first line, if it is one of them.
    pub fn of(line: &str) -> Option<Form> {
        let is_whole = |(start, end): (&str, &str)| {
            nanoseconds(start).and(nanoseconds(end)).is_some() && start.len().max(end.len()) == DIGITS
        };
        match line.trim() {
            HEADER => Some(Form::Table),
            line if line.split_once(',').is_some_and(is_whole) => Some(Form::Stamps),
            line => duration(line).map(|_| Form::Durations),
        }
    }

    /// Reads the content of a file with this name.
    pub fn read(self, name: &str, text: &str) -> Result<Foreign> {
        let plain = |time, began| (name.to_owned(), Spec::plain(UNKNOWN), time, began);
        let (mut runs, mut left_out, mut broken): (Vec<Run>, Vec<&str>, Vec<String>) = Default::default();
        let lines = (1..).zip(text.lines().map(str::trim)).skip(usize::from(self == Form::Table));
        for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
            let unlike = || format!("line {number}: `{line}` does not have the format of the first line");
            match self {
                Form::Table => {
                    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
                    let [runtime, metric, value] = fields.try_into().ok().with_context(unlike)?;
                    match TIMES.iter().find(|(ending, _)| metric.ends_with(ending)) {
                        Some((_, unit)) => runs.push(row([runtime, metric, value], *unit)),
                        None => left_out.push(metric),
                    }
                }
                Form::Stamps => {
                    let (start, end) = line.split_once(',').with_context(unlike)?;
                    let began = nanoseconds(start).with_context(unlike)?;
                    let seconds = |ended: i64| Nanos(ended - began).seconds();
                    let time = nanoseconds(end).map(seconds).ok_or(format!("`{end}` is not a stamp"));
                    broken.extend(time.iter().filter_map(|time| malformed(number, [start, end], *time)));
                    runs.push(plain(time, u64::try_from(began).ok()));
                }
                Form::Durations => runs.push(plain(Ok(duration(line).with_context(unlike)?), None)),
            }
        }
        left_out.sort_unstable();
        left_out.dedup();
        ensure!(
            !runs.is_empty() || left_out.is_empty(),
            "none of its metrics is a time: {}",
            quoted(left_out)
        );
        let (experiment, metric, setting) = match self {
            Form::Stamps => ("start", "first_instruction", Setting::default()),
            _ => (command::NAME, "returned", Setting(vec![("cmd", interned(LABELLED)), ("mode", "run")])),
        };
        let groups = in_groups(runs, |(label, ..)| label.clone());
        let labels = distinct(groups.iter().map(|(label, _)| label.as_str()));
        let times =
            |(_, runs): &(_, Vec<Run>)| runs.iter().filter_map(|run| run.2.as_ref().ok().copied()).collect();
        let times: Vec<Vec<f64>> = groups.iter().map(times).collect();
        let mut issues = copies(&labels, &times);
        if !broken.is_empty() {
            let more = broken.len().saturating_sub(EXAMPLES);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            let evidence = format!("{}{more}", listed(broken.iter().take(EXAMPLES), "; "));
            let mechanism = "a fraction of a second was printed without its leading zeros";
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            issues.push(IssueFacts {
                metric: Some(metric.into()),
                ..issue("malformed stamp", &labels, evidence, mechanism)
            });
        }
        let started = groups.iter().flat_map(|(_, runs)| runs).filter_map(|run| run.3).min();
        let arms = labels.into_iter().zip(groups).zip(times);
        let arms = arms.map(|((label, (_, runs)), times)| arm(label, metric, runs, &times)).collect();
        let [format, taken_as] = self.told();
        let unknown = "the file has no information on machine, kernel, programs, order or warm-ups";
        let mut notes = vec![unknown.to_owned(), taken_as.to_owned()];
        if !left_out.is_empty() {
            notes.push(format!("not imported, because they are not times: {}", quoted(left_out)));
        }
        Ok(Foreign { format, experiment, setting, arms, started, notes, issues })
    }

    /// The name of the format, and the interpretation of its numbers.
    fn told(self) -> [&'static str; 2] {
        match self {
            Form::Table => [
                "a table of runtime, metric and value",
                "each metric of a runtime is its own subject, with its times as `returned`; what they include depends on the metric",
            ],
            Form::Stamps => [
                "a list of stamps",
                "the first stamp is taken as the start of a launch, and the second as a clock reading inside, which is later than the first instruction by the start of that program; if it was read outside, these results are wrong",
            ],
            Form::Durations => ["a list of durations", "the file does not say what was timed"],
        }
    }
}

/// A row of a table. The runtime is the subject, if dunnage has a subject of that name.
fn row([runtime, metric, value]: [&str; 3], unit: f64) -> Run {
    let named = Spec::parse(runtime).ok().filter(|spec| kind_of(spec).is_ok());
    let time = value.parse::<f64>().map(|value| value / unit).ok().filter(|time| time.is_finite());
    let is_word = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphabetic());
    let why = if is_word { "is not a time; the file gives no reason" } else { "is not a time" };
    let time = time.ok_or_else(|| format!("`{value}` {why}"));
    (format!("{runtime} {metric}"), named.unwrap_or_else(|| Spec::plain(UNKNOWN)), time, None)
}

/// All launches of one subject.
fn arm(label: String, metric: &'static str, runs: Vec<Run>, times: &[f64]) -> Arm {
    let median = stats::Sample::new(times).map_or(0.0, |sample| sample.median());
    let subject = runs[0].1.clone();
    let outcome = |time: Result<f64, String>| {
        let (reason, took) = match time {
            Ok(time) if (0.0..=AT_ONCE).contains(&time) && median >= LONG => (
                format!(
                    "it ended after {} while half of the runs took {} or more: it did not do its work",
                    shown(time),
                    shown(median)
                ),
                time,
            ),
            Ok(time) => {
                return Outcome::Measured(Sample::imported([(metric, time)]));
            }
            Err(why) => (why, 0.0),
        };
        Outcome::Failed(Failure {
            took: Nanos::from_seconds(took),
            ..Failure::new(FailureClass::Crash, reason)
        })
    };
    let outcomes = runs.into_iter().map(|(.., time, began)| (outcome(time), began)).collect();
    Arm { label, subject, notes: Vec::new(), outcomes }
}

fn shown(seconds: f64) -> String {
    Unit::Seconds.format(seconds)
}

/// `0m1,531s` in seconds, with either decimal separator.
fn duration(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    let seconds: f64 = seconds.replace(',', ".").parse().ok()?;
    Some(minutes.parse::<u32>().ok().map(f64::from)? * 60.0 + seconds).filter(|time| time.is_finite())
}

/// A stamp with its lost leading zeros restored.
fn nanoseconds(stamp: &str) -> Option<i64> {
    let (seconds, fraction) = stamp.split_at_checked(OF_SECONDS)?;
    let is_stamp =
        stamp.bytes().all(|byte| byte.is_ascii_digit()) && (OF_SECONDS + 1..=DIGITS).contains(&stamp.len());
    format!("{seconds}{fraction:0>9}").parse().ok().filter(|_| is_stamp)
}

/// A description of a pair in which a stamp has too few digits, with the corrected and the uncorrected duration.
fn malformed(number: usize, pair: [&str; 2], time: f64) -> Option<String> {
    let short = pair.iter().find(|stamp| stamp.len() < DIGITS)?;
    let [start, end] = pair.map(|stamp| format!("{stamp:0<19}").parse::<i64>().unwrap_or_default());
    let raw = shown(Nanos(end - start).seconds());
    Some(format!(
        "line {number}: `{short}` has {} digits: {} with zeros restored before its fraction, {raw} with zeros after it",
        short.len(),
        shown(time)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(arm: &Arm) -> Vec<String> {
        let told = |(outcome, _): &(Outcome, _)| match outcome {
            Outcome::Measured(sample) => sample.given[0].1.to_string(),
            Outcome::Failed(failure) => failure.reason.clone(),
            Outcome::Skipped(why) => why.clone(),
        };
        arm.outcomes.iter().map(told).collect()
    }

    #[test]
    fn a_form_is_told_by_its_first_line() {
        for (line, form) in [
            ("runtime,metric,value\r", Some(Form::Table)),
            ("1630919603728008800,163091960429460824", Some(Form::Stamps)),
            ("0m1,531s", Some(Form::Durations)),
            ("12m0.002s", Some(Form::Durations)),
            // Milliseconds, seconds, other tables and words.
            ("1630919603728,1630919604294", None),
            ("1630919603,1630919604", None),
            ("16309196037280088001,1630919604029460824", None),
            ("runtime,metric,count,value", None),
            ("-0m1s", None),
            ("0mxs", None),
            ("hello, world", None),
            ("", None),
        ] {
            assert_eq!(Form::of(line), form, "{line}");
        }
    }

    /// The fourth line lost the zero before 29460824 ns. With a zero at the end, it would be the spike of the list.
    #[test]
    fn a_lost_zero_is_put_back_and_both_values_are_told() {
        let list = "1630919600660729079,1630919600964445008\r\n1630919603728008800,163091960429460824\n\n1630919604000000000,\n";
        let made = Form::Stamps.read("alpine", list).unwrap();
        assert_eq!((made.arms.len(), made.started), (1, Some(1_630_919_600_660_729_079)));
        assert_eq!(outcomes(&made.arms[0]), ["0.303715929", "0.301452024", "`` is not a stamp"]);
        let [issue] = &made.issues[..] else { panic!("{:?}", made.issues) };
        assert_eq!(issue.rule, "malformed stamp");
        assert_eq!(
            issue.evidence,
            "line 2: `163091960429460824` has 18 digits: 301 ms with zeros restored before its fraction, 567 ms with zeros after it"
        );
        let many = "1630919603728008800,163091960429460824\n".repeat(5);
        assert!(Form::Stamps.read("x", &many).unwrap().issues[0].evidence.ends_with("; and 2 more"));
        let whole = "1630919600660729079,1630919600964445008\n";
        assert_eq!(Form::Stamps.read("x", whole).unwrap().issues, []);
        let error = Form::Stamps.read("x", &format!("{whole}hello")).unwrap_err();
        assert_eq!(error.to_string(), "line 2: `hello` does not have the format of the first line");
    }

    #[test]
    fn what_ended_at_once_failed_where_the_others_took_long() {
        let made = Form::Durations.read("transfer", "0m0,002s\n0m1,531s\n1m1,635s\n").unwrap();
        assert_eq!(
            outcomes(&made.arms[0]),
            [
                "it ended after 2.00 ms while half of the runs took 1.53 s or more: it did not do its work",
                "1.531",
                "61.635"
            ]
        );
        // Short work is valid, and an outlier of a bare start does not turn the others into failures.
        for fine in ["0m0.002s\n0m0.001s\n0m0.128s\n", "0m0.006s\n0m1.5s\n0m1.6s\n"] {
            let arm = Form::Durations.read("x", fine).unwrap().arms.remove(0);
            assert!(arm.outcomes.iter().all(|(one, _)| matches!(one, Outcome::Measured(_))), "{fine}");
        }
    }

    #[test]
    fn rows_of_a_table_are_times_of_runtimes_and_errors_are_failures() {
        let table = "runtime,metric,value\nbaseline,used_mb,9924\nbare,startup_ms,1.4\ndocker,startup_ms,310\nbare,startup_ms,1.2\ndocker,nested_seconds,error\nodd:x,cpu_seconds,46.21\n";
        let made = Form::Table.read("results", table).unwrap();
        let told: Vec<_> = made
            .arms
            .iter()
            .map(|arm| (arm.label.as_str(), arm.subject.to_string(), outcomes(arm)))
            .collect();
        let of = |label, subject: &str, outcomes: &[&str]| {
            (label, subject.to_owned(), outcomes.iter().map(|one| (*one).to_owned()).collect())
        };
        assert_eq!(
            told,
            [
                of("bare startup_ms", "bare", &["0.0014", "0.0012"]),
                of("docker startup_ms", "docker", &["0.31"]),
                of("docker nested_seconds", "docker", &["`error` is not a time; the file gives no reason"]),
                of("odd:x cpu_seconds", UNKNOWN, &["46.21"]),
            ]
        );
        assert!(made.notes.last().unwrap().ends_with("not times: `used_mb`"), "{:?}", made.notes);
        let error = Form::Table.read("x", "runtime,metric,value\nbare,1\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2: `bare,1` does not have the format of the first line");
    }
}
