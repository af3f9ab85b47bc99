//! Network interfaces through rtnetlink, as steps: veth pairs, bridges, and the port of a bridge. Requests
//! are prepared as bytes; each is followed by a step that receives its acknowledgement, so that a refusal by
//! the kernel is an error of that step.
//!
//! Interfaces are identified by an index that the request itself chooses, which is possible in a new network
//! namespace. Deliberately absent: routes, and interfaces of the host other than loopback.

use std::net::Ipv4Addr;
use std::os::fd::RawFd;

use super::steps::{Argument, Step, number};

/// A netlink socket with a descriptor number chosen in advance: a child has its own table of descriptors, so
/// any free number will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket(pub RawFd);

/// The index of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index(pub u32);

/// The loopback interface, in every network namespace.
const LOOPBACK: Index = Index(1);
/// The prefix and scope of an address of this host alone.
const OWN: (u8, u8) = (32, libc::RT_SCOPE_HOST);

const OPEN: &str = "open netlink socket";
const CREATE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
/// Of an interface whose flags do not change.
const NO_FLAGS: u32 = 0;
/// The attribute of `IFLA_INFO_DATA` that describes the other end of a veth pair.
const VETH_INFO_PEER: u16 = 1;

/// Like `ip link set lo up`, but with the older interface, which is a single call.
pub fn loopback_up() -> Vec<Step> {
    let request: Box<[u64]> = Box::new([
        u64::from_ne_bytes(*b"lo\0\0\0\0\0\0"),
        0,
        (libc::IFF_UP | libc::IFF_RUNNING) as u64,
        0,
        0,
    ]);
    let socket = [number(libc::AF_INET), number(libc::SOCK_DGRAM | libc::SOCK_CLOEXEC), number(0)];
    let up = [number(0), number(libc::SIOCSIFFLAGS), Argument::Words(request)];
    vec![
        Step::call("open socket", "", libc::SYS_socket, socket).opening(),
        Step::call("set loopback up", "lo", libc::SYS_ioctl, up).on_descriptor(),
        Step::close(),
    ]
}

/// Gives the descriptor opened last this number in the child.
pub fn keep_at(target: RawFd) -> [Step; 2] {
    let duplicate = Step::call("keep descriptor", "", libc::SYS_dup2, [number(0usize), number(target)]);
    [duplicate.on_descriptor(), Step::close()]
}

impl Socket {
    /// Steps that open it in the current network namespace.
    pub fn open(self) -> Vec<Step> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let arguments = [number(libc::AF_NETLINK), number(kind), number(libc::NETLINK_ROUTE)];
        let open = Step::call(OPEN, "", libc::SYS_socket, arguments).opening();
        std::iter::once(open).chain(keep_at(self.0)).collect()
    }

    /// Makes a bridge.
    pub fn create_bridge(self, index: Index, name: &str) -> [Step; 2] {
        let kind = Attributes::default().text(libc::IFLA_INFO_KIND, "bridge");
        self.create("create bridge", index, name, kind)
    }

    /// Makes a pair of interfaces; the other end is in the network namespace of this descriptor and has the
    /// same index there.
    pub fn create_pair(self, index: Index, [name, peer]: [&str; 2], namespace: RawFd) -> [Step; 2] {
        let mut other = Attributes(interface(index, NO_FLAGS).to_vec());
        other = other.text(libc::IFLA_IFNAME, peer).number(libc::IFLA_NET_NS_FD, namespace as u32);
        let data = Attributes::default().nested(VETH_INFO_PEER, other);
        let kind =
            Attributes::default().text(libc::IFLA_INFO_KIND, "veth").nested(libc::IFLA_INFO_DATA, data);
        self.create("create veth pair", index, name, kind)
    }

    fn create(self, step: &'static str, index: Index, name: &str, kind: Attributes) -> [Step; 2] {
        let attributes =
            Attributes::default().text(libc::IFLA_IFNAME, name).nested(libc::IFLA_LINKINFO, kind);
        self.ask(step, name, (libc::RTM_NEWLINK, CREATE), interface(index, NO_FLAGS), attributes)
    }

    /// Sets an interface up.
    pub fn set_up(self, index: Index) -> [Step; 2] {
        let up = interface(index, libc::IFF_UP as u32);
        self.ask("set interface up", "", (libc::RTM_NEWLINK, 0), up, Attributes::default())
    }

    /// Makes an interface a port of a bridge, or of none.
    pub fn set_bridge(self, index: Index, bridge: Option<Index>) -> [Step; 2] {
        let attributes =
            Attributes::default().number(libc::IFLA_MASTER, bridge.map_or(0, |Index(bridge)| bridge));
        self.ask(
            "set bridge of interface",
            "",
            (libc::RTM_NEWLINK, 0),
            interface(index, NO_FLAGS),
            attributes,
        )
    }

    /// Gives an interface an address.
    pub fn add_address(self, index: Index, address: Ipv4Addr, prefix: u8) -> [Step; 2] {
        let (about, attributes) = of_address(index, address, (prefix, libc::RT_SCOPE_UNIVERSE));
        self.ask("add address", &address.to_string(), (libc::RTM_NEWADDR, CREATE), about, attributes)
    }

    /// Gives the loopback interface an address with this label, for this host alone.
    pub fn add_own_address(self, address: Ipv4Addr, label: &str) -> [Step; 2] {
        let (about, attributes) = of_address(LOOPBACK, address, OWN);
        let attributes = attributes.text(libc::IFA_LABEL, label);
        self.ask("add address", &address.to_string(), (libc::RTM_NEWADDR, CREATE), about, attributes)
    }

    /// Takes it away again; an address with another label is another one.
    pub fn remove_own_address(self, address: Ipv4Addr, label: &str) -> [Step; 2] {
        let (about, attributes) = of_address(LOOPBACK, address, OWN);
        let attributes = attributes.text(libc::IFA_LABEL, label);
        self.ask("remove address", &address.to_string(), (libc::RTM_DELADDR, 0), about, attributes)
    }

    /// Removes an interface, and with it the other end of a pair.
    pub fn delete(self, index: Index) -> [Step; 2] {
        let this = interface(index, NO_FLAGS);
        self.ask("remove interface", "", (libc::RTM_DELLINK, 0), this, Attributes::default())
    }

    /// Sends a request of this kind with these flags, and receives its acknowledgement. The kernel does the
    /// work during the send.
    fn ask<const N: usize>(
        self,
        name: &'static str,
        path: &str,
        (kind, flags): (u16, u16),
        about: [u8; N],
        attributes: Attributes,
    ) -> [Step; 2] {
        let bytes = message(kind, flags, &[&about[..], &attributes.0].concat());
        let arguments = [number(self.0), Argument::Words(words(&bytes)), number(bytes.len())];
        let send = Step::call(name, path, libc::SYS_sendto, arguments);
        [send, Step::acknowledgement(name, path, self.0)]
    }
}

