//! A web server: HTTP/1.1 with persistent connections, and an epoll for each worker thread. Connections are given
//! to the workers in turns, so that each has as many as the others. `/network` only answers; `/cpu` computes;
//! `/disk-io` writes a file and reads it back. The last two occupy their worker, so as many run at once as there
//! are workers.
//!
//! Deliberately absent: stopping it, as for the other servers, and bodies of requests.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use dunnage_orders::network::Settings;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::http;
use crate::load::protocol::{GREETING, random};
use crate::load::server::{accepted, cannot_listen, listener};
use crate::outcome::{Failure, OrEnvironment};
use crate::sys::{affinity, clock, limits};

/// How often the server stalls, if it does.
const SECOND: u64 = 1_000_000_000;
/// Bytes that are read from a connection at once.
const READ: usize = 16 << 10;
/// The bytes of a file's block; each one is different in every request.
const BLOCK: usize = 4096;
/// The seed of the files.
const SEED: u64 = 0x6469_736b;

/// A server that listens but does not serve yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    settings: Arc<Settings>,
}

impl Server {
    /// Listens at this address; port 0 is any that is free.
    ///
    /// # Errors
    /// Also if the directory cannot be written to.
    pub fn bind(address: SocketAddr, settings: Settings) -> Result<Server, Failure> {
        if let Some(directory) = &settings.directory {
            NamedTempFile::new_in(directory)
                .or_environment(format_args!("cannot write to `{}`", directory.display()))?;
        }
        let listener = listener(address).map_err(|error| cannot_listen(address, &error))?;
        Ok(Server { listener, settings: Arc::new(settings) })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the socket fails.
    pub fn serve(self) -> io::Result<Infallible> {
        // As many connections as are allowed; the clients know how many they need.
        limits::raise_open_files(limits::open_files());
        let count = match self.settings.workers {
            Some(count) => count.max(1),
            None => affinity::allowed()?.len(),
        };
        let open = Arc::new(AtomicUsize::new(0));
        let mut workers = Vec::new();
        for _ in 0..count {
            let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC)?);
            let (sender, arrivals) = mpsc::channel();
            let worker = Worker {
                epoll: epoll.clone(),
                arrivals,
                connections: HashMap::new(),
                open: open.clone(),
                paths: Paths::new(self.settings.clone()),
            };
            thread::Builder::new().spawn(|| worker.work())?;
            workers.push((epoll, sender));
        }
        for (epoll, sender) in workers.iter().cycle() {
            let stream = loop {
                match accepted(&self.listener)? {
                    // Dropping one closes it.
                    Some(stream) if open.load(Ordering::Relaxed) < self.settings.connections => break stream,
                    _ => {}
                }
            };
            open.fetch_add(1, Ordering::Relaxed);
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let stream = Arc::new(stream);
            // The worker looks there when the first bytes come, so it must be there before.
            sender.send(Connection::new(stream.clone())).map_err(io::Error::other)?;
            epoll::add(epoll, &stream, key(&stream), EventFlags::IN)?;
        }
        unreachable!("there is a worker, so the cycle has no end")
    }
}

/// By which a worker knows a connection.
fn key(stream: &TcpStream) -> EventData {
    EventData::new_u64(stream.as_raw_fd() as u64)
}

struct Worker {
    epoll: Arc<OwnedFd>,
    arrivals: Receiver<Connection>,
    connections: HashMap<u64, Connection>,
    /// Connections of all workers.
    open: Arc<AtomicUsize>,
    paths: Paths,
}

