//! The scripted subject, with every kind of value that a sample can hold: a rate of which more is better, a
//! distribution, and a file. Hidden from users, as the subject is.

use super::question::{Experiment, Metric};
use crate::launch::names::{RETURNED, SPAWN};
use crate::names::names;
use crate::stats::Margin;
use crate::subject::Need;
use crate::units::{Better, Unit};
use names::{LATENCY, MOVED};

names! {
    Counter { MOVED = "bytes", }
    Spread { LATENCY = "latency", }
}

/// Bytes that a launch claims to have moved.
pub const BYTES: i64 = 1 << 20;

const MARGIN: Margin = Margin::fixed(0.0, 0.03);

static METRICS: [Metric; 4] = [
    Metric::by("throughput", |sample| Some(sample.counter(MOVED)? as f64 / sample.seconds(SPAWN, RETURNED)?))
        .of(Unit::BytesPerSecond, MARGIN)
        .with(Better::More)
        .meaning("bytes divided by the time until the command returns"),
    Metric::by("latency", |sample| sample.quantile(LATENCY, 0.5))
        .of(Unit::Seconds, MARGIN)
        .meaning("the median of the script's latencies"),
    Metric::tail("latency_p999", LATENCY, 0.999)
        .of(Unit::Seconds, MARGIN)
        .meaning("their 99.9th percentile, over all rounds"),
    Metric::by("requests", |sample| Some(sample.distribution(LATENCY)?.count() as f64))
        .of(Unit::Count, MARGIN)
        .with(Better::Neither)
        .meaning("number of latencies"),
];

/// The experiment `scripted`.
pub static SCRIPTED: Experiment = Experiment {
    empty_launch: None,
    ..Experiment::of("scripted", "what does the script say?", Need::Launch, &METRICS)
};
