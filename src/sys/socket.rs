//! Unix sockets with a deadline and interrupts: connecting, writing and reading on one thread, which sleeps
//! in the kernel until there is something to do.
//!
//! Deliberately absent: protocols, threads, and an event loop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, send, socket_with};

use super::signals::Interrupts;
use super::{clock, pidfd};
use crate::units::{Nanos, Stamp};

/// How long a conversation may continue after an interrupt: a pending answer says what was made and must be
/// removed.
const GRACE: Nanos = Nanos::from_millis(5000);
/// While the queue of a listener is full, the kernel lets a connect sleep for at most this long at a time, so
/// that interrupts are noticed.
const QUEUE_SLICE: Duration = Duration::from_millis(100);

/// There is something to read, or the end has been reached.
pub const READABLE: PollFlags = PollFlags::IN;

/// Why a conversation stopped.
#[derive(Debug)]
pub enum Stopped {
    /// The time allowed ran out.
    Late,
    /// The user interrupted.
    Interrupted,
    /// The kernel refused.
    Failed(io::Error),
}

impl<E: Into<io::Error>> From<E> for Stopped {
    fn from(error: E) -> Stopped {
        Stopped::Failed(error.into())
    }
}

/// The rest of the time allowed, and the interrupts that can end it early.
#[derive(Debug)]
pub struct Patience<'a> {
    until: Stamp,
    allowed: Nanos,
    interrupts: Option<&'a Interrupts>,
    asked: bool,
}

/// The result of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// There is something to do.
    Ready,
    /// The slice of time passed.
    Nothing,
}

