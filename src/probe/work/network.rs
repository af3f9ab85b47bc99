//! Bytes over a network from one service to another: one listens and echoes, the other sends and compares.
//! This proves that two containers are connected.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Mutex;

use super::{Report, Words};
use crate::sys::raw;

/// The listener of this process, kept between orders.
static LISTENER: Mutex<Option<TcpListener>> = Mutex::new(None);

/// The size of one write.
const CHUNK: usize = 65_536;

/// `network listen ADDRESS`: listens there and reports the port. `network echo`: accepts one connection and
/// echoes everything. `network exchange ADDRESS BYTES`: connects, sends this many bytes, and compares what
/// comes back.
pub fn work(words: Words, report: &mut Report<'_, '_>) {
    let text = |index| words.get(index).and_then(|word| word.to_str().ok()).unwrap_or_default();
    let done = match (text(0), text(1), words.number(2)) {
        ("listen", address, _) => listen(address).map(|port| report.result("port", i64::from(port))),
        ("echo", ..) => echo().map(|bytes| report.result("bytes", bytes as i64)),
        ("exchange", address, Some(count)) => {
            let began = raw::monotonic();
            let exchanged = exchange(address, count);
            report.result("took", (raw::monotonic() - began) as i64);
            exchanged.map(|bytes| report.result("bytes", bytes as i64))
        }
        _ => return report.refuse("`network` needs `listen ADDRESS`, `echo`, or `exchange ADDRESS BYTES`"),
    };
    if let Err(error) = done {
        report.note("error", error.to_string());
        report.result("errno", i64::from(error.raw_os_error().unwrap_or(0)));
    }
}

fn listen(address: &str) -> std::io::Result<u16> {
    let listener = TcpListener::bind(address)?;
    let port = listener.local_addr()?.port();
    *LISTENER.lock().expect("no thread panics while it holds the lock") = Some(listener);
    Ok(port)
}

fn echo() -> std::io::Result<u64> {
    let listener = LISTENER.lock().expect("no thread panics while it holds the lock");
    let listener = listener.as_ref().ok_or(std::io::ErrorKind::NotConnected)?;
    let (mut stream, _) = listener.accept()?;
    let mut own = stream.try_clone()?;
    std::io::copy(&mut own, &mut stream)
}

/// The number of bytes that came back unchanged.
fn exchange(address: &str, count: u64) -> std::io::Result<u64> {
    let mut stream = TcpStream::connect(address)?;
    let pattern: Vec<u8> = (0..CHUNK).map(|index| (index % 251) as u8).collect();
    let mut back = vec![0; CHUNK];
    let mut same = 0;
    let mut left = count;
    while left > 0 {
        let length = left.min(CHUNK as u64) as usize;
        stream.write_all(&pattern[..length])?;
        stream.read_exact(&mut back[..length])?;
        same += back[..length].iter().zip(&pattern).filter(|(back, sent)| back == sent).count() as u64;
        left -= length as u64;
    }
    stream.shutdown(Shutdown::Both)?;
    Ok(same)
}
