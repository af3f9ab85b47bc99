//! Orders about a network: servers that stay, and loads on the servers of others (`crate::load`).
//!
//! | order | results |
//! | --- | --- |
//! | `serve tcp\|udp ADDRESS:PORT` | `port`, `server_pid`, `servers` |
//! | `trips tcp\|udp TARGET SIZE COUNT NANOS busy\|blocking` | `trips`, `warm_up`, `took`, `wrong`, `lost`, distribution `trip` |
//! | `connects TARGET COUNT NANOS` | `connects`, `took`, distribution `connect` |
//! | `streams TARGET up\|down BYTES STREAMS` | `bytes`, `took`, `wrong` |
//! | `serve http ADDRESS:PORT` | `port`, `server_pid`, `servers` |
//! | `load TARGET PATH CONNECTIONS THREADS COUNT NANOS` | `requests`, `took`, `in_flight`, `bytes`, `opened`, each failure by its name, distribution `latency` |
//! | `answers TARGET PATH` | `waited`, `status` |
//! | `resolver ADDRESS:PORT` | `port`, `server_pid`, `servers` |
//! | `names fresh\|repeated\|container RESOLVER COUNT NANOS` | `names`, `warm_up`, `took`, `wrong`, `lost`, distribution `name`, note `resolver` |
//! | `queries RESOLVER` | `queries` |
//! | `program CPU DIRECTORY COUNT NAME=VALUE… WORD…` | `server_pid`, `servers` |
//! | `usage` | `server_cpu`, `client_cpu` |
//! | `end` | |
//! | `links INTERFACE…` | notes `mtu` and `offloads` of each |
//!
//! Times are in nanoseconds. Options follow in any order: `cpu=N` binds the server or the client to a CPU,
//! `key=N` is what only server and client know, and the server serves no requests without it, `seed=N` chooses the bytes of streams, `patience=NANOS` is how long to wait for an answer, `mine` says that
//! the target is the user's own, `delay=NANOS` has a resolver wait before each answer, `file=PATH` has the
//! resolver asked that this file names, which with `engine` must not be the given one, `name=NAME` has this name
//! resolved, which has `address=ADDRESS`.
//!
//! `load` and `answers` are about HTTP; what their results are is said at [`Done`](crate::load::http::Done), and
//! the names of failures are [`Wrong::ALL`](crate::load::http::Wrong::ALL). `rate=N` requests a second make an open
//! loop of `load`; answers must have `status=N`, else 200, and `body=N` bytes. `serve http` has the paths
//! `/network`, `/cpu` and `/disk-io`, and the options `workers`, `connections`, `directory`, `bytes`, `sync`,
//! `hashes` and `stall`, which are [`Settings`](crate::load::http::server::Settings).

mod http;
mod names;
mod program;
mod servers;

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use super::{Report, Words};
use crate::load::server::{Protocol, Server};
use crate::load::streams::{self, Direction};
use crate::load::{Key, Limit, Receive, Target, Whose, connects, trips};
use crate::outcome::{Failure, FailureClass, OrEnvironment};
use crate::sys::{affinity, interface, own_time};
use crate::units::Nanos;

/// An order: from its words to its results.
type Order = fn(&Asked<'_>, &mut Report<'_, '_>) -> Result<(), Failure>;

static ORDERS: &[(&str, Order)] = &[
    ("serve", serve),
    ("trips", trips),
    ("connects", connects),
    ("streams", streams),
    ("load", http::load),
    ("answers", http::answers),
    ("usage", usage),
    ("end", |_, _| {
        servers::end();
        Ok(())
    }),
    ("links", links),
    ("resolver", names::resolver),
    ("names", names::names),
    ("queries", names::queries),
];

/// Carries out an order.
pub fn work(words: Words, report: &mut Report<'_, '_>) {
    // The words of a user's program are no options.
    if words.get(0) == Some(c"program") {
        if let Err(failure) = program::start(words, report) {
            report.fail(&failure);
        }
        return;
    }
    let asked = Asked::of(words);
    let name = asked.words.first().copied().unwrap_or_default();
    let Some((_, order)) = ORDERS.iter().find(|(own, _)| *own == name) else {
        let names: Vec<_> = ORDERS.iter().map(|(name, _)| format!("`{name}`")).collect();
        return report.refuse(&format!("`network` needs one of {}", names.join(", ")));
    };
    if let Err(failure) = order(&asked, report) {
        report.fail(&failure);
    }
}

/// The words of an order, and its options.
struct Asked<'a> {
    words: Vec<&'a str>,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Asked<'a> {
    fn of(words: Words<'a>) -> Asked<'a> {
        let all = words.from(0).iter().map(|word| word.to_str().unwrap_or_default());
        let (options, words): (Vec<_>, Vec<_>) = all.partition(|word| is_option(word));
        let options = options.into_iter().map(|option| option.split_once('=').unwrap_or((option, "")));
        Asked { words, options: options.collect() }
    }

    fn word(&self, index: usize) -> &'a str {
        self.words.get(index).copied().unwrap_or_default()
    }

    fn number(&self, index: usize, what: &str) -> Result<u64, Failure> {
        self.word(index).parse().map_err(|_| malformed(what, self.word(index)))
    }

    /// The word at this index among these.
    fn one_of<T: Copy>(&self, index: usize, all: &[(&str, T)]) -> Result<T, Failure> {
        let found = all.iter().find(|(name, _)| *name == self.word(index)).map(|(_, value)| *value);
        let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
        found.ok_or_else(|| malformed(&names.join(" or "), self.word(index)))
    }

    fn option(&self, name: &str) -> Option<&'a str> {
        self.options.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    fn number_of(&self, name: &str) -> Result<Option<u64>, Failure> {
        let parsed = |value: &str| value.parse().map_err(|_| malformed(name, value));
        self.option(name).map(parsed).transpose()
    }

    fn protocol(&self) -> Result<Protocol, Failure> {
        self.one_of(1, &[("tcp", Protocol::Tcp), ("udp", Protocol::Udp)])
    }

    fn address(&self, index: usize) -> Result<SocketAddr, Failure> {
        self.word(index).parse().map_err(|_| malformed("an address with a port", self.word(index)))
    }

    fn target(&self, index: usize) -> Result<Target, Failure> {
        let whose = if self.option("mine").is_some() { Whose::User } else { Whose::Run };
        let target = Target::new(self.word(index), whose)?;
        let patience = self.number_of("patience")?.map_or(target.patience, Duration::from_nanos);
        Ok(Target { patience, key: self.key()?, ..target })
    }

    /// What requests begin with.
    fn key(&self) -> Result<Key, Failure> {
        Ok(self.number_of("key")?.map(Key::from).unwrap_or_default())
    }

    /// The limit whose two numbers begin at this index.
    fn limit(&self, index: usize) -> Result<Limit, Failure> {
        let (count, time) = (self.number(index, "a count")?, self.number(index + 1, "nanoseconds")?);
        match i64::try_from(time) {
            Ok(time) if count > 0 || time > 0 => Ok(Limit { count, time: Nanos(time) }),
            _ => Err(malformed("a count or a time above zero", self.word(index + 1))),
        }
    }

    /// Runs a load on a thread of its own, which is bound to the CPU that was asked for.
    fn bound<T: Send>(&self, load: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
        let cpu = self.number_of("cpu")?;
        let run = || {
            bind(cpu)?;
            load()
        };
        thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, run) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => Err(Failure::environment(format!("cannot start a thread: {error}"))),
        })
    }
}

