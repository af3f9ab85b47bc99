//! The protocol between client and server of a load: the server greets each client, and the client sends one
//! request. Also the random bytes of streams, chunk by chunk, with their checksum.
//!
//! Deliberately absent: sockets. Numbers are little-endian.

use std::io::{self, Read, Write};

use super::Receive;
use crate::stats::Rng;

/// The server's first bytes on each connection, and its answer to a datagram with a request.
pub const GREETING: [u8; 8] = *b"dunnage1";
/// The bytes of a request.
pub const REQUEST: usize = 32;
/// The largest message of a round trip.
pub const LONGEST: u64 = 1 << 20;
/// The unit of streams, each of which is compared with what it must be.
pub const CHUNK: usize = 128 << 10;

/// What a request begins with: the greeting, or what only the server and its clients know. A server that others of the network can
/// reach serves only requests with its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 8]);

impl Default for Key {
    fn default() -> Key {
        Key(GREETING)
    }
}

impl From<u64> for Key {
    fn from(secret: u64) -> Key {
        Key(secret.to_le_bytes())
    }
}

/// A client's request for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadRequest {
    /// Messages of this many bytes, echoed one by one.
    Trips { size: u64, receive: Receive },
    /// The client sends this many bytes of this seed; the server answers how many arrived and how many chunks
    /// were wrong.
    Up { bytes: u64, seed: u64 },
    /// The server sends this many bytes of this seed.
    Down { bytes: u64, seed: u64 },
}

impl LoadRequest {
    /// As bytes.
    pub fn request(self, key: Key) -> [u8; REQUEST] {
        let words = match self {
            LoadRequest::Trips { size, receive: Receive::Blocking } => [0, size, 0],
            LoadRequest::Trips { size, receive: Receive::Busy } => [0, size, 1],
            LoadRequest::Up { bytes, seed } => [1, bytes, seed],
            LoadRequest::Down { bytes, seed } => [2, bytes, seed],
        };
        let mut request = [0; REQUEST];
        let all = [key.0].into_iter().chain(words.map(u64::to_le_bytes));
        request.chunks_exact_mut(8).zip(all).for_each(|(place, word)| place.copy_from_slice(&word));
        request
    }

    /// The request in these bytes; none if they are not one with this key.
    pub fn of(request: &[u8], key: Key) -> Option<LoadRequest> {
        let ([known, words @ ..], []) = request.as_chunks::<8>() else { return None };
        if *known != key.0 {
            return None;
        }
        let words: &[[u8; 8]; 3] = words.try_into().ok()?;
        match words.map(u64::from_le_bytes) {
            [0, size @ 1..=LONGEST, 0] => Some(LoadRequest::Trips { size, receive: Receive::Blocking }),
            [0, size @ 1..=LONGEST, 1] => Some(LoadRequest::Trips { size, receive: Receive::Busy }),
            [1, bytes, seed] => Some(LoadRequest::Up { bytes, seed }),
            [2, bytes, seed] => Some(LoadRequest::Down { bytes, seed }),
            _ => None,
        }
    }
}

/// Reads the server's greeting.
///
/// # Errors
/// `InvalidData` if the other side says something else, with what it said.
pub fn be_greeted(stream: &mut impl Read) -> io::Result<()> {
    let mut said = [0; GREETING.len()];
    stream.read_exact(&mut said)?;
    if said == GREETING { Ok(()) } else { Err(rubbish(&said)) }
}

/// The error of an answer that cannot be from dunnage's server.
pub fn rubbish(said: &[u8]) -> io::Error {
    let said = String::from_utf8_lossy(&said[..said.len().min(40)]).escape_debug().to_string();
    io::Error::new(io::ErrorKind::InvalidData, format!("it said `{said}`"))
}

/// Random bytes, the same for each side that knows the seed. Every chunk begins with its number, so that no
/// two are equal.
pub struct Content {
    chunk: Vec<u8>,
    /// The checksum of a whole chunk with the number 0.
    sum: Sum,
}

/// What a receiver found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Bytes.
    pub bytes: u64,
    /// Chunks that were not as they had been sent.
    pub wrong: u64,
}

impl Content {
    /// The bytes of this seed.
    pub fn of(seed: u64) -> Content {
        let mut chunk = random(seed, CHUNK);
        chunk[..8].fill(0);
        let sum = Sum::of(&chunk);
        Content { chunk, sum }
    }

    /// The first bytes of the chunk with this number.
    fn numbered(&mut self, number: u64, length: usize) -> &[u8] {
        self.chunk[..8].copy_from_slice(&number.to_le_bytes());
        &self.chunk[..length]
    }

    fn expected(&mut self, number: u64, length: usize) -> Sum {
        match length {
            CHUNK => self.sum.with_first(number),
            part => Sum::of(self.numbered(number, part)),
        }
    }

    /// Sends this many bytes.
    pub fn send(&mut self, to: &mut impl Write, bytes: u64) -> io::Result<()> {
        lengths(bytes)
            .enumerate()
            .try_for_each(|(number, length)| to.write_all(self.numbered(number as u64, length)))
    }

    /// Receives this many bytes and compares them.
    pub fn receive(&mut self, from: &mut impl Read, bytes: u64) -> io::Result<Received> {
        let mut buffer = vec![0; CHUNK];
        let mut received = Received::default();
        for (number, length) in lengths(bytes).enumerate() {
            from.read_exact(&mut buffer[..length])?;
            received.bytes += length as u64;
            received.wrong += u64::from(Sum::of(&buffer[..length]) != self.expected(number as u64, length));
        }
        Ok(received)
    }
}

