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

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

use crate::outcome::{Failure, FailureClass};
use crate::sys::{clock, limits};
use crate::units::Nanos;

pub use protocol::Key;
pub use target::{Target, Whose};

/// How a side waits for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receive {
    /// It sleeps in the kernel until they come.
    Blocking,
    /// It asks again and again, and so keeps a CPU busy.
    Busy,
}

/// When a load ends: after this many or after this time, whichever comes first. Zero is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Round trips or connections.
    pub count: u64,
    /// The time; the one that has begun is completed.
    pub time: Nanos,
}

impl Limit {
    /// A hundredth, for the warm-up.
    fn hundredth(self) -> Limit {
        // What is limited stays so.
        let time = (self.time.0 / 100).max(self.time.0.min(1));
        Limit { count: self.count.div_ceil(100), time: Nanos(time) }
    }

    /// Whether so many, or so much time, are enough.
    pub(crate) fn is_reached(self, count: u64, passed: Nanos) -> bool {
        (self.count > 0 && count >= self.count) || (self.time.0 > 0 && passed >= self.time)
    }
}

/// Calls of the kernel between two looks at the clock while busy.
const CALLS: u64 = 4096;

impl Receive {
    /// The result of a call on a socket that waits like this. The time of a blocking one is a property of its
    /// socket.
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
    fn a_limit_is_reached_by_count_or_by_time() {
        let limit = Limit { count: 1000, time: Nanos(500) };
        assert!(!limit.is_reached(999, Nanos(499)));
        assert!(limit.is_reached(1000, Nanos(0)) && limit.is_reached(0, Nanos(500)));
        assert!(!Limit { count: 0, time: Nanos(5) }.is_reached(u64::MAX, Nanos(4)));
        assert!(!Limit { count: 7, time: Nanos(0) }.is_reached(6, Nanos(i64::MAX)));
        assert_eq!(limit.hundredth(), Limit { count: 10, time: Nanos(5) });
        // What is not limited does not become limited, and what is stays so.
        assert_eq!(Limit { count: 1, time: Nanos(0) }.hundredth(), Limit { count: 1, time: Nanos(0) });
    }

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
