//! The channel to the probe in a container that serves: a Unix socket in a directory that is bound into the
//! container, so it works without a network, through any engine and for any user. Orders go in, answers come
//! out; stamps are taken inside. When the container or dunnage dies the channel closes, which ends every
//! wait.
//!
//! Any process that reaches the directory can connect. So the first one is held back until the container's
//! first process is known, and those that do not belong to it are refused.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use dunnage_orders::{Order, Reply};
use serde::de::DeserializeOwned;

use super::RunContext;
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::message::{self, Message, SOCKET};
use crate::sys::peer::{self, Peer};
use crate::sys::socket::{Patience, READABLE, Socket, Stopped, Waited};
use crate::sys::{pidfd, process};
use crate::units::Nanos;

/// The channel's path inside the container.
pub(super) const INSIDE: &str = "/dunnage-channel";
/// The longest time until a request to stop is noticed, also one that another thread received.
const SLICE: Nanos = Nanos::from_millis(250);
/// More bytes than any message of the probe has.
const LONGEST: usize = 1 << 20;
/// Of a message without an end, how much a failure quotes.
const EXCERPT: usize = 1000;
/// After this long without a message dunnage checks whether the container is still alive.
const SILENCE: Nanos = Nanos::from_millis(2_000);

/// The host's end of the channel before the probe has connected.
#[derive(Debug)]
pub(super) struct Awaited {
    listener: UnixListener,
}

/// A channel, and the process at its other end.
#[derive(Debug)]
pub(super) struct Channel {
    socket: Socket,
    /// Bytes that were read and belong to the next answer.
    rest: Vec<u8>,
    /// The process at the other end.
    pub peer: Peer,
}

impl Awaited {
    /// Makes a channel in a directory of its own below this one; returns the directory too.
    pub fn below(directory: &Path) -> Result<(Awaited, PathBuf), Failure> {
        let own = directory.join("channel");
        let failed = |error: std::io::Error| {
            Failure::environment(format!("cannot make the channel in `{}`: {error}", own.display()))
        };
        std::fs::create_dir(&own).map_err(failed)?;
        // The path of a socket is limited to about a hundred bytes and the directory's may be longer, so it
        // is reached by `/proc/self/fd`.
        let place = std::fs::File::open(&own).map_err(failed)?;
        let short = format!("/proc/self/fd/{}/{SOCKET}", place.as_raw_fd());
        let listener = UnixListener::bind(short).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        // Root inside may be any user outside, so every user may connect.
        let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode));
        mode(&own, 0o755).and_then(|()| mode(&own.join(SOCKET), 0o666)).map_err(failed)?;
        Ok((Awaited { listener }, own))
    }

    /// Waits until the probe inside has said that it is ready. `first` finds the first process of the
    /// container, which is watched too: if that ends, it is a crash and not a hang.
    pub fn ready(
        &self,
        run: &RunContext,
        first: &mut dyn FnMut() -> Result<i32, Failure>,
    ) -> Result<(Channel, Message), Abort> {
        let mut patience = Patience::new(run.allowed, Some(&run.interrupts));
        // A container outside of the PID namespace of this process has no process to watch.
        let mut named = || -> Result<Option<(i32, OwnedFd)>, Failure> {
            let first = first().map_err(|why| ended(&why.reason))?;
            match pidfd::open(first) {
                Ok(process) => Ok(Some((first, process))),
                Err(_) if !peer::sees_all() => Ok(None),
                Err(_) => Err(ended("its process is gone")),
            }
        };
        let mut silent = 0;
        let mut watched: Option<(i32, OwnedFd)> = None;
        let (stream, peer) = loop {
            match &watched {
                None => {
                    let waited = wait(&mut patience, &self.listener, run)?;
                    silent += i64::from(waited == Waited::Nothing);
                }
                Some((_, process)) => patience.wait_for_either(&self.listener, process).map_err(stopped)?,
            }
            let came = self.accepted()?;
            if watched.is_none() && (came.is_some() || silent * SLICE.0 >= SILENCE.0) {
                watched = named()?;
            }
            match (came, &watched) {
                (Some((stream, peer)), watched)
                    if peer.belongs_to(watched.as_ref().map(|(first, _)| *first)) =>
                {
                    break (stream, peer);
                }
                (None, Some((_, process))) if process::has_ended(process) => {
                    return Err(ended("its process has ended").into());
                }
                _ => {}
            }
        };
        let mut channel = Channel::over(stream, peer)?;
        let said = channel.receive(&mut patience, run, message::length)?;
        let message = message::parse(&said).map_err(|why| wrong(&why, &said))?;
        Ok((channel, message))
    }
}

