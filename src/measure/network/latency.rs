//! `net-latency`: round trips between a server in a container and a client on a path to it, then connections.

use dunnage_orders::network::{
    self as orders, Client, Connect, Connects, Limit, Protocol, Receive, Trip, Trips,
};

use super::{Exchange, sample, wrong};
use crate::experiment::Setting;
use crate::experiment::network::latency::{CONNECTING, CONNECTIONS, is_of_streams, names, size};
use crate::experiment::network::time;
use crate::outcome::{Abort, Failure, Sample};
use crate::subject::pair::{Addition, Pair, Server, Service};
use crate::units::Nanos;

/// How much more than the round trips their loop may take, as a share: reading the clock and recording.
const LOOP: f64 = 0.1;
/// Of the datagrams, how many may be lost.
const LOST: f64 = 0.001;

/// How a path is measured.
pub static EXCHANGE: Exchange = Exchange {
    service,
    addition: |_, _| Ok(Addition::default()),
    server: |setting, _, _| {
        Ok(Server::Probe(if is_of_streams(setting) { orders::Service::Tcp } else { orders::Service::Udp }))
    },
    take,
};

fn service(setting: &Setting) -> Service {
    if is_of_streams(setting) { Service::Tcp } else { Service::Udp }
}

fn take(pair: &mut Pair<'_>, setting: &Setting) -> Result<Sample, Abort> {
    let lasts = time(setting);
    let ((answer, server_cpu), way) = pair.travelled(|pair| {
        let before = pair.server_cpu()?;
        let answer = pair.ask(trip(pair.end(), setting), lasts)?;
        let after = pair.server_cpu()?;
        let packets = 2 * answer.done.count;
        Ok(((answer, Nanos(after.0 - before.0)), packets))
    })?;
    is_true(&answer.done)?;
    let mut sample = sample(pair, &way)?;
    let Trips { count, warm_up, took, wrong, lost, trip } = answer.done;
    let counted =
        [(names::TRIPS, count), (names::WARM_UP, warm_up), (names::WRONG, wrong), (names::LOST, lost)];
    sample.extend(counted.map(|(name, value)| (name, value as i64)));
    let spent = [(names::TOOK, took), (names::CLIENT_CPU, answer.cpu), (names::SERVER_CPU, server_cpu)];
    sample.extend(spent.map(|(name, time)| (name, time.0)));
    sample.add(names::TRIP, trip);
    if is_of_streams(setting) {
        connect(pair, &mut sample, Nanos(lasts.0 / CONNECTING))?;
    }
    Ok(sample)
}

/// The order for round trips.
fn trip(client: Client, setting: &Setting) -> Trip {
    let receive = if setting.get("receive") == Some("busy") { Receive::Busy } else { Receive::Blocking };
    let protocol = if is_of_streams(setting) { Protocol::Tcp } else { Protocol::Udp };
    let limit = Limit { count: 0, time: time(setting) };
    Trip { client, protocol, size: size(setting), limit, receive }
}

/// Adds the time to connect, and how many connections were made.
fn connect(pair: &mut Pair<'_>, sample: &mut Sample, lasts: Nanos) -> Result<(), Abort> {
    let limit = Limit { count: CONNECTIONS, time: lasts };
    let Connects { count, took, connect } = pair.ask(Connect { client: pair.end(), limit }, lasts)?.done;
    sample.extend([(names::CONNECTIONS_MADE, count as i64), (names::CONNECTIONS_TOOK, took.0)]);
    sample.add(names::CONNECT, connect);
    Ok(())
}

/// Full round trips, one after the other, are as long as all of them together; nothing came back changed, and
/// few datagrams were lost.
fn is_true(done: &Trips) -> Result<(), Failure> {
    let (count, took) = (done.count as f64, done.took.0 as f64);
    if done.wrong > 0 {
        return Err(wrong(format!("{} bytes came back changed", done.wrong)));
    }
    if done.lost as f64 > LOST * count {
        return Err(Failure::environment(format!("{} of {count} datagrams were lost", done.lost)));
    }
    let mean = done.trip.mean().ok_or_else(|| wrong("there were no round trips".into()))?;
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

    fn done(took: i64, [wrong, lost]: [u64; 2]) -> Trips {
        let trip = Distribution::of((0..1000).map(|_| 20_000));
        Trips { count: 1000, warm_up: 10, took: Nanos(took), wrong, lost, trip }
    }

    #[test]
    fn what_cannot_be_true_of_round_trips_is_a_failure() {
        assert_eq!(is_true(&done(20_500_000, [0, 1])), Ok(()));
        let class = |done: Trips| is_true(&done).unwrap_err().class;
        // Half round trips would be half as long as the loop.
        assert_eq!(class(done(40_000_000, [0, 0])), FailureClass::WrongOutput);
        assert_eq!(class(done(19_000_000, [0, 0])), FailureClass::WrongOutput);
        assert_eq!(class(done(20_500_000, [1, 0])), FailureClass::WrongOutput);
        assert_eq!(class(done(20_500_000, [0, 2])), FailureClass::Environment);
        let none = Trips { count: 0, trip: Distribution::of([]), ..done(0, [0, 0]) };
        assert_eq!(class(none), FailureClass::WrongOutput);
    }
}
