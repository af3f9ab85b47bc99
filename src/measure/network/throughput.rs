//! `net-throughput`: random bytes from a client to a server in a container, then back, on a path to it.

use super::{Exchange, sample, wrong};
use crate::experiment::Setting;
use crate::experiment::network::path;
use crate::experiment::network::throughput::{LASTS, bytes};
use crate::outcome::{Abort, Failure, Sample};
use crate::probe::message::Done;
use crate::subject::Work;
use crate::subject::pair::{Addition, Pair, Server, Service, result};
use crate::units::Nanos;

/// Bytes of a packet at most, as an interface with offloads counts them.
const PACKET: u64 = 1 << 16;

/// How a path is measured.
pub static EXCHANGE: Exchange = Exchange {
    service: |_| Service::Tcp,
    addition: |_, _| Ok(Addition::default()),
    server: |_, _, _| Ok(Server::of(Service::Tcp, [])),
    take,
    scripted: |setting| Work::new("network", streams(setting, path(setting).name(), "up").into(), LASTS),
};

/// The order for streams in this direction.
fn streams(setting: &Setting, target: &str, direction: &str) -> [String; 5] {
    let [bytes, streams] = [bytes(setting).to_string(), setting.get("streams").unwrap_or("1").to_owned()];
    ["streams", target, direction, &bytes, &streams].map(str::to_owned)
}

fn take(pair: &mut Pair<'_>, setting: &Setting) -> Result<Sample, Abort> {
    let sent = bytes(setting);
    let (counters, way) = pair.travelled(|pair| {
        let before = pair.server_cpu()?;
        let (mut counters, mut client) = (Vec::new(), Nanos(0));
        for [direction, moved, took] in [["up", "up_bytes", "up_took"], ["down", "down_bytes", "down_took"]] {
            let words = streams(setting, &pair.target().to_string(), direction);
            let answer = pair.ask(&words.each_ref().map(String::as_str), LASTS)?;
            is_true(&answer.done, sent)?;
            counters.extend([(moved, result(&answer.done, "bytes")?), (took, result(&answer.done, "took")?)]);
            client = client + answer.cpu;
        }
        let used = Nanos(pair.server_cpu()?.0 - before.0);
        counters.extend([("client_cpu", client.0), ("server_cpu", used.0)]);
        Ok((counters, 2 * sent / PACKET))
    })?;
    let mut sample = sample(pair, &way)?;
    sample.counters.extend(counters.into_iter().map(|(name, value)| (name.into(), value)));
    Ok(sample)
}

/// All bytes arrived, and none was changed.
fn is_true(done: &Done, sent: u64) -> Result<(), Failure> {
    let (bytes, changed) = (result(done, "bytes")?, result(done, "wrong")?);
    if bytes != sent as i64 {
        return Err(wrong(format!("{bytes} of {sent} bytes arrived")));
    }
    if changed > 0 {
        return Err(wrong(format!("{changed} chunks of 128 KiB have a wrong checksum")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_lost_or_changed_are_a_failure() {
        let done = |bytes: u64, wrong: i64| {
            let results = [("bytes", bytes as i64), ("took", 1), ("wrong", wrong)];
            let results = results.map(|(name, value)| (name.to_owned(), value)).to_vec();
            is_true(&Done { results, ..Done::default() }, 1000)
        };
        assert_eq!(done(1000, 0), Ok(()));
        assert!(done(999, 0).is_err() && done(1000, 1).is_err());
    }
}
