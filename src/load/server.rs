//! The servers of loads. The one over TCP serves every kind of load. It always has one more thread than
//! connections, so that silent connections do not delay the others, and no thread is started for each. The one
//! over UDP echoes.
//!
//! Deliberately absent: stopping a server. It is a process that ends with its owner.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope};
use std::time::Duration;

use dunnage_orders::network::Protocol;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use super::protocol::{Content, GREETING, Key, LoadRequest, REQUEST};
use super::streams::Whole;
use super::trips::LONGEST_DATAGRAM;
use super::{Receive, Waits, failure};
use crate::outcome::Failure;
use crate::sys::limits;

/// Connections that the kernel keeps until they are accepted, if its own limit is not lower.
const QUEUE: i32 = 4096;
/// The connection of a client that is silent for this long is closed. A busy server stops being busy earlier.
const PATIENCE: Duration = Duration::from_secs(10);
const BUSY_PATIENCE: Duration = Duration::from_secs(1);

/// A server that listens but does not serve yet.
#[derive(Debug)]
pub enum Server {
    /// Over TCP.
    Tcp(TcpListener),
    /// Over UDP.
    Udp(UdpSocket),
}

impl Server {
    /// Listens at this address; port 0 is any that is free.
    pub fn bind(protocol: Protocol, address: SocketAddr) -> Result<Server, Failure> {
        let bound = match protocol {
            Protocol::Tcp => listener(address).map(Server::Tcp),
            Protocol::Udp => UdpSocket::bind(address).map(Server::Udp),
        };
        bound.map_err(|error| cannot_listen(address, &error))
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Server::Tcp(listener) => listener.local_addr(),
            Server::Udp(socket) => socket.local_addr(),
        }
    }

    /// Serves requests with this key until the socket fails; returns the error.
    pub fn serve(self, key: Key) -> io::Error {
        // As many connections as are allowed; the clients know how many they need.
        limits::raise_open_files(limits::open_files());
        match self {
            Server::Tcp(listener) => {
                let free = AtomicUsize::new(0);
                thread::scope(|scope| attend(scope, &listener, &free, key))
            }
            Server::Udp(socket) => {
                let Err(error) = echo_datagrams(&socket, key);
                error
            }
        }
    }
}

/// Why a server cannot listen at this address.
pub(super) fn cannot_listen(address: SocketAddr, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            Failure::environment(format!("`{address}` is taken: another program listens there"))
        }
        _ => failure(address, error),
    }
}

/// The next connection; none if this one has failed, or has to wait because too many files are open.
pub(super) fn accepted(listener: &TcpListener) -> io::Result<Option<TcpStream>> {
    match listener.accept() {
        Ok((stream, _)) => Ok(Some(stream)),
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(None),
        Err(error) if [Some(libc::EMFILE), Some(libc::ENFILE)].contains(&error.raw_os_error()) => {
            thread::yield_now();
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub(super) fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, QUEUE)?;
    Ok(socket.into())
}

/// Accepts and serves one connection after the other. The last free thread starts another one before it
/// serves.
fn attend<'s>(
    scope: &'s Scope<'s, '_>,
    listener: &'s TcpListener,
    free: &'s AtomicUsize,
    key: Key,
) -> io::Error {
    loop {
        free.fetch_add(1, Ordering::Relaxed);
        let accepted = accepted(listener);
        if free.fetch_sub(1, Ordering::Relaxed) == 1 {
            // If there can be no more threads, connections wait for their turn.
            let _ = thread::Builder::new().spawn_scoped(scope, move || attend(scope, listener, free, key));
        }
        match accepted {
            // A client that goes away ends its own connection only.
            Ok(Some(stream)) => drop(serve(stream, key)),
            Ok(None) => {}
            Err(error) => return error,
        }
    }
}

fn serve(mut stream: TcpStream, key: Key) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&GREETING)?;
    let mut request = [0; REQUEST];
    stream.read_exact(&mut request)?;
    match LoadRequest::of(&request, key).ok_or(io::ErrorKind::InvalidData)? {
        LoadRequest::Trips { size, receive } => echo(&mut stream, size as usize, receive),
        LoadRequest::Down { bytes, seed } => Content::of(seed).send(&mut stream, bytes),
        LoadRequest::Up { bytes, seed } => {
            let received = Content::of(seed).receive(&mut Whole(&stream), bytes)?;
            let receipt = [received.bytes.to_le_bytes(), received.wrong.to_le_bytes()];
            stream.write_all(receipt.as_flattened())
        }
    }
}

fn echo(stream: &mut TcpStream, size: usize, receive: Receive) -> io::Result<()> {
    stream.set_nonblocking(receive == Receive::Busy)?;
    let patience = if receive == Receive::Busy { BUSY_PATIENCE } else { PATIENCE };
    let mut message = vec![0; size];
    loop {
        receive.fill(patience, stream, &mut message)?;
        receive.send_all(patience, stream, &message)?;
    }
}

/// Echoes each datagram of the client whose request came last; a request is greeted instead, and says how to wait for those that
/// follow. To others nothing is sent: they could have written any sender into their datagrams.
fn echo_datagrams(socket: &UdpSocket, key: Key) -> io::Result<std::convert::Infallible> {
    let mut client = None;
    let mut receive = Receive::Blocking;
    let mut datagram = vec![0; LONGEST_DATAGRAM + 1];
    let wait_like = |asked: Receive, receive: &mut Receive| {
        *receive = asked;
        socket.set_nonblocking(asked == Receive::Busy)
    };
    loop {
        let (length, from) = match receive.wait(BUSY_PATIENCE, || socket.recv_from(&mut datagram)) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                wait_like(Receive::Blocking, &mut receive)?;
                continue;
            }
            received => received?,
        };
        let bytes = match LoadRequest::of(&datagram[..length], key) {
            Some(LoadRequest::Trips { receive: asked, .. }) => {
                wait_like(asked, &mut receive)?;
                client = Some(from);
                &GREETING[..]
            }
            _ if client != Some(from) => continue,
            _ => &datagram[..length],
        };
        // The next client may be reachable.
        let _ = receive.wait(BUSY_PATIENCE, || socket.send_to(bytes, from));
    }
}
