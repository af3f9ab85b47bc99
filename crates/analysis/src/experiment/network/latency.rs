//! What does a network path add to a round trip? A client sends a message and waits for the whole of it to
//! come back, thousands of times in a row; and it connects and closes. What a path adds is the difference
//! from the same exchange inside one network namespace of the same subject, round by round.
//!
//! Deliberately absent: half round trips, and a rate: the next message is sent when the last one is back, so
//! that this is the latency of an idle path.

use super::{AROUND, CONTROLS, PATH, REQUIRES, for_each, inside, is_time, time};
use crate::experiment::question::{Event, Experiment, Metric, Scope, nanos};
use crate::experiment::setting::{Setting, SettingKey, fits};
use crate::experiment::variation::{Variation, Varied};
use crate::names::{Spread, names};
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::subject::spec::parse_size;
use crate::units::{Better, Nanos, Unit};
use names::{CLIENT_CPU, CONNECT, CONNECTIONS_MADE, CONNECTIONS_TOOK, HELPER_CPU, SERVER_CPU, TRIP};

names! {
    [crate::experiment::network::names]
    Counter { CONNECTIONS_MADE = "connections", CONNECTIONS_TOOK = "connections_took", }
    Spread { TRIP = "trip", CONNECT = "connect", }
}

/// Its name.
pub const NAME: &str = "net-latency";

/// How long the round trips of a sample take. Over the fewest rounds that give verdicts these are 10 s.
const LASTS: &str = "850ms";
const QUICK: &str = "100ms";
/// The connections of a sample take this part of the time of its round trips.
pub const CONNECTING: i64 = 8;
/// Connections of a sample at most. Each leaves a port that cannot be used again for a minute.
pub const CONNECTIONS: u64 = 1_000;

/// The largest message.
const MOST_BYTES: u64 = 1 << 16;
/// The largest datagram of IPv4.
const MOST_IN_DATAGRAM: u64 = 65_507;

/// Half a microsecond is less than the difference between two wake-ups of the same thread.
const MARGIN: Margin = Margin::fixed(500e-9, 0.03);

/// A time with this margin.
pub(super) const fn quantile(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(Unit::Seconds, MARGIN)
}

/// A tail with this margin.
pub(super) const fn tail(name: &'static str, distribution: Spread, share: f64) -> Metric {
    Metric::tail(name, distribution, share).of(Unit::Seconds, MARGIN)
}

static METRICS: [Metric; 9] = [
    quantile("p50", |sample| sample.quantile(TRIP, 0.5)).meaning(
        "the median full round trip: from before the first byte of a message is sent until all of it has come back from \
         the server, which returns it unchanged",
    ),
    tail("p99", TRIP, 0.99).meaning("the 99th percentile of the round trips of all rounds together"),
    tail("p999", TRIP, 0.999).meaning("the same, 99.9th percentile"),
    tail("max", TRIP, 1.0).meaning("the longest round trip of all rounds"),
    quantile("connect", |sample| sample.quantile(CONNECT, 0.5)).context().meaning(
        "the median time from `connect` until the server's first bytes have arrived, since a proxy accepts connections before it \
         reaches the server; only for `protocol=tcp`",
    ),
    Metric::by("connections", |sample| {
        Some(sample.counter(CONNECTIONS_MADE)? as f64 / nanos(sample, CONNECTIONS_TOOK)?)
    })
    .of(Unit::PerSecond, Margin::fixed(0.0, 0.03))
    .with(Better::More)
    .context()
    .meaning("connections made and closed by one client in a second, one after the other"),
    quantile("client_cpu", |sample| for_each(sample, CLIENT_CPU))
        .context()
        .meaning("CPU time of the client for each exchange, with the kernel's work on its behalf"),
    quantile("server_cpu", |sample| for_each(sample, SERVER_CPU)).context().meaning("the same of the server"),
    quantile("helper_cpu", |sample| for_each(sample, HELPER_CPU)).context().meaning(
        "the same of the engine's programs that carry packets: proxies of published ports and networks in user space",
    ),
];