/// `nlmsghdr` and what follows.
pub(super) fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    const HEADER: usize = 16;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16 | flags;
    let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // Sequence number, and the kernel as the destination.
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

/// `ifinfomsg`: family, type, index, flags and the flags to change.
fn interface(Index(index): Index, flags: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (at, value) in [(4, index), (8, flags), (12, flags)] {
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

/// `ifaddrmsg` (family, length of the prefix, flags, scope, index), and its attributes.
fn of_address(index: Index, address: Ipv4Addr, (prefix, scope): (u8, u8)) -> ([u8; 8], Attributes) {
    let [a, b, c, d] = index.0.to_ne_bytes();
    let octets = address.octets();
    let attributes = Attributes::default().add(libc::IFA_LOCAL, &octets).add(libc::IFA_ADDRESS, &octets);
    ([libc::AF_INET as u8, prefix, 0, scope, a, b, c, d], attributes)
}

/// A sequence of attributes, each padded to four bytes.
#[derive(Default)]
pub(super) struct Attributes(pub Vec<u8>);

impl Attributes {
    pub fn add(mut self, kind: u16, content: &[u8]) -> Attributes {
        const HEADER: usize = 4;
        self.0.extend(((HEADER + content.len()) as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn text(self, kind: u16, text: &str) -> Attributes {
        self.add(kind, &[text.as_bytes(), &[0]].concat())
    }

    fn number(self, kind: u16, value: u32) -> Attributes {
        self.add(kind, &value.to_ne_bytes())
    }

    fn nested(self, kind: u16, inner: Attributes) -> Attributes {
        self.add(kind | libc::NLA_F_NESTED as u16, &inner.0)
    }
}

/// Bytes as words, in the form in which steps keep memory that the kernel reads.
fn words(bytes: &[u8]) -> Box<[u64]> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::steps::run_all;

    #[test]
    fn a_request_has_the_length_that_it_says() {
        let attributes = Attributes::default().text(libc::IFLA_IFNAME, "ab").number(libc::IFLA_MASTER, 7);
        let about = interface(Index(9), libc::IFF_UP as u32);
        let bytes = message(libc::RTM_NEWLINK, 0, &[&about[..], &attributes.0].concat());
        assert_eq!(u32::from_ne_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len());
        // Header, interface, a name of seven bytes in eight, a number of eight.
        assert_eq!(bytes.len(), 16 + 16 + 8 + 8);
        assert_eq!(bytes[32..40], [7, 0, 3, 0, b'a', b'b', 0, 0]);
    }

    #[test]
    fn the_kernels_refusal_is_the_error_of_the_step() {
        let socket = Socket(640);
        let steps: Vec<_> =
            socket.open().into_iter().chain(socket.delete(Index(i32::MAX as u32 - 3))).collect();
        let error = run_all(&steps).1.unwrap_err();
        // For root the interface does not exist; other users may not remove any.
        assert!([libc::ENODEV, libc::EPERM].contains(&error.errno), "{error}");
        assert_eq!(error.step, "remove interface");
        // SAFETY: closes the descriptor that the steps above put at this number.
        unsafe { libc::close(socket.0) };
    }
}
