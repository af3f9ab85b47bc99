//! What does a network path add to a web service? A server inside answers requests over connections that stay open.
//! In a closed loop every connection sends the next request when it has its answer, which gives the throughput; in
//! an open loop requests are due at a constant rate, which gives the latency that users see. An empty answer costs
//! what network and server cost; the extra time of answers that write a file or compute is the disk's and the
//! CPU's part, so that neither is taken for the network's.
//!
//! Deliberately absent: TLS, which is computing, and connections that are made for each request, which are in
//! `net-latency`.

use super::{AROUND, CONTROLS, PATH, REQUIRES, USUAL, inside, is_time, time};
use crate::experiment::command::{CMD, GIVEN, Wanted};
use crate::experiment::question::{Event, Experiment, Metric, Scope, each, nanos};
use crate::experiment::setting::{Setting, SettingKey, fits};
use crate::experiment::variation::{Variation, Varied};
use crate::names::{Counter, names};
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::subject::spec::{parse_duration, parse_size};
use crate::units::{Better, Nanos, Unit};
use names::{
    BODY, CLIENT_CPU, CLOSED, FILE_REQUESTS, FILE_TOOK, HASHING_REQUESTS, HASHING_TOOK, HELPER_CPU, LATENCY,
    MALFORMED, REFUSED, REQUESTS, SERVER_CPU, STATUS, TIMEOUT, TOOK, WARM_UP_TOOK,
};

names! {
    [crate::experiment::network::names]
    Counter {
        REQUESTS = "requests", FILE_REQUESTS = "file_requests", FILE_TOOK = "file_took",
        HASHING_REQUESTS = "hashing_requests", HASHING_TOOK = "hashing_took", OPEN_REQUESTS = "open_requests",
        OPEN_TOOK = "open_took", WARM_UP_REQUESTS = "warm_up_requests", WARM_UP_TOOK = "warm_up_took",
        IN_FLIGHT = "in_flight", OPENED = "opened", BYTES = "bytes", ASKED_RATE = "asked_rate",
        REFUSED = "refused", CLOSED = "closed", TIMEOUT = "timeout", MALFORMED = "malformed", STATUS = "status",
        BODY = "body",
    }
    Spread { LATENCY = "latency", }
}

/// Its name.
pub const NAME: &str = "http";

/// How long each of the four loads of a sample takes.
const LASTS: &str = "300ms";
const QUICK: &str = "50ms";
/// The same of a user's program.
pub const OF_A_PROGRAM: &str = "2s";
/// The same in a quick run.
pub const OF_A_PROGRAM_QUICK: &str = "500ms";
/// How long a user's program is loaded after its start before anything counts, at least.
const WARM: &str = "8s";
/// How long it is loaded on each path before anything counts, at least.
pub const ON_A_PATH: Nanos = Nanos::from_millis(1000);
/// The load before the first one that counts takes this part of it.
pub const WARM_UP: i64 = 10;
/// Threads and connections: enough to keep one CPU busy.
const CLIENTS: &str = "2/32";
/// Those of published comparisons.
const PUBLISHED: (&str, &str) = ("published", "32/400");
/// Those of requests that compute, as published: each keeps a CPU of the server busy.
pub const COMPUTING: Clients = Clients { threads: 2, connections: 4 };
/// Requests a second in the open loop.
const RATE: &str = "2000";
/// A rate that is found: half of what the closed loop reaches.
const AUTO: &str = "auto";
/// The key of a user's program.
pub const SERVE: &str = "serve";
/// The size of a file unless another is chosen.
const FILE: u64 = 64 << 10;
/// The part of its CPU from which a client has used all of it.
const WHOLE: f64 = 0.95;
const MOST_CONNECTIONS: usize = 10_000;

/// A microsecond is less than a user or a server notices of a request.
const MARGIN: Margin = Margin::fixed(1e-6, 0.03);

