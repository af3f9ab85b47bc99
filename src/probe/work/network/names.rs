//! Orders about names: a resolver that stays, names that are resolved, and how many a resolver was asked for.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::{Asked, Report, begin, malformed};
use crate::load::dns::server::Resolver;
use crate::load::dns::{self, Which};
use crate::load::{Target, Whose};
use crate::outcome::{Failure, FailureClass};

/// Where resolvers that a file names listen.
const PORT: u16 = 53;

pub fn resolver(asked: &Asked<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let delay = Duration::from_nanos(asked.number_of("delay")?.unwrap_or_default());
    let resolver = Resolver::bind(asked.address(1)?, delay)?;
    let own = resolver.address();
    begin(asked, report, own, || drop(resolver.serve()))
}

pub fn names(asked: &Asked<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let address = asked.option("address").unwrap_or_default();
    let which = match asked.option("name") {
        None => asked.one_of(1, &[("fresh", Which::Fresh), ("repeated", Which::Repeated)])?,
        Some(name) => Which::Given(name, address.parse().map_err(|_| malformed("an address", address))?),
    };
    let (target, limit) = (target(asked, 2)?, asked.limit(3)?);
    let done = asked.bound(|| dns::names(&target, which, limit))?;
    report.note("resolver", target.address.ip().to_string());
    report.result("names", done.count as i64);
    report.result("warm_up", done.warm_up as i64);
    report.result("took", done.took.0);
    report.result("wrong", done.wrong as i64);
    report.result("lost", done.lost as i64);
    report.distribution("name", &done.name);
    Ok(())
}

/// The resolver to ask. One that a file names must be dunnage's or on this machine, so that no query is sent to
/// others. With `engine`, it must be the engine's.
fn target(asked: &Asked<'_>, index: usize) -> Result<Target, Failure> {
    let own = asked.address(index)?;
    let address = match asked.option("file") {
        None => own,
        Some(file) => SocketAddr::new(dns::resolver_in(Path::new(file))?, PORT),
    };
    if address == own && asked.option("engine").is_some() {
        let reason = "the engine gives programs on its network dunnage's resolver in place of its own, so its own \
                      cannot be measured; podman does so before 4.4.3";
        return Err(Failure::new(FailureClass::Unsupported, reason));
    }
    let whose = if address == own { Whose::User } else { Whose::Run };
    Target::new(&address.to_string(), whose)
}

pub fn queries(asked: &Asked<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    report.result("queries", dns::queries(&target(asked, 1)?)?.into());
    Ok(())
}
