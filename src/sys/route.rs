//! Where the kernel sends packets for an address: one question over rtnetlink, as `ip route get`, and a look at
//! the interface. All of it is about the network namespace of the calling thread; `/sys` would show another
//! one to a thread that has changed its namespace.
//!
//! Deliberately absent: changes of routes.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use super::link::{Attributes, message};

/// The destination of packets for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// This network namespace itself.
    Own,
    /// A neighbour behind interfaces without hardware: a pair, or a bridge that has only such ports.
    Neighbour,
    /// Anything else.
    Elsewhere,
}

/// The sizes of `nlmsghdr`, `rtmsg` and `ifinfomsg`.
const HEADER: usize = 16;
const ROUTE: usize = 12;
const LINK: usize = 16;
/// Without the bits that say how an attribute is encoded.
const KIND: u16 = 0x3fff;

/// The way to an address.
///
/// # Errors
/// The kernel's, if there is no route.
pub fn to(address: IpAddr) -> io::Result<Way> {
    let (family, octets) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    let mut about = [0; ROUTE];
    (about[0], about[1]) = (family as u8, octets.len() as u8 * 8);
    let attributes = Attributes::default().add(libc::RTA_DST, &octets);
    let request = message(libc::RTM_GETROUTE, 0, &[&about[..], &attributes.0].concat());
    let route =
        answers(None, &request, libc::RTM_NEWROUTE)?.into_iter().next().ok_or(io::ErrorKind::NotFound)?;
    // The type follows the family, three more bytes, the table, the protocol and the scope.
    if route.get(7) == Some(&libc::RTN_LOCAL) {
        return Ok(Way::Own);
    }
    let of = |wanted: u16| {
        attributes_of(&route, ROUTE).find(|(kind, _)| *kind == wanted).map(|(_, content)| content)
    };
    let is_direct = of(libc::RTA_GATEWAY).or(of(libc::RTA_VIA)).is_none();
    match of(libc::RTA_OIF).and_then(number) {
        Some(index) if is_direct && is_virtual(&links()?, index) => Ok(Way::Neighbour),
        _ => Ok(Way::Elsewhere),
    }
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Link {
    index: u32,
    /// The bridge or bond of which it is a port.
    master: Option<u32>,
    /// The kind that it was made as; none for hardware.
    kind: String,
}

/// Whether no hardware is behind the interface with this index.
fn is_virtual(links: &[Link], index: u32) -> bool {
    let mut ports = links.iter().filter(|link| link.master == Some(index));
    match links.iter().find(|link| link.index == index).map(|link| link.kind.as_str()) {
        Some("veth") => true,
        Some("bridge") => ports.all(|port| ["veth", "dummy", "tun"].contains(&port.kind.as_str())),
        _ => false,
    }
}

fn links() -> io::Result<Vec<Link>> {
    let request = message(libc::RTM_GETLINK, libc::NLM_F_DUMP as u16, &[0; LINK]);
    let link = |bytes: Vec<u8>| {
        let mut link = Link { index: number(bytes.get(4..8)?)?, master: None, kind: String::new() };
        for (kind, content) in attributes_of(&bytes, LINK) {
            match kind {
                libc::IFLA_MASTER => link.master = number(content),
                libc::IFLA_LINKINFO => {
                    let of = attributes_of(content, 0).find(|(kind, _)| *kind == libc::IFLA_INFO_KIND);
                    let text = of.map(|(_, text)| String::from_utf8_lossy(text).into_owned());
                    link.kind = text.unwrap_or_default().trim_end_matches('\0').to_owned();
                }
                _ => {}
            }
        }
        Some(link)
    };
    Ok(answers(None, &request, libc::RTM_NEWLINK)?.into_iter().filter_map(link).collect())
}

/// The bodies of all answers of a kind to a request of this protocol of netlink; without one it is that of
/// routes.
pub(super) fn answers(protocol: Option<Protocol>, request: &[u8], wanted: u16) -> io::Result<Vec<Vec<u8>>> {
    let kind = (SocketType::RAW, SocketFlags::CLOEXEC);
    let socket: OwnedFd = socket_with(AddressFamily::NETLINK, kind.0, kind.1, protocol)?;
    send(&socket, request, SendFlags::empty())?;
    let (mut answers, mut buffer) = (Vec::new(), vec![0u8; 64 << 10]);
    loop {
        let (_, length) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        let mut rest = &buffer[..length.min(buffer.len())];
        while let Some(length) = number(rest).map(|length| length as usize).filter(|length| *length >= HEADER)
        {
            let kind = rest.get(4..6).and_then(|kind| kind.try_into().ok()).map_or(0, u16::from_ne_bytes);
            let body = rest.get(HEADER..length).unwrap_or_default();
            match i32::from(kind) {
                // An acknowledgement is an error with the number zero.
                libc::NLMSG_ERROR => match number(body).unwrap_or_default() as i32 {
                    0 => return Ok(answers),
                    errno => return Err(io::Error::from_raw_os_error(-errno)),
                },
                libc::NLMSG_DONE => return Ok(answers),
                _ if kind == wanted => answers.push(body.to_vec()),
                _ => {}
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

/// The attributes after this many bytes, each with its kind.
pub(super) fn attributes_of(bytes: &[u8], after: usize) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes.get(after..).unwrap_or_default();
    std::iter::from_fn(move || {
        let half = |at: usize| Some(u16::from_ne_bytes(rest.get(at..at + 2)?.try_into().ok()?));
        let (length, kind) = (usize::from(half(0)?), half(2)? & KIND);
        let content = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, content))
    })
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_told_from_others() {
        assert_eq!(to([127, 0, 0, 1].into()).unwrap(), Way::Own);
        assert_eq!(to([127, 9, 9, 9].into()).unwrap(), Way::Own);
        // Reserved for documentation. Without a route there is no way at all.
        assert!(to([192, 0, 2, 1].into()).is_err() || to([192, 0, 2, 1].into()).unwrap() == Way::Elsewhere);
    }

    #[test]
    fn hardware_is_told_from_bridges_of_containers() {
        let link = |index, master, kind: &str| Link { index, master, kind: kind.into() };
        let links = [
            link(1, None, ""),
            link(2, Some(5), ""),
            link(3, None, "bridge"),
            link(4, Some(3), "veth"),
            link(5, None, "bridge"),
            link(6, Some(5), "veth"),
            link(7, None, "wireguard"),
            link(8, None, "bridge"),
        ];
        let found: Vec<_> = (1..=9).filter(|index| is_virtual(&links, *index)).collect();
        assert_eq!(found, [3, 4, 6, 8]);
    }

    #[test]
    fn the_loopback_interface_is_among_the_links() {
        assert!(links().unwrap().iter().any(|link| link.index == 1 && link.kind.is_empty()));
    }
}