/// Who makes the requests of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clients {
    /// Threads that share the connections.
    pub threads: usize,
    /// Connections at once.
    pub connections: usize,
}

impl Clients {
    /// From `THREADS/CONNECTIONS`, or `published`.
    fn of(text: &str) -> Option<Clients> {
        let text = if text == PUBLISHED.0 { PUBLISHED.1 } else { text };
        let (threads, connections) = text.split_once('/')?;
        let clients = Clients { threads: threads.parse().ok()?, connections: connections.parse().ok()? };
        let is_sound = (1..=clients.connections).contains(&clients.threads);
        Some(clients).filter(|one| is_sound && one.connections <= MOST_CONNECTIONS)
    }
}

/// The clients of a setting.
pub fn clients(setting: &Setting) -> Clients {
    setting.get("clients").and_then(Clients::of).unwrap_or(COMPUTING)
}

/// Requests a second of the open loop, where the closed one reached this many.
pub fn rate(setting: &Setting, reached: f64) -> u64 {
    setting.get("rate").and_then(|rate| rate.parse().ok()).unwrap_or((reached / 2.0).max(1.0) as u64)
}

/// The file that requests write and read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether it must reach the disk before it is read back.
    pub sync: bool,
    /// Whether it is in a volume instead of the container's root.
    pub in_volume: bool,
}

/// The file of a setting.
pub fn file(setting: &Setting) -> File {
    File {
        bytes: setting.get("file").and_then(parse_size).unwrap_or(FILE),
        sync: setting.get("sync").is_some(),
        in_volume: setting.get("place").is_some(),
    }
}

/// A program of the user's that serves instead of dunnage's.
#[derive(Debug)]
pub struct Program {
    /// How it is started.
    pub wanted: Wanted,
    /// The port where it listens inside.
    pub port: u16,
    /// The path of its requests.
    pub path: &'static str,
    /// How long it is loaded after its start before anything counts, at least.
    pub warm: Nanos,
}

impl Program {
    /// The program of a setting, or why it cannot be measured; none if dunnage's own server is.
    pub fn of(setting: &Setting) -> Result<Option<Program>, String> {
        if setting.get(SERVE).is_none() {
            return Ok(None);
        }
        let port = setting.get("port").and_then(|port| port.parse().ok());
        let port = port.ok_or("it is not known at which port the command answers (`--port N`)")?;
        let path = setting.get("request").unwrap_or("/");
        Ok(Some(Program { wanted: Wanted::of_key(SERVE, setting)?, port, path, warm: warm(setting) }))
    }
}

fn warm(setting: &Setting) -> Nanos {
    Nanos::from_seconds(parse_duration(setting.get("warm").unwrap_or(WARM)).unwrap_or_default())
}

/// Whether the client was the limit of a closed loop: it used its whole CPU, so the rate is its own. Little's law cannot show that,
/// since in a closed loop the latencies of a connection fill the time whether client or server is slow.
pub fn is_client_bound(client_cpu: f64, took: f64) -> bool {
    client_cpu >= WHOLE * took
}

fn request(sample: &Sample) -> Option<f64> {
    // dunnage's own server takes as long as the client for a request, so both use their whole CPUs.
    let used = sample.counter(WARM_UP_TOOK).and(nanos(sample, CLIENT_CPU).zip(nanos(sample, TOOK)));
    let is_bound = used.is_some_and(|(cpu, took)| is_client_bound(cpu, took));
    if is_bound { None } else { each(sample, TOOK, REQUESTS) }
}

fn more(sample: &Sample, took: Counter, requests: Counter) -> Option<f64> {
    Some(each(sample, took, requests)? - each(sample, TOOK, REQUESTS)?)
}

const fn context(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(Unit::Seconds, MARGIN).context()
}

const fn tail(name: &'static str, share: f64) -> Metric {
    Metric::tail(name, LATENCY, share).of(Unit::Seconds, MARGIN)
}

