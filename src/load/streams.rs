//! Bulk transfer of random bytes, in one direction, over one or several connections. It ends when the receiver
//! has confirmed how many bytes arrived and whether they are correct. Their checksum is part of the receiver's
//! work.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::RwLock;
use std::thread;

use dunnage_orders::network::{Direction, Streams};
use rustix::net::{RecvFlags, recv};

use super::protocol::{Content, Key, LoadRequest, Received, be_greeted};
use super::{Target, allow_files, connected, failure};
use crate::outcome::{Failure, FailureClass};
use crate::sys::clock;
use crate::units::Stamp;

/// Reads of a connection that return when the buffer is full (`MSG_WAITALL`): a receiver that is woken for each
/// segment takes a sixth longer for a stream.
#[derive(Debug)]
pub(super) struct Whole<'s>(pub(super) &'s TcpStream);

impl Read for Whole<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.0, buffer, RecvFlags::WAITALL)?.0)
    }
}

/// Moves this many bytes of a seed, divided among `count` streams.
///
/// # Errors
/// The first failure of a stream.
pub fn streams(
    target: &Target,
    direction: Direction,
    bytes: u64,
    count: u64,
    seed: u64,
) -> Result<Streams, Failure> {
    if count == 0 || bytes < count {
        let reason = "a transfer needs at least one stream, and a byte for each";
        return Err(Failure::new(FailureClass::Unsupported, reason));
    }
    allow_files(count)?;
    let failed = |error: io::Error| failure(target.address, &error);
    let opened = (0..count).map(|_| {
        let mut stream = connected(target)?;
        be_greeted(&mut stream).map(|()| stream)
    });
    let opened: Vec<TcpStream> = opened.collect::<io::Result<_>>().map_err(failed)?;
    let gate = RwLock::new(());
    let done: io::Result<Vec<(Stamp, Received, Stamp)>> = thread::scope(|scope| {
        // It opens too if a thread cannot be started.
        let closed = gate.write();
        let begin = |(number, stream): (usize, TcpStream)| {
            let own = bytes / count + u64::from((number as u64) < bytes % count);
            let (gate, seed, key) = (&gate, seed.wrapping_add(number as u64), target.key);
            thread::Builder::new().spawn_scoped(scope, move || one((stream, key), direction, own, seed, gate))
        };
        let threads: Vec<_> = opened.into_iter().enumerate().map(begin).collect::<io::Result<_>>()?;
        drop(closed);
        threads.into_iter().map(|thread| thread.join().expect("a stream does not panic")).collect()
    });
    let done = done.map_err(failed)?;
    let began = done.iter().map(|(began, ..)| *began).min().expect("there is a stream");
    let ended = done.iter().map(|(.., ended)| *ended).max().expect("there is a stream");
    Ok(Streams {
        bytes: done.iter().map(|(_, received, _)| received.bytes).sum(),
        took: ended.since(began),
        wrong: done.iter().map(|(_, received, _)| received.wrong).sum(),
    })
}

fn one(
    (mut stream, key): (TcpStream, Key),
    direction: Direction,
    bytes: u64,
    seed: u64,
    gate: &RwLock<()>,
) -> io::Result<(Stamp, Received, Stamp)> {
    let mut content = Content::of(seed);
    drop(gate.read());
    let began = clock::now();
    let received = match direction {
        Direction::Up => {
            stream.write_all(&LoadRequest::Up { bytes, seed }.request(key))?;
            content.send(&mut stream, bytes)?;
            let mut receipt = [0; 16];
            stream.read_exact(&mut receipt)?;
            let [bytes, wrong] = [0, 8].map(|at| receipt[at..at + 8].try_into().map(u64::from_le_bytes));
            Received { bytes: bytes.expect("eight bytes"), wrong: wrong.expect("eight bytes") }
        }
        Direction::Down => {
            stream.write_all(&LoadRequest::Down { bytes, seed }.request(key))?;
            content.receive(&mut Whole(&stream), bytes)?
        }
    };
    Ok((began, received, clock::now()))
}
