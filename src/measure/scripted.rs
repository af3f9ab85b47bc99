//! `scripted`: a launch, and values of every kind derived from its duration.

use crate::experiment::Setting;
use crate::experiment::scripted::BYTES;
use crate::experiment::scripted::names::{LATENCY, MOVED};
use crate::outcome::{Abort, Artefact, Distribution, Sample};
use crate::subject::{RunContext, Subject};

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, _: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let launch = subject.launch(run)?;
    let mut sample = super::start::sample(&launch)?;
    let took = launch.returned.since(launch.spawned).0.unsigned_abs();
    sample.add(MOVED, BYTES);
    let latencies = (1..=1000).map(|place| took * place / 1000);
    sample.add(LATENCY, Distribution::of(latencies));
    let trace = format!("spawn 0\nreturned {took}\n");
    sample.artefacts.push(("trace".into(), Artefact::Bytes(trace.into_bytes())));
    Ok(sample)
}