/// The ways to fail, as counted over all loads of a sample.
pub const FAILED: [Counter; 6] = [REFUSED, CLOSED, TIMEOUT, MALFORMED, STATUS, BODY];

static METRICS: [Metric; 13] = [
    Metric::by("request", request).of(Unit::Seconds, MARGIN).meaning(
        "the time of a closed loop for each empty request, over all connections: the inverse of `rate`. Client and server \
         have a CPU each where there are several; with a program of your own none if the client used its whole CPU, since the time is its own then",
    ),
    Metric::by("rate", |sample| Some(1.0 / request(sample)?))
        .of(Unit::PerSecond, Margin::fixed(0.0, 0.03))
        .with(Better::More)
        .context()
        .meaning("empty requests a second in the closed loop"),
    context("p50", |sample| sample.quantile(LATENCY, 0.5)).meaning(
        "the median latency in the open loop: from when an empty request was due until its answer was complete; none if \
         the rate was not reached",
    ),
    tail("p99", 0.99).meaning("the 99th percentile of these latencies, of all rounds together"),
    tail("p999", 0.999).meaning("the same, 99.9th percentile"),
    tail("max", 1.0).meaning("the longest of these latencies of all rounds"),
    context("file", |sample| more(sample, FILE_TOOK, FILE_REQUESTS)).meaning(
        "how much longer a request takes in the closed loop that writes a file and reads it back: the disk's part, or that of the \
         page cache unless `sync=yes`",
    ),
    context("hashing", |sample| more(sample, HASHING_TOOK, HASHING_REQUESTS))
        .meaning("how much longer a request takes in a closed loop that computes 100,000 SHA-256: the CPU's part"),
    context("client_cpu", |sample| each(sample, CLIENT_CPU, REQUESTS))
        .meaning("CPU time of the client for each empty request in the closed loop, with the kernel's work on its behalf"),
    Metric::by("server_cpu", |sample| each(sample, SERVER_CPU, REQUESTS))
        .of(Unit::Seconds, MARGIN)
        .meaning("the same of the server, which decides where the client is the limit"),
    context("helper_cpu", |sample| each(sample, HELPER_CPU, REQUESTS)).meaning(
        "the same of the engine's programs that carry packets: proxies of published ports and networks in user space",
    ),
    context("warm_up", |sample| nanos(sample, WARM_UP_TOOK)).meaning(
        "how long a program of your own was loaded after its start until its rate was steady; nothing before counts",
    ),
    Metric::by("failed", |sample| {
        FAILED.iter().map(|name| sample.counter(*name)).sum::<Option<i64>>().map(|count| count as f64)
    })
    .of(Unit::Count, Margin::fixed(1.0, 0.0))
    .context()
    .meaning(
        "requests without the right answer in a sample: refused, closed, late, malformed, with another status or another \
         body; more than a thousandth fail the sample",
    ),
];

/// The key of how long a load takes.
pub const TIME: SettingKey = SettingKey::of("time", &[LASTS])
    .or(is_time)
    .meaning("how long each load of a sample takes, such as `300ms` or `5s`; 2s for a program of your own");

/// The key of who makes the requests.
pub const OF_CLIENTS: SettingKey = SettingKey::of("clients", &[CLIENTS])
    .or(|value| {
        let form = "THREADS/CONNECTIONS, with a connection for each thread, or published";
        fits(Clients::of(value).is_some(), form)
    })
    .meaning(
        "threads and connections of the client, such as `2/32`; `published` is 32/400, as in published comparisons; \
         requests that compute come from 2 and 4; fewer than 32 for a slow program of your own",
    );

/// The key of the rate of the open loop.
pub const OF_RATE: SettingKey = SettingKey::of("rate", &[RATE])
    .or(|value| {
        let is_rate = value == AUTO || value.parse().is_ok_and(|rate: u64| (1..=1_000_000).contains(&rate));
        fits(is_rate, "requests a second from 1 to 1000000, or auto")
    })
    .meaning(
        "requests a second in the open loop; `auto` is half of what the closed loop reached; fewer for a slow program of your own",
    );

