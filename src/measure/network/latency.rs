//! `net-latency`: round trips between a server in a container and a client on a path to it, then connections.

use super::super::add;
use super::{Exchange, sample, wrong};
use crate::experiment::Setting;
use crate::experiment::network::latency::{CONNECTING, CONNECTIONS, is_of_streams, size};
use crate::experiment::network::{path, time};
use crate::outcome::{Abort, Failure, Sample};
use crate::probe::message::Done;
use crate::subject::Work;
use crate::subject::pair::{Addition, Pair, Server, Service, result};
use crate::units::Nanos;

/// How much more than the round trips their loop may take, as a share: reading the clock and recording.
const LOOP: f64 = 0.1;
/// Of the datagrams, how many may be lost.
const LOST: f64 = 0.001;

/// How a path is measured.
pub static EXCHANGE: Exchange = Exchange {
    service,
    addition: |_, _| Ok(Addition::default()),
    server: |setting, _, _| Ok(Server::of(service(setting), [])),
    take,
    scripted: |setting| Work::new("network", trips(setting, path(setting).name()).into(), time(setting)),
};

fn service(setting: &Setting) -> Service {
    if is_of_streams(setting) { Service::Tcp } else { Service::Udp }
}

fn take(pair: &mut Pair<'_>, setting: &Setting) -> Result<Sample, Abort> {
    let lasts = time(setting);
    let ((answer, server_cpu), way) = pair.travelled(|pair| {
        let before = pair.server_cpu()?;
        let words = trips(setting, &pair.target().to_string());
        let answer = pair.ask(&words.each_ref().map(String::as_str), lasts)?;
        let after = pair.server_cpu()?;
        let sent = result(&answer.done, "trips")?;
        Ok(((answer, Nanos(after.0 - before.0)), 2 * sent.max(0) as u64))
    })?;
    is_true(&answer.done)?;
    let mut sample = sample(pair, &way)?;
    add(&mut sample, &answer.done);
    let used = [("client_cpu", answer.cpu), ("server_cpu", server_cpu)];
    sample.counters.extend(used.map(|(name, cpu)| (name.into(), cpu.0)));
    if is_of_streams(setting) {
        connect(pair, &mut sample, Nanos(lasts.0 / CONNECTING))?;
    }
    Ok(sample)
}

/// The order for round trips.
fn trips(setting: &Setting, target: &str) -> [String; 7] {
    let receive = setting.get("receive").unwrap_or("blocking");
    let (bytes, nanos) = (size(setting).to_string(), time(setting).0.to_string());
    ["trips", service(setting).name(), target, &bytes, "0", &nanos, receive].map(str::to_owned)
}

/// Adds the time to connect, and how many connections were made.
fn connect(pair: &mut Pair<'_>, sample: &mut Sample, lasts: Nanos) -> Result<(), Abort> {
    let (target, count, nanos) = (pair.target().to_string(), CONNECTIONS.to_string(), lasts.0.to_string());
    let done = pair.ask(&["connects", &target, &count, &nanos], lasts)?.done;
    for (name, own) in [("connections", "connects"), ("connections_took", "took")] {
        sample.counters.push((name.into(), result(&done, own)?));
    }
    let distributions = done.distributions.into_iter();
    sample.distributions.extend(distributions.map(|(name, values)| (name.into(), values)));
    Ok(())
}

/// Full round trips, one after the other, are as long as all of them together; nothing came back changed, and
/// few datagrams were lost.
fn is_true(done: &Done) -> Result<(), Failure> {
    let number = |name: &str| Ok::<_, Failure>(result(done, name)? as f64);
    let (count, took) = (number("trips")?, number("took")?);
    if number("wrong")? > 0.0 {
        return Err(wrong(format!("{} bytes came back changed", number("wrong")?)));
    }
    if number("lost")? > LOST * count {
        return Err(Failure::environment(format!("{} of {count} datagrams were lost", number("lost")?)));
    }
    let trips = done.distributions.iter().find(|(name, _)| name == "trip").map(|(_, values)| values);
    let mean =
        trips.and_then(|values| values.mean()).ok_or_else(|| wrong("there were no round trips".into()))?;
    let sum = mean * count;
    // A value of the histogram is known to three digits.
    if sum > took * 1.002 || sum < took * (1.0 - LOOP) {
        let [sum, took] = [sum, took].map(|nanos| Nanos(nanos as i64));
        return Err(wrong(format!(
            "{count} round trips of {} are {sum}, but all of them took {took}",
            Nanos(mean as i64)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Distribution, FailureClass};

    fn done(took: i64, [wrong, lost]: [i64; 2]) -> Done {
        let results = [("trips", 1000), ("took", took), ("wrong", wrong), ("lost", lost)];
        Done {
            results: results.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            distributions: vec![("trip".to_owned(), Distribution::of((0..1000).map(|_| 20_000)))],
            ..Done::default()
        }
    }

    #[test]
    fn what_cannot_be_true_of_round_trips_is_a_failure() {
        assert_eq!(is_true(&done(20_500_000, [0, 1])), Ok(()));
        let class = |done: Done| is_true(&done).unwrap_err().class;
        // Half round trips would be half as long as the loop.
        assert_eq!(class(done(40_000_000, [0, 0])), FailureClass::WrongOutput);
        assert_eq!(class(done(19_000_000, [0, 0])), FailureClass::WrongOutput);
        assert_eq!(class(done(20_500_000, [1, 0])), FailureClass::WrongOutput);
        assert_eq!(class(done(20_500_000, [0, 2])), FailureClass::Environment);
        assert_eq!(class(Done::default()), FailureClass::WrongOutput);
    }
}