impl<'a> Patience<'a> {
    /// Starts now. `None` for interrupts is for what must be done even while stopping.
    pub fn new(allowed: Nanos, interrupts: Option<&'a Interrupts>) -> Patience<'a> {
        let until = Stamp(clock::now().0 + allowed.0.max(0) as u64);
        let mut patience = Patience { until, allowed, interrupts, asked: false };
        patience.listen();
        patience
    }

    /// The time that was allowed at the start.
    pub fn allowed(&self) -> Nanos {
        self.allowed
    }

    /// Handles an interrupt; the first one leaves a few seconds.
    fn listen(&mut self) {
        if self.interrupts.is_some_and(Interrupts::asked) && !self.asked {
            self.asked = true;
            self.until = self.until.min(Stamp(clock::now().0 + GRACE.0 as u64));
        }
    }

    fn left(&self) -> Result<Nanos, Stopped> {
        match self.until.0.checked_sub(clock::now().0) {
            Some(left @ 1..) => Ok(Nanos(left as i64)),
            _ if self.asked => Err(Stopped::Interrupted),
            _ => Err(Stopped::Late),
        }
    }

    /// Sleeps until `events` of `fd`, for at most `slice`.
    pub fn wait(&mut self, fd: &impl AsFd, events: PollFlags, slice: Nanos) -> Result<Waited, Stopped> {
        self.wait_for(&[PollFd::new(fd, events)], slice)
    }

    /// Sleeps until one of two has something to read, without a limit of its own.
    pub fn wait_for_either(&mut self, one: &impl AsFd, other: &impl AsFd) -> Result<(), Stopped> {
        let both = [PollFd::new(one, READABLE), PollFd::new(other, READABLE)];
        while self.wait_for(&both, GRACE)? == Waited::Nothing {}
        Ok(())
    }

    /// Sleeps until one of these has an event, for at most `slice`.
    pub fn wait_for(&mut self, fds: &[PollFd<'_>], slice: Nanos) -> Result<Waited, Stopped> {
        let end = Stamp(clock::now().0 + slice.0 as u64);
        let mut polled = fds.to_vec();
        polled.extend(self.interrupts.map(|interrupts| PollFd::new(interrupts, READABLE)));
        loop {
            let left = self.left()?.min(Nanos(end.0.saturating_sub(clock::now().0) as i64));
            let any = pidfd::poll(&mut polled, left);
            let (own, stop) = polled.split_at(fds.len());
            let has_event = |one: &PollFd<'_>| any && !one.revents().is_empty();
            match (own.iter().any(has_event), stop.iter().any(has_event)) {
                (true, _) => return Ok(Waited::Ready),
                (false, true) if self.asked => return Err(Stopped::Interrupted),
                (false, true) => self.listen(),
                (false, false) if clock::now() >= end => return Ok(Waited::Nothing),
                (false, false) => {}
            }
        }
    }
}

/// A connected stream. It never blocks; [`Patience`] waits.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Socket {
    /// Connects to the listener at this path.
    pub fn connect(path: &Path, patience: &mut Patience<'_>) -> Result<Socket, Stopped> {
        let address = SocketAddrUnix::new(path)?;
        let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&fd, Timeout::Send, Some(QUEUE_SLICE))?;
        loop {
            match rustix::net::connect(&fd, &address) {
                Ok(()) => break,
                Err(Errno::AGAIN | Errno::INTR) => {
                    patience.listen();
                    patience.left()?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        fcntl_setfl(&fd, OFlags::NONBLOCK)?;
        Ok(Socket { fd })
    }

    /// Writes all bytes.
    pub fn write_all(&self, mut bytes: &[u8], patience: &mut Patience<'_>) -> Result<(), Stopped> {
        while !bytes.is_empty() {
            match send(&self.fd, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::AGAIN | Errno::INTR) => {
                    patience.wait(self, PollFlags::OUT, GRACE)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads what is available: the number of bytes, zero at the end, or `None`.
    pub fn read_now(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.fd, buffer) {
            Ok(count) => Ok(Some(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// An accepted connection, which must be non-blocking.
impl From<std::os::unix::net::UnixStream> for Socket {
    fn from(stream: std::os::unix::net::UnixStream) -> Socket {
        Socket { fd: stream.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    const SHORT: Nanos = Nanos::from_millis(50);
    const LONG: Nanos = Nanos::from_millis(20_000);

    #[test]
    fn what_the_other_side_writes_arrives_and_its_end_too() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let mut patience = Patience::new(LONG, None);
        let socket = Socket::connect(&path, &mut patience).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        assert_eq!(socket.read_now(&mut [0; 8]).unwrap(), None);
        other.write_all(b"word").unwrap();
        drop(other);
        assert_eq!(patience.wait(&socket, READABLE, LONG).unwrap(), Waited::Ready);
        let mut buffer = [0; 8];
        assert_eq!(socket.read_now(&mut buffer).unwrap(), Some(4));
        assert_eq!(&buffer[..4], b"word");
        assert_eq!(socket.read_now(&mut buffer).unwrap(), Some(0));
        assert!(matches!(socket.write_all(&[0; 9], &mut patience), Err(Stopped::Failed(_))));
    }

    #[test]
    fn silence_ends_with_the_slice_or_with_the_time_allowed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let _listener = UnixListener::bind(&path).unwrap();
        let mut patience = Patience::new(LONG, None);
        let socket = Socket::connect(&path, &mut patience).unwrap();
        assert_eq!(patience.wait(&socket, READABLE, SHORT).unwrap(), Waited::Nothing);
        let mut patience = Patience::new(SHORT, None);
        assert!(matches!(patience.wait(&socket, READABLE, LONG), Err(Stopped::Late)));
        let far_too_much = vec![0; 64 << 20];
        let mut patience = Patience::new(SHORT, None);
        assert!(matches!(socket.write_all(&far_too_much, &mut patience), Err(Stopped::Late)));
    }

    #[test]
    fn a_full_queue_is_late_and_no_listener_an_error() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let mut patience = Patience::new(LONG, None);
        assert!(matches!(Socket::connect(&path, &mut patience), Err(Stopped::Failed(_))));
        let listener = UnixListener::bind(&path).unwrap();
        // Shortens the queue.
        rustix::net::listen(&listener, 0).unwrap();
        let mut patience = Patience::new(Nanos::from_millis(250), None);
        let mut connected = Vec::new();
        let stopped = loop {
            match Socket::connect(&path, &mut patience) {
                Ok(socket) => connected.push(socket),
                Err(stopped) => break stopped,
            }
        };
        assert!(matches!(stopped, Stopped::Late), "{stopped:?}");
        assert!(Socket::connect(Path::new(&"x".repeat(200)), &mut Patience::new(LONG, None)).is_err());
    }
}