static KEYS: [SettingKey; 4] = [PATH, OF_CLIENTS, OF_RATE, TIME];

/// The setting of a short load from two connections, which shows how many a program can answer.
pub fn of_a_trial(setting: &Setting) -> Setting {
    let short = setting.with("clients", "2/2").with("rate", AUTO).with("time", OF_A_PROGRAM_QUICK);
    let without_warm = short.0.into_iter().filter(|(key, _)| *key != "warm");
    Setting(without_warm.chain([("warm", "1s")]).collect())
}

/// Clients and the rate of the open loop for a program that answers so many requests a second from two connections: if it
/// computes, all connections together have their answers within a tenth of a load, and it can answer twice the rate.
pub fn fitting(reached: f64, lasts: Nanos) -> (String, String) {
    const PART: f64 = 0.1;
    let usual = Clients::of(CLIENTS).unwrap_or(COMPUTING);
    let connections = ((reached * lasts.seconds() * PART) as usize).clamp(usual.threads, usual.connections);
    let most: f64 = RATE.parse().unwrap_or(f64::INFINITY);
    let steps = (0..4).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u32.pow(power)));
    let fits = |rate: &u32| f64::from(*rate) <= (reached / 2.0).min(most);
    let rate = steps.take_while(fits).last().unwrap_or(1);
    (format!("{}/{connections}", usual.threads), rate.to_string())
}

/// What says which program of the user's serves.
pub(in crate::experiment) const SERVES: [SettingKey; 3] = [
    SettingKey { name: SERVE, ..CMD }.meaning(
        "the command of a web service that takes the place of dunnage's, split into words as a shell does it (`--cmd` with `--port`)",
    ),
    SettingKey::of("port", &[])
        .or(|value| fits(value.parse::<u16>().is_ok_and(|port| port > 0), "a port from 1 to 65535"))
        .meaning("the port where the command listens inside, at all addresses"),
    SettingKey::of("request", &[])
        .or(|value| {
            let is_path = value.starts_with('/') && value.bytes().all(|byte| byte.is_ascii_graphic());
            fits(is_path, "a path that begins with /")
        })
        .meaning("the path that the command is asked for, `/` by default; its answers must have status 200"),
];

static GUARDED: [SettingKey; 11] = {
    let [shell, workdir, env, mount, ..] = GIVEN;
    let [serve, port, request] = SERVES;
    [
    serve, shell, workdir, env, mount, port, request,
    SettingKey::of("warm", &[])
        .or(is_time)
        .meaning("how long the command is loaded after its start before anything counts, at least; `8s` by default"),
    SettingKey::of("file", &[])
        .or(|value| {
            let is_size = parse_size(value).is_some_and(|bytes| (1..=1 << 30).contains(&bytes));
            fits(is_size, "a size from 1 to 1GiB")
        })
        .meaning("the size of the file that a request writes and reads back; `64KiB` by default"),
    SettingKey::of("sync", &["yes"]).meaning("the file must reach the disk before it is read back (fsync)"),
    SettingKey::of("place", &["volume"])
        .meaning("the file is in a directory of the host that is bound into the container, instead of the container's root"),
    ]
};

