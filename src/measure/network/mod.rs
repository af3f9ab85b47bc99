//! How experiments about the network are measured: the paths to one server of a subject, one after the other.
//! Each experiment has a file of its own.

pub mod dns;
pub mod http;
pub mod latency;
mod steady;
pub mod throughput;

use dunnage_analysis::distinct;

use super::{Asked, Visit, Visited, sample_of};
use crate::experiment::Setting;
use crate::experiment::network::names::HELPER_CPU;
use crate::experiment::network::{self, path};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::subject::pair::{Addition, End, Pair, Server, Service, is_joined};
use crate::subject::way::Way;
use crate::subject::{RunContext, Subject};

/// How an experiment measures one path.
pub struct Exchange {
    /// The kind of its server.
    service: fn(&Setting) -> Service,
    /// What the server's container has in addition.
    addition: fn(&Setting, &RunContext) -> Result<Addition, Failure>,
    /// Its server.
    server: fn(&Setting, &dyn Subject, &RunContext) -> Result<Server, Abort>,
    /// Takes a sample while its client has the turn.
    take: fn(&mut Pair<'_>, &Setting) -> Result<Sample, Abort>,
}

impl Exchange {
    fn end(&self, setting: &Setting) -> End {
        (path(setting), (self.service)(setting))
    }
}

/// The exchanges of the experiments that share servers.
fn exchange(experiment: &str) -> &'static Exchange {
    match experiment {
        network::latency::NAME => &latency::EXCHANGE,
        network::throughput::NAME => &throughput::EXCHANGE,
        network::http::NAME => &http::EXCHANGE,
        other => unreachable!("`{other}` has no servers"),
    }
}

/// The servers of one subject for several paths and experiments.
struct Servers<'a> {
    subject: &'a dyn Subject,
    host: &'a dyn Subject,
    run: &'a RunContext,
    asked: Vec<Asked<'a>>,
    /// One for paths in a network made for them, one for the others, once they are needed.
    pairs: Vec<Pair<'a>>,
}

/// Begins a visit to the servers of a subject.
pub(super) fn begin<'a>(visited: Visited<'a>) -> Box<dyn Visit + 'a> {
    let Visited { subject, host, run, asked } = visited;
    Box::new(Servers { subject, host, run, asked, pairs: Vec::new() })
}

impl Visit for Servers<'_> {
    /// After a failure the next one gets a new server.
    fn take(&mut self, (experiment, setting): Asked<'_>) -> Result<Sample, Abort> {
        let exchange = exchange(experiment);
        let end = exchange.end(setting);
        let found = self.pairs.iter().position(|pair| pair.has(end));
        let mut pair = match found {
            Some(at) => self.pairs.swap_remove(at),
            None => self.begun(end)?,
        };
        pair.serve(end, &(exchange.server)(setting, self.subject, self.run)?)?;
        let sample = (exchange.take)(&mut pair, setting)?;
        self.pairs.push(pair);
        Ok(sample)
    }
}

impl<'a> Servers<'a> {
    /// A server for all paths that can share it with this one, or for this one alone if another one is not to
    /// be had.
    fn begun(&self, end: End) -> Result<Pair<'a>, Abort> {
        let mut addition = Addition::default();
        for (experiment, setting) in &self.asked {
            addition.add((exchange(experiment).addition)(setting, self.run)?);
        }
        let begin = |ends: &[End]| Pair::begin((self.subject, self.host), ends, addition.clone(), self.run);
        let own = |path| is_joined(self.subject, path);
        let alike = self.asked.iter().map(|(experiment, setting)| exchange(experiment).end(setting));
        let alike = distinct(alike.filter(|(path, _)| own(*path) == own(end.0)));
        match begin(&alike) {
            Err(Abort::Failed(_)) if alike.len() > 1 => begin(&[end]),
            begun => begun,
        }
    }
}

/// A sample with the treatment of a pair and the way of its packets.
fn sample(pair: &mut Pair<'_>, way: &Way) -> Result<Sample, Abort> {
    let mut sample = sample_of(Vec::new(), &pair.treatment()?);
    sample.extend(way.facts());
    sample.add(HELPER_CPU, way.helper_cpu.0);
    Ok(sample)
}

/// Fails where an output cannot be true.
fn wrong(reason: String) -> Failure {
    Failure::new(FailureClass::WrongOutput, reason)
}
