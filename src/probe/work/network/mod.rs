//! Orders about a network: servers that stay, and loads on the servers of others (`crate::load`).

mod program;
mod servers;

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use dunnage_orders::network::{
    Answered, AwaitAnswer, Client, Connect, Connects, Facts, Links, Load, Names, Protocol, Queries, Request,
    Requests, Resolve, Resolver, Serve, Service, Settings, Started, Stream, Streams, Trip, Trips, Used,
    Whose,
};

use super::{ending, unsupported};
use crate::load::dns::{self, server};
use crate::load::server::Server;
use crate::load::{Key, Target, connects, http, streams, trips};
use crate::outcome::{Failure, OrEnvironment};
use crate::sys::{affinity, interface, own_time};
use crate::units::Nanos;

pub use program::start as start_program;

/// Where resolvers that a file names listen.
const NAMES: u16 = 53;

fn target(client: &Client) -> Result<Target, Failure> {
    let target = Target::new(client.target, client.whose)?;
    let patience = client.patience.map_or(target.patience, Duration::from_nanos);
    Ok(Target { patience, key: client.key.map(Key::from).unwrap_or_default(), ..target })
}

/// Runs a load on a thread of its own, which is bound to this CPU.
fn bound<T: Send>(
    cpu: Option<usize>,
    load: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let run = || {
        bind(cpu)?;
        load()
    };
    thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, run) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(error) => Err(Failure::environment(format!("cannot start a thread: {error}"))),
    })
}

fn bind(cpu: Option<usize>) -> Result<(), Failure> {
    let Some(cpu) = cpu else { return Ok(()) };
    affinity::bind_to(cpu).or_environment(format_args!("cannot use CPU {cpu} alone"))
}

pub fn serve(order: &Serve) -> Result<Started, Failure> {
    let key = order.key.map(Key::from).unwrap_or_default();
    let transport = |protocol| {
        let server = Server::bind(protocol, order.address)?;
        begin(order, server.address(), || drop(server.serve(key)))
    };
    match &order.service {
        Service::Tcp => transport(Protocol::Tcp),
        Service::Udp => transport(Protocol::Udp),
        Service::Http(settings) => {
            let settings = Settings { key: order.key, ..settings.clone() };
            let server = http::server::Server::bind(order.address, settings)?;
            begin(order, server.address(), || drop(server.serve()))
        }
        Service::Names { delay } => {
            let delay = Duration::from_nanos(delay.0.unsigned_abs());
            let resolver = server::Resolver::bind(order.address, delay)?;
            begin(order, resolver.address(), || drop(resolver.serve()))
        }
    }
}

/// Starts a server that listens at this address.
fn begin(order: &Serve, address: io::Result<SocketAddr>, serve: impl FnOnce()) -> Result<Started, Failure> {
    let port = address.or_environment("a server has no address")?.port();
    let cpu = order.cpu;
    // Here, since the child could not say that it failed.
    bound(cpu, || Ok(()))?;
    let (pid, servers) = servers::begin(move || {
        if bind(cpu).is_ok() {
            serve();
        }
    })?;
    Ok(Started { port: Some(port), pid, servers })
}

pub fn end_servers() -> Result<(), Failure> {
    servers::end();
    Ok(())
}

pub fn usage() -> Result<Used, Failure> {
    Ok(Used { server: servers::cpu()?, client: Nanos(own_time::process_cpu() as i64) })
}

pub fn links(order: &Links) -> Facts {
    let facts = order.interfaces.iter().flat_map(|name| interface::facts(name));
    facts.map(|(fact, told)| (fact.to_owned(), told)).collect()
}

pub fn trip(order: &Trip) -> Result<Trips, Failure> {
    let (target, limit) = (target(&order.client)?, ending(order.limit)?);
    let (size, receive) = (order.size as usize, order.receive);
    bound(order.client.cpu, || match order.protocol {
        Protocol::Tcp => trips::tcp(&target, size, limit, receive),
        Protocol::Udp => trips::udp(&target, size, limit, receive),
    })
}

pub fn connect(order: &Connect) -> Result<Connects, Failure> {
    let (target, limit) = (target(&order.client)?, ending(order.limit)?);
    bound(order.client.cpu, || connects::connects(&target, limit))
}

pub fn stream(order: &Stream) -> Result<Streams, Failure> {
    let target = target(&order.client)?;
    let Stream { direction, bytes, streams: count, seed, .. } = *order;
    bound(order.client.cpu, || streams::streams(&target, direction, bytes, count, seed))
}

pub fn request(order: &Request) -> Result<Requests, Failure> {
    let target = target(&order.client)?;
    ending(order.load.limit)?;
    let before = order.client.key.map_or_else(String::new, |key| format!("/{key}"));
    let load = Load { path: before + &order.load.path, ..order.load.clone() };
    bound(order.client.cpu, || http::load(&target, &load))
}

pub fn await_answer(order: &AwaitAnswer) -> Result<Answered, Failure> {
    let target = target(&order.client)?;
    bound(order.client.cpu, || http::answers(&target, &order.path))
}

/// The resolver to ask. One that a file names must be dunnage's or on this machine, so that no query is sent to
/// others.
fn resolver(asked: &Resolver) -> Result<Target, Failure> {
    let own = asked.own;
    let address = match &asked.file {
        None => own,
        Some(file) => SocketAddr::new(dns::resolver_in(file)?, NAMES),
    };
    if address == own && asked.is_engines {
        return Err(unsupported(
            "the engine gives programs on its network dunnage's resolver in place of its own, so its own \
             cannot be measured; podman does so before 4.4.3",
        ));
    }
    Target::new(address, if address == own { Whose::User } else { Whose::Run })
}

pub fn resolve(order: &Resolve) -> Result<Names, Failure> {
    let (target, limit) = (resolver(&order.resolver)?, ending(order.limit)?);
    bound(order.cpu, || dns::names(&target, &order.which, limit))
}

pub fn queries(order: &Queries) -> Result<u32, Failure> {
    dns::queries(&Target::new(order.resolver, Whose::User)?)
}
