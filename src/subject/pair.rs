//! A server in a subject's container and its clients, on the [`Path`]s between them: all of one container, one
//! after the other. Both ends are probes that carry out orders. Each has a CPU of its own where there are
//! several.
//!
//! Deliberately absent: what is sent, and what it means.

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use dunnage_orders::network::{self, AwaitAnswer, EndServers, Links, Serve, StartProgram, Usage};
use dunnage_orders::{Answer, Ask};

use super::helpers::Helping;
use super::treatment::Network;
use super::way::{self, Counters, Passed, Way};
use super::{
    Attachment, Container, ContainerRequest, Mount, Object, ObjectSpec, Path, Port, Resident, RunContext,
    Subject, Transport, addresses,
};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::resource::Held;
use crate::sys::{affinity, clock, conntrack, interface};
use crate::units::Nanos;

/// How long to wait for a program's first answer before looking whether it still runs.
const LOOK: Nanos = Nanos::from_millis(500);
/// The port of the first server whose network namespace is not the host's; each path has its own.
const PORT: u16 = 7000;

/// A server that its client reaches on one path.
pub type End = (Path, Service);

/// A kind of server. Each has a port of its own on each path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Returns bytes, or counts them.
    Tcp,
    /// Returns datagrams.
    Udp,
    /// Answers requests: the probe, or a user's program.
    Http,
}

impl Service {
    /// What carries its bytes.
    pub fn transport(self) -> Transport {
        if self == Service::Udp { Transport::Udp } else { Transport::Tcp }
    }
}

/// What the container of a server has in addition.
#[derive(Debug, Clone, Default)]
pub struct Addition {
    /// Paths of the host that are bound into it.
    pub mounts: Vec<Mount>,
    /// The port of a user's program, to which all paths lead.
    pub port: Option<u16>,
}

impl Addition {
    /// Adds another one, without what is there.
    pub fn add(&mut self, other: Addition) {
        let new = other.mounts.into_iter().filter(|mount| !self.mounts.contains(mount)).collect::<Vec<_>>();
        self.mounts.extend(new);
        self.port = self.port.or(other.port);
    }
}

/// What serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// The probe.
    Probe(network::Service),
    /// A user's program, and the path of a request that it answers once it serves.
    Program(StartProgram, String),
}

/// A server and its clients, of which one has its turn.
pub struct Pair<'a> {
    ends: Vec<End>,
    /// Whose turn it is: its path and server, and where the client reaches that.
    path: Path,
    service: Service,
    target: SocketAddr,
    /// The clients; none where the server's own probe is the client, and the server is another process.
    on_host: Option<Container<'a>>,
    peer: Option<Container<'a>>,
    server: Container<'a>,
    /// What listens already, for which end, and where its client reaches it.
    served: Vec<(End, Server, SocketAddr)>,
    /// The port of a user's program.
    program: Option<u16>,
    /// How much the program was loaded until it was warm: requests, and how long they took.
    pub warm_up: Option<(i64, Nanos)>,
    /// What only server and clients know: a published port can be reached by others.
    key: u64,
    /// Goes after the containers.
    network: Option<Held<Object>>,
    /// The CPUs of server and client.
    cpus: [usize; 2],
    helping: Helping,
    subject: &'a dyn Subject,
    host: &'a dyn Subject,
    run: &'a RunContext,
}

/// Whether both ends of this path are in a network that is made for them.
pub fn is_joined(subject: &dyn Subject, path: Path) -> bool {
    let has_address = subject.about().expected.network == Network::Connected;
    path == Path::Peer || (path == Path::Bridge && !has_address)
}

/// The address of the host at which this path publishes a port, if it does.
fn published_at(path: Path) -> Result<Option<IpAddr>, Failure> {
    Ok(match path {
        Path::Published => Some(Ipv4Addr::LOCALHOST.into()),
        Path::Published6 => Some(Ipv6Addr::LOCALHOST.into()),
        Path::PublishedHost => {
            let lacking = || Failure::new(FailureClass::Unsupported, "this host has no address but loopback");
            Some(addresses::of_host().ok_or_else(lacking)?)
        }
        Path::Inside | Path::Bridge | Path::Peer => None,
    })
}