/// The lengths of the chunks of so many bytes.
fn lengths(bytes: u64) -> impl Iterator<Item = usize> {
    let whole = std::iter::repeat_n(CHUNK, (bytes / CHUNK as u64) as usize);
    whole.chain(Some((bytes % CHUNK as u64) as usize).filter(|rest| *rest > 0))
}

/// Random bytes of a seed.
pub fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
    bytes.truncate(length);
    bytes
}

/// Words side by side, so that the processor adds several at a time.
const LANES: usize = 8;
const ROW: usize = LANES * 8;

/// Fletcher's checksum with words of 64 bits in lanes: a sum, and the sum of all its states, which depends on
/// the order. It differs for any change of a single word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sum {
    plain: [u64; LANES],
    ordered: [u64; LANES],
}

impl Sum {
    fn of(bytes: &[u8]) -> Sum {
        let (rows, rest) = bytes.as_chunks::<ROW>();
        let mut sum = Sum::default();
        for row in rows {
            sum.add(row);
        }
        if !rest.is_empty() {
            let mut last = [0; ROW];
            last[..rest.len()].copy_from_slice(rest);
            sum.add(&last);
        }
        sum
    }

    // Indices and no iterators: those are functions that need not be inlined, and a transfer took half as long again by the calls.
    #[expect(clippy::needless_range_loop, reason = "see above")]
    #[inline(always)]
    fn add(&mut self, row: &[u8; ROW]) {
        let (words, _) = row.as_chunks::<8>();
        for lane in 0..LANES {
            self.plain[lane] = self.plain[lane].wrapping_add(u64::from_le_bytes(words[lane]));
            self.ordered[lane] = self.ordered[lane].wrapping_add(self.plain[lane]);
        }
    }

    /// The sum of a whole chunk whose first word is this number instead of zero.
    fn with_first(mut self, number: u64) -> Sum {
        const ROWS: u64 = (CHUNK / ROW) as u64;
        self.plain[0] = self.plain[0].wrapping_add(number);
        self.ordered[0] = self.ordered[0].wrapping_add(number.wrapping_mul(ROWS));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_comes_back_and_rubbish_is_none() {
        for request in [
            LoadRequest::Trips { size: 1, receive: Receive::Busy },
            LoadRequest::Trips { size: LONGEST, receive: Receive::Blocking },
            LoadRequest::Up { bytes: 1 << 30, seed: 7 },
            LoadRequest::Down { bytes: 0, seed: u64::MAX },
        ] {
            for key in [Key::default(), Key::from(7)] {
                assert_eq!(LoadRequest::of(&request.request(key), key), Some(request));
            }
            assert_eq!(LoadRequest::of(&request.request(Key::default()), Key::from(7)), None);
        }
        let key = Key::default();
        let damaged = LoadRequest::Up { bytes: 1, seed: 1 }.request(key);
        assert_eq!(LoadRequest::of(&damaged[..31], key), None);
        assert_eq!(LoadRequest::of(&[damaged.as_slice(), &[0; 8]].concat(), key), None);
        assert_eq!(LoadRequest::of(&[0; REQUEST], key), None);
        assert_eq!(
            LoadRequest::of(
                &LoadRequest::Trips { size: LONGEST + 1, receive: Receive::Busy }.request(key),
                key
            ),
            None
        );
    }

    /// The bytes of a stream, and what its receiver finds.
    fn found(bytes: u64, change: impl FnOnce(&mut Vec<u8>)) -> Received {
        let mut sent = Vec::new();
        Content::of(3).send(&mut sent, bytes).unwrap();
        assert_eq!(sent.len() as u64, bytes);
        change(&mut sent);
        Content::of(3).receive(&mut sent.as_slice(), bytes).unwrap()
    }

    #[test]
    fn every_wrong_byte_is_found_wherever_it_is() {
        const BYTES: u64 = 3 * CHUNK as u64 + 77;
        assert_eq!(found(BYTES, |_| ()), Received { bytes: BYTES, wrong: 0 });
        for place in [0, 7, 8, CHUNK - 1, CHUNK, 2 * CHUNK + 12345, 3 * CHUNK, BYTES as usize - 1] {
            let changed = found(BYTES, |sent| sent[place] ^= 1);
            assert_eq!(changed, Received { bytes: BYTES, wrong: 1 }, "at {place}");
        }
        for bytes in [0, 1, 7, 8, 63, 64, 65] {
            assert_eq!(found(bytes, |_| ()), Received { bytes, wrong: 0 });
        }
    }

    #[test]
    fn bytes_in_another_order_are_wrong() {
        let swapped = |a: usize, b: usize, length: usize| {
            move |sent: &mut Vec<u8>| (0..length).for_each(|at| sent.swap(a + at, b + at))
        };
        // Chunks, rows and words.
        assert_eq!(found(4 * CHUNK as u64, swapped(CHUNK, 2 * CHUNK, CHUNK)).wrong, 2);
        assert_eq!(found(CHUNK as u64, swapped(ROW, 5 * ROW, ROW)).wrong, 1);
        assert_eq!(found(CHUNK as u64, swapped(64, 72, 8)).wrong, 1);
        // A byte that is missing shifts all later ones.
        assert_eq!(
            found(4 * CHUNK as u64, |sent| {
                sent.remove(CHUNK + 5);
                sent.push(0);
            })
            .wrong,
            3
        );
    }

    #[test]
    fn a_stream_that_ends_early_is_an_error() {
        let error = Content::of(3).receive(&mut [0; 100].as_slice(), 101).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(be_greeted(&mut GREETING.as_slice()).ok(), Some(()));
        let error = be_greeted(&mut b"HTTP/1.1 400".as_slice()).unwrap_err();
        assert_eq!(error.to_string(), "it said `HTTP/1.1`");
    }
}
