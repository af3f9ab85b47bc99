//! Loads on real sockets of the loopback interface: what was planted is found, and every way in which a server
//! can fail is a failure of its own class.

mod http;
mod names;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use dunnage::load::server::Server;
use dunnage::load::streams::streams;
use dunnage::load::trips;
use dunnage::load::{Key, Limit, Receive, Target, Whose, connects};
use dunnage::orders::network::{Direction, Protocol, Streams, Trips};
use dunnage::outcome::{Distribution, Failure, FailureClass};
use dunnage::units::Nanos;

use crate::proxy;

/// A server on a thread that ends with the test.
fn served(protocol: Protocol, address: &str) -> SocketAddr {
    let server = Server::bind(protocol, address.parse().unwrap()).unwrap();
    let address = server.address().unwrap();
    thread::spawn(|| server.serve(Key::default()));
    address
}

/// The target at this address, with little patience.
fn at(address: SocketAddr) -> Target {
    let target = Target::new(address, Whose::Run).unwrap();
    Target { patience: Duration::from_millis(500), ..target }
}

fn times(count: u64) -> Limit {
    Limit { count, time: Nanos(0) }
}

fn tcp(address: SocketAddr, size: usize, count: u64) -> Result<Trips, Failure> {
    trips::tcp(&at(address), size, times(count), Receive::Blocking)
}

fn udp(address: SocketAddr, size: usize, count: u64) -> Result<Trips, Failure> {
    trips::udp(&at(address), size, times(count), Receive::Blocking)
}

#[test]
fn every_round_trip_is_counted_and_comes_back_whole() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (connections, datagrams) = (served(Protocol::Tcp, address), served(Protocol::Udp, address));
        for receive in [Receive::Blocking, Receive::Busy] {
            for size in [1, 8, 1000, 65_507] {
                for done in [
                    trips::tcp(&at(connections), size, times(300), receive).unwrap(),
                    trips::udp(&at(datagrams), size, times(300), receive).unwrap(),
                ] {
                    let Trips { count, warm_up, took, wrong, lost, trip } = done;
                    assert_eq!((count, warm_up, wrong, lost), (300, 3, 0, 0), "{address} {receive:?} {size}");
                    assert_eq!(trip.count(), 300);
                    // Half of the trips take the median or longer.
                    let median = trip.quantile(0.5).unwrap();
                    assert!(median > 1000 && median * 150 <= took.0 as u64, "{median} {took}");
                }
            }
        }
    }
}

#[test]
fn a_time_ends_a_load_as_well_as_a_count() {
    let address = served(Protocol::Tcp, "127.0.0.1:0");
    let limit = Limit { count: 0, time: Nanos::from_millis(50) };
    let done = trips::tcp(&at(address), 1, limit, Receive::Blocking).unwrap();
    assert!(done.took >= limit.time && done.count > 10, "{done:?}");
}

#[test]
fn a_wrong_byte_is_found() {
    // The greeting has eight bytes; then come messages of 100.
    let spoil = |position: usize, bytes: &mut [u8]| {
        const PLACE: usize = 8 + 100 * 50 + 77;
        if (position..position + bytes.len()).contains(&PLACE) {
            bytes[PLACE - position] ^= 1;
        }
        true
    };
    let address = proxy::tcp(served(Protocol::Tcp, "127.0.0.1:0"), spoil);
    assert_eq!(tcp(address, 100, 200).unwrap().wrong, 1);
    let spoil = |number: usize, bytes: &mut [u8]| {
        bytes[bytes.len() - 1] ^= u8::from(number == 50);
        true
    };
    for size in [1, 8, 100] {
        let address = proxy::udp(served(Protocol::Udp, "127.0.0.1:0"), spoil);
        let done = udp(address, size, 200).unwrap();
        assert_eq!((done.wrong, done.lost, done.count), (1, 0, 200), "{size}: {done:?}");
    }
}

#[test]
fn a_lost_datagram_is_counted_and_a_late_one_is_not_taken_for_the_next() {
    let address = proxy::udp(served(Protocol::Udp, "127.0.0.1:0"), |number, _| number != 50 && number != 90);
    let done = udp(address, 100, 200).unwrap();
    assert_eq!((done.lost, done.count, done.wrong), (2, 198, 0), "{done:?}");
    let late = |number: usize, _: &mut [u8]| {
        thread::sleep(Duration::from_millis(if number == 50 { 300 } else { 0 }));
        true
    };
    let address = proxy::udp(served(Protocol::Udp, "127.0.0.1:0"), late);
    let done = udp(address, 1, 200).unwrap();
    assert_eq!((done.lost, done.count, done.wrong), (1, 199, 0), "{done:?}");
}