/// A container or process that carries out orders, and is ready.
pub fn begun<'a>(
    subject: &'a dyn Subject,
    request: ContainerRequest,
    run: &'a RunContext,
) -> Result<Container<'a>, Abort> {
    let request = ContainerRequest { program: Resident::Serves, ..request };
    let mut container = Container::create(subject, &request, run)?;
    container.start()?;
    container.ready()?;
    Ok(container)
}

/// A request for one that joins this network.
pub(super) fn joining(network: Option<Attachment>) -> ContainerRequest {
    ContainerRequest { network, ..ContainerRequest::default() }
}

/// The CPUs of a server and its client: two of their own where there are several.
pub(super) fn cpus() -> Result<[usize; 2], Failure> {
    let cpus = affinity::allowed().or_environment("cannot read the CPUs that dunnage may use")?;
    Ok([cpus.first(), cpus.last()].map(|cpu| cpu.copied().unwrap_or(0)))
}

/// A random key.
fn key() -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    let random = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    random.or_environment("cannot read `/dev/urandom`")?;
    Ok(u64::from_le_bytes(bytes))
}

/// The fact about these CPUs.
pub(super) fn pinned([server, client]: [usize; 2]) -> (&'static str, String) {
    ("pinned", format!("server to CPU {server}, client to CPU {client}"))
}

