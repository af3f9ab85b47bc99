//! What a scripted subject reports of its work, by kind: in the types of the probe's answers, from the
//! scripted time, so that a planted effect is in every pass.

use dunnage_analysis::experiment::cpu::{KINDS, WIDTHS};
use dunnage_analysis::experiment::network::{dns, http, latency, throughput};
use dunnage_analysis::record::wire::SampleLine;
use dunnage_orders::Order;
use dunnage_orders::work::{Cached, Command, Computed, End, Ended, Mode, Passes, Ran, Spent, Took, Whole};
use serde_json::Value;

use crate::outcome::{Distribution, Sample};
use crate::stats::Rng;
use crate::units::Nanos;

/// The time that one container's orders take.
pub struct Clock<'a> {
    /// What its launch took, in seconds.
    pub time: f64,
    pub rng: &'a mut Rng,
    /// How much has passed.
    pub passed: Nanos,
}

impl Clock<'_> {
    /// So many nanoseconds for each second of the script, and by chance a little more.
    pub fn nanos(&mut self, for_each: f64) -> Nanos {
        let took = Nanos((self.time * for_each * (1.0 + 0.003 * self.rng.standard_normal().abs())) as i64);
        self.passed = self.passed + took;
        took
    }

    /// So many times, and all of them.
    pub fn many(&mut self, count: u64, for_each: f64) -> (Distribution, Nanos) {
        let all: Vec<u64> = (0..count).map(|_| self.nanos(for_each).0 as u64).collect();
        let took = Nanos(all.iter().sum::<u64>() as i64);
        (Distribution::of(all), took)
    }
}

/// The scripted answer to an order whose work takes `time` seconds; none for a kind without a script.
pub fn done(order: &Order, time: f64, rng: &mut Rng) -> Option<Value> {
    let answer = match order {
        Order::Cpu(order) => serde_json::to_value(cpu((order.passes, order.fixed), time, rng)),
        Order::Command(order) => serde_json::to_value(command(order, time)),
        Order::Script(script) => {
            let word = |at: usize| script.words.get(at).map_or("", String::as_str);
            let (sample, facts) = match script.kind.as_str() {
                "trips" => trips(word(0), time, rng),
                "streams" => streams(word(0), time, rng),
                "requests" => requests(word(0), time, rng),
                "names" => names(word(0), time, rng),
                _ => return None,
            };
            let mut line = SampleLine::default();
            line.measured(sample);
            serde_json::to_value((line, facts))
        }
        _ => return None,
    };
    Some(answer.expect("an answer can be written"))
}

/// A sample, and facts.
type Told = (Sample, Vec<(&'static str, &'static str)>);

/// Passes that are slower than the scripted time by chance, never faster. Several at once are a little slower
/// than one alone. The fixed work is as long as a pass and uses CPU time only.
fn cpu((count, fixed): (usize, u64), time: f64, rng: &mut Rng) -> Computed {
    const FACTORS: [f64; WIDTHS.len()] = [1.0, 1.02];
    let mut pass = |factor: f64| (time * factor * (1.0 + 0.0005 * rng.standard_normal().abs()) * 1e9) as i64;
    let mut whole = |factor: f64, threads: i64| {
        let took = pass(factor);
        Whole { took: Nanos(took), cpu: Nanos(took * threads), limit: None }
    };
    let whole = [whole(FACTORS[0], 1), whole(FACTORS[1], 2)];
    let mut passes: [[Passes; WIDTHS.len()]; KINDS.len()] = Default::default();
    for widths in &mut passes {
        for (one, factor) in widths.iter_mut().zip(FACTORS) {
            let wall = (0..count).map(|_| pass(factor) + 100).collect();
            *one = Passes { wall, waited: vec![0; count] };
        }
    }
    Computed {
        passes,
        fixed: (format!("{fixed} scripted passes"), Some(whole)),
        wrong: 0,
        empty: Nanos(100),
        threads: 2,
        cpu: 0,
        huge_pages: None,
        no_counters: None,
    }
}

/// The report of a command that used a small part of it, mostly in user mode.
fn command(order: &Command, time: f64) -> Ran {
    let nothing = Ran { program: None, sha256: None, cached: None, charged: None, end: End::NotAsked };
    if order.words.is_empty() {
        return nothing;
    }
    let nothing = Ran { program: Some("/script".to_owned()), ..nothing };
    if order.mode == Mode::Identify {
        return Ran { sha256: Some("0".repeat(64)), ..nothing };
    }
    let part = |share: f64| Nanos((time * share * 1e9) as i64);
    let took = Took::Command(Spent {
        took: part(0.04),
        user: part(0.03),
        system: part(0.005),
        most_memory: 2 << 20,
        own_memory: 1 << 19,
    });
    let cached = (order.mode == Mode::Cold).then_some(Cached { pages: Some(0), bytes: 4096 });
    Ran {
        cached,
        end: End::Ended(Ended { status: 0, said: String::new(), left_running: 0, took }),
        ..nothing
    }
}

