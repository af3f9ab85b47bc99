//! The lines of `samples.jsonl` as they are written and read.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::outcome::{Artefact, Distribution, Failure, Outcome, Sample, Word};
use crate::share;
use crate::units::Stamp;

/// The version of the formats, in the first line of the samples. A reader refuses newer ones.
pub const FORMAT: u32 = 2;

/// The file of the environment.
pub const ENVIRONMENT: &str = "env.json";
/// The file of the plan.
pub const PLAN: &str = "plan.json";
/// The file of the samples.
pub const SAMPLES: &str = "samples.jsonl";

/// Pairs that are an object in the file, in the order they were written.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs<T>(pub Vec<(Word, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Pairs(Vec::new())
    }
}

impl<T> Pairs<T> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Serialize> Serialize for Pairs<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Key<'a>(#[serde(serialize_with = "share::name")] &'a Word);
        serializer.collect_map(self.0.iter().map(|(key, value)| (Key(key), value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
            type Value = Pairs<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(8));
                while let Some((Text(key), value)) = map.next_entry()? {
                    // Names that experiments use are borrowed, so that a million lines do not make a million
                    // copies.
                    let known = NAMES.into_iter().find(|known| *known == key).map(Word::Borrowed);
                    pairs.push((known.unwrap_or_else(|| Word::Owned(key.into_owned())), value));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor(std::marker::PhantomData))
    }
}

/// A name, borrowed from the line unless something in it is escaped.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

const NAMES: [&str; 19] = [
    "spawn",
    "first",
    "main",
    "ready",
    "returned",
    "gone",
    "look",
    "client_cpu",
    "engine_cpu",
    "processes",
    "created",
    "attached",
    "started",
    "waited",
    "removed",
    "began",
    "made",
    "undo",
    "undone",
];

/// The first line of the file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Header {
    /// Always `dunnage-samples`.
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// The run.
    pub run: String,
    /// The host, so that a sample knows where it was measured.
    #[serde(serialize_with = "share::host")]
    pub host: String,
}

/// The name of the format in the first line of every such file.
pub const HEADER_FORMAT: &str = "dunnage-samples";

/// A round begins. If it had begun before, the earlier attempt does not count: a round is a
/// block, and half of one is useless.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// The round, warm-ups counted first, from 0.
    pub begin: usize,
    /// Nanoseconds since 1970, for users.
    pub at: u64,
}

/// The run ended at a look, because the precision asked for was reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// The number of rounds that count.
    pub stop: usize,
}

/// A round is complete, with the state of the machine during it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RoundContext {
    /// The round, warm-ups counted first, from 0.
    pub end: usize,
    /// Share of CPU time that the hypervisor took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal: Option<f64>,
    /// Share of CPU time in use, including dunnage's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
    /// Load average over one minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Share of time in which something waited for a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_pressure: Option<f64>,
    /// Share of time in which something waited for a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_pressure: Option<f64>,
    /// Containers running at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers: Option<u64>,
    /// Mean CPU frequency in hertz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency: Option<f64>,
    /// Bytes of available memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_memory: Option<u64>,
    /// Why the round is marked as disturbed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
}

/// The facts of a treatment, written once and referred to by number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Treatment {
    /// Its number.
    pub treatment: usize,
    /// What was found inside.
    #[serde(serialize_with = "share::facts")]
    pub facts: Pairs<String>,
}

/// One sample, or why there is none.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SampleLine {
    /// The cell's index in the plan.
    pub cell: usize,
    /// The round, warm-ups first, from 0.
    pub round: usize,
    /// Its place in the order of the round, from 0.
    pub position: usize,
    /// The cell before it, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<usize>,
    /// When it started: nanoseconds since 1970, for users.
    pub started: u64,
    /// The number of its treatment, when measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub treatment: Option<usize>,
    /// Points on `CLOCK_MONOTONIC`, in nanoseconds, when measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stamps: Option<Pairs<Stamp>>,
    /// Whole numbers.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub counters: Pairs<i64>,
    /// Whole numbers in their order.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub series: Pairs<Vec<i64>>,
    /// Distributions, as HdrHistograms in base64.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub distributions: Pairs<Distribution>,
    /// Files that belong to it: paths in the run directory.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub artefacts: Pairs<Artefact>,
    /// Values of metrics computed by others, in base units, when imported.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub given: Pairs<f64>,
    /// What is missing and why.
    #[serde(default, skip_serializing_if = "Pairs::is_empty", serialize_with = "share::quoting")]
    pub missing: Pairs<String>,
    /// Why it was not tried.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "share::quoting")]
    pub skipped: Option<String>,
    /// How it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failure>,
}

impl SampleLine {
    /// Takes over what a sample holds, but neither its treatment nor its artefacts, which it returns.
    pub fn measured(&mut self, sample: Sample) -> Vec<(Word, Artefact)> {
        self.stamps = Some(Pairs(sample.stamps));
        self.counters = Pairs(sample.counters);
        self.series = Pairs(sample.series);
        self.distributions = Pairs(sample.distributions);
        self.given = Pairs(sample.given);
        self.missing = Pairs(sample.missing);
        sample.artefacts
    }

    /// What the line says about its cell; it must say exactly one thing.
    pub fn outcome(self) -> Option<Outcome> {
        match (self.stamps, self.skipped, self.failed) {
            (Some(Pairs(stamps)), None, None) => Some(Outcome::Measured(Sample {
                stamps,
                counters: self.counters.0,
                series: self.series.0,
                distributions: self.distributions.0,
                artefacts: self.artefacts.0,
                given: self.given.0,
                missing: self.missing.0,
                treatment: Vec::new(),
            })),
            (None, Some(reason), None) => Some(Outcome::Skipped(reason)),
            (None, None, Some(failure)) => Some(Outcome::Failed(failure)),
            _ => None,
        }
    }
}
