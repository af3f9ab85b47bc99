//! A server in a subject's container and a client elsewhere, on one of the [`Path`]s between them. Both are
//! probes that carry out orders. Each has a CPU of its own where there are several.
//!
//! Deliberately absent: what is sent (the probe's work `network`), and what it means.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::treatment::Network;
use super::way::{Counters, Way};
use super::{
    Container, ContainerRequest, Joint, Made, Path, Port, Resident, RunContext, Subject, Transport, Wish,
    Work, addresses,
};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::message::{Answer, Done};
use crate::resource::Held;
use crate::sys::{affinity, process};
use crate::units::Nanos;

/// The name of the probe's work.
const WORK: &str = "network";
/// The port of a server whose network namespace is not the host's.
const PORT: u16 = 7000;

/// A server and its client.
pub struct Pair<'a> {
    path: Path,
    transport: Transport,
    /// None where the server's own probe is the client; the server is another process.
    client: Option<Container<'a>>,
    server: Container<'a>,
    /// Goes after the containers.
    _network: Option<Held<Made>>,
    /// Where the client reaches the server.
    target: SocketAddr,
    /// The CPUs of server and client.
    cpus: [usize; 2],
    /// When it was begun, in clock ticks after boot.
    since: u64,
}

/// A container or process that carries out orders, and is ready.
fn begun<'a>(
    subject: &'a dyn Subject,
    network: Option<Joint>,
    ports: Vec<Port>,
    run: &'a RunContext,
) -> Result<Container<'a>, Abort> {
    let request =
        ContainerRequest { program: Resident::Serves, network, ports, ..ContainerRequest::default() };
    let mut container = Container::create(subject, &request, run)?;
    container.start()?;
    container.ready()?;
    Ok(container)
}

/// The number of a result of a work.
pub fn result(done: &Done, name: &str) -> Result<i64, Failure> {
    let found = done.results.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
    found.ok_or_else(|| Failure::new(FailureClass::WrongOutput, format!("the probe's answer lacks `{name}`")))
}

/// An order for this CPU.
fn order(words: &[&str], cpu: usize, takes: Nanos) -> Work {
    let words = words.iter().map(|word| (*word).to_owned()).chain([format!("cpu={cpu}")]);
    Work::new(WORK, words.collect(), takes)
}

