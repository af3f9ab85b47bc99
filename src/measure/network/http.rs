//! `http`: requests to a server in a container, dunnage's own or the user's, on a path to it: as many as its
//! connections can make, then at a rate; and to dunnage's own also such that write a file or compute.

use std::path::PathBuf;

use super::super::variables_of;
use super::steady::{ON_A_PATH, started, until_steady};
use super::{Exchange, sample, wrong};
use crate::experiment::Setting;
use crate::experiment::network::http::{
    COMPUTING, Clients, File, Program, WARM_UP, WRONG, clients, file, is_client_bound, rate,
};
use crate::experiment::network::{path, time};
use crate::outcome::{Abort, Distribution, Failure, FailureClass, OrEnvironment, Sample};
use crate::probe::message::Done;
use crate::subject::pair::{Addition, Pair, Server, Service, result};
use crate::subject::treatment::Own;
use crate::subject::{Access, Mount, RunContext, Subject, Work};
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
pub static EXCHANGE: Exchange = Exchange {
    service: |_| Service::Http,
    addition,
    server,
    take,
    scripted: |setting| {
        let words = ["load", "/network", path(setting).name()].map(str::to_owned);
        Work::new("network", words.into(), time(setting))
    },
};

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
        let variables = variables_of(setting, run)?;
        let head = [wanted.directory, variables.len().to_string()];
        let words = head.into_iter().chain(variables.iter().cloned()).chain(wanted.words);
        return Ok(Server::Program(words.collect(), path.to_owned()));
    }
    let File { bytes, sync, in_volume } = file(setting);
    let place = match (in_volume, subject.about().expected.mount) {
        (true, _) => volume(run),
        // Its root is the host's, where dunnage has a directory of its own.
        (false, Own::Host) => run.workspace(),
        (false, _) => "/".into(),
    };
    let sync = u8::from(sync);
    let options =
        [format!("directory={}", place.display()), format!("bytes={bytes}"), format!("sync={sync}")];
    Ok(Server::of(Service::Http, options))
}

/// Makes requests to this path for this time, in an open loop if there is a rate.
fn load(
    pair: &mut Pair<'_>,
    path: &str,
    clients: Clients,
    lasts: Nanos,
    options: &[String],
) -> Result<(Done, Nanos), Abort> {
    let target = pair.target().to_string();
    let numbers = [clients.connections as i64, clients.threads as i64, 0, lasts.0].map(|one| one.to_string());
    let words = ["load", &target, path].into_iter().chain(numbers.iter().map(String::as_str));
    let words: Vec<&str> = words.chain(options.iter().map(String::as_str)).collect();
    let answer = pair.ask(&words, lasts + PATIENCE)?;
    let is_closed = !options.iter().any(|option| option.starts_with("rate="));
    is_true(&answer.done, clients, is_closed)?;
    Ok((answer.done, answer.cpu))
}

/// Results of a load under other names, and the ways to fail added to those of the loads before.
fn add(sample: &mut Sample, done: &Done, names: [(&'static str, &'static str); 2]) -> Result<(), Failure> {
    for (own, name) in names {
        sample.counters.push((name.into(), result(done, own)?));
    }
    for name in WRONG {
        let count = result(done, name)?;
        match sample.counters.iter_mut().find(|(own, _)| own == name) {
            Some((_, all)) => *all += count,
            None => sample.counters.push((name.into(), count)),
        }
    }
    Ok(())
}

fn take(pair: &mut Pair<'_>, setting: &Setting) -> Result<Sample, Abort> {
    let (lasts, clients, program) = (time(setting), clients(setting), program(setting)?);
    let path = program.as_ref().map_or("/network", |own| own.path);
    let body = |bytes: u64| if program.is_some() { Vec::new() } else { vec![format!("body={bytes}")] };
    match &program {
        Some(own) => warm(pair, own, clients)?,
        None => drop(load(pair, path, clients, Nanos(lasts.0 / WARM_UP), &body(8))?),
    }
    let ((closed, client_cpu, server_cpu), way) = pair.travelled(|pair| {
        let before = pair.server_cpu()?;
        let (done, client_cpu) = load(pair, path, clients, lasts, &body(8))?;
        let used = Nanos(pair.server_cpu()?.0 - before.0);
        let packets = 2 * result(&done, "requests")?.max(0) as u64;
        Ok(((done, client_cpu, used), packets))
    })?;
    let mut sample = sample(pair, &way)?;
    if let Some((requests, took)) = pair.warm_up {
        sample.counters.extend([("warm_up_requests".into(), requests), ("warm_up_took".into(), took.0)]);
    }
    add(&mut sample, &closed, [("requests", "requests"), ("took", "took")])?;
    for name in ["in_flight", "opened", "bytes"] {
        sample.counters.push((name.into(), result(&closed, name)?));
    }
    let used = [("client_cpu", client_cpu), ("server_cpu", server_cpu)];
    sample.counters.extend(used.map(|(name, cpu)| (name.into(), cpu.0)));
    let took = Nanos(result(&closed, "took")?);
    if program.is_some() && is_client_bound(client_cpu.0 as f64, took.0 as f64) {
        let reason = format!(
            "the client used {client_cpu} of its CPU in {took}, so it was the limit, and not the server or path"
        );
        sample.missing.extend(["request", "rate"].map(|name| (name.into(), reason.clone())));
    }
    let reached = result(&closed, "requests")? as f64 / took.seconds();
    at_a_rate(pair, setting, (path, reached, body(8)), &mut sample)?;
    if program.is_none() {
        let (done, _) = load(pair, "/disk-io", clients, lasts, &body(8))?;
        add(&mut sample, &done, [("requests", "file_requests"), ("took", "file_took")])?;
        let (done, _) = load(pair, "/cpu", COMPUTING, lasts, &body(64))?;
        add(&mut sample, &done, [("requests", "hashing_requests"), ("took", "hashing_took")])?;
    }
    Ok(sample)
}

