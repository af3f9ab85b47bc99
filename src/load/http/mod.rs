//! Requests over HTTP, to dunnage's own server or to any other of HTTP/1. Each connection has one request on its
//! way at most.
//!
//! In a *closed* loop every connection sends the next request when it has the answer to the one before, so a slow
//! server is asked less often: this gives the throughput. In an *open* loop requests are due at a constant rate,
//! and their latency counts from when they were due, whether or not a connection was free then: this gives the
//! latency that users see, in a stall too.
//!
//! Deliberately absent: bodies of requests, TLS, compression, and a warm-up.

mod answers;
mod client;
pub mod server;

use std::io;
use std::net::SocketAddr;
use std::thread;

use dunnage_orders::network::{Load, Requests, Wrong};

use super::{Limit, Target, allow_files, failure};
use crate::outcome::{Distribution, Failure, FailureClass};
use crate::sys::clock;
use crate::units::Nanos;

pub use answers::answers;
use client::Client;

/// No requests yet.
fn nothing() -> Requests {
    Requests {
        requests: 0,
        took: Nanos(0),
        in_flight: Nanos(0),
        bytes: 0,
        opened: 0,
        wrong: Default::default(),
        latency: Distribution::of_durations(),
    }
}

/// Adds those of another thread.
fn add(all: &mut Requests, other: &Requests) {
    all.requests += other.requests;
    all.took = all.took.max(other.took);
    all.in_flight.0 += other.in_flight.0;
    all.bytes += other.bytes;
    all.opened += other.opened;
    all.wrong.iter_mut().zip(other.wrong).for_each(|(own, other)| *own += other);
    all.latency.merge(&other.latency);
}

/// Opens the connections, and makes requests until the limit. Requests may fail.
///
/// # Errors
/// If none succeeds: the failure of the first.
pub fn load(target: &Target, load: &Load) -> Result<Requests, Failure> {
    check(load)?;
    let request = request(target.address, &load.path)?;
    allow_files((load.connections + 2 * load.threads) as u64)?;
    let failed = |error: io::Error| Failure::environment(format!("a load over HTTP fails: {error}"));
    let open = |number| Client::open(target, load, &request, number);
    let clients: Vec<_> = (0..load.threads).map(open).collect::<io::Result<_>>().map_err(failed)?;
    let mut done = nothing();
    done.opened = clients.iter().map(|client| client.done.opened).sum();
    let began = clock::now();
    let mut first = None;
    if done.opened == 0 {
        first = clients.into_iter().find_map(|client| client.first);
    } else {
        done.opened = 0;
        let ended: io::Result<Vec<_>> = thread::scope(|scope| {
            // Those that run end by their limit if another one cannot be started.
            let started = clients
                .into_iter()
                .map(|client| thread::Builder::new().spawn_scoped(scope, move || client.run(began)));
            let threads: Vec<_> = started.collect::<io::Result<_>>()?;
            threads.into_iter().map(|thread| thread.join().expect("a load does not panic")).collect()
        });
        for (part, wrong) in ended.map_err(failed)? {
            add(&mut done, &part);
            first = first.or(wrong);
        }
    }
    let begun = done.requests + done.wrong.iter().sum::<u64>();
    if load.limit.count == 0 || begun < load.limit.count {
        done.took = done.took.max(load.limit.time);
    }
    match first {
        Some((wrong, error)) if done.requests == 0 => Err(explained(target.address, wrong, &error)),
        _ => Ok(done),
    }
}

fn check(load: &Load) -> Result<(), Failure> {
    let wrong = match load {
        Load { connections: 0, .. } | Load { threads: 0, .. } => "at least one connection and one thread",
        Load { connections, threads, .. } if threads > connections => "a connection for each thread",
        Load { rate: Some(0), .. } => "a rate above zero",
        Load { rate: Some(1_000_000_001..), .. } => "a rate of at most one request in a nanosecond",
        Load { limit: Limit { count: 0, time: Nanos(..=0) }, .. } => "a limit",
        _ => return Ok(()),
    };
    Err(Failure::new(FailureClass::Unsupported, format!("a load over HTTP needs {wrong}")))
}

/// A request as bytes.
fn request(address: SocketAddr, path: &str) -> Result<Vec<u8>, Failure> {
    if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        let reason = format!("`{}` is not the path of a request", path.escape_debug());
        return Err(Failure::new(FailureClass::Unsupported, reason));
    }
    let agent = concat!("dunnage/", env!("CARGO_PKG_VERSION"));
    Ok(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: {agent}\r\n\r\n").into())
}

fn explained(address: SocketAddr, wrong: Wrong, error: &io::Error) -> Failure {
    match wrong {
        Wrong::Refused | Wrong::Closed | Wrong::Timeout => failure(address, error),
        Wrong::Malformed | Wrong::Status | Wrong::Body => {
            Failure::new(FailureClass::WrongOutput, format!("`{address}`: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_host() {
        let request = request("[::1]:8080".parse().unwrap(), "/a?b=c").unwrap();
        let text = String::from_utf8(request).unwrap();
        assert!(text.starts_with("GET /a?b=c HTTP/1.1\r\nHost: [::1]:8080\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\n"), "{text}");
    }

    #[test]
    fn loads_that_make_no_sense_are_refused() {
        let sound = Load {
            path: "/".into(),
            connections: 2,
            threads: 2,
            limit: Limit { count: 1, time: Nanos(0) },
            rate: None,
            status: 200,
            body: None,
            computes: Nanos(0),
        };
        assert_eq!(check(&sound), Ok(()));
        let wrong = [
            Load { connections: 0, ..sound.clone() },
            Load { threads: 0, ..sound.clone() },
            Load { threads: 3, ..sound.clone() },
            Load { rate: Some(0), ..sound.clone() },
            Load { limit: Limit { count: 0, time: Nanos(0) }, ..sound },
        ];
        for load in wrong {
            assert_eq!(check(&load).unwrap_err().class, FailureClass::Unsupported, "{load:?}");
        }
        for path in ["", "network", "/a b", "/a\r\nb", "/ä"] {
            let failure = request("127.0.0.1:80".parse().unwrap(), path).unwrap_err();
            assert_eq!(failure.class, FailureClass::Unsupported, "{path}");
        }
    }
}
