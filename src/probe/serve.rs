//! The probe as a service: it connects to its channel, reports that it is ready with its treatment, and
//! carries out orders in sequence until the other side closes the channel or SIGTERM comes. So it ends when
//! the process that uses it dies.
//!
//! An order and its answer are a line of JSON each. Deliberately absent: the work itself (`work`).
//! Unlike a launch, which ends with its message, a service may allocate.

use core::ffi::CStr;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use dunnage_orders::{Order, Reply};

use super::message::SOCKET;
use super::{CAPACITY, Message, read_back, stamp, work};
use crate::outcome::{Failure, FailureClass};
use crate::sys::{own_time, raw, signals};
use crate::units::{Nanos, Stamp};

/// More bytes than any order has.
const LONGEST: u64 = 4 << 20;

/// Serves at the channel in this directory. The exit code is 0 if it was closed, 3 if it broke, 4 if it does
/// not exist.
pub(super) fn serve(main: u64, directory: Option<&CStr>, detail: Option<&CStr>) -> ! {
    signals::end_at(libc::SIGTERM);
    let Some(Ok(mut channel)) = directory.map(connected) else {
        let _ = raw::write_all(2, b"dunnage probe: cannot connect to its channel\n");
        raw::exit(4)
    };
    let mut buffer = [0; CAPACITY];
    let mut hello = Message::begin(&mut buffer, stamp(), Some(main));
    read_back(&mut hello, detail);
    let served = channel.write_all(hello.finish()).and_then(|()| orders(&mut channel));
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

fn orders(channel: &mut UnixStream) -> io::Result<()> {
    let mut reader = BufReader::new(channel.try_clone()?);
    while let Some(order) = order(&mut reader)? {
        let began = Stamp(raw::monotonic());
        let cpu = own_time::process_cpu();
        let done = order.and_then(work::carry_out);
        let cpu = Nanos((own_time::process_cpu() - cpu) as i64);
        let mut line = serde_json::to_vec(&Reply { began, ended: Stamp(raw::monotonic()), cpu, done })?;
        line.push(b'\n');
        channel.write_all(&line)?;
    }
    Ok(())
}

/// The next order, or why it is none; nothing if the channel is closed.
fn order(reader: &mut impl BufRead) -> io::Result<Option<Result<Order, Failure>>> {
    let mut line = Vec::new();
    let length = reader.take(LONGEST).read_until(b'\n', &mut line)?;
    if length == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let unknown =
        |error| Failure::new(FailureClass::Unsupported, format!("it does not know this order: {error}"));
    Ok(Some(serde_json::from_slice(&line).map_err(unknown)))
}

#[cfg(test)]
mod tests {
    use dunnage_orders::work::Spin;

    use super::*;

    #[test]
    fn an_order_is_a_line_and_anything_else_is_refused() {
        let mut bytes: &[u8] = b"{\"spin\":{\"millis\":3}}\nnonsense\n";
        assert_eq!(order(&mut bytes).unwrap(), Some(Ok(Order::Spin(Spin { millis: 3 }))));
        assert_eq!(order(&mut bytes).unwrap().unwrap().unwrap_err().class, FailureClass::Unsupported);
        assert_eq!(order(&mut bytes).unwrap(), None);
        let mut cut: &[u8] = b"{\"spin\":";
        assert!(order(&mut cut).is_err());
    }
}