/// Loads a user's program until it is warm, once after its start, and until its rate on this path is steady.
fn warm(pair: &mut Pair<'_>, program: &Program, clients: Clients) -> Result<(), Abort> {
    let loaded = |pair: &mut Pair<'_>, rule| {
        until_steady(rule, |lasts| {
            let (done, _) = load(pair, program.path, clients, lasts, &[])?;
            Ok((result(&done, "requests")?, Nanos(result(&done, "took")?)))
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
    (path, reached, mut options): (&str, f64, Vec<String>),
    sample: &mut Sample,
) -> Result<(), Abort> {
    let rate = rate(setting, reached);
    sample.counters.push(("asked_rate".into(), rate as i64));
    if rate as f64 > reached {
        // The loads before tell already that waiting would have no end, and requests would time out.
        let reason =
            format!("{rate} requests a second were asked for, and a closed loop reached {reached:.0}");
        sample.missing.extend(OPEN.map(|name| (name.into(), reason.clone())));
        return Ok(());
    }
    options.push(format!("rate={rate}"));
    let lasts = time(setting);
    let (done, _) = load(pair, path, clients(setting), lasts, &options)?;
    add(sample, &done, [("requests", "open_requests"), ("took", "open_took")])?;
    let own = result(&done, "requests")? as f64 / Nanos(result(&done, "took")?).seconds();
    if own < REACHED * rate as f64 {
        let reason =
            format!("of {rate} requests a second {own:.0} were answered, so waiting would have no end");
        sample.missing.extend(OPEN.map(|name| (name.into(), reason.clone())));
        return Ok(());
    }
    let latency = done.distributions.into_iter().filter(|(name, _)| name == "latency");
    sample.distributions.extend(latency.map(|(name, values): (String, Distribution)| (name.into(), values)));
    Ok(())
}

/// Every connection was open; few requests failed; and in a closed loop the mean number of requests on their way, by Little's law
/// the rate times the mean latency, is no more than the connections. In an open one a latency includes how long the request waited
/// for a connection, so the law bounds nothing.
fn is_true(done: &Done, clients: Clients, is_closed: bool) -> Result<(), Failure> {
    let number = |name: &str| Ok::<_, Failure>(result(done, name)? as f64);
    let (requests, took) = (number("requests")?, number("took")?);
    let opened = result(done, "opened")?;
    if opened != clients.connections as i64 {
        let reason = format!("{opened} of {} connections were opened", clients.connections);
        return Err(Failure::environment(reason));
    }
    let failed = WRONG.iter().map(|name| Ok((number(name)?, *name))).collect::<Result<Vec<_>, Failure>>()?;
    let all: f64 = failed.iter().map(|(count, _)| count).sum();
    if all > FAILED * (requests + all) {
        let told: Vec<_> = failed.iter().filter(|(count, _)| *count > 0.0).collect();
        let told: Vec<_> = told.iter().map(|(count, name)| format!("{count} {name}")).collect();
        let reason = format!("{all} of {} requests failed: {}", requests + all, told.join(", "));
        let class = match failed.iter().max_by(|one, other| one.0.total_cmp(&other.0)) {
            Some((_, "refused")) => FailureClass::Environment,
            Some((_, "closed")) => FailureClass::Crash,
            // Late requests do not make the sample late.
            _ => FailureClass::WrongOutput,
        };
        return Err(Failure::new(class, reason));
    }
    let busy = number("in_flight")? / took;
    if is_closed && busy > 1.01 * opened as f64 {
        let latency = Nanos((number("in_flight")? / requests) as i64);
        return Err(wrong(format!(
            "{requests} requests of {latency} in {} would be {busy:.1} at once over {opened} connections",
            Nanos(took as i64)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(values: &[(&str, i64)]) -> Done {
        let usual = [("requests", 10_000), ("took", 1_000_000), ("in_flight", 3_990_000), ("opened", 4)];
        let wrong = WRONG.map(|name| (name, 0));
        let all = usual.into_iter().chain(wrong).map(|(name, value)| {
            let own = values.iter().find(|(own, _)| *own == name).map_or(value, |(_, own)| *own);
            (name.to_owned(), own)
        });
        Done { results: all.collect(), ..Done::default() }
    }

    #[test]
    fn what_cannot_be_true_of_requests_is_a_failure() {
        let class = |values: &[(&str, i64)], is_closed: bool| {
            is_true(&done(values), COMPUTING, is_closed).err().map(|failure| failure.class)
        };
        assert_eq!(class(&[], true), None);
        assert_eq!(class(&[("closed", 9)], true), None);
        assert_eq!(class(&[("closed", 11)], true), Some(FailureClass::Crash));
        assert_eq!(class(&[("timeout", 11), ("status", 12)], true), Some(FailureClass::WrongOutput));
        // The sample ended in time, so it is not longer than anything.
        assert_eq!(class(&[("timeout", 20)], true), Some(FailureClass::WrongOutput));
        assert_eq!(class(&[("opened", 3)], true), Some(FailureClass::Environment));
        // More requests on their way than there are connections.
        assert_eq!(class(&[("in_flight", 4_100_000)], true), Some(FailureClass::WrongOutput));
        // A stall, in which requests become due that wait for a connection.
        assert_eq!(class(&[("in_flight", 4_100_000)], false), None);
    }
}