static KEYS: [SettingKey; 5] = [
    PATH,
    SettingKey::of("protocol", &["tcp"])
        .or(|value| fits(value == "udp", "tcp, udp"))
        .meaning("`tcp`: one connection; `udp`: datagrams"),
    SettingKey::of("size", &["1"])
        .or(|value| {
            let is_size = parse_size(value).is_some_and(|bytes| (1..=MOST_BYTES).contains(&bytes));
            fits(is_size, "a size from 1 to 64KiB")
        })
        .meaning(
            "bytes of a message in either direction, such as `1`, `1KiB` or `64KiB`; a datagram holds 65507",
        ),
    SettingKey::of("receive", &["blocking"])
        .or(|value| fits(value == "busy", "blocking, busy"))
        .meaning("how both ends wait for bytes: asleep in the kernel, or asking again and again"),
    SettingKey::of("time", &[LASTS])
        .or(is_time)
        .meaning("how long the round trips of a sample take together, such as `850ms` or `5s`; connections take an eighth of it"),
];

/// The bytes of a message.
pub fn size(setting: &Setting) -> u64 {
    setting.get("size").and_then(parse_size).unwrap_or(1)
}

/// Whether it is about streams.
pub fn is_of_streams(setting: &Setting) -> bool {
    setting.get("protocol") != Some("udp")
}

/// The experiment `net-latency`.
pub static NET_LATENCY: Experiment = Experiment {
    keys: &KEYS,
    requires: &REQUIRES,
    event: Event::Often("round trip"),
    scope: Scope::Few,
    // The only path of a container in the host's network is `inside`.
    varies: &[Variation::of("net", &["host"]).only(Varied::Engines)],
    maps: &["p50"],
    has: |setting| is_of_streams(setting) || size(setting) <= MOST_IN_DATAGRAM,
    quick_values: |key| if key.name == "time" { &[QUICK] } else { key.values },
    reference: inside,
    asked_in: Some(("path", "published")),
    controls: &CONTROLS,
    shares: Some(super::NAME),
    cost: |setting, _| AROUND + Nanos(time(setting).0 * (CONNECTING + 1) / CONNECTING),
    ..Experiment::of(NAME, "what does a network path add to a round trip?", Need::Network, &METRICS)
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::settings_of;
    use crate::outcome::Distribution;

    #[test]
    fn what_is_larger_than_a_datagram_is_sent_as_a_stream_only() {
        let chosen = |key: &SettingKey| match key.name {
            "path" => vec!["inside"],
            "protocol" => vec!["tcp", "udp"],
            "size" => vec!["1", "64KiB"],
            _ => key.values.to_vec(),
        };
        let all: Vec<_> = settings_of(&NET_LATENCY, chosen).iter().map(Setting::to_string).collect();
        assert_eq!(
            all,
            [
                "path=inside;protocol=tcp;size=1;receive=blocking;time=850ms",
                "path=inside;protocol=tcp;size=64KiB;receive=blocking;time=850ms",
                "path=inside;protocol=udp;size=1;receive=blocking;time=850ms"
            ]
        );
        for wrong in ["0", "65KiB", "much"] {
            assert!(KEYS[2].take(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_path_is_compared_with_the_same_exchange_inside() {
        let path = |name| {
            Setting(vec![
                ("path", name),
                ("protocol", "udp"),
                ("size", "1"),
                ("receive", "busy"),
                ("time", "1s"),
            ])
        };
        assert_eq!((NET_LATENCY.reference)(&path("published")), Some(path("inside")));
        assert_eq!((NET_LATENCY.reference)(&path("inside")), None);
    }

    #[test]
    fn metrics_are_of_single_exchanges() {
        let trip = Distribution::of([20_000, 21_000, 30_000]);
        let counters = [
            (names::TRIPS, 1000),
            (SERVER_CPU, 5_000_000),
            (CONNECTIONS_MADE, 10),
            (CONNECTIONS_TOOK, 1_000_000),
        ];
        let sample = Sample::default().with(counters).with([(TRIP, trip)]);
        let value = |name: &str| METRICS.iter().find(|one| one.name == name).unwrap().value(&sample);
        assert!((value("p50").unwrap() - 21e-6).abs() < 1e-7, "{:?}", value("p50"));
        assert_eq!(value("server_cpu"), Some(5e-6));
        assert_eq!((value("connections"), value("connect"), value("helper_cpu")), (Some(1e4), None, None));
    }
}
