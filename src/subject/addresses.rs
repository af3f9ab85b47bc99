//! The addresses of a container, as the kernel lists them for its first process, so that no engine has to be
//! asked.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Addresses of the network namespace of a process, without loopback.
pub(super) fn of_process(pid: i32) -> io::Result<Vec<IpAddr>> {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/net/{file}"));
    let mut all = fourth(&read("fib_trie")?);
    match read("if_inet6") {
        Ok(text) => all.extend(sixth(&text)),
        // A kernel without IPv6 does not have this file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(all)
}

/// The address of the host by which others reach it: the one that its packets to them have; without a route to
/// them, the first of its own. None if it has loopback only.
pub fn of_host() -> Option<IpAddr> {
    let own = || of_process(std::process::id() as i32).ok()?.into_iter().find(IpAddr::is_ipv4);
    of_route().or_else(own)
}

fn of_route() -> Option<IpAddr> {
    // An address for documentation; a datagram socket that connects sends nothing.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).ok()?;
    match socket.local_addr().ok()?.ip() {
        own if !own.is_loopback() => Some(own),
        _ => None,
    }
}

/// The local addresses in the kernel's routing table: each is on the line before the one that says `host
/// LOCAL`.
fn fourth(text: &str) -> Vec<IpAddr> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let own = lines.windows(2).filter(|pair| pair[1].starts_with("/32 host LOCAL"));
    let address = |pair: &[&str]| pair[0].strip_prefix("|-- ")?.parse::<Ipv4Addr>().ok();
    let mut all: Vec<_> = own.filter_map(address).filter(|address| !address.is_loopback()).collect();
    // The kernel may list the local and the main table separately or as one, so an address can appear twice.
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(IpAddr::V4).collect()
}

/// Address, index, prefix, scope, flags, interface; hexadecimal.
fn sixth(text: &str) -> Vec<IpAddr> {
    let address = |line: &str| u128::from_str_radix(line.split_whitespace().next()?, 16).ok();
    let all = text.lines().filter_map(address).map(Ipv6Addr::from);
    all.filter(|address| !address.is_loopback()).map(IpAddr::V6).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_told_from_others() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n\
            \x20    +-- 172.17.0.0/16 2 0 2\n        |-- 172.17.0.0\n           /16 link UNICAST\n        |-- 172.17.0.2\n           /32 host LOCAL\n\
            Local:\n        |-- 172.17.0.2\n           /32 host LOCAL\n        |-- 172.17.255.255\n           /32 link BROADCAST\n";
        assert_eq!(fourth(trie), ["172.17.0.2".parse::<IpAddr>().unwrap()]);
        let list = "00000000000000000000000000000001 01 80 10 80       lo\nfe80000000000000004211fffeac0002 05 40 20 80     eth0\n";
        assert_eq!(sixth(list), ["fe80::42:11ff:feac:2".parse::<IpAddr>().unwrap()]);
    }

    #[test]
    fn this_process_has_addresses_that_can_be_read() {
        let all = of_process(std::process::id() as i32).unwrap();
        assert!(all.iter().all(|address| !address.is_loopback()), "{all:?}");
    }
}
