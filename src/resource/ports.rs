//! Ports that nobody listens at, to be published. They are free when they are given out; whoever loses one to somebody else in
//! between hears it from the engine.

use std::io;
use std::net::{Ipv6Addr, TcpListener, UdpSocket};

/// So many ports, all different, on which nobody listens on any address, by TCP or UDP.
pub fn free(count: usize) -> io::Result<Vec<u16>> {
    // Held together, so that none is given twice.
    let mut held = Vec::new();
    let mut tries = 0;
    while held.len() < count {
        let listener =
            TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).or_else(|_| TcpListener::bind("0.0.0.0:0"))?;
        let address = listener.local_addr()?;
        match UdpSocket::bind(address) {
            Ok(datagrams) => held.push((address.port(), listener, datagrams)),
            Err(error) if tries >= count + 100 => return Err(error),
            Err(_) => tries += 1,
        }
    }
    Ok(held.into_iter().map(|(port, ..)| port).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn ports_are_free_and_all_different() {
        let mut ports = super::free(64).unwrap();
        let _listeners: Vec<_> =
            ports.iter().map(|port| std::net::TcpListener::bind(("0.0.0.0", *port)).unwrap()).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 64);
    }
}
