//! What happened to a planned cell in a round: a sample, a reason why it was not tried, or a
//! failure. Every planned cell of every round has exactly one of these.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::distribution::Distribution;
use crate::names::{Counter, Name, Series, Spread, StampName};
use crate::share;
use crate::units::{Nanos, Stamp, whole_nanos};

/// The kind of a failure, so that causes can be distinguished without reading messages.
#[derive(Serialize, Deserialize, strum::Display, strum::EnumString, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureClass {
    /// This host, engine or runtime cannot do it at all.
    Unsupported,
    /// It could, but dunnage lacks the permission.
    Permission,
    /// Something that it needs is missing or broken: a daemon that is not running, a full disk.
    Environment,
    /// It did not end in the time allowed.
    Timeout,
    /// It ended with its own error.
    Crash,
    /// It ended well, but with other output than it should have.
    #[serde(rename = "wrong output")]
    #[strum(serialize = "wrong output")]
    WrongOutput,
    /// It ran, but not under the conditions asked for.
    Treatment,
}

impl FailureClass {
    /// The word used in tables and files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A failure, as a row: never a number, never a hole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its kind.
    pub class: FailureClass,
    /// What happened, in dunnage's words.
    #[serde(serialize_with = "share::quoting")]
    pub reason: String,
    /// The engine's or runtime's own message, unchanged.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "share::output")]
    pub words: Option<String>,
    /// The time it took to fail.
    #[serde(with = "whole_nanos")]
    pub took: Nanos,
}

impl Failure {
    /// A failure without a message of another program.
    pub fn new(class: FailureClass, reason: impl Into<String>) -> Failure {
        Failure { class, reason: reason.into(), words: None, took: Nanos(0) }
    }

    /// Something that a subject needs is missing or broken.
    pub fn environment(reason: impl Into<String>) -> Failure {
        Failure::new(FailureClass::Environment, reason)
    }

    /// With the engine's own message; blank ones are left out, long ones are cut.
    pub fn with_words(mut self, words: &[u8]) -> Failure {
        let text = String::from_utf8_lossy(words);
        let text: String = text.trim().chars().take(2000).collect();
        self.words = (!text.is_empty()).then_some(text);
        self
    }

    /// The same in one line, with the line of the engine's message that names the cause.
    pub fn in_short(&self) -> String {
        let cause = self.words.as_deref().map(cause_in).filter(|cause| !cause.is_empty());
        let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{}: {}{cause}", self.class, self.reason)
    }
}

/// Bytes of a line that names a cause. Longer ones are not for people.
const LONGEST_CAUSE: usize = 600;

/// The line of a program's output that names the cause of its failure: if Go's runtime gave up, its first
/// line, since stacks follow; otherwise the last line that mentions an error and is not a mere warning;
/// otherwise the last one that does not point to the help. If it ends with a colon, the one after it.
pub fn cause_in(words: &str) -> &str {
    const GO: [&str; 4] = ["runtime: ", "runtime/cgo: ", "fatal error: ", "panic: "];
    const LESS: [&str; 5] = ["level=warn", "level=info", "level=debug", "warning:", "warn["];
    let lines = || words.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_error = |line: &&str| {
        let line = line.to_lowercase();
        line.contains("error") && !LESS.iter().any(|less| line.contains(less))
    };
    let cause = lines()
        .find(|line| GO.iter().any(|start| line.starts_with(start)))
        .or_else(|| lines().rfind(is_error))
        .or_else(|| lines().rfind(|line| !line.contains("--help")))
        .unwrap_or_default();
    // What ends with a colon is followed by its cause.
    let next = lines().skip_while(|line| *line != cause).nth(1).filter(|_| cause.ends_with(':'));
    let cause = next.unwrap_or(cause);
    &cause[..cause.floor_char_boundary(LONGEST_CAUSE)]
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.class, self.reason)?;
        match &self.words {
            Some(words) => write!(out, ": {words}"),
            None => Ok(()),
        }
    }
}