/// A time that is planted, and far longer than anything on the way takes.
const PLANTED: Duration = Duration::from_millis(5);

/// What was planted is in every one of these times and in none of the others, and little else is in either.
fn assert_found(quick: &Distribution, slow: &Distribution) {
    let planted = PLANTED.as_nanos() as u64;
    // Other programs only add to a time, so a tenth has next to none of it.
    let of = |times: &Distribution| (times.quantile(0.0).unwrap(), times.quantile(0.1).unwrap());
    let (quick, slow) = (of(quick), of(slow));
    assert!(slow.0 >= planted && slow.1 < 2 * planted, "with {planted} ns: {slow:?}, without: {quick:?}");
    assert!(quick.1 < planted, "with {planted} ns: {slow:?}, without: {quick:?}");
}

#[test]
fn a_delay_in_a_proxy_is_found() {
    let late = |_: usize, _: &mut [u8]| {
        thread::sleep(PLANTED);
        true
    };
    let (connections, datagrams) =
        (served(Protocol::Tcp, "127.0.0.1:0"), served(Protocol::Udp, "127.0.0.1:0"));
    let [quick, slow] = [proxy::tcp(connections, |_, _| true), proxy::tcp(connections, late)]
        .map(|at| tcp(at, 1, 50).unwrap());
    assert_found(&quick.trip, &slow.trip);
    let [quick, slow] =
        [proxy::udp(datagrams, |_, _| true), proxy::udp(datagrams, late)].map(|at| udp(at, 1, 50).unwrap());
    assert_found(&quick.trip, &slow.trip);
}

#[test]
fn connections_are_counted_each_with_its_greeting() {
    let address = served(Protocol::Tcp, "127.0.0.1:0");
    let done = connects::connects(&at(address), times(500)).unwrap();
    assert_eq!((done.count, done.connect.count()), (500, 500));
    assert!(done.connect.quantile(0.5).unwrap() * 250 <= done.took.0 as u64);
    // A proxy accepts at once and its server greets later: the time is that of the greeting.
    let slow = proxy::tcp(address, |_, _| {
        thread::sleep(Duration::from_millis(20));
        true
    });
    let done = connects::connects(&at(slow), times(5)).unwrap();
    assert!(done.connect.quantile(0.0).unwrap() >= 20_000_000, "{done:?}");
}

#[test]
fn the_receiver_confirms_every_byte_of_a_stream() {
    let address = served(Protocol::Tcp, "[::1]:0");
    for direction in [Direction::Up, Direction::Down] {
        for (bytes, count) in [(1, 1), (5_000_001, 1), (5_000_001, 4)] {
            let Streams { bytes: counted, took, wrong } =
                streams(&at(address), direction, bytes, count, 11).unwrap();
            assert_eq!((counted, wrong), (bytes, 0), "{direction:?} {count}");
            assert!(took > Nanos(0));
        }
    }
    let refused = streams(&at(address), Direction::Up, 3, 4, 0).unwrap_err();
    assert_eq!(refused.class, FailureClass::Unsupported);
}

#[test]
fn a_wrong_byte_of_a_stream_is_found_and_a_short_one_is_a_failure() {
    let server = served(Protocol::Tcp, "127.0.0.1:0");
    let spoil = |position: usize, bytes: &mut [u8]| {
        const PLACE: usize = 1_234_567;
        if (position..position + bytes.len()).contains(&PLACE) {
            bytes[PLACE - position] ^= 0x80;
        }
        true
    };
    let done = streams(&at(proxy::tcp(server, spoil)), Direction::Down, 3_000_000, 1, 5).unwrap();
    assert_eq!((done.bytes, done.wrong), (3_000_000, 1));
    let short = proxy::tcp(server, |position, _| position < 1_000_000);
    let failure = streams(&at(short), Direction::Down, 3_000_000, 2, 5).unwrap_err();
    assert_eq!(failure.class, FailureClass::Crash, "{failure}");
}

/// A server that does this with each connection.
fn odd(does: fn(TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(does));
    address
}

