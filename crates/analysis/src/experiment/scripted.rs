//! What the scripted subject does, with every kind of value that a sample can hold: a rate of which more is better, a
//! distribution, and a file. Hidden from people, as that subject is.

use super::question::{About, Metric, Question, Weight};
use super::setting::Setting;
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::units::{Better, Nanos, Unit};

/// Bytes that a launch is said to have moved.
pub const BYTES: i64 = 1 << 20;

/// The experiment `scripted`.
pub struct Scripted;

const fn metric(
    name: &'static str,
    unit: Unit,
    better: Better,
    meaning: &'static str,
    derive: fn(&Sample) -> Option<f64>,
) -> Metric {
    Metric { name, unit, better, weight: Weight::Verdict, margin: Margin::fixed(0.0, 0.03), meaning, derive }
}

static METRICS: [Metric; 3] = [
    metric(
        "throughput",
        Unit::BytesPerSecond,
        Better::More,
        "bytes by the time to the command's return",
        |sample| Some(sample.counter("bytes")? as f64 / sample.seconds("spawn", "returned")?),
    ),
    metric(
        "latency_p99",
        Unit::Seconds,
        Better::Less,
        "the 99th percentile of the script's latencies",
        |sample| Some(sample.distribution("latency")?.quantile(0.99)? as f64 / 1e9),
    ),
    metric("requests", Unit::Count, Better::Neither, "how many latencies there are", |sample| {
        Some(sample.distribution("latency")?.count() as f64)
    }),
];

static ABOUT: About = About {
    empty_launch: None,
    ..About::of("scripted", "what does the script say?", Need::Launch, &METRICS)
};

impl Question for Scripted {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn cost(&self, _: &Setting, launch: Nanos) -> Nanos {
        launch
    }
}