/// A path may have an equals sign too.
fn is_option(word: &str) -> bool {
    matches!(word, "mine" | "engine") || (word.contains('=') && !word.starts_with('/'))
}

fn malformed(wanted: &str, word: &str) -> Failure {
    Failure::new(FailureClass::Unsupported, format!("an order of `network` needs {wanted}, not `{word}`"))
}

fn bind(cpu: Option<u64>) -> Result<(), Failure> {
    let Some(cpu) = cpu else { return Ok(()) };
    affinity::bind_to(cpu as usize).or_environment(format_args!("cannot use CPU {cpu} alone"))
}

fn serve(asked: &Asked<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let address = asked.address(2)?;
    if asked.word(1) == "http" {
        let server = http::server(asked, address)?;
        let own = server.address();
        return begin(asked, report, own, || drop(server.serve()));
    }
    let server = Server::bind(asked.protocol()?, address)?;
    let (own, key) = (server.address(), asked.key()?);
    begin(asked, report, own, || drop(server.serve(key)))
}

/// Starts a server that listens at this address.
fn begin(
    asked: &Asked<'_>,
    report: &mut Report<'_, '_>,
    address: std::io::Result<SocketAddr>,
    serve: impl FnOnce(),
) -> Result<(), Failure> {
    let port = address.or_environment("a server has no address")?.port();
    let cpu = asked.number_of("cpu")?;
    // Here, since the child could not say that it failed.
    asked.bound(|| Ok(()))?;
    let (pid, count) = servers::begin(move || {
        if bind(cpu).is_ok() {
            serve();
        }
    })?;
    report.result("port", port.into());
    report.result("server_pid", pid.into());
    report.result("servers", count as i64);
    Ok(())
}

fn trips(asked: &Asked<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let (protocol, target) = (asked.protocol()?, asked.target(2)?);
    let (size, limit) = (asked.number(3, "a size")? as usize, asked.limit(4)?);
    let receive = asked.one_of(6, &[("blocking", Receive::Blocking), ("busy", Receive::Busy)])?;
    let done = asked.bound(|| match protocol {
        Protocol::Tcp => trips::tcp(&target, size, limit, receive),
        Protocol::Udp => trips::udp(&target, size, limit, receive),
    })?;
    report.result("trips", done.count as i64);
    report.result("warm_up", done.warm_up as i64);
    report.result("took", done.took.0);
    report.result("wrong", done.wrong as i64);
    report.result("lost", done.lost as i64);
    report.distribution("trip", &done.trip);
    Ok(())
}

fn connects(asked: &Asked<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let (target, limit) = (asked.target(1)?, asked.limit(2)?);
    let done = asked.bound(|| connects::connects(&target, limit))?;
    report.result("connects", done.count as i64);
    report.result("took", done.took.0);
    report.distribution("connect", &done.connect);
    Ok(())
}

fn streams(asked: &Asked<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let target = asked.target(1)?;
    let direction = asked.one_of(2, &[("up", Direction::Up), ("down", Direction::Down)])?;
    let (bytes, count) = (asked.number(3, "a number of bytes")?, asked.number(4, "a number of streams")?);
    let seed = asked.number_of("seed")?.unwrap_or_default();
    let done = asked.bound(|| streams::streams(&target, direction, bytes, count, seed))?;
    report.result("bytes", done.bytes as i64);
    report.result("took", done.took.0);
    report.result("wrong", done.wrong as i64);
    Ok(())
}

fn usage(_: &Asked<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    report.result("server_cpu", servers::cpu()?.0);
    report.result("client_cpu", own_time::process_cpu() as i64);
    Ok(())
}

fn links(asked: &Asked<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    for (fact, told) in asked.words.iter().skip(1).flat_map(|name| interface::facts(name)) {
        report.note(fact, told);
    }
    Ok(())
}