/// The class of the failure of each load over TCP.
fn classes(address: SocketAddr) -> Vec<FailureClass> {
    let target = at(address);
    let failures = [
        tcp(address, 64, 10).unwrap_err(),
        trips::tcp(&target, 64, times(10), Receive::Busy).unwrap_err(),
        connects::connects(&target, times(10)).unwrap_err(),
        streams(&target, Direction::Up, 10_000_000, 2, 0).unwrap_err(),
        streams(&target, Direction::Down, 10_000_000, 2, 0).unwrap_err(),
    ];
    for failure in &failures {
        assert!(failure.reason.contains(&format!("`{address}`")), "{failure}");
    }
    failures.iter().map(|failure| failure.class).collect()
}

#[test]
fn each_way_to_fail_has_its_class() {
    use FailureClass::{Crash, Environment, Timeout, WrongOutput};
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(classes(nobody), [Environment; 5]);
    assert_eq!(classes(odd(drop)), [Crash; 5]);
    // The kernel accepts for it.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(classes(silent.local_addr().unwrap()), [Timeout; 5]);
    let rubbish = odd(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let _ = stream.read(&mut [0; 100]);
    });
    assert_eq!(classes(rubbish), [WrongOutput; 5]);
    // It greets, and then says nothing more.
    let hangs = odd(|mut stream| {
        let _ = stream.write_all(b"dunnage1");
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(30));
            drop(stream);
        });
    });
    let failure = tcp(hangs, 64, 10).unwrap_err();
    assert_eq!(failure.class, Timeout);
    assert!(failure.reason.ends_with("after 0 round trips"), "{failure}");
    assert_eq!(trips::tcp(&at(hangs), 64, times(10), Receive::Busy).unwrap_err().class, Timeout);
    assert_eq!(streams(&at(hangs), Direction::Down, 100, 1, 0).unwrap_err().class, Timeout);
}

#[test]
fn a_server_that_dies_midway_leaves_the_number_of_trips() {
    let dies = proxy::tcp(served(Protocol::Tcp, "127.0.0.1:0"), |position, _| position < 8 + 64 * 20);
    let failure = tcp(dies, 64, 10_000).unwrap_err();
    assert_eq!(failure.class, FailureClass::Crash);
    assert!(failure.reason.ends_with("closed the connection early after 20 round trips"), "{failure}");
}

#[test]
fn datagrams_that_nobody_answers_are_a_failure() {
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(udp(nobody, 1, 10).unwrap_err().class, FailureClass::Environment);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_eq!(udp(silent.local_addr().unwrap(), 1, 10).unwrap_err().class, FailureClass::Timeout);
    let rubbish = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = rubbish.local_addr().unwrap();
    thread::spawn(move || {
        let (_, client) = rubbish.recv_from(&mut [0; 100]).unwrap();
        rubbish.send_to(b"no", client).unwrap();
    });
    assert_eq!(udp(address, 1, 10).unwrap_err().class, FailureClass::WrongOutput);
    // It answers at first.
    let dies = proxy::udp(served(Protocol::Udp, "127.0.0.1:0"), |number, _| number < 30);
    let failure = udp(dies, 64, 10_000).unwrap_err();
    assert_eq!(failure.class, FailureClass::Timeout);
    assert!(failure.reason.contains("after 29 round trips"), "{failure}");
    assert_eq!(udp(dies, 65_508, 1).unwrap_err().class, FailureClass::Unsupported);
}

#[test]
fn connections_that_say_nothing_delay_nobody() {
    let address = served(Protocol::Tcp, "127.0.0.1:0");
    let half_open: Vec<_> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(tcp(address, 1, 100).unwrap().count, 100);
    assert_eq!(connects::connects(&at(address), times(100)).unwrap().count, 100);
    let rubbish: Vec<_> = half_open.into_iter().map(|mut stream| stream.write_all(&[7; 64])).collect();
    assert!(rubbish.iter().all(Result::is_ok));
    assert_eq!(tcp(address, 1, 100).unwrap().count, 100);
}

#[test]
fn a_port_that_is_taken_is_named() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let first = Server::bind(protocol, "127.0.0.1:0".parse().unwrap()).unwrap();
        let failure = Server::bind(protocol, first.address().unwrap()).unwrap_err();
        assert!(failure.class == FailureClass::Environment && failure.reason.contains("taken"), "{failure}");
    }
}
