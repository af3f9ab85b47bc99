//! How long until a server answers over HTTP at all. It is another's process, so there is nothing to wait for but
//! the answer: attempts to connect follow each other at intervals of a millisecond.

use std::io::{self, Read, Write};
use std::time::Duration;

use dunnage_orders::network::{Answered, Wrong};
use rustix::event::{Timespec, poll};
use rustix::net::connect;

use super::{explained, request};
use crate::http::head;
use crate::load::{Target, failure, tcp_socket};
use crate::outcome::Failure;
use crate::sys::clock;
use crate::units::Stamp;

/// From one attempt that has failed to the next.
const PACE: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// How long an attempt to connect takes at most. The kernel would repeat its packet, lost before the other side had a
/// network, only after a second.
const CONNECT: Duration = Duration::from_millis(50);
/// The shortest time that a socket can wait.
const LEAST: Duration = Duration::from_millis(1);

/// Waits for an answer of any status, until the patience ends.
///
/// # Errors
/// Why the last attempt failed.
pub fn answers(target: &Target, path: &str) -> Result<Answered, Failure> {
    let request = request(target.address, path)?;
    let began = clock::now();
    loop {
        match attempt(target, &request, began) {
            Ok(status) => return Ok(Answered { waited: clock::now().since(began), status }),
            Err(error) if left(target, began) <= LEAST => {
                return Err(match error.kind() {
                    io::ErrorKind::InvalidData => explained(target.address, Wrong::Malformed, &error),
                    _ => failure(target.address, &error),
                });
            }
            Err(_) => {}
        }
        // A signal only makes it shorter.
        let _ = poll(&mut [], Some(&PACE));
    }
}

fn left(target: &Target, began: Stamp) -> Duration {
    let passed = Duration::from_nanos(clock::now().since(began).0 as u64);
    target.patience.saturating_sub(passed).max(LEAST)
}

fn attempt(target: &Target, request: &[u8], began: Stamp) -> io::Result<u16> {
    let mut stream = tcp_socket(target.address, left(target, began).min(CONNECT))?;
    connect(&stream, &target.address)?;
    stream.write_all(request)?;
    let (mut received, mut scratch) = (Vec::new(), [0; 4096]);
    loop {
        stream.set_read_timeout(Some(left(target, began)))?;
        let length = stream.read(&mut scratch)?;
        received.extend_from_slice(&scratch[..length]);
        match head(&received) {
            Ok(Some(head)) => return Ok(head.status),
            Ok(None) if length > 0 => {}
            Ok(None) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(why) => return Err(io::Error::new(io::ErrorKind::InvalidData, why)),
        }
    }
}
