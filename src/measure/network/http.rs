//! `http`: requests to a server in a container, dunnage's own or the user's, on a path to it: as many as its
//! connections can make, then at a rate; and to dunnage's own also such that write a file or compute.

use std::path::PathBuf;

use dunnage_analysis::names::Counter;
use dunnage_orders::network::{
    self as orders, Limit, Load, Request, Requests, Settings, StartProgram, Wrong,
};

use super::super::variables_of;
use super::steady::{ON_A_PATH, started, until_steady};
use super::{Exchange, sample, wrong};
use crate::experiment::Setting;
use crate::experiment::network::http::{
    self, COMPUTING, Clients, File, Program, WARM_UP, clients, file, is_client_bound, names, rate,
};
use crate::experiment::network::time;
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment, Sample};
use crate::subject::pair::{Addition, Pair, Server, Service};
use crate::subject::treatment::Own;
use crate::subject::{Access, Mount, RunContext, Subject};
use crate::sys::place;
use crate::units::Nanos;

/// Of the requests, how many may fail.
const FAILED: f64 = 0.001;
/// Of the requests that are due in an open loop, how many must be answered within its time, for it to be one.
const REACHED: f64 = 0.98;
/// What an open loop gives.
const OPEN: [&str; 4] = ["p50", "p99", "p999", "max"];
/// Longer than any request waits for its answer.
const PATIENCE: Nanos = Nanos::from_millis(10_000);

/// How a path is measured.
pub static EXCHANGE: Exchange = Exchange { service: |_| Service::Http, addition, server, take };

/// The program of a setting; one that makes no sense has been refused before.
fn program(setting: &Setting) -> Result<Option<Program>, Failure> {
    Program::of(setting).map_err(|why| Failure::new(FailureClass::Unsupported, why))
}

/// The directory of the host that is a volume: it has the same path inside.
fn volume(run: &RunContext) -> PathBuf {
    run.workspace().join("volume")
}

fn addition(setting: &Setting, run: &RunContext) -> Result<Addition, Failure> {
    let program = program(setting)?;
    let mut mounts = program.as_ref().map(|own| own.wanted.mounts.clone()).unwrap_or_default();
    if file(setting).in_volume {
        let host = volume(run);
        place::make(&host).or_environment(format_args!("cannot make `{}`", host.display()))?;
        mounts.push(Mount { host: host.clone(), inside: host, access: Access::Given });
    }
    Ok(Addition { mounts, port: program.map(|own| own.port) })
}

fn server(setting: &Setting, subject: &dyn Subject, run: &RunContext) -> Result<Server, Abort> {
    if let Some(Program { wanted, path, .. }) = program(setting)? {
        let variables = variables_of(setting, run)?.to_vec();
        let start = StartProgram { cpu: None, directory: wanted.directory, variables, words: wanted.words };
        return Ok(Server::Program(start, path.to_owned()));
    }
    let File { bytes, sync, in_volume } = file(setting);
    let directory = match (in_volume, subject.about().expected.mount) {
        (true, _) => volume(run),
        // Its root is the host's, where dunnage has a directory of its own.
        (false, Own::Host) => run.workspace(),
        (false, _) => "/".into(),
    };
    let settings =
        Settings { directory: Some(directory), bytes: bytes as usize, sync, ..Settings::default() };
    Ok(Server::Probe(orders::Service::Http(settings)))
}

/// Requests for a path: a closed loop, or an open one at a rate; to dunnage's own server also the bytes of each answer.
#[derive(Clone, Copy)]
struct Asked<'a> {
    path: &'a str,
    clients: Clients,
    rate: Option<u64>,
    body: Option<usize>,
}

/// Makes these requests for this time.
fn load(pair: &mut Pair<'_>, asked: Asked<'_>, lasts: Nanos) -> Result<(Requests, Nanos), Abort> {
    let Asked { path, clients: Clients { connections, threads }, rate, body } = asked;
    let limit = Limit { count: 0, time: lasts };
    let (path, computes) = (path.to_owned(), Nanos(0));
    let load = Load { path, connections, threads, limit, rate, status: 200, body, computes };
    let answer = pair.ask(Request { client: pair.end(), load }, lasts + PATIENCE)?;
    is_true(&answer.done, asked.clients, rate.is_none())?;
    Ok((answer.done, answer.cpu))
}

