//! The lines of `samples.jsonl` as they are written and read. Kept apart from the types that the
//! program works with, so that neither changes the other by accident.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version of the formats, in the first line of the samples. A reader refuses newer ones.
pub const FORMAT: u32 = 2;

/// The file of the environment.
pub const ENVIRONMENT: &str = "env.json";
/// The file of the plan.
pub const PLAN: &str = "plan.json";
/// The file of the samples.
pub const SAMPLES: &str = "samples.jsonl";

/// Pairs that stand as an object in the file, in the order in which they were written.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs<'a, T>(pub Vec<(Cow<'a, str>, T)>);

impl<T> Default for Pairs<'_, T> {
    fn default() -> Self {
        Pairs(Vec::new())
    }
}

impl<T: Serialize> Serialize for Pairs<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Pairs<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
            type Value = Vec<(Cow<'de, str>, T)>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(8));
                while let Some((Text(key), value)) = map.next_entry::<Text<'de>, T>()? {
                    pairs.push((key, value));
                }
                Ok(pairs)
            }
        }
        deserializer.deserialize_map(PairsVisitor(std::marker::PhantomData)).map(Pairs)
    }
}

/// A text that is borrowed from the line unless it holds escapes.
#[derive(Debug, Clone, PartialEq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Cow<'de, str>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(TextVisitor).map(Text)
    }
}

/// The first line of the file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Header {
    /// Always `dunnage-samples`.
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// The run.
    pub run: String,
    /// The host, so that a sample knows where it was taken.
    pub host: String,
}

/// What every file of ours calls itself in its first line.
pub const HEADER_FORMAT: &str = "dunnage-samples";

/// A round begins. When it was begun before, the earlier attempt does not count: a round is a
/// block, and half of one is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// The round, warm-ups counted first, from 0.
    pub begin: usize,
    /// Nanoseconds since 1970, for people.
    pub at: u64,
}

/// A round is complete, with what the machine was like during it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The round.
    pub end: usize,
    /// Share of CPU time that the hypervisor took.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub steal: Option<f64>,
    /// Share of CPU time in use, ours included.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub busy: Option<f64>,
    /// Load average over one minute.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load: Option<f64>,
    /// Share of time in which something waited for a CPU.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu_pressure: Option<f64>,
    /// Share of time in which something waited for a disk.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub io_pressure: Option<f64>,
    /// Containers running at its end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub containers: Option<u64>,
    /// Mean frequency in hertz.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub frequency: Option<f64>,
    /// Bytes of memory that could be had.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub available_memory: Option<u64>,
    /// Why the round is marked as disturbed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub disturbed: Option<String>,
}

/// The facts of a treatment, written once and referred to by number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Treatment<'a> {
    /// Its number.
    pub treatment: usize,
    /// What was found inside.
    #[serde(borrow)]
    pub facts: Pairs<'a, String>,
}

/// One sample, or why there is none.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SampleLine<'a> {
    /// The cell's index in the plan.
    pub cell: usize,
    /// The round, warm-ups first, from 0.
    pub round: usize,
    /// Its place in the order of the round, from 0.
    pub position: usize,
    /// The cell before it, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub predecessor: Option<usize>,
    /// When it began: nanoseconds since 1970, for people.
    pub started: u64,
    /// The number of its treatment, when measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub treatment: Option<usize>,
    /// Points on `CLOCK_MONOTONIC`, in nanoseconds, when measured.
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub stamps: Option<Pairs<'a, u64>>,
    /// Whole numbers, when measured.
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub counters: Option<Pairs<'a, i64>>,
    /// Whole numbers in their order, when measured.
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub series: Option<Pairs<'a, Vec<i64>>>,
    /// Distributions, as HdrHistograms in base64, when measured.
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub distributions: Option<Pairs<'a, String>>,
    /// Files that belong to it: paths in the run directory.
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub artefacts: Option<Pairs<'a, String>>,
    /// Values of metrics that others derived, in base units, when imported.
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub given: Option<Pairs<'a, f64>>,
    /// What is missing and why.
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub missing: Option<Pairs<'a, String>>,
    /// Why it was not tried.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub skipped: Option<String>,
    /// How it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<FailureLine>,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureLine {
    /// Its class by name.
    pub class: String,
    /// In our words.
    pub reason: String,
    /// In the engine's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub words: Option<String>,
    /// Nanoseconds.
    pub took: i64,
}
