//! Network interfaces by rtnetlink, as steps: a pair of them (veth), a bridge, and what makes one a
//! port of the other. Requests are bytes written down before; each is followed by the step that
//! receives its acknowledgement, so that the kernel's refusal is the step's.
//!
//! Interfaces are named by an index that the request itself chooses, which is possible in a network
//! namespace that was just made. Deliberately absent: routes, and interfaces of the host.

use std::net::Ipv4Addr;
use std::os::fd::RawFd;

use super::steps::{Argument, Step, number};

/// A netlink socket at a number that is known before there is one: descriptors of a child are its
/// own, so any free number will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket(pub RawFd);

/// The index of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index(pub u32);

const OPEN: &str = "open netlink socket";
const CREATE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
/// The attribute of `IFLA_INFO_DATA` that describes the other end of a veth pair.
const VETH_INFO_PEER: u16 = 1;

/// What a child calls a descriptor of its own from now on: the one opened last goes to this number.
pub fn keep_at(target: RawFd) -> [Step; 2] {
    let duplicate = Step::call("keep descriptor", "", libc::SYS_dup2, [number(0usize), number(target)]);
    [duplicate.on_descriptor(), Step::close()]
}

impl Socket {
    /// Steps that open it in the network namespace in which they are made.
    pub fn open(self) -> Vec<Step> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let arguments = [number(libc::AF_NETLINK), number(kind), number(libc::NETLINK_ROUTE)];
        let open = Step::call(OPEN, "", libc::SYS_socket, arguments).opening();
        std::iter::once(open).chain(keep_at(self.0)).collect()
    }

    /// Makes a bridge.
    pub fn create_bridge(self, index: Index, name: &str) -> [Step; 2] {
        let kind = Attributes::default().text(libc::IFLA_INFO_KIND, "bridge");
        let attributes =
            Attributes::default().text(libc::IFLA_IFNAME, name).nested(libc::IFLA_LINKINFO, kind);
        let request = Request { kind: libc::RTM_NEWLINK, flags: CREATE, index, up: None, attributes };
        self.exchange("create bridge", name, &request)
    }

    /// Makes a pair of interfaces, the other end of which lies in the network namespace of this
    /// descriptor and has the same index there.
    pub fn create_pair(self, index: Index, [name, peer]: [&str; 2], namespace: RawFd) -> [Step; 2] {
        let mut other = Attributes(interface(index, None).to_vec());
        other = other.text(libc::IFLA_IFNAME, peer).number(libc::IFLA_NET_NS_FD, namespace as u32);
        let data = Attributes::default().nested(VETH_INFO_PEER, other);
        let kind =
            Attributes::default().text(libc::IFLA_INFO_KIND, "veth").nested(libc::IFLA_INFO_DATA, data);
        let attributes =
            Attributes::default().text(libc::IFLA_IFNAME, name).nested(libc::IFLA_LINKINFO, kind);
        let request = Request { kind: libc::RTM_NEWLINK, flags: CREATE, index, up: None, attributes };
        self.exchange("create veth pair", name, &request)
    }

    /// Sets an interface up.
    pub fn set_up(self, index: Index) -> [Step; 2] {
        let attributes = Attributes::default();
        let request = Request { kind: libc::RTM_NEWLINK, flags: 0, index, up: Some(()), attributes };
        self.exchange("set interface up", "", &request)
    }

    /// Makes an interface a port of a bridge, or of none.
    pub fn set_bridge(self, index: Index, bridge: Option<Index>) -> [Step; 2] {
        let attributes =
            Attributes::default().number(libc::IFLA_MASTER, bridge.map_or(0, |Index(bridge)| bridge));
        let request = Request { kind: libc::RTM_NEWLINK, flags: 0, index, up: None, attributes };
        self.exchange("set bridge of interface", "", &request)
    }

    /// Gives an interface an address.
    pub fn add_address(self, index: Index, address: Ipv4Addr, prefix: u8) -> [Step; 2] {
        // `ifaddrmsg`: family, length of the prefix, flags, scope, index.
        let mut body = vec![libc::AF_INET as u8, prefix, 0, 0];
        body.extend(index.0.to_ne_bytes());
        let octets = address.octets();
        let attributes = Attributes(body).add(libc::IFA_LOCAL, &octets).add(libc::IFA_ADDRESS, &octets);
        self.send("add address", &address.to_string(), &message(libc::RTM_NEWADDR, CREATE, &attributes.0))
    }

    /// Removes an interface, and the other end of a pair with it.
    pub fn delete(self, index: Index) -> [Step; 2] {
        let attributes = Attributes::default();
        let request = Request { kind: libc::RTM_DELLINK, flags: 0, index, up: None, attributes };
        self.exchange("remove interface", "", &request)
    }

    /// Sends a request and receives its acknowledgement. The kernel does the work while it is sent.
    fn exchange(self, name: &'static str, path: &str, request: &Request) -> [Step; 2] {
        self.send(name, path, &request.bytes())
    }

    fn send(self, name: &'static str, path: &str, bytes: &[u8]) -> [Step; 2] {
        let arguments = [number(self.0), Argument::Words(words(bytes)), number(bytes.len())];
        let send = Step::call(name, path, libc::SYS_sendto, arguments);
        [send, Step::acknowledgement(name, path, self.0)]
    }
}

/// A request about one interface.
struct Request {
    kind: u16,
    flags: u16,
    index: Index,
    up: Option<()>,
    attributes: Attributes,
}

impl Request {
    /// `nlmsghdr`, `ifinfomsg`, attributes.
    fn bytes(&self) -> Vec<u8> {
        let body = [&interface(self.index, self.up)[..], &self.attributes.0].concat();
        message(self.kind, self.flags, &body)
    }
}

/// `nlmsghdr` and what follows.
fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    const HEADER: usize = 16;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16 | flags;
    let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // Sequence number, and the kernel as the other side.
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

/// `ifinfomsg`: family, type, index, flags and the flags to change.
fn interface(Index(index): Index, up: Option<()>) -> [u8; 16] {
    let flags = up.map_or(0, |()| libc::IFF_UP as u32);
    let mut bytes = [0; 16];
    for (at, value) in [(4, index), (8, flags), (12, flags)] {
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

/// Attributes one behind the other, each padded to four bytes.
#[derive(Default)]
struct Attributes(Vec<u8>);

impl Attributes {
    fn add(mut self, kind: u16, content: &[u8]) -> Attributes {
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

/// Bytes as words, which steps keep where the kernel may read them.
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
        let request =
            Request { kind: libc::RTM_NEWLINK, flags: 0, index: Index(9), up: Some(()), attributes };
        let bytes = request.bytes();
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
        // Root hears that there is no such interface; others that they may not remove any.
        assert!([libc::ENODEV, libc::EPERM].contains(&error.errno), "{error}");
        assert_eq!(error.step, "remove interface");
        // SAFETY: closes the descriptor that the steps above put at this number.
        unsafe { libc::close(socket.0) };
    }
}