impl<'a> Pair<'a> {
    /// Starts both ends; the server does not listen yet. `host` is where clients outside of containers run.
    pub fn begin(
        subject: &'a dyn Subject,
        host: &'a dyn Subject,
        (path, transport): (Path, Transport),
        run: &'a RunContext,
    ) -> Result<Pair<'a>, Abort> {
        let about = subject.about();
        let unsupported = |reason: &str| Failure::new(FailureClass::Unsupported, reason);
        if !about.offers.contains(&path.need()) {
            return Err(unsupported(path.need().lacking()).into());
        }
        let since = process::now();
        let cpus = affinity::allowed().or_environment("cannot read the CPUs that dunnage may use")?;
        let cpus = [cpus.first(), cpus.last()].map(|cpu| cpu.copied().unwrap_or(0));
        let has_address = about.expected.network == Network::Connected;
        let is_joined = path == Path::Peer || (path == Path::Bridge && !has_address);
        let network = is_joined.then(|| subject.make(Wish::Network, run)).transpose()?;
        let joint = network.as_ref().and_then(|network| network.joint());
        let at: Option<IpAddr> = match path {
            Path::Published => Some(Ipv4Addr::LOCALHOST.into()),
            Path::Published6 => Some(Ipv6Addr::LOCALHOST.into()),
            Path::PublishedHost => {
                let own = addresses::of_host();
                Some(own.ok_or_else(|| unsupported("this host has no address but loopback"))?)
            }
            _ => None,
        };
        let ports = at.map(|at| Port { number: PORT, transport, at }).into_iter().collect();
        let server = begun(subject, joint.clone(), ports, run)?;
        let client = match path {
            Path::Inside => None,
            Path::Peer => Some(begun(subject, joint, Vec::new(), run)?),
            _ => Some(begun(host, joint.map(Joint::as_its_host), Vec::new(), run)?),
        };
        let target = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        Ok(Pair { path, transport, client, server, _network: network, target, cpus, since })
    }

    /// Has the server listen, and finds where the client reaches it.
    pub fn serve(&mut self) -> Result<(), Abort> {
        let listen: SocketAddr = match self.path {
            Path::Inside => (Ipv4Addr::LOCALHOST, 0).into(),
            Path::Published6 => (Ipv6Addr::UNSPECIFIED, PORT).into(),
            _ => (Ipv4Addr::UNSPECIFIED, PORT).into(),
        };
        let words = ["serve", self.transport.name(), &listen.to_string()];
        let answer = self.server.ask(&order(&words, self.cpus[0], Nanos(0)))?;
        let port = u16::try_from(result(&answer.done, "port")?).or_environment("cannot read a port")?;
        let address = match self.path {
            Path::Inside => SocketAddr::new(listen.ip(), port),
            Path::Published | Path::PublishedHost | Path::Published6 => {
                let published = self.server.ports()?.into_iter().find(|one| one.inside == PORT);
                let reason = || Failure::environment("the engine does not say where the port is published");
                published.ok_or_else(reason)?.host
            }
            Path::Bridge | Path::Peer => {
                let own = self.server.addresses()?.into_iter().find(IpAddr::is_ipv4);
                let reason = || Failure::environment("the container has no IPv4 address");
                SocketAddr::new(own.ok_or_else(reason)?, port)
            }
        };
        self.target = address;
        Ok(())
    }

    fn client(&mut self) -> &mut Container<'a> {
        self.client.as_mut().unwrap_or(&mut self.server)
    }

    /// Where the client reaches the server.
    pub fn target(&self) -> SocketAddr {
        self.target
    }

    /// Has the client carry out an order of the work `network` that takes this long.
    pub fn ask(&mut self, words: &[&str], takes: Nanos) -> Result<Answer, Abort> {
        let order = order(words, self.cpus[1], takes);
        self.client().ask(&order)
    }

    /// CPU time of the server so far.
    pub fn server_cpu(&mut self) -> Result<Nanos, Abort> {
        let answer = self.server.ask(&order(&["usage"], self.cpus[0], Nanos(0)))?;
        Ok(Nanos(result(&answer.done, "server_cpu")?))
    }

    /// Counters before packets are sent.
    fn counters(&mut self) -> Result<Counters, Failure> {
        let mut ends = vec![self.server.first_process()?, self.client().first_process()?];
        // What else happens on the host does not concern packets that stay in one namespace.
        ends.extend((self.path != Path::Inside).then_some(std::process::id() as i32));
        Ok(Counters::read(&ends, self.since))
    }

    /// Carries out `work`, which returns how many packets it sent, and says which way they went. A way that
    /// is not the path asked for is a failure.
    pub fn travelled<T>(
        &mut self,
        work: impl FnOnce(&mut Pair<'a>) -> Result<(T, u64), Abort>,
    ) -> Result<(T, Way), Abort> {
        let before = self.counters()?;
        let (result, packets) = work(self)?;
        let after = self.counters()?;
        let way = after.way(&before, self.target, self.transport, packets);
        match way.fault(self.path) {
            None => Ok((result, way)),
            Some(fault) => {
                let reason = format!("not on the path `{}`: {fault}", self.path.name());
                Err(Failure::new(FailureClass::Treatment, reason).into())
            }
        }
    }

    /// What was found inside the server's container and the CPUs of both ends, as recorded.
    pub fn treatment(&mut self, run: &RunContext) -> Result<Vec<(&'static str, String)>, Abort> {
        let mut facts = run.treatment(&self.server.ready()?.inside);
        let [server, client] = self.cpus;
        facts.push(("pinned", format!("server to CPU {server}, client to CPU {client}")));
        Ok(facts)
    }
}