/// Bytes both ways at a gigabyte a second; a path other than `inside` is half as fast.
fn streams(path: &str, time: f64, rng: &mut Rng) -> Told {
    let factor = if path == "inside" { 1.0 } else { 2.0 };
    let took = (time * 1e12 * factor * (1.0 + 0.05 * rng.standard_normal().abs())) as i64;
    let results = [
        (throughput::names::UP_BYTES, 1_000_000_000),
        (throughput::names::UP_TOOK, took),
        (throughput::names::DOWN_BYTES, 1_000_000_000),
        (throughput::names::DOWN_TOOK, took),
        (throughput::names::CLIENT_CPU, took),
        (throughput::names::SERVER_CPU, took),
        (throughput::names::HELPER_CPU, 0),
    ];
    (
        Sample::default().with(results),
        [("way", "none"), ("mtu", "eth0 1500,veth 1500"), ("offloads", "eth0 tso gso,veth gso")].to_vec(),
    )
}

/// Names of a thousandth of the scripted time; a resolver between takes as long again.
fn names(need: &str, time: f64, rng: &mut Rng) -> Told {
    let factor = if need == "names" { 2.0 } else { 1.0 };
    let name = || (time * 1e6 * factor * (1.0 + 0.05 * rng.standard_normal().abs())) as u64;
    let names: Vec<u64> = std::iter::repeat_with(name).take(200).collect();
    let results = [
        (dns::names::RESOLVED, 199),
        (dns::names::WARM_UP, 0),
        (dns::names::QUERIES, 200),
        (dns::names::HELPER_CPU, 0),
    ];
    (
        Sample::default().with(results).with([(dns::names::NAME_TIME, Distribution::of(names))]),
        [("resolver", "192.0.2.1"), ("helpers", "none")].to_vec(),
    )
}

/// Requests of a thousandth of the scripted time; a path other than `inside` doubles it. A file takes as long again,
/// and hashing ten times as long.
fn requests(path: &str, time: f64, rng: &mut Rng) -> Told {
    let factor = if path == "inside" { 1.0 } else { 2.0 };
    let mut request = || (time * 1e6 * factor * (1.0 + 0.05 * rng.standard_normal().abs())) as u64;
    let requests: Vec<u64> = std::iter::repeat_with(&mut request).take(200).collect();
    let took = requests.iter().sum::<u64>() as i64;
    let base = (time * 1e6 * 200.0) as i64;
    let results = [
        (http::names::REQUESTS, 200),
        (http::names::TOOK, took),
        (http::names::FILE_REQUESTS, 200),
        (http::names::FILE_TOOK, took + base),
        (http::names::HASHING_REQUESTS, 20),
        (http::names::HASHING_TOOK, took / 10 + base),
        (http::names::CLIENT_CPU, took / 3),
        (http::names::SERVER_CPU, took / 4),
        (http::names::HELPER_CPU, 0),
    ];
    let failed = http::FAILED.map(|name| (name, 0));
    (
        Sample::default()
            .with(results.into_iter().chain(failed))
            .with([(http::names::LATENCY, Distribution::of(requests))]),
        vec![("way", "none")],
    )
}

/// Round trips of a thousandth of the scripted time; a path other than `inside` doubles it.
fn trips(path: &str, time: f64, rng: &mut Rng) -> Told {
    let factor = if path == "inside" { 1.0 } else { 2.0 };
    let trip = || (time * 1e6 * factor * (1.0 + 0.05 * rng.standard_normal().abs())) as u64;
    let trips: Vec<u64> = std::iter::repeat_with(trip).take(200).collect();
    let connect = Distribution::of(trips.iter().map(|trip| trip * 3));
    let results = [
        (latency::names::TRIPS, 0),
        (latency::names::TOOK, 0),
        (latency::names::CLIENT_CPU, 0),
        (latency::names::SERVER_CPU, 0),
        (latency::names::HELPER_CPU, 0),
        (latency::names::CONNECTIONS_MADE, 100),
        (latency::names::CONNECTIONS_TOOK, 0),
    ];
    (
        Sample::default()
            .with(results)
            .with([(latency::names::TRIP, Distribution::of(trips)), (latency::names::CONNECT, connect)]),
        vec![("way", "none")],
    )
}
