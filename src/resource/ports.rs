//! Free ports to publish. They are free when they are chosen; if another program takes one meanwhile, the
//! engine reports it.

use std::io;
use std::net::{Ipv6Addr, TcpListener, UdpSocket};

/// This many different ports on which no process listens on any address, by TCP or UDP.
pub fn free(count: usize) -> io::Result<Vec<u16>> {
    // Held together, so that none is returned twice.
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
    use std::collections::HashSet;
    use std::net::TcpListener;

    /// Another program may be given one of them by the kernel at the same moment, so one success of several
    /// is enough.
    #[test]
    fn ports_are_free_and_all_different() {
        let all_are_free = || {
            let ports = super::free(64).unwrap();
            assert_eq!(HashSet::<u16>::from_iter(ports.iter().copied()).len(), 64);
            let listeners = ports.iter().map(|port| TcpListener::bind(("0.0.0.0", *port)));
            listeners.collect::<Result<Vec<_>, _>>().is_ok()
        };
        assert!((0..5).any(|_| all_are_free()));
    }
}
