//! How experiments about the network are measured: what they share. Each has a file of its own.

pub mod latency;
pub mod throughput;

use super::sample_of;
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::subject::RunContext;
use crate::subject::pair::Pair;
use crate::subject::way::Way;

/// A sample with the treatment of a pair and the way of its packets.
fn sample(pair: &mut Pair<'_>, way: &Way, run: &RunContext) -> Result<Sample, Abort> {
    let mut treatment = pair.treatment(run)?;
    treatment.extend(way.facts());
    let mut sample = sample_of(Vec::new(), &treatment);
    sample.counters.push(("helper_cpu".into(), way.helper_cpu.0));
    Ok(sample)
}

/// Fails where an output cannot be true.
fn wrong(reason: String) -> Failure {
    Failure::new(FailureClass::WrongOutput, reason)
}
