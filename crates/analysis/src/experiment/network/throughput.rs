//! What does a network path add to bulk transfer? Random bytes move to the server and back, and the receiver
//! confirms their number and checksum. The first metrics are the time of a gigabyte, since what a path adds to it
//! is a sum as for round trips; rates are next to them.
//!
//! Deliberately absent: sparse files and zeros, which a path could move without reading them.

use super::{AROUND, PATH, REQUIRES, inside};
use crate::experiment::question::{Event, Experiment, Metric, Scope, nanos};
use crate::experiment::setting::{Setting, SettingKey, fits};
use crate::experiment::variation::{Variation, Varied};
use crate::names::{Counter, names};
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::subject::spec::parse_size;
use crate::units::{Better, Nanos, Unit};
use names::{CLIENT_CPU, DOWN_BYTES, DOWN_TOOK, HELPER_CPU, SERVER_CPU, UP_BYTES, UP_TOOK};

names! {
    [crate::experiment::network::names]
    Counter {
        UP_BYTES = "up_bytes", UP_TOOK = "up_took", DOWN_BYTES = "down_bytes", DOWN_TOOK = "down_took",
    }
}

/// Its name.
pub const NAME: &str = "net-throughput";

/// Bytes that a sample moves in each direction. Over the fewest rounds that give verdicts these are 3 GiB.
const BYTES: &str = "256MiB";
const QUICK: &str = "32MiB";
/// The fewest and the most that can be chosen.
const BOUNDS: std::ops::RangeInclusive<u64> = 1 << 20..=16 << 30;
/// The longest that a direction may take.
pub const LASTS: Nanos = Nanos::from_millis(20_000);
/// The most streams at once.
const MOST_STREAMS: u64 = 64;

const GB: f64 = 1e9;
const MARGIN: Margin = Margin::fixed(5e-3, 0.03);

/// Seconds of this counter for each gigabyte of these bytes.
fn each(sample: &Sample, counter: Counter, bytes: &[Counter]) -> Option<f64> {
    let moved = bytes.iter().map(|name| sample.counter(*name)).sum::<Option<i64>>().filter(|all| *all > 0)?;
    Some(nanos(sample, counter)? / moved as f64 * GB)
}

fn rate(sample: &Sample, counter: Counter, bytes: Counter) -> Option<f64> {
    Some(GB / each(sample, counter, &[bytes])?)
}

const BOTH: [Counter; 2] = [UP_BYTES, DOWN_BYTES];

const fn seconds(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(Unit::Seconds, MARGIN)
}

const fn rates(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(Unit::BytesPerSecond, Margin::fixed(0.0, 0.03)).with(Better::More).context()
}

static METRICS: [Metric; 7] = [
    seconds("up", |sample| each(sample, UP_TOOK, &[UP_BYTES])).meaning(
        "the time of a gigabyte from client to server: from the request until the server's confirmation of count and \
         checksum has arrived",
    ),
    seconds("down", |sample| each(sample, DOWN_TOOK, &[DOWN_BYTES]))
        .meaning("the same from server to client, until the client has checked the last byte"),
    rates("up_rate", |sample| rate(sample, UP_TOOK, UP_BYTES)).meaning("bytes in a second from client to server"),
    rates("down_rate", |sample| rate(sample, DOWN_TOOK, DOWN_BYTES))
        .meaning("bytes in a second from server to client"),
    seconds("client_cpu", |sample| each(sample, CLIENT_CPU, &BOTH))
        .context()
        .meaning("CPU time of the client for each gigabyte, both directions together, with its checksums"),
    seconds("server_cpu", |sample| each(sample, SERVER_CPU, &BOTH)).context().meaning("the same of the server"),
    seconds("helper_cpu", |sample| each(sample, HELPER_CPU, &BOTH)).context().meaning(
        "the same of the engine's programs that carry packets: proxies of published ports and networks in user space",
    ),
];

static KEYS: [SettingKey; 3] = [
    PATH,
    SettingKey::of("streams", &["1"])
        .or(|value| {
            let is_count = value.parse().is_ok_and(|count| (1..=MOST_STREAMS).contains(&count));
            fits(is_count, "a number of streams from 1 to 64")
        })
        .meaning("connections that move the bytes at once, such as `1` or `4`"),
    SettingKey::of("bytes", &[BYTES])
        .or(|value| {
            fits(parse_size(value).is_some_and(|bytes| BOUNDS.contains(&bytes)), "a size from 1MiB to 16GiB")
        })
        .meaning("bytes that a sample moves in each direction, such as `256MiB` or `1GiB`"),
];

/// Bytes that a sample moves in each direction.
pub fn bytes(setting: &Setting) -> u64 {
    setting.get("bytes").and_then(parse_size).unwrap_or_default()
}

/// The experiment `net-throughput`.
pub static NET_THROUGHPUT: Experiment = Experiment {
    keys: &KEYS,
    requires: &REQUIRES,
    event: Event::Often("gigabyte"),
    scope: Scope::Few,
    varies: &[Variation::of("net", &["host"]).only(Varied::Engines)],
    maps: &["up"],
    quick_values: |key| if key.name == "bytes" { &[QUICK] } else { key.values },
    reference: inside,
    asked_in: Some(("path", "published")),
    shares: Some(super::NAME),
    // At about two gigabytes a second each way.
    cost: |setting, _| AROUND + Nanos(bytes(setting) as i64),
    ..Experiment::of(NAME, "what does a network path add to bulk transfer?", Need::Network, &METRICS)
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_a_gigabyte() {
        let counters = [
            (UP_BYTES, 500_000_000),
            (UP_TOOK, 250_000_000),
            (DOWN_BYTES, 500_000_000),
            (DOWN_TOOK, 1_000_000_000),
            (SERVER_CPU, 300_000_000),
        ];
        let sample = Sample::default().with(counters);
        let value = |name: &str| METRICS.iter().find(|one| one.name == name).unwrap().value(&sample);
        assert_eq!((value("up"), value("down"), value("up_rate")), (Some(0.5), Some(2.0), Some(2e9)));
        assert_eq!((value("server_cpu"), value("helper_cpu")), (Some(0.3), None));
        for wrong in ["0", "65", "many"] {
            assert!(KEYS[1].take(wrong).is_err(), "{wrong}");
        }
    }
}
