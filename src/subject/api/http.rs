//! The part of HTTP/1.1 that an engine's API needs: sequential requests on a persistent connection; answers
//! with a length, in chunks or until the connection ends; and connections that an engine turns into the
//! stream of a container's output.
//!
//! Deliberately absent: TLS, redirects, compression, pipelining, and the interpretation of answers.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::event::PollFd;
use serde_json::Value;

use crate::http::{Head, head};
use crate::sys::socket::{Patience, READABLE, Socket, Stopped, Waited};
use crate::sys::spawn::Reading;
use crate::units::{Nanos, Stamp};

/// A container's output beyond this is read and discarded.
pub(super) const KEPT_OUTPUT: usize = 1 << 20;
/// How often a container's output is read from the socket, as with a pipe.
const DRAIN_EVERY: Nanos = Nanos::from_millis(250);
/// The same for a container that has just filled it.
const DRAIN_BUSY: Nanos = Nanos::from_millis(5);
/// How much counts as full: part of the smallest buffer that kernels use.
const FULL: usize = 64 << 10;

/// A request, ready to be sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method and path, for messages.
    pub shown: String,
    bytes: Vec<u8>,
    /// A file with the rest of the body, if it is too large for memory.
    file: Option<PathBuf>,
}

impl Request {
    /// A request without a body.
    pub fn plain(method: &str, target: &str) -> Request {
        Request::made(method, target, "Content-Length: 0\r\n", &[])
    }

    /// A request to make what its body describes.
    pub fn with_json(target: &str, body: &Value) -> Request {
        let body = body.to_string();
        let headers = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        Request::made("POST", target, &headers, body.as_bytes())
    }

    /// A request with the content of a file as its body.
    pub fn with_file(method: &str, target: &str, kind: &str, path: &Path) -> io::Result<Request> {
        let headers = format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", path.metadata()?.len());
        Ok(Request { file: Some(path.to_owned()), ..Request::made(method, target, &headers, &[]) })
    }

    /// A request to turn the connection into a stream.
    pub fn upgrading(target: &str, body: &[u8]) -> Request {
        let headers = format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n",
            body.len()
        );
        Request::made("POST", target, &headers, body)
    }

    fn made(method: &str, target: &str, headers: &str, body: &[u8]) -> Request {
        let agent = concat!("dunnage/", env!("CARGO_PKG_VERSION"));
        let head =
            format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {agent}\r\n{headers}\r\n");
        Request { shown: format!("{method} {target}"), bytes: [head.as_bytes(), body].concat(), file: None }
    }
}

/// An engine's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// Everything after the head.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Fault {
    /// It did not come in time, the user interrupted, or the socket failed.
    Stopped(Stopped),
    /// The connection ended before the answer or in the middle of it.
    Closed(&'static str),
    /// It is not valid HTTP, or too large.
    Garbage(String),
}

impl From<Stopped> for Fault {
    fn from(stopped: Stopped) -> Fault {
        Fault::Stopped(stopped)
    }
}

/// A connection to an engine.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    /// Bytes that were read and belong to no answer yet.
    read: Vec<u8>,
    /// Whether the engine closes the connection after its last answer.
    over: bool,
}

impl Connection {
    /// Connects to the engine that listens at this path.
    pub fn open(path: &Path, patience: &mut Patience<'_>) -> Result<Connection, Stopped> {
        Ok(Connection { socket: Socket::connect(path, patience)?, read: Vec::new(), over: false })
    }

    /// Whether the engine said that it takes no more requests on this connection.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Sends a request and waits for the whole answer; meanwhile a container's output is drained so that it
    /// does not block.
    pub fn exchange(
        &mut self,
        request: &Request,
        patience: &mut Patience<'_>,
        mut output: Option<&mut Stream>,
    ) -> Result<Answer, Fault> {
        self.send(request, patience)?;
        let head = self.head(patience, &mut output)?;
        self.over = head.last;
        self.body(head, patience, &mut output)
    }

    /// Sends a request that turns the connection into a stream; returns the answer if the engine refuses.
    pub fn hijack(
        mut self,
        request: &Request,
        patience: &mut Patience<'_>,
    ) -> Result<Result<Stream, Answer>, Fault> {
        self.send(request, patience)?;
        let head = self.head(patience, &mut None)?;
        if head.status != 101 && head.status != 200 {
            return self.body(head, patience, &mut None).map(Err);
        }
        self.read.drain(..head.length);
        Ok(Ok(Stream {
            socket: self.socket,
            kept: self.read,
            ended: false,
            reading: Reading::Late,
            came: None,
        }))
    }

    fn send(&mut self, request: &Request, patience: &mut Patience<'_>) -> Result<(), Fault> {
        let sent = self.socket.write_all(&request.bytes, patience).and_then(|()| match &request.file {
            Some(path) => self.send_file(path, patience),
            None => Ok(()),
        });
        match sent {
            // An engine that refuses a request may answer before it has read all of it.
            Err(Stopped::Failed(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => Ok(sent?),
        }
    }

    fn send_file(&mut self, path: &Path, patience: &mut Patience<'_>) -> Result<(), Stopped> {
        let mut file = std::fs::File::open(path)?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                count => self.socket.write_all(&buffer[..count], patience)?,
            }
        }
    }

