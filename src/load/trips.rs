//! Full round trips: the client sends a message, and waits until all of it has come back before it sends the
//! next one. A trip's time is from before the first byte is sent until the last one has come back. It includes
//! at least two system calls on each side and one reading of the clock. Comparing the bytes is not included.
//!
//! Deliberately absent: half round trips, and several messages on their way at once.

use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use dunnage_orders::network::Trips;

use super::protocol::{GREETING, LONGEST, LoadRequest, be_greeted, random, rubbish};
use super::{Limit, Receive, Target, Waits, connected, failure};
use crate::outcome::{Distribution, Failure, FailureClass};
use crate::sys::clock;
use crate::units::Nanos;

/// The largest datagram over IPv4, and over IPv6 without jumbograms nearly so.
pub const LONGEST_DATAGRAM: usize = 65_507;
/// A datagram that has not come back after this long is lost.
const LOST_AFTER: Duration = Duration::from_millis(200);
/// The seed of the messages; only their numbers differ.
const SEED: u64 = 0x7472_6970;

/// Round trips over one connection.
///
/// # Errors
/// What ended the load before its limit, with the number of trips until then.
pub fn tcp(target: &Target, size: usize, limit: Limit, receive: Receive) -> Result<Trips, Failure> {
    check(size, LONGEST as usize)?;
    let failed = |error: io::Error| failure(target.address, &error);
    let mut stream = connected(target).map_err(failed)?;
    be_greeted(&mut stream).map_err(failed)?;
    stream
        .write_all(&LoadRequest::Trips { size: size as u64, receive }.request(target.key))
        .map_err(failed)?;
    stream.set_nonblocking(receive == Receive::Busy).map_err(failed)?;
    measured(target.address, size, limit, |sent, back| {
        receive.send_all(target.patience, &mut stream, sent)?;
        receive.fill(target.patience, &mut stream, back)?;
        Ok(Back::Came)
    })
}

/// Round trips of datagrams.
///
/// # Errors
/// As for [`tcp`]; a target that loses everything for as long as its patience does not answer.
pub fn udp(target: &Target, size: usize, limit: Limit, receive: Receive) -> Result<Trips, Failure> {
    check(size, LONGEST_DATAGRAM)?;
    let failed = |error: io::Error| failure(target.address, &error);
    let socket = introduced(target, size, receive).map_err(failed)?;
    socket.set_nonblocking(receive == Receive::Busy).map_err(failed)?;
    let (mut lost, mut late, mut in_a_row) = (0u64, 0, 0);
    measured(target.address, size, limit, |sent, back| {
        receive.wait(target.patience, || socket.send(sent))?;
        loop {
            match receive.wait(LOST_AFTER, || socket.recv(back)) {
                Ok(length) if length == size && same_number(sent, back) => break,
                // The answer to a second request.
                Ok(length) if back[..length] == GREETING => {}
                // One that was given up.
                Ok(length) if length == size && late < lost => late += 1,
                Ok(length) => {
                    let rest = back[length..].iter_mut().zip(&sent[length..]);
                    rest.for_each(|(back, sent)| *back = !sent);
                    break;
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    (lost, in_a_row) = (lost + 1, in_a_row + 1);
                    return if LOST_AFTER * in_a_row < target.patience { Ok(Back::Lost) } else { Err(error) };
                }
                Err(error) => return Err(error),
            }
        }
        in_a_row = 0;
        Ok(Back::Came)
    })
}

fn check(size: usize, most: usize) -> Result<(), Failure> {
    match size {
        0 => Err(Failure::new(FailureClass::Unsupported, "a round trip needs at least one byte")),
        size if size > most => {
            let reason = format!("a message has at most {most} bytes, not {size}");
            Err(Failure::new(FailureClass::Unsupported, reason))
        }
        _ => Ok(()),
    }
}

/// A socket whose server has answered a request. The first datagrams may be lost, for example until the
/// neighbour is known.
fn introduced(target: &Target, size: usize, receive: Receive) -> io::Result<UdpSocket> {
    let any: SocketAddr = if target.address.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(target.address)?;
    socket.set_read_timeout(Some(LOST_AFTER.min(target.patience)))?;
    let request = LoadRequest::Trips { size: size as u64, receive }.request(target.key);
    let began = clock::now();
    let mut said = [0; 64];
    loop {
        socket.send(&request)?;
        match socket.recv(&mut said) {
            Ok(length) if said[..length] == GREETING => return Ok(socket),
            Ok(length) => return Err(rubbish(&said[..length])),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(error) if clock::now().since(began).0 as u128 > target.patience.as_nanos() => {
                return Err(error);
            }
            Err(_) => {}
        }
    }
}

/// The end of an exchange.
enum Back {
    Came,
    Lost,
}

/// A warm-up of one hundredth, and the measurement.
fn measured(
    address: SocketAddr,
    size: usize,
    limit: Limit,
    mut exchange: impl FnMut(&[u8], &mut [u8]) -> io::Result<Back>,
) -> Result<Trips, Failure> {
    let mut messages = Messages { sent: random(SEED, size), back: vec![0; size], number: 0 };
    let [mut before, mut trips] = [(); 2].map(|()| Trips {
        count: 0,
        warm_up: 0,
        took: Nanos(0),
        wrong: 0,
        lost: 0,
        trip: Distribution::of_durations(),
    });
    messages
        .repeat(limit.hundredth(), &mut before, &mut exchange)
        .and_then(|()| messages.repeat(limit, &mut trips, &mut exchange))
        .map_err(|error| {
            let failure = failure(address, &error);
            Failure {
                reason: format!("{} after {} round trips", failure.reason, before.count + trips.count),
                ..failure
            }
        })?;
    Ok(Trips {
        warm_up: before.count + before.lost,
        wrong: before.wrong + trips.wrong,
        lost: before.lost + trips.lost,
        ..trips
    })
}

/// The message that is sent, and the one that came back.
struct Messages {
    sent: Vec<u8>,
    back: Vec<u8>,
    number: u64,
}

impl Messages {
    /// Repeats an exchange until the limit. Nothing here allocates or locks.
    fn repeat(
        &mut self,
        limit: Limit,
        trips: &mut Trips,
        exchange: &mut impl FnMut(&[u8], &mut [u8]) -> io::Result<Back>,
    ) -> io::Result<()> {
        let began = clock::now();
        loop {
            self.number += 1;
            let number = self.number.to_le_bytes();
            let length = numbered(&self.sent);
            self.sent[..length].copy_from_slice(&number[..length]);
            let before = clock::now();
            let back = exchange(&self.sent, &mut self.back)?;
            let after = clock::now();
            match back {
                Back::Lost => trips.lost += 1,
                Back::Came => {
                    trips.trip.record(after.since(before).0 as u64);
                    trips.count += 1;
                    trips.wrong += differing(&self.sent, &self.back);
                }
            }
            trips.took = after.since(began);
            if limit.is_reached(trips.count + trips.lost, trips.took) {
                return Ok(());
            }
        }
    }
}

/// How many bytes of a message are its number.
fn numbered(message: &[u8]) -> usize {
    message.len().min(8)
}

fn same_number(sent: &[u8], back: &[u8]) -> bool {
    sent[..numbered(sent)] == back[..numbered(sent)]
}

fn differing(sent: &[u8], back: &[u8]) -> u64 {
    match sent == back {
        true => 0,
        false => sent.iter().zip(back).filter(|(sent, back)| sent != back).count() as u64,
    }
}
