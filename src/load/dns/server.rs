//! A resolver that answers for names below `dunnage.test` and nothing else, so that no query leaves the machine.
//! The address of a name depends on the name, so an answer to another query is noticed.
//!
//! Deliberately absent: TCP, since every answer fits into a datagram; and asking others.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use super::message::{ADDRESS, Answer, LONGEST, answer, question};
use crate::load::server::cannot_listen;
use crate::outcome::Failure;

/// The domain of all names.
pub const ZONE: &str = "dunnage.test";
/// The name whose address is the number of other names that were asked for.
pub const COUNT: &str = "queries.dunnage.test";
const REFUSED: u8 = 5;

/// A resolver that listens but does not answer yet.
#[derive(Debug)]
pub struct Resolver {
    socket: UdpSocket,
    delay: Duration,
}

impl Resolver {
    /// Listens at this address; port 0 is any that is free. Each answer is delayed by at least this time.
    pub fn bind(address: SocketAddr, delay: Duration) -> Result<Resolver, Failure> {
        let socket = UdpSocket::bind(address).map_err(|error| cannot_listen(address, &error))?;
        Ok(Resolver { socket, delay })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Answers until the socket fails; returns the error.
    pub fn serve(self) -> io::Error {
        let Err(error) = self.answers();
        error
    }

    fn answers(&self) -> io::Result<std::convert::Infallible> {
        let (mut message, mut count) = ([0; LONGEST], 0);
        loop {
            let (length, from) = self.socket.recv_from(&mut message)?;
            let query = &message[..length];
            let Some(question) = question(query) else { continue };
            let said = match &*question.name {
                COUNT => Answer::Address(Ipv4Addr::from(count)),
                name if !is_in_zone(name) => Answer::None(REFUSED),
                name => {
                    count += 1;
                    std::thread::sleep(self.delay);
                    if question.kind == ADDRESS { Answer::Address(address_of(name)) } else { Answer::None(0) }
                }
            };
            // The next client may be reachable.
            let _ = self.socket.send_to(&answer(query, &question, said), from);
        }
    }
}

fn is_in_zone(name: &str) -> bool {
    name.strip_suffix(ZONE).is_some_and(|host| host.ends_with('.'))
}

/// The address of a name, among those that RFC 2544 sets aside for benchmarks.
pub fn address_of(name: &str) -> Ipv4Addr {
    const FIRST: u32 = 198 << 24 | 18 << 16;
    const COUNT: u32 = 1 << 17;
    let sum = name.bytes().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    Ipv4Addr::from(FIRST + sum % COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_in_the_zone_are_answered() {
        assert!(is_in_zone("a.dunnage.test") && is_in_zone("a.b.dunnage.test"));
        for other in ["dunnage.test", "adunnage.test", "example.org", ""] {
            assert!(!is_in_zone(other), "{other}");
        }
        let [one, other] = ["1.dunnage.test", "2.dunnage.test"].map(address_of);
        assert!(one != other && one.octets()[0] == 198, "{one} {other}");
    }
}