impl Worker {
    fn work(mut self) -> io::Result<Infallible> {
        let mut events = Vec::with_capacity(256);
        let mut scratch = vec![0; READ];
        loop {
            events.clear();
            match epoll::wait(&*self.epoll, spare_capacity(&mut events), None) {
                Err(rustix::io::Errno::INTR) => continue,
                waited => waited?,
            };
            for event in &events {
                let key = event.data.u64();
                if !self.connections.contains_key(&key) {
                    let arrived = self.arrivals.try_iter();
                    self.connections.extend(arrived.map(|one| (one.stream.as_raw_fd() as u64, one)));
                }
                let Some(connection) = self.connections.get_mut(&key) else { continue };
                // A client that goes away ends its own connection only.
                if connection.turn(&self.epoll, &mut self.paths, &mut scratch).is_err() {
                    self.connections.remove(&key);
                    self.open.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }
}

struct Connection {
    stream: Arc<TcpStream>,
    /// Bytes of a request that is not complete.
    input: Vec<u8>,
    /// Answers that are not sent. As long as there are some, nothing is read.
    output: Vec<u8>,
    interest: EventFlags,
    /// Whether the connection ends after these answers.
    last: bool,
    disk: Option<Disk>,
}

impl Connection {
    fn new(stream: Arc<TcpStream>) -> Connection {
        let [input, output] = [Vec::new(), Vec::new()];
        Connection { stream, input, output, interest: EventFlags::IN, last: false, disk: None }
    }

    /// Reads what has come, and answers.
    ///
    /// # Errors
    /// If the connection has ended, or has to.
    fn turn(&mut self, epoll: &OwnedFd, paths: &mut Paths, scratch: &mut [u8]) -> io::Result<()> {
        if self.output.is_empty() {
            match (&*self.stream).read(scratch) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.input.extend_from_slice(&scratch[..length]),
                Err(error) => return ready(error),
            }
            self.answer(paths);
            if self.output.is_empty() {
                return Ok(());
            }
        }
        match (&*self.stream).write(&self.output) {
            Ok(length) => drop(self.output.drain(..length)),
            Err(error) => ready(error)?,
        }
        if self.output.is_empty() && self.last {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let interest = if self.output.is_empty() { EventFlags::IN } else { EventFlags::OUT };
        if interest != self.interest {
            epoll::modify(epoll, &self.stream, key(&self.stream), interest)?;
            self.interest = interest;
        }
        Ok(())
    }

    /// Answers all complete requests.
    fn answer(&mut self, paths: &mut Paths) {
        let mut at = 0;
        while !self.last {
            let (status, body) = match http::request(&self.input[at..]) {
                Ok(None) => break,
                Ok(Some(request)) => {
                    (at, self.last) = (at + request.length, request.last);
                    paths.answer(&request, &mut self.disk)
                }
                Err(why) => {
                    self.last = true;
                    ("400 Bad Request", why.into())
                }
            };
            let close = if self.last { "Connection: close\r\n" } else { "" };
            let head = format!("HTTP/1.1 {status}\r\n{close}Content-Length: {}\r\n\r\n", body.len());
            self.output.extend_from_slice(head.as_bytes());
            self.output.extend_from_slice(&body);
        }
        self.input.drain(..at);
    }
}

/// No error if it only says that the socket is not ready.
fn ready(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    }
}

/// The work behind the paths, with a worker's memory for it.
struct Paths {
    settings: Arc<Settings>,
    content: Vec<u8>,
    back: Vec<u8>,
}

impl Paths {
    fn new(settings: Arc<Settings>) -> Paths {
        let bytes = if settings.directory.is_some() { settings.bytes } else { 0 };
        Paths { settings, content: random(SEED, bytes), back: vec![0; bytes] }
    }

    /// The status and the body of an answer.
    fn answer(&mut self, request: &http::Request<'_>, disk: &mut Option<Disk>) -> (&'static str, Vec<u8>) {
        const OK: &str = "200 OK";
        let into_second = clock::now().0 % SECOND;
        let stall = (self.settings.stall.0 as u64).saturating_sub(into_second);
        if stall > 0 {
            thread::sleep(Duration::from_nanos(stall));
        }
        let path = match self.settings.key {
            Some(key) => request.path.strip_prefix('/').and_then(|path| path.strip_prefix(&key.to_string())),
            None => Some(request.path),
        };
        match (request.method, path.unwrap_or_default()) {
            ("GET", "/network") => (OK, GREETING.into()),
            ("GET", "/cpu") => (OK, hashed(self.settings.hashes).into_bytes()),
            ("GET", "/disk-io") if self.settings.directory.is_some() => match self.written_and_read(disk) {
                Ok(()) => (OK, GREETING.into()),
                Err(error) => ("500 Internal Server Error", error.to_string().into_bytes()),
            },
            ("GET", _) => ("404 Not Found", b"there is no such path".into()),
            _ => ("400 Bad Request", b"only GET is served".into()),
        }
    }

    fn written_and_read(&mut self, disk: &mut Option<Disk>) -> io::Result<()> {
        let directory = self.settings.directory.as_ref().ok_or(io::ErrorKind::NotFound)?;
        if disk.is_none() {
            *disk = Some(Disk { file: NamedTempFile::new_in(directory)?, number: 0 });
        }
        let disk = disk.as_mut().expect("it was made");
        disk.number += 1;
        for block in self.content.chunks_mut(BLOCK) {
            let number = disk.number.to_le_bytes();
            let length = block.len().min(number.len());
            block[..length].copy_from_slice(&number[..length]);
        }
        let file = disk.file.as_file();
        file.write_all_at(&self.content, 0)?;
        if self.settings.sync {
            file.sync_all()?;
        }
        file.read_exact_at(&mut self.back, 0)?;
        if self.back == self.content { Ok(()) } else { Err(io::Error::other("other bytes were read back")) }
    }
}

/// A connection's file, which is removed with it.
struct Disk {
    file: NamedTempFile,
    /// How often it was written.
    number: u64,
}

/// The last of so many hashes, each of the one before.
fn hashed(count: u64) -> String {
    let first: [u8; 32] = Sha256::digest(GREETING).into();
    let last = (1..count).fold(first, |digest, _| Sha256::digest(digest).into());
    last.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hash_is_of_the_one_before() {
        // As sha256sum and openssl say.
        assert_eq!(hashed(1), "b77769c05f3bc2a87a997c94b7337ac6e268562a123d57ed13bd8b9efefcbe15");
        assert_eq!(hashed(2), "bcda31ad8d4b29a7aabd5720fa077fc8307caedb5f53eb2175723b42d561be4a");
        assert_ne!(hashed(2), hashed(3));
    }
}
