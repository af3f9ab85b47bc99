//! A command that keeps running: checks whether it is ready, and sends SIGTERM then, or when it is late.
//!
//! Whether a line was written is known at the other end of the output, on the host, which signals it by a
//! change of the message file. A port is tried from here, in the command's own network, which every subject
//! has.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use dunnage_orders::work::{Ready, Served};
use rustix::event::Timespec;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::sys::raw;
use crate::units::Stamp;

/// How long it may take to end after SIGTERM, as with engines.
const PATIENCE: u64 = 10_000_000_000;
/// The shortest time between two tries of a port, and the part of the time so far that may pass between them.
const STEP: u64 = 1_000_000;
const PART: u64 = 200;
/// How long a try may take. On the local network it is answered at once, unless the listener's queue is full.
const TRY: Duration = Duration::from_millis(100);

/// A service, with stamps in nanoseconds.
pub(super) struct Service {
    told: OwnedFd,
    port: Option<u16>,
    allowed: u64,
    pid: i32,
    began: u64,
    serving: Option<u64>,
    asked_to_end: Option<u64>,
    late: bool,
}

impl Service {
    /// A service that is about to be started: with a port it is ready when that is open, else when the host
    /// changes the file.
    pub fn awaited(file: &CStr, ready: Ready) -> Result<Service, Errno> {
        let (port, allowed) = (ready.port, ready.allowed.0.unsigned_abs());
        let told = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        inotify::add_watch(&told, file, WatchFlags::ATTRIB)?;
        Ok(Service { told, port, allowed, pid: 0, began: 0, serving: None, asked_to_end: None, late: false })
    }

    /// It was forked.
    pub fn begins(&mut self, pid: i32, at: u64) {
        (self.pid, self.began) = (pid, at);
    }

    /// Its port, if that is open.
    pub fn open_port(&self) -> Option<u16> {
        let own = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        self.port.filter(|port| {
            own.iter().any(|own| TcpStream::connect_timeout(&SocketAddr::new(*own, *port), TRY).is_ok())
        })
    }

    /// The time until the next check, unless an event comes first.
    pub fn pause(&self) -> Timespec {
        let now = raw::monotonic();
        let until = match self.asked_to_end {
            Some(asked) => asked + PATIENCE,
            None if self.port.is_none() => self.began + self.allowed,
            None => now + STEP.max((now - self.began) / PART),
        };
        let nanos = until.saturating_sub(now).max(STEP);
        Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
    }

    /// Checks it, and does what is due.
    pub fn look(&mut self) {
        let is_told = rustix::io::read(&self.told, &mut [0u8; 512]).is_ok();
        let is_open = self.asked_to_end.is_none() && self.open_port().is_some();
        let now = raw::monotonic();
        if let Some(asked) = self.asked_to_end {
            if now >= asked + PATIENCE {
                self.send(Signal::KILL);
            }
            return;
        }
        self.serving = is_open.then_some(now);
        self.late = !is_told && !is_open && now >= self.began + self.allowed;
        if is_told || is_open || self.late {
            self.asked_to_end = Some(now);
            self.send(Signal::TERM);
        }
    }

    fn send(&self, signal: Signal) {
        let _ = Pid::from_raw(self.pid).map(|pid| kill_process(pid, signal));
    }

    /// How it served.
    pub fn told(self) -> Served {
        let (forked, serving) = (Stamp(self.began), self.serving.map(Stamp));
        Served { forked, serving, asked_to_end: self.asked_to_end.is_some(), late: self.late }
    }
}

/// Readable when the host signals that it is ready.
impl AsFd for Service {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}
