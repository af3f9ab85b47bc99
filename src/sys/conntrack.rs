//! The kernel's connection tracking, read over ctnetlink: where the packets of a connection really go. The
//! counters of firewall rules do not say it, since not every engine's rules have any.
//!
//! Deliberately absent: changing anything, and namespaces other than this thread's.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::netlink;

use super::link::message;
use super::route::{answers, attributes_of};

/// `NFNL_SUBSYS_CTNETLINK` with `IPCTNL_MSG_CT_NEW` and `IPCTNL_MSG_CT_GET`.
const NEW: u16 = 1 << 8;
const GET: u16 = NEW | 1;
/// The size of `nfgenmsg`.
const FAMILY: usize = 4;
/// Attributes: the two directions of a connection, and the parts of one.
const ORIGINAL: u16 = 1;
const REPLY: u16 = 2;
const ADDRESSES: u16 = 1;
const PROTOCOL: u16 = 2;

/// One direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuple {
    /// The protocol's number.
    pub protocol: u8,
    /// Who sends.
    pub source: SocketAddr,
    /// Who receives.
    pub target: SocketAddr,
}

/// A tracked connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracked {
    /// As the client sends.
    pub original: Tuple,
    /// As the answers are expected; the reverse of the original where nothing is translated.
    pub reply: Tuple,
}

/// All connections that the kernel tracks in this network namespace.
///
/// # Errors
/// The kernel has no connection tracking, or this process may not read it.
pub fn tracked() -> io::Result<Vec<Tracked>> {
    let request = message(GET, libc::NLM_F_DUMP as u16, &[0; FAMILY]);
    let bodies = answers(Some(netlink::NETFILTER), &request, NEW)?;
    Ok(bodies.iter().filter_map(|body| connection(body.get(FAMILY..)?)).collect())
}

/// The content of an attribute.
fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes_of(bytes, 0).find(|(kind, _)| *kind == wanted).map(|(_, content)| content)
}

fn connection(attributes: &[u8]) -> Option<Tracked> {
    let of = |direction| tuple(attribute(attributes, direction)?);
    Some(Tracked { original: of(ORIGINAL)?, reply: of(REPLY)? })
}

/// Addresses have the attributes 1 and 2 in version 4, 3 and 4 in version 6; a protocol has its number, and
/// the ports in network order.
fn tuple(attributes: &[u8]) -> Option<Tuple> {
    let (addresses, protocol) = (attribute(attributes, ADDRESSES)?, attribute(attributes, PROTOCOL)?);
    let address = |[fourth, sixth]: [u16; 2]| {
        let bytes = |kind| attribute(addresses, kind);
        let fourth = bytes(fourth).and_then(|own| <[u8; 4]>::try_from(own).ok()).map(IpAddr::from);
        fourth.or_else(|| bytes(sixth).and_then(|own| <[u8; 16]>::try_from(own).ok()).map(IpAddr::from))
    };
    let port = |kind| Some(u16::from_be_bytes(attribute(protocol, kind)?.try_into().ok()?));
    Some(Tuple {
        protocol: *attribute(protocol, 1)?.first()?,
        source: SocketAddr::new(address([1, 3])?, port(2)?),
        target: SocketAddr::new(address([2, 4])?, port(3)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + content.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn direction(kind: u16, source: ([u8; 4], u16), target: ([u8; 4], u16)) -> Vec<u8> {
        const NESTED: u16 = 1 << 15;
        let addresses = [with(1, &source.0), with(2, &target.0)].concat();
        let ports = [with(1, &[6]), with(2, &source.1.to_be_bytes()), with(3, &target.1.to_be_bytes())];
        let parts = [with(NESTED | ADDRESSES, &addresses), with(NESTED | PROTOCOL, &ports.concat())];
        with(NESTED | kind, &parts.concat())
    }

    #[test]
    fn a_translated_connection_is_read_in_both_directions() {
        let (client, host, inside) =
            (([192, 0, 2, 2], 4000), ([192, 0, 2, 2], 32768), ([172, 17, 0, 2], 7000));
        let both = [direction(ORIGINAL, client, host), with(9, &[1]), direction(REPLY, inside, client)];
        let found = connection(&both.concat()).unwrap();
        assert_eq!(
            (found.original.target.to_string().as_str(), found.original.protocol),
            ("192.0.2.2:32768", 6)
        );
        assert_eq!(found.reply.source.to_string(), "172.17.0.2:7000");
        assert_eq!(found.reply.target, found.original.source);
        for end in 0..both.concat().len() {
            assert_eq!(connection(&both.concat()[..end]), None);
        }
    }
}
