//! `net-throughput`: random bytes from a client to a server in a container, then back, on a path to it.

use dunnage_orders::network::{self as orders, Direction, Stream, Streams};

use super::{Exchange, sample, wrong};
use crate::experiment::Setting;
use crate::experiment::network::throughput::names::{
    CLIENT_CPU, DOWN_BYTES, DOWN_TOOK, SERVER_CPU, UP_BYTES, UP_TOOK,
};
use crate::experiment::network::throughput::{LASTS, bytes};
use crate::outcome::{Abort, Failure, Sample};
use crate::subject::pair::{Addition, Pair, Server, Service};
use crate::units::Nanos;

/// Bytes of a packet at most, as an interface with offloads counts them.
const PACKET: u64 = 1 << 16;

/// How a path is measured.
pub static EXCHANGE: Exchange = Exchange {
    service: |_| Service::Tcp,
    addition: |_, _| Ok(Addition::default()),
    server: |_, _, _| Ok(Server::Probe(orders::Service::Tcp)),
    take,
};

fn take(pair: &mut Pair<'_>, setting: &Setting) -> Result<Sample, Abort> {
    let sent = bytes(setting);
    let (counters, way) = pair.travelled(|pair| {
        let before = pair.server_cpu()?;
        let (mut counters, mut client) = (Vec::new(), Nanos(0));
        let streams = setting.get("streams").and_then(|streams| streams.parse().ok()).unwrap_or(1);
        for (direction, [moved, took]) in
            [(Direction::Up, [UP_BYTES, UP_TOOK]), (Direction::Down, [DOWN_BYTES, DOWN_TOOK])]
        {
            let order = Stream { client: pair.end(), direction, bytes: sent, streams, seed: 0 };
            let answer = pair.ask(order, LASTS)?;
            is_true(&answer.done, sent)?;
            counters.extend([(moved, answer.done.bytes as i64), (took, answer.done.took.0)]);
            client = client + answer.cpu;
        }
        let used = Nanos(pair.server_cpu()?.0 - before.0);
        counters.extend([(CLIENT_CPU, client.0), (SERVER_CPU, used.0)]);
        Ok((counters, 2 * sent / PACKET))
    })?;
    let mut sample = sample(pair, &way)?;
    sample.extend(counters);
    Ok(sample)
}

/// All bytes arrived, and none was changed.
fn is_true(done: &Streams, sent: u64) -> Result<(), Failure> {
    if done.bytes != sent {
        return Err(wrong(format!("{} of {sent} bytes arrived", done.bytes)));
    }
    if done.wrong > 0 {
        return Err(wrong(format!("{} chunks of 128 KiB have a wrong checksum", done.wrong)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_lost_or_changed_are_a_failure() {
        let done = |bytes, wrong| is_true(&Streams { bytes, took: Nanos(1), wrong }, 1000);
        assert_eq!(done(1000, 0), Ok(()));
        assert!(done(999, 0).is_err() && done(1000, 1).is_err());
    }
}