/// Results of a load under names of its own, and the ways to fail added to those of the loads before.
fn add(sample: &mut Sample, done: &Requests, [requests, took]: [Counter; 2]) {
    sample.extend([(requests, done.requests as i64), (took, done.took.0)]);
    for (name, count) in http::FAILED.into_iter().zip(done.wrong) {
        let before = sample.counter(name).unwrap_or(0);
        sample.forget(name);
        sample.add(name, before + count as i64);
    }
}

fn take(pair: &mut Pair<'_>, setting: &Setting) -> Result<Sample, Abort> {
    let (lasts, clients, program) = (time(setting), clients(setting), program(setting)?);
    let path = program.as_ref().map_or("/network", |own| own.path);
    let is_own = program.is_none();
    let asked = Asked { path, clients, rate: None, body: is_own.then_some(8) };
    match &program {
        Some(own) => warm(pair, own, clients)?,
        None => drop(load(pair, asked, Nanos(lasts.0 / WARM_UP))?),
    }
    let ((closed, client_cpu, server_cpu), way) = pair.travelled(|pair| {
        let before = pair.server_cpu()?;
        let (done, client_cpu) = load(pair, asked, lasts)?;
        let used = Nanos(pair.server_cpu()?.0 - before.0);
        let packets = 2 * done.requests;
        Ok(((done, client_cpu, used), packets))
    })?;
    let mut sample = sample(pair, &way)?;
    if let Some((requests, took)) = pair.warm_up {
        sample.extend([(names::WARM_UP_REQUESTS, requests), (names::WARM_UP_TOOK, took.0)]);
    }
    add(&mut sample, &closed, [names::REQUESTS, names::TOOK]);
    sample.extend([
        (names::IN_FLIGHT, closed.in_flight.0),
        (names::OPENED, closed.opened as i64),
        (names::BYTES, closed.bytes as i64),
        (names::CLIENT_CPU, client_cpu.0),
        (names::SERVER_CPU, server_cpu.0),
    ]);
    let took = closed.took;
    if !is_own && is_client_bound(client_cpu.0 as f64, took.0 as f64) {
        let reason = format!(
            "the client used {client_cpu} of its CPU in {took}, so it was the limit, and not the server or path"
        );
        sample.lacks(&["request", "rate"], &reason);
    }
    let reached = closed.requests as f64 / took.seconds();
    at_a_rate(pair, setting, (asked, reached), &mut sample)?;
    if is_own {
        let (done, _) = load(pair, Asked { path: "/disk-io", ..asked }, lasts)?;
        add(&mut sample, &done, [names::FILE_REQUESTS, names::FILE_TOOK]);
        let hashing = Asked { path: "/cpu", clients: COMPUTING, rate: None, body: Some(64) };
        let (done, _) = load(pair, hashing, lasts)?;
        add(&mut sample, &done, [names::HASHING_REQUESTS, names::HASHING_TOOK]);
    }
    Ok(sample)
}

/// Loads a user's program until it is warm, once after its start, and until its rate on this path is steady.
fn warm(pair: &mut Pair<'_>, program: &Program, clients: Clients) -> Result<(), Abort> {
    let asked = Asked { path: program.path, clients, rate: None, body: None };
    let loaded = |pair: &mut Pair<'_>, rule| {
        until_steady(rule, |lasts| {
            let (done, _) = load(pair, asked, lasts)?;
            Ok((done.requests as i64, done.took))
        })
    };
    if pair.warm_up.is_none() {
        pair.warm_up = Some(loaded(pair, started(program.warm))?);
    }
    loaded(pair, ON_A_PATH).map(drop)
}

