//! `net-throughput`: random bytes from a client to a server in a container, then back, on a path to it.

use super::super::{work_sample, worked};
use super::{sample, wrong};
use crate::experiment::Setting;
use crate::experiment::network::path;
use crate::experiment::network::throughput::{BYTES, LASTS};
use crate::outcome::{Abort, Failure, Sample};
use crate::probe::message::Done;
use crate::subject::pair::{Pair, result};
use crate::subject::{RunContext, Subject, Transport, Work, bare};
use crate::units::Nanos;

/// Bytes of a packet at most, as an interface with offloads counts them.
const PACKET: u64 = 1 << 16;

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let [bytes, streams] = [BYTES.to_string(), setting.get("streams").unwrap_or("1").to_owned()];
    let words =
        |target: &str, direction: &str| ["streams", target, direction, &bytes, &streams].map(str::to_owned);
    if !subject.has_a_clock() {
        let words = words(path(setting).name(), "up");
        return Ok(work_sample(&worked(subject, run, &Work::new("network", words.into(), LASTS))?)?);
    }
    let host = bare::peer(&run.place);
    let mut pair = Pair::begin(subject, &host, (path(setting), Transport::Tcp), run)?;
    pair.serve()?;
    let (counters, way) = pair.travelled(|pair| {
        let before = pair.server_cpu()?;
        let (mut counters, mut client) = (Vec::new(), Nanos(0));
        for [direction, moved, took] in [["up", "up_bytes", "up_took"], ["down", "down_bytes", "down_took"]] {
            let words = words(&pair.target().to_string(), direction);
            let answer = pair.ask(&words.each_ref().map(String::as_str), LASTS)?;
            is_true(&answer.done)?;
            counters.extend([(moved, result(&answer.done, "bytes")?), (took, result(&answer.done, "took")?)]);
            client = client + answer.cpu;
        }
        let used = Nanos(pair.server_cpu()?.0 - before.0);
        counters.extend([("client_cpu", client.0), ("server_cpu", used.0)]);
        Ok((counters, 2 * BYTES / PACKET))
    })?;
    let mut sample = sample(&mut pair, &way, run)?;
    sample.counters.extend(counters.into_iter().map(|(name, value)| (name.into(), value)));
    Ok(sample)
}

/// All bytes arrived, and none was changed.
fn is_true(done: &Done) -> Result<(), Failure> {
    let (bytes, changed) = (result(done, "bytes")?, result(done, "wrong")?);
    if bytes != BYTES as i64 {
        return Err(wrong(format!("{bytes} of {BYTES} bytes arrived")));
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
            is_true(&Done { results, ..Done::default() })
        };
        assert_eq!(done(BYTES, 0), Ok(()));
        assert!(done(BYTES - 1, 0).is_err() && done(BYTES, 1).is_err());
    }
}