impl<'a> Pair<'a> {
    /// Starts the server's end for all of these paths, which are either all in a network that is made for them
    /// or none. It does not listen yet. `host` is where clients outside of containers run.
    pub fn begin(
        (subject, host): (&'a dyn Subject, &'a dyn Subject),
        ends: &[End],
        addition: Addition,
        run: &'a RunContext,
    ) -> Result<Pair<'a>, Abort> {
        let offers = &subject.about().offers;
        if let Some((path, _)) = ends.iter().find(|(path, _)| !offers.contains(&path.need())) {
            return Err(Failure::new(FailureClass::Unsupported, path.need().lacking()).into());
        }
        let (host, helping) = (subject.host(host), Helping::begin(subject));
        let cpus = cpus()?;
        let is_joined = ends.iter().any(|(path, _)| is_joined(subject, *path));
        let network = is_joined.then(|| subject.make(ObjectSpec::Network, run)).transpose()?;
        let mut ports = Vec::new();
        for (number, (path, service)) in (PORT..).zip(ends) {
            let own = addition.port.filter(|_| *service == Service::Http);
            let (number, transport) = (own.unwrap_or(number), service.transport());
            ports.extend(published_at(*path)?.map(|at| Port { number, transport, at }));
        }
        let attachment = network.as_ref().and_then(|network| network.attachment());
        let request = ContainerRequest { ports, mounts: addition.mounts, ..joining(attachment) };
        let server = begun(subject, request, run)?;
        let target = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let (path, service) = ends.first().copied().unwrap_or((Path::Inside, Service::Tcp));
        Ok(Pair {
            ends: ends.to_vec(),
            path,
            service,
            target,
            on_host: None,
            peer: None,
            server,
            served: Vec::new(),
            program: addition.port,
            warm_up: None,
            key: key()?,
            network,
            cpus,
            helping,
            subject,
            host,
            run,
        })
    }

    /// Whether it was begun for this path.
    pub fn has(&self, end: End) -> bool {
        self.ends.contains(&end)
    }

    /// Has the server of one path listen, and gives its client the turn.
    pub fn serve(&mut self, end: End, server: &Server) -> Result<(), Abort> {
        let at = self.ends.iter().position(|own| *own == end);
        let at = at.ok_or_else(|| Failure::environment("no server was begun for this path"))?;
        (self.path, self.service) = end;
        let attachment = || self.network.as_ref().and_then(|network| network.attachment());
        match self.path {
            Path::Inside => {}
            Path::Peer if self.peer.is_some() => {}
            Path::Peer => self.peer = Some(begun(self.subject, joining(attachment()), self.run)?),
            _ if self.on_host.is_some() => {}
            _ => {
                self.on_host =
                    Some(begun(self.host, joining(attachment().map(Attachment::as_its_host)), self.run)?)
            }
        }
        let known = self.served.iter().find(|(at, own, _)| *at == end && own == server);
        if let Some((_, _, target)) = known {
            self.target = *target;
            return Ok(());
        }
        if self.served.iter().any(|(at, _, _)| *at == end) {
            // Another one is at its port.
            self.end_servers()?;
        }
        self.target = match (server, self.program) {
            (Server::Probe(service), _) => self.listen(PORT + at as u16, service)?,
            (Server::Program(..), None) => return Err(Failure::environment("a program has no port").into()),
            (Server::Program(start, request), Some(port)) => self.program(port, start, request)?,
        };
        self.served.push((end, server.clone(), self.target));
        Ok(())
    }

    /// Ends everything that serves.
    fn end_servers(&mut self) -> Result<(), Abort> {
        self.served.clear();
        self.warm_up = None;
        self.server.ask(EndServers {}, Nanos(0))?;
        Ok(())
    }

    /// Has the probe listen on this port, or on any free one where only its own namespace reaches it. Returns
    /// where its client does.
    fn listen(&mut self, number: u16, service: &network::Service) -> Result<SocketAddr, Abort> {
        let address: SocketAddr = match self.path {
            Path::Inside => (Ipv4Addr::LOCALHOST, 0).into(),
            Path::Published6 => (Ipv6Addr::UNSPECIFIED, number).into(),
            _ => (Ipv4Addr::UNSPECIFIED, number).into(),
        };
        let (service, key, cpu) = (service.clone(), Some(self.key), Some(self.cpus[0]));
        let started = self.server.ask(Serve { service, address, key, cpu }, Nanos(0))?.done;
        let port = started.port.ok_or_else(|| Failure::environment("a server has no port"))?;
        self.reached(port)
    }

    /// Starts a user's program, unless it runs already, and waits until it answers this request.
    fn program(&mut self, port: u16, start: &StartProgram, request: &str) -> Result<SocketAddr, Abort> {
        let runs = |(_, own, _): &(End, Server, SocketAddr)| matches!(own, Server::Program(..));
        if !self.served.iter().any(runs) {
            let start = StartProgram { cpu: Some(self.cpus[0]), ..start.clone() };
            self.server.ask(start, Nanos(0))?;
        }
        self.target = self.reached(port)?;
        let client = self.end();
        let run = self.run;
        let ask = |pair: &mut Self, patience: Nanos| {
            let client = network::Client { patience: Some(patience.0.unsigned_abs()), ..client };
            pair.ask(AwaitAnswer { client, path: request.to_owned() }, patience).map(drop)
        };
        until_answered(self, run, ask, |pair| pair.server_cpu().map(drop))?;
        Ok(self.target)
    }

    /// Where the client reaches this port of the server.
    fn reached(&mut self, port: u16) -> Result<SocketAddr, Abort> {
        let published = published_at(self.path)?;
        Ok(match (self.path, published) {
            (Path::Inside, _) => (Ipv4Addr::LOCALHOST, port).into(),
            (_, Some(at)) => {
                let mut own = self.server.ports()?;
                // An engine may name another address of its own choice, but the other IP version is another path.
                own.retain(|one| one.inside == port && one.host.is_ipv4() == at.is_ipv4());
                let found = own.iter().find(|one| one.host.ip() == at).or(own.first()).copied();
                let reason = || Failure::environment("the engine does not say where the port is published");
                found.ok_or_else(reason)?.host
            }
            _ => {
                let own = self.server.addresses()?.into_iter().find(IpAddr::is_ipv4);
                let reason = || Failure::environment("the container has no IPv4 address");
                SocketAddr::new(own.ok_or_else(reason)?, port)
            }
        })
    }

    fn client(&mut self) -> &mut Container<'a> {
        let client = match self.path {
            Path::Inside => None,
            Path::Peer => self.peer.as_mut(),
            _ => self.on_host.as_mut(),
        };
        client.unwrap_or(&mut self.server)
    }

    /// Who asks whom, for orders to the client.
    pub fn end(&self) -> network::Client {
        let is_users = self.service == Service::Http && self.program.is_some();
        let (key, cpu) = ((!is_users).then_some(self.key), Some(self.cpus[1]));
        network::Client { key, cpu, ..network::Client::of(self.target) }
    }

    /// Has the client carry out an order that takes this long.
    pub fn ask<O: Ask>(&mut self, order: O, takes: Nanos) -> Result<Answer<O::Answer>, Abort> {
        self.client().ask(order, takes)
    }

    /// CPU time of the server so far.
    pub fn server_cpu(&mut self) -> Result<Nanos, Abort> {
        Ok(self.server.ask(Usage {}, Nanos(0))?.done.server)
    }

    /// Counters before packets are sent.
    fn counters(&mut self) -> Result<Counters, Failure> {
        let mut ends = vec![self.server.first_process()?, self.client().first_process()?];
        // What else happens on the host does not concern packets that stay in one namespace, or on a bridge of their own.
        let attachment = self.network.as_ref().and_then(|network| network.attachment());
        let is_apart = attachment.is_some_and(|attachment| attachment.bridge.is_some());
        ends.extend((self.path != Path::Inside && !is_apart).then_some(std::process::id() as i32));
        Ok(Counters::read(&ends, self.helping))
    }

    /// Carries out `work`, which returns how many packets it sent, and says which way they went. A way that
    /// is not the path asked for is a failure.
    pub fn travelled<T>(
        &mut self,
        work: impl FnOnce(&mut Pair<'a>) -> Result<(T, u64), Abort>,
    ) -> Result<(T, Way), Abort> {
        if let Some(way) = self.subject.machine().way(self.path) {
            return Ok((work(self)?.0, way));
        }
        let (before, known) = (self.counters()?, conntrack::tracked().unwrap_or_default());
        let (result, packets) = work(self)?;
        let after = self.counters()?;
        let mut passed = after.passed(&before, packets);
        // Those of the path exist as long as the pair; one that is gone belonged to another container.
        let own = way::namespace(std::process::id() as i32);
        if let Some(names) = own.and_then(|own| passed.get_mut(&own)) {
            names.retain(|name| interface::exists(name));
        }
        let mut way = after.way((&before, &known), (self.target, self.service.transport()), &passed);
        if let Some(fault) = way.fault(self.path) {
            let reason = format!("not on the path `{}`: {fault}", self.path.name());
            return Err(Failure::new(FailureClass::Treatment, reason).into());
        }
        way.links = self.links(&passed)?;
        Ok((result, way))
    }

    /// MTU and offloads of interfaces, each read by a process in its network namespace.
    fn links(&mut self, passed: &Passed) -> Result<Vec<(String, String)>, Abort> {
        let own = way::namespace(std::process::id() as i32);
        let server = way::namespace(self.server.first_process()?);
        let mut all = Vec::new();
        for (namespace, names) in passed {
            if own.as_ref() == Some(namespace) {
                let facts = names.iter().flat_map(|name| interface::facts(name));
                all.extend(facts.map(|(fact, told)| (fact.to_owned(), told)));
                continue;
            }
            let interfaces = names.to_vec();
            let is_server = server.as_ref() == Some(namespace);
            let end = if is_server { &mut self.server } else { self.client() };
            all.extend(end.ask(Links { interfaces }, Nanos(0))?.done);
        }
        Ok(all)
    }

    /// What was found inside the server's container and the CPUs of both ends, as recorded.
    pub fn treatment(&mut self) -> Result<Vec<(&'static str, String)>, Abort> {
        let mut facts = self.server.treatment()?;
        facts.push(pinned(self.cpus));
        Ok(facts)
    }
}

/// Asks until there is an answer, each time with twice the patience, since one that is given up is lost to a slow program; and looks
/// in between whether the program still runs, since one that has ended will not answer.
pub fn until_answered<T>(
    it: &mut T,
    run: &RunContext,
    mut ask: impl FnMut(&mut T, Nanos) -> Result<(), Abort>,
    runs: impl Fn(&mut T) -> Result<(), Abort>,
) -> Result<(), Abort> {
    let (began, mut patience) = (clock::now(), LOOK);
    loop {
        let Err(silent) = ask(it, patience) else { return Ok(()) };
        runs(it)?;
        if matches!(silent, Abort::Interrupted) || clock::now().since(began) >= run.allowed {
            return Err(silent);
        }
        patience = Nanos((patience.0 * 2).min(run.allowed.0));
    }
}

impl Drop for Pair<'_> {
    /// A program may have started others, which do not end with the probe where they have no namespace.
    fn drop(&mut self) {
        if self.program.is_some() {
            let _ = self.end_servers();
        }
    }
}