    /// The head of the next answer that is not informational (1xx); it stays at the front of the read buffer.
    fn head(&mut self, patience: &mut Patience<'_>, output: &mut Option<&mut Stream>) -> Result<Head, Fault> {
        loop {
            match head(&self.read).map_err(Fault::Garbage)? {
                Some(head) if head.is_informational() => {
                    self.read.drain(..head.length);
                }
                Some(head) => return Ok(head),
                None => {
                    let began = !self.read.is_empty();
                    if self.more(patience, output)? == 0 {
                        return Err(Fault::Closed(if began { "in the middle of" } else { "before" }));
                    }
                }
            }
        }
    }

    fn body(
        &mut self,
        head: Head,
        patience: &mut Patience<'_>,
        output: &mut Option<&mut Stream>,
    ) -> Result<Answer, Fault> {
        self.read.drain(..head.length);
        let mut ended = false;
        loop {
            let mut body = Vec::new();
            let take = |piece: &[u8]| body.extend_from_slice(piece);
            if let Some(length) = head.body.complete(&self.read, ended, take).map_err(Fault::Garbage)? {
                self.read.drain(..length);
                return Ok(Answer { status: head.status, reason: head.reason, body });
            }
            if ended {
                return Err(Fault::Closed("in the middle of"));
            }
            ended = self.more(patience, output)? == 0;
        }
    }

    /// Reads the next bytes; returns their number, zero at the end.
    fn more(
        &mut self,
        patience: &mut Patience<'_>,
        output: &mut Option<&mut Stream>,
    ) -> Result<usize, Fault> {
        let mut buffer = [0u8; 16384];
        let mut slice = DRAIN_EVERY;
        loop {
            let at_once = output.as_ref().filter(|output| output.reading.is_at_once() && !output.ended);
            if let Some(output) = at_once {
                let both = [&self.socket, &output.socket].map(|socket| PollFd::new(socket, READABLE));
                patience.wait_for(&both, slice)?;
                slice = Nanos(0);
            }
            if let Waited::Ready = patience.wait(&self.socket, READABLE, slice)? {
                match self.socket.read_now(&mut buffer) {
                    Ok(Some(count)) => {
                        self.read.extend_from_slice(&buffer[..count]);
                        return Ok(count);
                    }
                    Ok(None) => {}
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(0),
                    Err(error) => return Err(Fault::Stopped(Stopped::Failed(error))),
                }
            }
            if let Some(output) = output.as_mut() {
                slice = if output.drain() >= FULL { DRAIN_BUSY } else { DRAIN_EVERY };
            }
        }
    }
}

/// What a container wrote, and when the line that is waited for arrived.
pub type Written = (Vec<u8>, Option<Stamp>);

/// A container's output, as an engine passes it on.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    kept: Vec<u8>,
    ended: bool,
    /// Whether it is read while waiting for an answer.
    pub reading: Reading,
    /// When the line that is waited for arrived, in the kept output.
    pub came: Option<Stamp>,
}

impl Stream {
    /// Reads what is available without waiting, and returns the number of bytes.
    pub fn drain(&mut self) -> usize {
        let mut buffer = [0u8; 16384];
        let mut total = 0;
        while !self.ended {
            match self.socket.read_now(&mut buffer) {
                Ok(Some(0)) | Err(_) => self.ended = true,
                Ok(Some(count)) => {
                    total += count;
                    let room = KEPT_OUTPUT.saturating_sub(self.kept.len());
                    self.kept.extend_from_slice(&buffer[..count.min(room)]);
                }
                Ok(None) => break,
            }
        }
        if let (Reading::For(line), None, 1..) = (&self.reading, self.came, total) {
            // A terminal's stream is not split into frames.
            let streams = demultiplexed(&self.kept).unwrap_or_else(|| (self.kept.clone(), Vec::new()));
            self.came = line.among(&streams.0).or_else(|| line.among(&streams.1));
        }
        total
    }

    /// Reads until the end and returns everything.
    pub fn into_bytes(mut self, patience: &mut Patience<'_>) -> Result<Written, Stopped> {
        loop {
            self.drain();
            if self.ended {
                return Ok((self.kept, self.came));
            }
            patience.wait(&self.socket, READABLE, DRAIN_EVERY)?;
        }
    }
}

/// Standard output and standard error from a stream in which each frame has a header of eight bytes: the
/// stream, three zeros, the length.
pub fn demultiplexed(mut bytes: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at_checked(8)?;
        let length = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
        // If the stream was cut off, the partial frame counts.
        let (piece, rest) = rest.split_at(length.min(rest.len()));
        match head[..4] {
            [1, 0, 0, 0] => stdout.extend_from_slice(piece),
            [2, 0, 0, 0] => stderr.extend_from_slice(piece),
            _ => return None,
        }
        bytes = rest;
    }
    Some((stdout, stderr))
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