/// Adds the latencies of an open loop, or why there are none.
fn at_a_rate(
    pair: &mut Pair<'_>,
    setting: &Setting,
    (asked, reached): (Asked<'_>, f64),
    sample: &mut Sample,
) -> Result<(), Abort> {
    let rate = rate(setting, reached);
    sample.add(names::ASKED_RATE, rate as i64);
    if rate as f64 > reached {
        // The loads before tell already that waiting would have no end, and requests would time out.
        let reason =
            format!("{rate} requests a second were asked for, and a closed loop reached {reached:.0}");
        sample.lacks(&OPEN, &reason);
        return Ok(());
    }
    let asked = Asked { rate: Some(rate), clients: clients(setting), ..asked };
    let (done, _) = load(pair, asked, time(setting))?;
    add(sample, &done, [names::OPEN_REQUESTS, names::OPEN_TOOK]);
    let own = done.requests as f64 / done.took.seconds();
    if own < REACHED * rate as f64 {
        let reason =
            format!("of {rate} requests a second {own:.0} were answered, so waiting would have no end");
        sample.lacks(&OPEN, &reason);
        return Ok(());
    }
    sample.add(names::LATENCY, done.latency);
    Ok(())
}

/// Every connection was open; few requests failed; and in a closed loop the mean number of requests on their way, by Little's law
/// the rate times the mean latency, is no more than the connections. In an open one a latency includes how long the request waited
/// for a connection, so the law bounds nothing.
fn is_true(done: &Requests, clients: Clients, is_closed: bool) -> Result<(), Failure> {
    let Requests { requests, opened, .. } = *done;
    if opened != clients.connections as u64 {
        let reason = format!("{opened} of {} connections were opened", clients.connections);
        return Err(Failure::environment(reason));
    }
    let all: u64 = done.wrong.iter().sum();
    if all as f64 > FAILED * (requests + all) as f64 {
        let failed: Vec<_> = Wrong::ALL.iter().zip(done.wrong).filter(|(_, count)| *count > 0).collect();
        let told: Vec<_> = failed.iter().map(|((name, _), count)| format!("{count} {name}")).collect();
        let reason = format!("{all} of {} requests failed: {}", requests + all, told.join(", "));
        let class = match failed.iter().max_by_key(|(_, count)| *count) {
            Some(((_, Wrong::Refused), _)) => FailureClass::Environment,
            Some(((_, Wrong::Closed), _)) => FailureClass::Crash,
            // Late requests do not make the sample late.
            _ => FailureClass::WrongOutput,
        };
        return Err(Failure::new(class, reason));
    }
    let busy = done.in_flight.0 as f64 / done.took.0 as f64;
    if is_closed && busy > 1.01 * opened as f64 {
        let latency = Nanos(done.in_flight.0 / requests.max(1) as i64);
        return Err(wrong(format!(
            "{requests} requests of {latency} in {} would be {busy:.1} at once over {opened} connections",
            done.took
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Distribution;

    fn usual() -> Requests {
        Requests {
            requests: 10_000,
            took: Nanos(1_000_000),
            in_flight: Nanos(3_990_000),
            bytes: 0,
            opened: 4,
            wrong: [0; Wrong::ALL.len()],
            latency: Distribution::of([]),
        }
    }

    fn failing(ways: &[(Wrong, u64)]) -> Requests {
        let mut done = usual();
        ways.iter().for_each(|(way, count)| done.wrong[*way as usize] = *count);
        done
    }

    #[test]
    fn what_cannot_be_true_of_requests_is_a_failure() {
        let class = |done: Requests, is_closed: bool| {
            is_true(&done, COMPUTING, is_closed).err().map(|failure| failure.class)
        };
        assert_eq!(class(usual(), true), None);
        assert_eq!(class(failing(&[(Wrong::Closed, 9)]), true), None);
        assert_eq!(class(failing(&[(Wrong::Closed, 11)]), true), Some(FailureClass::Crash));
        let late = failing(&[(Wrong::Timeout, 11), (Wrong::Status, 12)]);
        assert_eq!(class(late, true), Some(FailureClass::WrongOutput));
        // The sample ended in time, so it is not longer than anything.
        assert_eq!(class(failing(&[(Wrong::Timeout, 20)]), true), Some(FailureClass::WrongOutput));
        assert_eq!(class(Requests { opened: 3, ..usual() }, true), Some(FailureClass::Environment));
        // More requests on their way than there are connections.
        let many = Requests { in_flight: Nanos(4_100_000), ..usual() };
        assert_eq!(class(many.clone(), true), Some(FailureClass::WrongOutput));
        // A stall, in which requests become due that wait for a connection.
        assert_eq!(class(many, false), None);
    }

    #[test]
    fn failures_of_requests_have_the_names_of_their_counters() {
        assert_eq!(Wrong::ALL.map(|(name, _)| name), http::FAILED.map(Counter::text));
    }
}
