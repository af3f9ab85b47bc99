//! The orders about HTTP.

use std::net::SocketAddr;

use super::{Asked, malformed};
use crate::load::http::server::{Server, Settings};
use crate::load::http::{self, Load, Wrong};
use crate::outcome::Failure;
use crate::probe::work::Report;
use crate::units::Nanos;

/// The server that was asked for.
pub fn server(asked: &Asked<'_>, address: SocketAddr) -> Result<Server, Failure> {
    let usual = Settings::default();
    let count = |name| Ok::<_, Failure>(asked.number_of(name)?.map(|number| number as usize));
    let settings = Settings {
        workers: count("workers")?,
        connections: count("connections")?.unwrap_or(usual.connections),
        directory: asked.option("directory").map(Into::into),
        key: asked.option("key").map(str::to_owned),
        bytes: count("bytes")?.unwrap_or(usual.bytes),
        sync: asked.number_of("sync")?.is_some_and(|sync| sync > 0),
        hashes: asked.number_of("hashes")?.unwrap_or(usual.hashes),
        stall: Nanos(asked.number_of("stall")?.unwrap_or_default() as i64),
    };
    Server::bind(address, settings)
}

pub fn load(asked: &Asked<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let target = asked.target(1)?;
    let status = asked.number_of("status")?.unwrap_or(200);
    let load = Load {
        path: asked.option("key").map_or_else(String::new, |key| format!("/{key}")) + asked.word(2),
        connections: asked.number(3, "a number of connections")? as usize,
        threads: asked.number(4, "a number of threads")? as usize,
        limit: asked.limit(5)?,
        rate: asked.number_of("rate")?,
        status: status.try_into().map_err(|_| malformed("a status", &status.to_string()))?,
        body: asked.number_of("body")?.map(|bytes| bytes as usize),
        computes: Nanos(asked.number_of("computes")?.unwrap_or_default() as i64),
    };
    let done = asked.bound(|| http::load(&target, &load))?;
    report.result("requests", done.requests as i64);
    report.result("took", done.took.0);
    report.result("in_flight", done.in_flight.0);
    report.result("bytes", done.bytes as i64);
    report.result("opened", done.opened as i64);
    for ((name, _), count) in Wrong::ALL.iter().zip(done.wrong) {
        report.result(name, count as i64);
    }
    report.distribution("latency", &done.latency);
    Ok(())
}

pub fn answers(asked: &Asked<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let target = asked.target(1)?;
    let answered = asked.bound(|| http::answers(&target, asked.word(2)))?;
    report.result("waited", answered.waited.0);
    report.result("status", answered.status.into());
    Ok(())
}
