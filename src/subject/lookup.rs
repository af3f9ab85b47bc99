//! A program inside a subject that resolves names, and a resolver of dunnage's on the host that answers in the
//! end. The engine is given the resolver, and decides what the program asks. Bare processes and containers of the
//! floor, which have no engine, ask it directly.
//!
//! Deliberately absent: which names are resolved , and how fast.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use dunnage_orders::Answer;
use dunnage_orders::network::{self, Limit, Names, Queries, Resolve, Serve, Which};

use super::helpers::Helping;
use super::pair::{begun, cpus, joining, pinned};
use super::treatment::Network;
use super::way::{Counters, listed};
use super::{
    Attachment, Container, ContainerRequest, Layer, Need, Object, ObjectSpec, RunContext, Subject, kind_of,
};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::resource::Held;
use crate::units::Nanos;

/// What tells programs whom to ask.
const FILE: &str = "/etc/resolv.conf";
/// The port of resolvers.
const PORT: u16 = 53;

/// A client inside and a resolver on the host.
pub struct Lookup<'a> {
    client: Container<'a>,
    server: Container<'a>,
    /// Another container on the client's network.
    peer: Option<Container<'a>>,
    /// These go after the containers.
    network: Option<Held<Object>>,
    _address: Option<Held<Ipv4Addr>>,
    resolver: SocketAddr,
    /// Whom the client asks.
    asks: network::Resolver,
    /// Of server and client.
    cpus: [usize; 2],
    helping: Helping,
}

/// Programs of an engine that carried or answered queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Helpers {
    /// Their names, or `none`.
    pub names: String,
    /// Their CPU time.
    pub cpu: Nanos,
}

impl<'a> Lookup<'a> {
    /// Starts both, on the subject's usual network for [`Need::Resolver`], on one made for it for
    /// [`Need::Names`]. Each answer of the resolver is delayed by this time. `host` is where it runs.
    pub fn begin(
        subject: &'a dyn Subject,
        host: &'a dyn Subject,
        (need, delay): (Need, Nanos),
        run: &'a RunContext,
    ) -> Result<Lookup<'a>, Abort> {
        let about = subject.about();
        if !about.offers.contains(&need) {
            return Err(Failure::new(FailureClass::Unsupported, need.lacking()).into());
        }
        let (host, helping, cpus) = (subject.host(host), Helping::begin(subject), cpus()?);
        let is_joined = need == Need::Names || about.expected.network == Network::Loopback;
        let network = is_joined.then(|| subject.make(ObjectSpec::Network, run)).transpose()?;
        let attachment = network.as_ref().and_then(|network| network.attachment());
        let is_apart = attachment.as_ref().is_some_and(|attachment| attachment.bridge.is_some());
        let of_host = attachment.clone().map(Attachment::as_its_host);
        let mut server = begun(host, joining(of_host), run)?;
        // The host of a bridge that no engine keeps has one address, and nothing else listens there.
        let held = (!is_apart).then(|| subject.machine().address(run)).transpose()?;
        let own = match &held {
            Some((own, _)) => IpAddr::from(*own),
            None => {
                let own = server.addresses()?.into_iter().find(IpAddr::is_ipv4);
                own.ok_or_else(|| Failure::environment("the host of a bridge has no address"))?
            }
        };
        let resolver = SocketAddr::new(own, PORT);
        let service = network::Service::Names { delay };
        server.ask(Serve { service, address: resolver, key: None, cpu: Some(cpus[0]) }, Nanos(0))?;
        let kind = kind_of(&about.spec).or_environment("a subject has no kind")?;
        let is_engine = kind.layer == Layer::Engine;
        let request = ContainerRequest { resolver: is_engine.then_some(own), ..joining(attachment) };
        let client = begun(subject, request, run)?;
        let peer = None;
        let asks = network::Resolver {
            own: resolver,
            file: is_engine.then(|| FILE.into()),
            is_engines: is_engine && need == Need::Names,
        };
        Ok(Lookup {
            client,
            server,
            peer,
            network,
            _address: held.and_then(|(_, held)| held),
            resolver,
            asks,
            cpus,
            helping,
        })
    }

    /// Starts another container on the network that was made for the client, which resolves its name from now on.
    pub fn join(&mut self, subject: &'a dyn Subject, run: &'a RunContext) -> Result<(), Abort> {
        let attachment = self.network.as_ref().and_then(|network| network.attachment());
        self.peer = Some(begun(subject, joining(attachment), run)?);
        Ok(())
    }

    /// Where dunnage's resolver listens.
    pub fn resolver(&self) -> SocketAddr {
        self.resolver
    }

    /// Has the client resolve names, at most so many, which takes this long. Where another container has joined, its name.
    pub fn names(
        &mut self,
        which: Which,
        count: u64,
        takes: Nanos,
    ) -> Result<(Answer<Names>, Helpers), Abort> {
        let which = match &mut self.peer {
            None => which,
            Some(peer) => {
                let own = |address| if let IpAddr::V4(own) = address { Some(own) } else { None };
                let address = peer.addresses()?.into_iter().find_map(own);
                let reason = || Failure::environment("the container has no IPv4 address");
                Which::Given(peer.name().to_owned(), address.ok_or_else(reason)?)
            }
        };
        let limit = Limit { count, time: takes };
        let order = Resolve { resolver: self.asks.clone(), which, limit, cpu: Some(self.cpus[1]) };
        let before = Counters::read(&[], self.helping);
        let answer = self.client.ask(order, takes)?;
        let (names, cpu) = Counters::read(&[], self.helping).helped(&before);
        Ok((answer, Helpers { names: listed(&names), cpu }))
    }

    /// How many names dunnage's resolver was asked for so far.
    pub fn queries(&mut self) -> Result<i64, Abort> {
        Ok(self.server.ask(Queries { resolver: self.resolver }, Nanos(0))?.done.into())
    }

    /// What was found inside, and the CPUs of both ends, as recorded.
    pub fn treatment(&mut self) -> Result<Vec<(&'static str, String)>, Abort> {
        let mut facts = self.client.treatment()?;
        facts.push(pinned(self.cpus));
        Ok(facts)
    }
}