/// A name as it is recorded. Those of stamps, counters, series and distributions are declared (`names`); a file may have others.
pub type Word = Cow<'static, str>;

/// What one cell gave in one round, as read: stamps and counters. Metrics are computed from it
/// later, so that a better definition does not invalidate old runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// Points on `CLOCK_MONOTONIC`.
    pub(crate) stamps: Vec<(Word, Stamp)>,
    /// Durations in nanoseconds and other whole numbers, read from counters.
    pub(crate) counters: Vec<(Word, i64)>,
    /// Whole numbers in the order they were taken: durations in nanoseconds, counts.
    pub(crate) series: Vec<(Word, Vec<i64>)>,
    /// Many values without their order: latencies in nanoseconds.
    pub(crate) distributions: Vec<(Word, Distribution)>,
    /// Files of the run directory that belong to it.
    pub artefacts: Vec<(Word, Artefact)>,
    /// Values of metrics by name, in base units, computed by others: only in imported samples. They have
    /// priority over values from stamps and counters.
    pub given: Vec<(Word, f64)>,
    /// Numbers that this sample lacks, with the reason: a counter that could not be read.
    pub missing: Vec<(Word, String)>,
    /// What was found inside, without numbers that differ from launch to launch.
    pub treatment: Vec<(Word, String)>,
}

/// A file that belongs to a sample: a trace, a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub enum Artefact {
    /// Its content, before it is written.
    #[serde(skip)]
    Bytes(Vec<u8>),
    /// Its path in the run directory.
    #[serde(untagged, serialize_with = "share::checked")]
    File(String),
}

impl TryFrom<String> for Artefact {
    type Error = &'static str;

    fn try_from(path: String) -> Result<Artefact, &'static str> {
        if Artefact::is_path(&path) {
            Ok(Artefact::File(path))
        } else {
            Err("it is outside the directory of artefacts")
        }
    }
}

impl Artefact {
    /// The directory of all artefacts in a run directory.
    pub const DIRECTORY: &str = "artefacts";

    /// Whether a path is valid: a plain name in that directory, which leads nowhere else.
    pub fn is_path(path: &str) -> bool {
        let name = path.strip_prefix(Artefact::DIRECTORY).and_then(|rest| rest.strip_prefix('/'));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        name.is_some_and(|name| {
            (1..=64).contains(&name.len()) && !name.starts_with('.') && name.chars().all(is_plain)
        })
    }
}

/// A type of values that a sample holds by declared names.
pub trait Held: Sized {
    /// All of them.
    fn all(sample: &mut Sample) -> &mut Vec<(Word, Self)>;
}

macro_rules! held {
    ($($type:ty: $field:ident,)*) => {$(
        impl Held for $type {
            fn all(sample: &mut Sample) -> &mut Vec<(Word, Self)> {
                &mut sample.$field
            }
        }
    )*};
}

held! { Stamp: stamps, i64: counters, Vec<i64>: series, Distribution: distributions, String: treatment, }

fn find<T>(all: &[(Word, T)], name: Name<T>) -> Option<&T> {
    all.iter().find(|(own, _)| own == name.text()).map(|(_, value)| value)
}

impl Sample {
    /// One whose values others computed: of metrics by name, in base units.
    pub fn imported(values: impl IntoIterator<Item = (impl Into<Word>, f64)>) -> Sample {
        let given = values.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Sample { given, ..Sample::default() }
    }

    /// Adds values with their names.
    pub fn extend<T: Held>(&mut self, more: impl IntoIterator<Item = (Name<T>, T)>) {
        T::all(self).extend(more.into_iter().map(|(name, value)| (name.text().into(), value)));
    }

    /// Adds a value.
    pub fn add<T: Held>(&mut self, name: Name<T>, value: T) {
        self.extend([(name, value)]);
    }

