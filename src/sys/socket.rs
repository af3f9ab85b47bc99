//! Unix sockets with a deadline that the person can cut short: connecting, writing and reading on
//! one thread, which sleeps in the kernel until there is something to do.
//!
//! Deliberately absent: what is said over a socket, threads, and an event loop.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::signals::Interrupts;
use super::{clock, pidfd};
use crate::units::{Nanos, Stamp};

/// How long a conversation may go on after the person asked to stop: an answer that is on its way
/// says what was made and must be removed.
const GRACE: Nanos = Nanos::from_millis(5000);
/// While the queue of a listener is full, the kernel lets a connect sleep at most this long at a
/// time, so that the person is heard in between.
static QUEUE_SLICE: libc::timeval = libc::timeval { tv_sec: 0, tv_usec: 100_000 };

/// There is something to read, or the end.
pub const READABLE: i16 = libc::POLLIN;

/// Why a conversation stopped.
#[derive(Debug)]
pub enum Stopped {
    /// The time allowed ran out.
    Late,
    /// The person asked to stop.
    Interrupted,
    /// The kernel refused.
    Failed(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Stopped {
        Stopped::Failed(error)
    }
}

/// What is left of the time allowed, and who may cut it short.
#[derive(Debug)]
pub struct Patience<'a> {
    until: Stamp,
    allowed: Nanos,
    interrupts: Option<&'a Interrupts>,
    asked: bool,
}

/// What a wait came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// There is something to do.
    Ready,
    /// The slice of time passed.
    Nothing,
}

