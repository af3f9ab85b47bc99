//! The probe as a service: it connects to its channel, reports that it is ready with its treatment, and
//! carries out orders in sequence until the other side closes the channel or SIGTERM comes. So it ends when
//! the process that uses it dies.
//!
//! An order is the number of its words and then the words, each ended by a zero byte, as the kernel passes
//! arguments; its answer is a text like the probe's message. Deliberately absent: the work itself (`work`).
//! Unlike a launch, which ends with its message, a service may allocate.

use core::ffi::CStr;
use std::ffi::{CString, OsStr};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::message::SOCKET;
use super::{Message, read_back, stamp, work};
use crate::sys::{own_time, raw, signals};

/// More words than any order has.
const MOST_WORDS: usize = 4096;

/// Serves at the channel in this directory. The exit code is 0 if it was closed, 3 if it broke, 4 if it does
/// not exist.
pub(super) fn serve(main: u64, directory: Option<&CStr>, detail: Option<&CStr>) -> ! {
    signals::end_at(libc::SIGTERM);
    let Some(Ok(mut channel)) = directory.map(connected) else {
        let _ = raw::write_all(2, b"dunnage probe: cannot connect to its channel\n");
        raw::exit(4)
    };
    let mut buffer = vec![0; work::CAPACITY];
    let mut hello = Message::begin(&mut buffer, stamp(), Some(main));
    read_back(&mut hello, detail);
    let served = channel.write_all(hello.finish()).and_then(|()| orders(&mut channel, &mut buffer));
    raw::exit(if served.is_ok() { 0 } else { 3 })
}

/// Connects by a short name from inside the directory, since the path of a socket is limited to about a
/// hundred bytes.
fn connected(directory: &CStr) -> io::Result<UnixStream> {
    let before = std::env::current_dir();
    std::env::set_current_dir(Path::new(OsStr::from_bytes(directory.to_bytes())))?;
    let channel = UnixStream::connect(SOCKET);
    if let Ok(before) = before {
        let _ = std::env::set_current_dir(before);
    }
    channel
}

fn orders(channel: &mut UnixStream, buffer: &mut [u8]) -> io::Result<()> {
    let mut reader = BufReader::new(channel.try_clone()?);
    while let Some(words) = order(&mut reader)? {
        let began = raw::monotonic();
        let cpu = own_time::process_cpu();
        let mut answer = Message::new(buffer);
        let words: Vec<&CStr> = words.iter().map(CString::as_c_str).collect();
        if !work::run(&words, &mut answer) {
            answer.line("refused it does not know this kind of work");
        }
        answer.number("began", began);
        answer.number("cpu", own_time::process_cpu() - cpu);
        channel.write_all(answer.finish())?;
    }
    Ok(())
}

/// The words of the next order; `None` if the channel is closed.
fn order(reader: &mut impl BufRead) -> io::Result<Option<Vec<CString>>> {
    let Some(count) = word(reader)? else { return Ok(None) };
    let count = count.to_str().ok().and_then(|digits| digits.parse().ok());
    let count: usize = count.filter(|count| *count <= MOST_WORDS).ok_or(io::ErrorKind::InvalidData)?;
    let words = (0..count).map(|_| word(reader)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into()));
    words.collect::<io::Result<_>>().map(Some)
}

fn word(reader: &mut impl BufRead) -> io::Result<Option<CString>> {
    let mut bytes = Vec::new();
    match reader.read_until(0, &mut bytes)? {
        0 => Ok(None),
        _ => CString::from_vec_with_nul(bytes).map(Some).map_err(|_| io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_word_by_word() {
        let mut bytes: &[u8] = b"3\0spin\0\0a b\n\x000\0";
        let spin = order(&mut bytes).unwrap().unwrap();
        assert_eq!(spin, [c"spin", c"", c"a b\n"].map(CStr::to_owned));
        assert_eq!(order(&mut bytes).unwrap(), Some(Vec::new()));
        assert_eq!(order(&mut bytes).unwrap(), None);
        for damaged in [&b"2\0spin\0"[..], b"x\0", b"1\0spi", b"99999\0"] {
            let mut damaged = damaged;
            assert!(order(&mut damaged).is_err());
        }
    }
}
