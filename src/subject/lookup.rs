//! A program inside a subject that resolves names, and a resolver of dunnage's on the host that answers in the
//! end. The engine is given the resolver, and decides what the program asks. Bare processes and containers of the
//! floor, which have no engine, ask it directly.
//!
//! Deliberately absent: which names are resolved (the probe's work `network`), and how fast.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::pair::{begun, cpus, joining, order, pinned, result};
use super::treatment::Network;
use super::way::{Counters, Helping, listed};
use super::{Container, ContainerRequest, Joint, Layer, Made, Need, RunContext, Subject, Wish, kind_of};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::message::Answer;
use crate::resource::Held;
use crate::resource::address::address;
use crate::units::Nanos;

/// Whom programs ask, and that it must be the engine's own resolver.
const OF_THE_ENGINE: [&str; 2] = ["file=/etc/resolv.conf", "engine"];
/// The port of resolvers.
const PORT: u16 = 53;

/// A client inside and a resolver on the host.
pub struct Lookup<'a> {
    client: Container<'a>,
    server: Container<'a>,
    /// Another container on the client's network.
    peer: Option<Container<'a>>,
    /// These go after the containers.
    network: Option<Held<Made>>,
    _address: Option<Held<Ipv4Addr>>,
    resolver: SocketAddr,
    /// What tells the client whom to ask; nothing for dunnage's resolver.
    asks: &'static [&'static str],
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
        let (helping, cpus) = (Helping::begin(subject), cpus()?);
        let is_joined = need == Need::Names || about.expected.network == Network::Loopback;
        let network = is_joined.then(|| subject.make(Wish::Network, run)).transpose()?;
        let joint = network.as_ref().and_then(|network| network.joint());
        let is_apart = joint.as_ref().is_some_and(|joint| joint.bridge.is_some());
        let of_host = joint.clone().map(Joint::as_its_host);
        let mut server = begun(host, joining(of_host), run)?;
        // The host of a bridge that no engine keeps has one address, and nothing else listens there.
        let held = (!is_apart).then(|| address(&run.owner)).transpose()?;
        let own = match &held {
            Some(own) => IpAddr::from(**own),
            None => {
                let own = server.addresses()?.into_iter().find(IpAddr::is_ipv4);
                own.ok_or_else(|| Failure::environment("the host of a bridge has no address"))?
            }
        };
        let resolver = SocketAddr::new(own, PORT);
        let words = ["resolver", &resolver.to_string(), &format!("delay={}", delay.0)];
        server.ask(&order(&words, cpus[0], Nanos(0)))?;
        let kind = kind_of(&about.spec).or_environment("a subject has no kind")?;
        let is_engine = kind.layer == Layer::Engine;
        let request = ContainerRequest { resolver: is_engine.then_some(own), ..joining(joint) };
        let client = begun(subject, request, run)?;
        let peer = None;
        let asks = match (is_engine, need) {
            (false, _) => &[],
            (true, Need::Names) => &OF_THE_ENGINE[..],
            (true, _) => &OF_THE_ENGINE[..1],
        };
        Ok(Lookup { client, server, peer, network, _address: held, resolver, asks, cpus, helping })
    }

    /// Starts another container on the network that was made for the client, which resolves its name from now on.
    pub fn join(&mut self, subject: &'a dyn Subject, run: &'a RunContext) -> Result<(), Abort> {
        let joint = self.network.as_ref().and_then(|network| network.joint());
        self.peer = Some(begun(subject, joining(joint), run)?);
        Ok(())
    }

    /// Where dunnage's resolver listens.
    pub fn resolver(&self) -> SocketAddr {
        self.resolver
    }

    /// Has the client resolve names, which takes this long.
    pub fn names(&mut self, (which, count): (&str, u64), takes: Nanos) -> Result<(Answer, Helpers), Abort> {
        let [resolver, count, nanos] = [self.resolver.to_string(), count.to_string(), takes.0.to_string()];
        let mut words = vec!["names", which, &resolver, &count, &nanos];
        words.extend(self.asks);
        let peer = match &mut self.peer {
            None => Vec::new(),
            Some(peer) => {
                let address = peer.addresses()?.into_iter().find(IpAddr::is_ipv4);
                let reason = || Failure::environment("the container has no IPv4 address");
                vec![format!("name={}", peer.name()), format!("address={}", address.ok_or_else(reason)?)]
            }
        };
        words.extend(peer.iter().map(String::as_str));
        let before = Counters::read(&[], self.helping);
        let answer = self.client.ask(&order(&words, self.cpus[1], takes))?;
        let (names, cpu) = Counters::read(&[], self.helping).helped(&before);
        Ok((answer, Helpers { names: listed(&names), cpu }))
    }

    /// How many names dunnage's resolver was asked for so far.
    pub fn queries(&mut self) -> Result<i64, Abort> {
        let order = order(&["queries", &self.resolver.to_string()], self.cpus[0], Nanos(0));
        Ok(result(&self.server.ask(&order)?.done, "queries")?)
    }

    /// What was found inside, and the CPUs of both ends, as recorded.
    pub fn treatment(&mut self, run: &RunContext) -> Result<Vec<(&'static str, String)>, Abort> {
        let mut facts = run.treatment(&self.client.ready()?.inside);
        facts.push(pinned(self.cpus));
        Ok(facts)
    }
}
