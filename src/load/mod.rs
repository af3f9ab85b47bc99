//! Loads over sockets, and the servers at the other end: round trips, connections, streams, names and requests
//! over HTTP, each one function of plain values. Every byte that comes back is compared, except over HTTP, where
//! the server may be any. A load that ends early is a failure with its class.
//!
//! Deliberately absent: subjects, the probe's orders, and the purpose of a load; and an asynchronous runtime,
//! since each connection has a thread of its own, and over HTTP each thread has its epoll. Nothing is
//! subtracted: each time includes reading the clock.

pub mod connects;
pub mod dns;
pub mod http;
mod protocol;
pub mod server;
pub mod streams;
mod target;
pub mod trips;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

use crate::outcome::{Failure, FailureClass};
use crate::sys::{clock, limits};
pub use dunnage_orders::network::{Limit, Receive, Whose};
pub use protocol::Key;
pub use target::Target;

/// Calls of the kernel between two looks at the clock while busy.
const CALLS: u64 = 4096;

/// Waiting for bytes.
trait Waits: Copy {
    /// The result of a call on a socket that waits like this. The time of a blocking one is a property of its
    /// socket.
    fn wait<T>(self, patience: Duration, call: impl FnMut() -> io::Result<T>) -> io::Result<T>;

    /// Fills the buffer.
    fn fill(self, patience: Duration, from: &mut impl Read, buffer: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.wait(patience, || from.read(&mut buffer[filled..]))? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => filled += length,
            }
        }
        Ok(())
    }

    /// Sends all of it.
    fn send_all(self, patience: Duration, to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            sent += self.wait(patience, || to.write(&bytes[sent..]))?;
        }
        Ok(())
    }
}

impl Waits for Receive {
    fn wait<T>(self, patience: Duration, mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let mut since = None;
        for turn in 1u64.. {
            match call() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self == Receive::Busy => {}
                done => return done,
            }
            if turn % CALLS == 0 {
                let now = clock::now();
                if now.since(*since.get_or_insert(now)).0 as u128 > patience.as_nanos() {
                    break;
                }
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// A socket that is not connected yet. It waits for this long at most, in each call.
fn tcp_socket(address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(patience))?;
    Ok(socket.into())
}

fn connected(target: &Target) -> io::Result<TcpStream> {
    let stream = tcp_socket(target.address, target.patience)?;
    connect(&stream, &target.address)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Lets this process open this many more files at once.
///
/// # Errors
/// If the limit is lower and cannot be raised.
pub fn allow_files(count: u64) -> Result<(), Failure> {
    /// Files that a process has open without any load.
    const OWN: u64 = 32;
    let allowed = limits::raise_open_files(count.saturating_add(OWN));
    if allowed >= count.saturating_add(OWN) {
        return Ok(());
    }
    Err(Failure::environment(format!(
        "it needs {count} connections at once, and the limit is {allowed} open files; hint: raise it with `ulimit -n`"
    )))
}

/// The failure of a load that this error ended.
fn failure(address: SocketAddr, error: &io::Error) -> Failure {
    use io::ErrorKind as Kind;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    let (class, what) = match error.kind() {
        Kind::ConnectionRefused => (FailureClass::Environment, "refuses connections".to_owned()),
        Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe | Kind::UnexpectedEof => {
            (FailureClass::Crash, "closed the connection early".to_owned())
        }
        Kind::InvalidData => (FailureClass::WrongOutput, format!("is not dunnage's server: {error}")),
        Kind::PermissionDenied => (FailureClass::Permission, format!("must not be reached: {error}")),
        Kind::WouldBlock | Kind::TimedOut => (FailureClass::Timeout, "does not answer".to_owned()),
        // A connect that its time limit ended.
        _ if errno == Some(Errno::INPROGRESS) => (FailureClass::Timeout, "does not answer".to_owned()),
        _ => (FailureClass::Environment, format!("cannot be reached: {error}")),
    };
    Failure::new(class, format!("`{address}` {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_a_busy_wait() {
        let would_block = || Err::<(), _>(io::Error::from(io::ErrorKind::WouldBlock));
        let error = Receive::Busy.wait(Duration::from_millis(1), would_block).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let error = Receive::Blocking.wait(Duration::MAX, would_block).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn more_files_than_any_limit_are_refused_with_what_to_do() {
        assert_eq!(allow_files(1), Ok(()));
        let failure = allow_files(1 << 40).unwrap_err();
        assert_eq!(failure.class, FailureClass::Environment);
        assert!(failure.reason.contains("ulimit -n"), "{failure}");
    }
}