/// The experiment `http`.
pub static HTTP: Experiment = Experiment {
    keys: &KEYS,
    guarded: &GUARDED,
    requires: &REQUIRES,
    event: Event::Often("request"),
    scope: Scope::Few,
    varies: &[Variation::of("net", &["host"]).only(Varied::Engines)],
    maps: &["request"],
    differences: &["file", "hashing"],
    refuses: |setting| Program::of(setting).err(),
    quick_values: |key| if key.name == "time" { &[QUICK] } else { key.values },
    reference: inside,
    asked_in: Some(("path", "published")),
    controls: &CONTROLS,
    shares: Some(super::NAME),
    // Four loads and the warm-up; with a program of the user's two, after it was loaded once on a few paths and on each.
    cost: |setting, _| {
        let loads = match setting.get(SERVE) {
            Some(_) => Nanos(time(setting).0 * 2 + ON_A_PATH.0 + warm(setting).0 / USUAL.len() as i64),
            None => Nanos(time(setting).0 * (4 * WARM_UP + 1) / WARM_UP),
        };
        AROUND + AROUND + loads
    },
    ..Experiment::of(NAME, "what does a network path add to a web service?", Need::Network, &METRICS)
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Distribution;

    #[test]
    fn a_slow_program_has_fewer_connections_and_a_lower_rate() {
        let fits = |reached| fitting(reached, Nanos::from_millis(2_000));
        let expected = |clients: &str, rate: &str| (clients.to_owned(), rate.to_owned());
        assert_eq!(fits(40_000.0), expected("2/32", "2000"));
        assert_eq!(fits(1_000.0), expected("2/32", "500"));
        // One that computes for 62 ms on one CPU.
        assert_eq!(fits(16.0), expected("2/3", "5"));
        assert_eq!(fits(0.5), expected("2/2", "1"));
        let setting = Setting(vec![("path", "inside"), ("clients", "2/32"), ("warm", "9s"), ("port", "80")]);
        assert_eq!(of_a_trial(&setting).to_string(), "path=inside;clients=2/2;port=80;warm=1s");
    }

    #[test]
    fn an_endpoint_costs_what_it_adds_to_the_empty_one() {
        let counters = [
            (REQUESTS, 10_000),
            (TOOK, 500_000_000),
            (FILE_REQUESTS, 1_000),
            (FILE_TOOK, 500_000_000),
            (SERVER_CPU, 400_000_000),
            (CLIENT_CPU, 470_000_000),
            (WARM_UP_TOOK, 3_000_000_000),
            (REFUSED, 1),
            (CLOSED, 2),
            (TIMEOUT, 0),
            (MALFORMED, 0),
            (STATUS, 0),
            (BODY, 0),
        ];
        let latency = Distribution::of([40_000, 50_000, 90_000]);
        let sample = Sample::default().with(counters).with([(LATENCY, latency)]);
        let value = |name: &str| METRICS.iter().find(|one| one.name == name).unwrap().value(&sample);
        let near =
            |name: &str, truth: f64| assert!((value(name).unwrap() / truth - 1.0).abs() < 1e-3, "{name}");
        near("request", 50e-6);
        near("rate", 20_000.0);
        near("p50", 50e-6);
        near("file", 450e-6);
        near("server_cpu", 40e-6);
        near("failed", 3.0);
        let mut busy = sample.clone();
        busy.forget(CLIENT_CPU);
        busy.add(CLIENT_CPU, 480_000_000);
        let value_of = |name: &str| METRICS.iter().find(|one| one.name == name).unwrap().value(&busy);
        assert_eq!((value_of("request"), value_of("rate")), (None, None));
        assert!(value_of("file").is_some() && value_of("server_cpu").is_some());
        assert_eq!((value("hashing"), value("helper_cpu")), (None, None));
    }

    #[test]
    fn clients_have_a_connection_for_each_thread() {
        let of = |text: &str| Clients::of(text).map(|one| (one.threads, one.connections));
        assert_eq!((of(CLIENTS), of("published")), (Some((2, 32)), Some((32, 400))));
        for wrong in ["", "2", "0/1", "3/2", "1/10001", "a/b"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        let setting = |rate| Setting(vec![("rate", rate)]);
        assert_eq!((rate(&setting("2000"), 1e5), rate(&setting(AUTO), 1e5)), (2000, 50_000));
        let small = file(&Setting(Vec::new()));
        assert_eq!(small, File { bytes: 65_536, sync: false, in_volume: false });
    }
}
