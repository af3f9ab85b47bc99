//! Names: what was planted in a resolver is found, and every way in which one can fail has its class.

use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use dunnage::load::Limit;
use dunnage::load::dns::server::Resolver;
use dunnage::load::dns::{names, queries, resolver_in};
use dunnage::orders::network::{Names, Which};
use dunnage::outcome::{Failure, FailureClass};
use dunnage::units::Nanos;

use super::{PLANTED, assert_found, at, times};

/// A resolver on a thread that ends with the test.
fn answering(delay: Duration) -> SocketAddr {
    let resolver = Resolver::bind("127.0.0.1:0".parse().unwrap(), delay).unwrap();
    let address = resolver.address().unwrap();
    thread::spawn(|| resolver.serve());
    address
}

fn resolved(address: SocketAddr, which: Which, count: u64) -> Result<Names, Failure> {
    names(&at(address), &which, times(count))
}

#[test]
fn every_name_is_resolved_to_its_own_address_and_counted() {
    let address = answering(Duration::ZERO);
    let mut asked = 0;
    for which in [Which::Fresh, Which::Repeated] {
        let Names { count, warm_up, took, wrong, lost, name, .. } =
            resolved(address, which.clone(), 300).unwrap();
        assert_eq!((count, warm_up, wrong, lost, name.count()), (300, 3, 0, 0, 300), "{which:?}");
        assert!(name.quantile(0.5).unwrap() * 150 <= took.0 as u64);
        // And the first one, which is in neither.
        asked += 304;
        assert_eq!(queries(&at(address)).unwrap(), asked);
    }
    let limit = Limit { count: 0, time: Nanos::from_millis(50) };
    let done = names(&at(address), &Which::Fresh, limit).unwrap();
    assert!(done.took >= limit.time && done.count > 10, "{done:?}");
}

#[test]
fn a_delay_in_a_resolver_is_found() {
    let [quick, slow] = [Duration::ZERO, PLANTED].map(|delay| {
        let done = resolved(answering(delay), Which::Fresh, 50).unwrap();
        done.name
    });
    assert_found(&quick, &slow);
}

/// A resolver that sends this in place of each answer of a right one; nothing to lose the answer.
fn odd(does: fn(number: usize, answer: &mut Vec<u8>)) -> SocketAddr {
    let (right, front) = (answering(Duration::ZERO), UdpSocket::bind("127.0.0.1:0").unwrap());
    let address = front.local_addr().unwrap();
    thread::spawn(move || {
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        back.connect(right).unwrap();
        let mut datagram = [0; 512];
        for number in 0.. {
            let (length, client) = front.recv_from(&mut datagram).unwrap();
            back.send(&datagram[..length]).unwrap();
            let length = back.recv(&mut datagram).unwrap();
            let mut answer = datagram[..length].to_vec();
            does(number, &mut answer);
            if !answer.is_empty() {
                front.send_to(&answer, client).unwrap();
            }
        }
    });
    address
}

#[test]
fn each_way_to_fail_has_its_class() {
    use FailureClass::{Environment, Timeout, WrongOutput};
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let cases: [(SocketAddr, FailureClass, &str); 6] = [
        (nobody, Environment, "refuses"),
        (odd(|_, answer| answer.clear()), Timeout, "does not answer"),
        (
            odd(|_, answer| *answer = b"HTTP/1.1 400 Bad Request\r\n".to_vec()),
            WrongOutput,
            "is not a resolver",
        ),
        (odd(|_, answer| answer[3] |= 3), WrongOutput, "with NXDOMAIN: it does not ask dunnage's resolver"),
        (odd(|_, answer| answer[3] |= 2), Environment, "gets no answer from dunnage's resolver (SERVFAIL)"),
        (odd(|_, answer| *answer.last_mut().unwrap() ^= 1), WrongOutput, "with 198."),
    ];
    for (address, class, words) in cases {
        let failure = resolved(address, Which::Fresh, 10).unwrap_err();
        assert_eq!(failure.class, class, "{failure}");
        let reason = &failure.reason;
        assert!(reason.contains(words) && reason.contains(&format!("`{address}`")), "{failure}");
        assert!(reason.ends_with("after 0 names"), "{failure}");
    }
}

#[test]
fn wrong_and_lost_answers_are_counted_once_the_first_was_right() {
    let some = odd(|number, answer| match number {
        50 => *answer.last_mut().unwrap() ^= 1,
        90 => answer.truncate(5),
        120 => answer.clear(),
        _ => {}
    });
    let done = resolved(some, Which::Fresh, 200).unwrap();
    assert_eq!((done.count, done.wrong, done.lost), (199, 2, 1), "{done:?}");
    let dies = odd(|number, answer| {
        if number >= 30 {
            answer.clear()
        }
    });
    let failure = resolved(dies, Which::Repeated, 1000).unwrap_err();
    assert_eq!(failure.class, FailureClass::Timeout);
    assert!(failure.reason.ends_with("does not answer after 29 names"), "{failure}");
}

#[test]
fn a_resolver_ignores_rubbish_and_refuses_names_of_others() {
    let address = answering(Duration::ZERO);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    for rubbish in [&b""[..], b"?", &[0xff; 512], &[0; 12]] {
        client.send_to(rubbish, address).unwrap();
    }
    let query = b"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03org\x00\x00\x01\x00\x01";
    client.send_to(query, address).unwrap();
    let mut said = [0; 512];
    let (length, _) = client.recv_from(&mut said).unwrap();
    assert_eq!((length, said[3] & 15), (query.len(), 5), "REFUSED");
    assert_eq!(queries(&at(address)).unwrap(), 0);
    let taken = Resolver::bind(address, Duration::ZERO).unwrap_err();
    assert!(taken.class == FailureClass::Environment && taken.reason.contains("taken"), "{taken}");
}

#[test]
fn the_first_resolver_of_a_file_is_found_or_its_absence_is_a_failure() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let failure = resolver_in(file.path()).unwrap_err();
    assert_eq!(failure.class, FailureClass::Environment);
    assert!(failure.reason.ends_with("names no resolver"), "{failure}");
    writeln!(
        file,
        "# nameserver 192.0.2.1\nsearch a\noptions ndots:0\nnameserver\t127.0.0.11\nnameserver ::1"
    )
    .unwrap();
    assert_eq!(resolver_in(file.path()).unwrap().to_string(), "127.0.0.11");
    std::fs::write(file.path(), "nameserver fe80::1%eth0\n").unwrap();
    let failure = resolver_in(file.path()).unwrap_err();
    assert!(failure.reason.contains("names `fe80::1%eth0` as its resolver"), "{failure}");
    let failure = resolver_in("/nonexistent/resolv.conf".as_ref()).unwrap_err();
    assert_eq!(failure.class, FailureClass::Environment);
}
