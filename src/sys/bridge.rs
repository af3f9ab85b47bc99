//! A bridge that connects containers of the floor. It is in its own network namespace, which disappears with
//! the last descriptor of it, so nothing is left when dunnage dies. Each port is a veth pair whose other end,
//! with its address, is in a namespace that is made for one container before the container. The bridge has an
//! address too: a process in its namespace reaches containers as processes of a host reach those of an
//! engine, but without address translation and filters.
//!
//! Deliberately absent: a way out, and names.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::link::{Index, Socket};
use super::network;
use super::steps::{Step, StepError, run_all};

/// The bridge's interface.
const BRIDGE: Index = Index(2);
/// Its own address; those of ports follow.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The prefix length of all addresses.
const PREFIX: u8 = 16;

/// A network namespace, and a netlink socket in it.
#[derive(Debug)]
struct Namespace {
    own: OwnedFd,
    netlink: OwnedFd,
}

/// A bridge.
#[derive(Debug)]
pub struct Bridge {
    namespace: Namespace,
    ports: AtomicU32,
}

impl Namespace {
    fn new() -> io::Result<Namespace> {
        network::in_a_new_one(|| {
            let netlink = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
            Ok(Namespace { own: File::open("/proc/thread-self/ns/net")?.into(), netlink })
        })?
    }

    fn run(&self, steps: impl IntoIterator<Item = Step>) -> Result<(), StepError> {
        run_all(&steps.into_iter().collect::<Vec<_>>()).1.map(drop)
    }

    fn socket(&self) -> Socket {
        Socket(self.netlink.as_raw_fd())
    }
}

impl Bridge {
    /// A bridge without ports.
    pub fn new() -> io::Result<Bridge> {
        let namespace = Namespace::new()?;
        let socket = namespace.socket();
        let steps = socket.create_bridge(BRIDGE, "bridge").into_iter();
        let steps = steps.chain(socket.add_address(BRIDGE, FIRST, PREFIX)).chain(socket.set_up(BRIDGE));
        namespace.run(steps).map_err(io::Error::other)?;
        Ok(Bridge { namespace, ports: AtomicU32::new(0) })
    }

    /// Its own namespace, from which the bridge's own interface leads to the ports, as a host's does.
    pub fn host(&self) -> io::Result<OwnedFd> {
        self.namespace.own.try_clone()
    }

    /// A namespace connected to it, with loopback up and its own address.
    pub fn port(&self) -> io::Result<OwnedFd> {
        let number = self.ports.fetch_add(1, Ordering::Relaxed) + 1;
        let index = Index(BRIDGE.0 + number);
        let address = Ipv4Addr::from(u32::from(FIRST) + number);
        let other = Namespace::new()?;
        let (here, there) = (self.namespace.socket(), other.socket());
        let name = format!("port{number}");
        let pair = here.create_pair(index, [&name, "eth0"], other.own.as_raw_fd());
        let joined = pair.into_iter().chain(here.set_bridge(index, Some(BRIDGE))).chain(here.set_up(index));
        self.namespace.run(joined).map_err(io::Error::other)?;
        let up = there.add_address(index, address, PREFIX).into_iter();
        other.run(up.chain(there.set_up(index))).map_err(io::Error::other)?;
        Ok(other.own)
    }
}