impl<'a> Patience<'a> {
    /// From now on. Without interrupts it is for what must be done even while stopping.
    pub fn new(allowed: Nanos, interrupts: Option<&'a Interrupts>) -> Patience<'a> {
        let until = Stamp(clock::now().0 + allowed.0.max(0) as u64);
        let mut patience = Patience { until, allowed, interrupts, asked: false };
        patience.listen();
        patience
    }

    /// The time that was allowed in the beginning.
    pub fn allowed(&self) -> Nanos {
        self.allowed
    }

    /// Hears the person, who leaves a few seconds the first time.
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

    /// Sleeps until `events` of `fd`, for `slice` at most.
    pub fn wait(&mut self, fd: &impl AsRawFd, events: i16, slice: Nanos) -> Result<Waited, Stopped> {
        self.wait_for([(fd.as_raw_fd(), events), NOBODY], slice)
    }

    /// Sleeps until one of two has something to read, however long that takes.
    pub fn wait_for_either(&mut self, one: &impl AsRawFd, other: &impl AsRawFd) -> Result<(), Stopped> {
        while self.wait_for([one.as_raw_fd(), other.as_raw_fd()].map(|fd| (fd, READABLE)), GRACE)?
            == Waited::Nothing
        {}
        Ok(())
    }

    fn wait_for(&mut self, fds: [(RawFd, i16); 2], slice: Nanos) -> Result<Waited, Stopped> {
        let end = Stamp(clock::now().0 + slice.0 as u64);
        loop {
            let left = self.left()?.min(Nanos(end.0.saturating_sub(clock::now().0) as i64));
            let stop = self.interrupts.map_or(NOBODY, |interrupts| (interrupts.as_raw_fd(), READABLE));
            let [one, other, stop] = pidfd::ready([fds[0], fds[1], stop], left);
            match (one || other, stop) {
                (true, _) => return Ok(Waited::Ready),
                (false, true) if self.asked => return Err(Stopped::Interrupted),
                (false, true) => self.listen(),
                (false, false) if clock::now() >= end => return Ok(Waited::Nothing),
                (false, false) => {}
            }
        }
    }
}

/// A negative descriptor is one that poll passes over.
const NOBODY: (RawFd, i16) = (-1, 0);

/// A connected stream. It never blocks by itself; [`Patience`] waits.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// The address of a path, and its size.
fn address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: an all-zero sockaddr_un is valid.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = CString::new(path.as_os_str().as_bytes())?.into_bytes_with_nul();
    if bytes.len() > address.sun_path.len() {
        let most = address.sun_path.len() - 1;
        let reason =
            format!("`{}` is longer than the {most} bytes that a socket's path may have", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    for (slot, byte) in address.sun_path.iter_mut().zip(bytes) {
        *slot = byte as libc::c_char;
    }
    Ok((address, size_of::<libc::sockaddr_un>() as libc::socklen_t))
}

fn made(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system call that gave the number just made the descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Socket {
    /// Connects to the listener at this path.
    pub fn connect(path: &Path, patience: &mut Patience<'_>) -> Result<Socket, Stopped> {
        let (address, size) = address(path)?;
        // SAFETY: makes a descriptor; no memory is passed.
        let fd = made(unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })?;
        // SAFETY: the option's value is a timeval of the size given.
        unsafe {
            libc::setsockopt(
                fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_SNDTIMEO,
                (&raw const QUEUE_SLICE).cast(),
                size_of::<libc::timeval>() as libc::socklen_t,
            );
        }
        loop {
            // SAFETY: the address is valid for the size given.
            if unsafe { libc::connect(fd.as_raw_fd(), (&raw const address).cast(), size) } == 0 {
                break;
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {
                    patience.listen();
                    patience.left()?;
                }
                _ => return Err(error.into()),
            }
        }
        // SAFETY: sets a flag of a descriptor that we own.
        unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        Ok(Socket { fd })
    }

    /// Writes all bytes.
    pub fn write_all(&self, mut bytes: &[u8], patience: &mut Patience<'_>) -> Result<(), Stopped> {
        while !bytes.is_empty() {
            // SAFETY: the buffer is readable for its whole length.
            let sent = unsafe {
                libc::send(self.fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL)
            };
            match usize::try_from(sent) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(_) => {
                    self.retry(io::Error::last_os_error())?;
                    patience.wait(self, libc::POLLOUT, GRACE)?;
                }
            }
        }
        Ok(())
    }

    /// Reads what is there now: the number of bytes, which is zero at the end, or nothing.
    pub fn read_now(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        // SAFETY: the buffer is writable for its whole length.
        let count = unsafe { libc::read(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        match usize::try_from(count) {
            Ok(count) => Ok(Some(count)),
            Err(_) => self.retry(io::Error::last_os_error()).map(|()| None),
        }
    }

    fn retry(&self, error: io::Error) -> io::Result<()> {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
            _ => Err(error),
        }
    }
}

/// One that was accepted, and does not block.
impl From<std::os::unix::net::UnixStream> for Socket {
    fn from(stream: std::os::unix::net::UnixStream) -> Socket {
        Socket { fd: stream.into() }
    }
}

/// A socket to which one message is sent, by a program that is asked to say when it is ready
/// (`NOTIFY_SOCKET`, as systemd has it).
#[derive(Debug)]
pub struct Mailbox {
    fd: OwnedFd,
}

impl Mailbox {
    /// At this path, which the caller removes.
    pub fn at(path: &Path) -> io::Result<Mailbox> {
        let (address, size) = address(path)?;
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: makes a descriptor; no memory is passed.
        let fd = made(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
        // SAFETY: the address is valid for the size given.
        if unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Mailbox { fd })
    }

    /// The message that is there now.
    pub fn message(&self) -> Option<String> {
        let mut bytes = [0u8; 4096];
        // SAFETY: the buffer is writable for its whole length.
        let count = unsafe { libc::read(self.fd.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
        let count = usize::try_from(count).ok()?;
        Some(String::from_utf8_lossy(&bytes[..count]).into_owned())
    }
}

impl AsRawFd for Mailbox {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
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
        assert_eq!(patience.wait(&socket, libc::POLLIN, LONG).unwrap(), Waited::Ready);
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
        assert_eq!(patience.wait(&socket, libc::POLLIN, SHORT).unwrap(), Waited::Nothing);
        let mut patience = Patience::new(SHORT, None);
        assert!(matches!(patience.wait(&socket, libc::POLLIN, LONG), Err(Stopped::Late)));
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
        // SAFETY: shortens the queue of a listener that we own.
        unsafe { libc::listen(listener.as_raw_fd(), 0) };
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