    /// The same sample with more values.
    pub fn with<T: Held>(mut self, more: impl IntoIterator<Item = (Name<T>, T)>) -> Sample {
        self.extend(more);
        self
    }

    /// Takes out all values with this name.
    pub fn forget<T: Held>(&mut self, name: Name<T>) {
        T::all(self).retain(|(own, _)| own != name.text());
    }

    /// Says why it lacks values of these metrics.
    pub fn lacks<'a>(&mut self, metrics: impl IntoIterator<Item = &'a &'static str>, why: &str) {
        self.missing.extend(metrics.into_iter().map(|name| ((*name).into(), why.to_owned())));
    }

    /// The stamp with this name.
    pub fn stamp(&self, name: StampName) -> Option<Stamp> {
        find(&self.stamps, name).copied()
    }

    /// The counter with this name.
    pub fn counter(&self, name: Counter) -> Option<i64> {
        find(&self.counters, name).copied()
    }

    /// The series with this name.
    pub fn series(&self, name: Series) -> Option<&[i64]> {
        find(&self.series, name).map(Vec::as_slice)
    }

    /// The distribution with this name.
    pub fn distribution(&self, name: Spread) -> Option<&Distribution> {
        find(&self.distributions, name)
    }

    /// The duration that this share of a distribution's values does not exceed, in seconds.
    pub fn quantile(&self, name: Spread, share: f64) -> Option<f64> {
        Some(self.distribution(name)?.quantile(share)? as f64 / 1e9)
    }

    /// The time from one stamp to another, in seconds.
    pub fn seconds(&self, from: StampName, to: StampName) -> Option<f64> {
        Some(self.stamp(to)?.since(self.stamp(from)?).seconds())
    }
}

/// What happened to a planned cell in one round.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was measured under the treatment asked for.
    Measured(Sample),
    /// It was not tried, for this reason.
    Skipped(String),
    /// It was tried and failed.
    Failed(Failure),
}

/// Why an attempt gave no sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Abort {
    /// It failed; the run continues with the other cells.
    Failed(Failure),
    /// The user asked to stop.
    Interrupted,
}

impl From<Failure> for Abort {
    fn from(failure: Failure) -> Abort {
        Abort::Failed(failure)
    }
}

/// Errors that mean that something a subject needs is missing or broken.
pub trait OrEnvironment<T> {
    /// A failure that begins with what could not be done.
    fn or_environment(self, what: impl fmt::Display) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> OrEnvironment<T> for Result<T, E> {
    fn or_environment(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::environment(format!("{what}: {error:#}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_an_output_names_the_cause() {
        let podman =
            "time=\"1\" level=error msg=\"no log\"\nError: OCI runtime error: crun: it is broken\n\n";
        assert_eq!(cause_in(podman), "Error: OCI runtime error: crun: it is broken");
        let warned = "runc run failed: error in init\ntime=\"2\" level=warning msg=w error=\"no such file or directory\"";
        assert_eq!(cause_in(warned), "runc run failed: error in init");
        let go = "runtime: epollcreate failed with 24\nfatal error: netpollinit\n\ngoroutine 1:\nerrors.go:7";
        assert_eq!(cause_in(go), "runtime: epollcreate failed with 24");
        let docker = "docker: Cannot connect to the Docker daemon.\n\nSee 'docker run --help'.\n";
        assert_eq!(cause_in(docker), "docker: Cannot connect to the Docker daemon.");
        let next = "runc create failed: error during container init:\n  open x: permission denied\nStep 3";
        assert_eq!(cause_in(next), "open x: permission denied");
        assert_eq!((cause_in(" \n"), cause_in("error:\n")), ("", "error:"));
        let failure = Failure::new(FailureClass::Crash, "`podman run` ended with exit code 126");
        let failure = failure.with_words(podman.as_bytes());
        assert_eq!(
            failure.in_short(),
            "crash: `podman run` ended with exit code 126: Error: OCI runtime error: crun: it is broken"
        );
    }
}