impl Awaited {
    /// The next process that has connected and is still there.
    fn accepted(&self) -> Result<Option<(UnixStream, Peer)>, Failure> {
        match self.listener.accept() {
            Ok((stream, _)) => Ok(Peer::of(&stream).ok().map(|peer| (stream, peer))),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(Failure::environment(format!("cannot accept: {error}"))),
        }
    }
}

/// A container that ended before it sent anything.
fn ended(how: &str) -> Failure {
    Failure::new(FailureClass::Crash, format!("the container ended before it was ready: {how}"))
}

/// The number of bytes of the first line, if it is complete.
fn line(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1)
}

fn wrong(why: &dyn std::error::Error, said: &[u8]) -> Failure {
    Failure::new(FailureClass::WrongOutput, format!("channel: {why}")).with_words(said)
}

fn stopped(stopped: Stopped) -> Abort {
    match stopped {
        Stopped::Interrupted => Abort::Interrupted,
        Stopped::Late => {
            Failure::new(FailureClass::Timeout, "the probe inside did not answer in time").into()
        }
        Stopped::Failed(error) => closed(&format!("the channel broke: {error}")).into(),
    }
}

fn closed(how: &str) -> Failure {
    Failure::new(FailureClass::Crash, format!("the probe inside is gone: {how}"))
}

/// Waits for something to read, or for one slice of time.
fn wait(patience: &mut Patience<'_>, on: &impl AsFd, run: &RunContext) -> Result<Waited, Abort> {
    let waited = patience.wait(on, READABLE, SLICE).map_err(stopped)?;
    match waited {
        Waited::Nothing if run.interrupts.asked() => Err(Abort::Interrupted),
        waited => Ok(waited),
    }
}

impl Channel {
    fn over(stream: UnixStream, peer: Peer) -> Result<Channel, Failure> {
        stream.set_nonblocking(true).or_environment("cannot use a channel")?;
        Ok(Channel { socket: Socket::from(stream), rest: Vec::new(), peer })
    }

    /// Sends an order.
    pub fn send(&self, order: &Order, run: &RunContext) -> Result<(), Abort> {
        let mut line = serde_json::to_vec(order).or_environment("an order cannot be written")?;
        line.push(b'\n');
        let mut patience = Patience::new(run.allowed, Some(&run.interrupts));
        self.socket.write_all(&line, &mut patience).map_err(stopped)
    }

    /// The answer to the oldest order that is not answered yet, within this time.
    pub fn answer<T: DeserializeOwned>(
        &mut self,
        allowed: Nanos,
        run: &RunContext,
    ) -> Result<Reply<T>, Abort> {
        let mut patience = Patience::new(allowed, Some(&run.interrupts));
        let said = self.receive(&mut patience, run, line).map_err(|abort| match abort {
            Abort::Failed(failure) if failure.class == FailureClass::Timeout => {
                Failure { took: allowed, ..failure }.into()
            }
            abort => abort,
        })?;
        Ok(serde_json::from_slice(&said).map_err(|why| wrong(&why, &said))?)
    }

    /// What comes next, whose length `whole` knows once it is complete.
    fn receive(
        &mut self,
        patience: &mut Patience<'_>,
        run: &RunContext,
        whole: fn(&[u8]) -> Option<usize>,
    ) -> Result<Vec<u8>, Abort> {
        let mut said = std::mem::take(&mut self.rest);
        let mut looked = 0;
        loop {
            if let Some(length) = whole(&said[looked..]) {
                self.rest = said.split_off(looked + length);
                return Ok(said);
            }
            // The end of an answer may be split across two reads.
            looked = said.len().saturating_sub(8);
            if said.len() >= LONGEST {
                let failure = Failure::new(FailureClass::WrongOutput, "the probe's message has no end");
                return Err(failure.with_words(&said[..EXCERPT]).into());
            }
            let mut chunk = [0; 16384];
            match self.socket.read_now(&mut chunk) {
                Ok(Some(0)) => return Err(closed("its container ended").with_words(&said).into()),
                Ok(Some(count)) => said.extend_from_slice(&chunk[..count]),
                Ok(None) => drop(wait(patience, &self.socket, run)?),
                Err(error) => return Err(stopped(Stopped::Failed(error))),
            }
        }
    }
}
