//! Proxies that do harm: they delay what a server answers, change it, lose it, or close the connection.
#![allow(dead_code, reason = "no test executable uses all of it")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;

/// What happens to bytes of the answer, of which the first is at this position. False closes the connection, or
/// loses the datagram.
pub type Harm = fn(position: usize, bytes: &mut [u8]) -> bool;

/// A proxy in front of a TCP server, for as long as the test runs. Returns its address.
pub fn tcp(server: SocketAddr, harm: Harm) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(upstream) = TcpStream::connect(server) else { continue };
            client.set_nodelay(true).unwrap();
            upstream.set_nodelay(true).unwrap();
            let (from, to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
            thread::spawn(move || pass(from, to, |_, _| true));
            thread::spawn(move || pass(upstream, client, harm));
        }
    });
    address
}

fn pass(mut from: TcpStream, mut to: TcpStream, harm: Harm) {
    let (mut chunk, mut position) = (vec![0; 65_536], 0);
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        if !harm(position, &mut chunk[..length]) || to.write_all(&chunk[..length]).is_err() {
            break;
        }
        position += length;
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// The same in front of a UDP server with one client; the position is the datagram's number.
pub fn udp(server: SocketAddr, harm: Harm) -> SocketAddr {
    let [front, back] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    back.connect(server).unwrap();
    let address = front.local_addr().unwrap();
    thread::spawn(move || {
        let (mut datagram, mut number) = (vec![0; 65_536], 0);
        while let Ok((length, client)) = front.recv_from(&mut datagram) {
            back.send(&datagram[..length]).unwrap();
            let length = back.recv(&mut datagram).unwrap();
            if harm(number, &mut datagram[..length]) {
                front.send_to(&datagram[..length], client).unwrap();
            }
            number += 1;
        }
    });
    address
}
