//! Servers behind a published port, which everyone on the network can reach.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use ::dunnage::load::http::server as web;
use ::dunnage::load::server::Server;
use ::dunnage::load::streams::streams;
use ::dunnage::load::{Key, Limit, Receive, Target, Whose, trips};
use ::dunnage::orders::network::{Direction, Protocol, Settings};
use ::dunnage::units::Nanos;

const KEY: u64 = 0x1234_5678_9abc_def0;

fn server(protocol: Protocol) -> SocketAddr {
    let server = Server::bind(protocol, "127.0.0.1:0".parse().unwrap()).unwrap();
    let address = server.address().unwrap();
    std::thread::spawn(move || server.serve(Key::from(KEY)));
    address
}

fn target(address: SocketAddr, key: Key) -> Target {
    let patience = Duration::from_millis(300);
    Target { key, patience, ..Target::new(address, Whose::Run).unwrap() }
}

const ONE: Limit = Limit { count: 1, time: Nanos(0) };

#[test]
fn a_server_streams_and_returns_bytes_only_for_those_who_know_its_key() {
    let address = server(Protocol::Tcp);
    let [stranger, client] = [Key::default(), Key::from(KEY)].map(|key| target(address, key));
    for direction in [Direction::Up, Direction::Down] {
        assert!(streams(&stranger, direction, 1000, 1, 1).is_err());
        assert_eq!(streams(&client, direction, 1000, 1, 1).unwrap().bytes, 1000);
    }
    assert!(trips::tcp(&stranger, 8, ONE, Receive::Blocking).is_err());
    assert_eq!(trips::tcp(&client, 8, ONE, Receive::Blocking).unwrap().count, 1);
}

#[test]
fn datagrams_of_strangers_are_not_returned() {
    let address = server(Protocol::Udp);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let is_answered = |datagram: &[u8]| {
        stranger.send_to(datagram, address).unwrap();
        match stranger.recv(&mut [0; 64]) {
            Ok(_) => true,
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
                false
            }
        }
    };
    // A request as every version of dunnage would send it, and one without.
    let request = [*b"dunnage1", [0; 8], 8u64.to_le_bytes(), [0; 8]].concat();
    assert!(!is_answered(b"anything") && !is_answered(&request));
    let done = trips::udp(&target(address, Key::from(KEY)), 8, ONE, Receive::Blocking).unwrap();
    assert_eq!((done.count, done.lost, done.wrong), (1, 0, 0));
    assert!(!is_answered(b"anything") && !is_answered(&request));
}

#[test]
fn a_web_server_computes_only_for_those_who_know_its_key() {
    let settings = Settings { key: Some(KEY), hashes: 1, ..Settings::default() };
    let server = web::Server::bind("127.0.0.1:0".parse().unwrap(), settings).unwrap();
    let address = server.address().unwrap();
    std::thread::spawn(move || server.serve());
    let status = |path: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    for path in ["/cpu", "/network", "//cpu", "/1/cpu", "/"] {
        assert_eq!(status(path), "404", "{path}");
    }
    for path in ["cpu", "network"] {
        assert_eq!(status(&format!("/{KEY}/{path}")), "200", "{path}");
    }
}
