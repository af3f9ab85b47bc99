//! HTTP: dunnage's own server and others, loads in closed and open loops, and how their requests fail.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use dunnage::load::Limit;
use dunnage::load::http::server::Server;
use dunnage::load::http::{answers, load};
use dunnage::orders::network::{Load, Requests, Settings, Wrong};
use dunnage::outcome::{Failure, FailureClass};
use dunnage::units::Nanos;

use crate::load::{at, odd, times};
use crate::proxy;

/// A server on threads that end with the test.
fn served(address: &str, settings: Settings) -> SocketAddr {
    let server = Server::bind(address.parse().unwrap(), settings).unwrap();
    let address = server.address().unwrap();
    thread::spawn(|| server.serve());
    address
}

fn usual() -> SocketAddr {
    served("127.0.0.1:0", Settings { hashes: 10, workers: Some(2), ..Settings::default() })
}

/// So many requests for `/network`, by as many connections.
fn some(connections: usize, count: u64) -> Load {
    Load {
        path: "/network".into(),
        connections,
        threads: connections.min(2),
        limit: times(count),
        rate: None,
        status: 200,
        body: None,
        computes: Nanos(0),
    }
}

fn done(address: SocketAddr, asked: &Load) -> Result<Requests, Failure> {
    load(&at(address), asked)
}

/// How many requests failed in this way.
fn failed(done: &Requests, how: Wrong) -> u64 {
    done.wrong[Wrong::ALL.iter().position(|(_, one)| *one == how).unwrap()]
}

/// A server that answers the requests of each connection like this.
fn scripted(answer: fn(usize) -> String) -> SocketAddr {
    odd_threads(move |mut stream| {
        for number in 0.. {
            if asked(&mut stream).and_then(|()| stream.write_all(answer(number).as_bytes()).ok()).is_none() {
                break;
            }
        }
    })
}

fn odd_threads(does: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let does = does.clone();
            thread::spawn(move || does(stream));
        }
    });
    address
}

/// Reads one request; none if the client has gone.
fn asked(stream: &mut TcpStream) -> Option<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        request.extend(byte);
    }
    Some(())
}

/// An answer with a body of this many bytes.
fn answer(status: u16, bytes: usize) -> String {
    format!("HTTP/1.1 {status} As Asked\r\nContent-Length: {bytes}\r\n\r\n{}", "x".repeat(bytes))
}

#[test]
fn every_request_of_a_closed_loop_is_answered_and_counted() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let address = served(address, Settings { hashes: 10, ..Settings::default() });
        for (path, connections, bytes) in [("/network", 1, 8), ("/network", 50, 8), ("/cpu", 3, 64)] {
            let asked = Load { path: path.into(), body: Some(bytes), ..some(connections, 5000) };
            let done = done(address, &asked).unwrap();
            assert_eq!((done.requests, done.wrong), (5000, [0; 6]), "{path} {done:?}");
            assert_eq!((done.opened, done.latency.count()), (connections as u64, 5000));
            assert!(in_flight(&done) <= connections as f64, "{} of {connections}", in_flight(&done));
        }
    }
}

/// The mean number of requests on their way.
fn in_flight(done: &Requests) -> f64 {
    done.in_flight.seconds() / done.took.seconds()
}

#[test]
fn each_connection_of_a_closed_loop_has_a_request_on_its_way() {
    const EACH: Duration = Duration::from_millis(20);
    let slow = scripted(|_| {
        thread::sleep(EACH);
        answer(200, 1)
    });
    for (connections, count) in [(1, 10), (50, 500)] {
        let done = done(slow, &some(connections, count)).unwrap();
        assert_eq!((done.requests, done.wrong), (count, [0; 6]), "{done:?}");
        // The server answers none sooner, and the next request of a connection only after that.
        let each = EACH.as_nanos() as u64;
        assert!(done.latency.quantile(0.0).unwrap() >= each, "{done:?}");
        assert!(done.in_flight.0 as u64 >= count * each && done.took.0 as u64 >= 10 * each, "{done:?}");
        // If one of the two threads runs alone at first and the other one then, half of the connections are in use.
        let (found, all) = (in_flight(&done), connections as f64);
        assert!(found > 0.5 * all && found <= all, "{found} of {connections}: {done:?}");
    }
}

#[test]
fn a_time_ends_a_load_and_hundreds_of_connections_are_served() {
    let limit = Limit { count: 0, time: Nanos::from_millis(300) };
    let done = done(usual(), &Load { limit, ..some(400, 1) }).unwrap();
    assert_eq!((done.opened, done.wrong), (400, [0; 6]), "{done:?}");
    assert!(done.requests >= 400 && done.took >= limit.time, "{done:?}");
}

#[test]
fn an_open_loop_sees_a_stall_that_a_closed_one_hides() {
    let address = served("127.0.0.1:0", Settings { stall: Nanos::from_millis(100), ..Settings::default() });
    let p99 = |done: &Requests| done.latency.quantile(0.99).unwrap();
    // More than a hundredth of them would have to meet a stall, of which there is one a second.
    let closed = done(address, &some(1, 20_000)).unwrap();
    assert!(p99(&closed) < 50_000_000, "{}", p99(&closed));
    // A tenth of them is due in a stall, and half of these early in it.
    let two_seconds = Limit { count: 0, time: Nanos::from_millis(2000) };
    let asked = Load { rate: Some(1000), limit: two_seconds, ..some(20, 1) };
    let open = done(address, &asked).unwrap();
    assert_eq!((open.requests, open.wrong), (2000, [0; 6]), "{open:?}");
    assert!(p99(&open) >= 50_000_000, "{}", p99(&open));
}

#[test]
fn the_requests_of_an_open_loop_are_due_at_its_rate() {
    // The last of 301 requests is due after 300 ms.
    let done = done(usual(), &Load { rate: Some(1000), ..some(7, 301) }).unwrap();
    assert_eq!((done.requests, done.wrong), (301, [0; 6]), "{done:?}");
    assert!(done.took >= Nanos::from_millis(300), "{done:?}");
}

#[test]
fn requests_that_a_slow_server_never_gets_time_out() {
    let slow = scripted(|_| {
        thread::sleep(Duration::from_millis(50));
        answer(200, 1)
    });
    let half_a_second = Limit { count: 0, time: Nanos::from_millis(500) };
    let done = done(slow, &Load { rate: Some(100), limit: half_a_second, ..some(1, 1) }).unwrap();
    assert_eq!(done.requests + failed(&done, Wrong::Timeout), 50, "{done:?}");
    // From then to the end of the patience it can answer twenty.
    assert!((1..=20).contains(&done.requests), "{done:?}");
}

#[test]
fn answers_of_any_server_are_understood() {
    let chunked = scripted(|_| {
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n".into()
    });
    fn once(answer: &'static str) -> SocketAddr {
        odd_threads(move |mut stream| {
            let _ = asked(&mut stream).map(|()| stream.write_all(answer.as_bytes()));
        })
    }
    let closing = once("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nabcde");
    let old = once("HTTP/1.0 200 OK\r\n\r\nabcde");
    // In pieces, over several reads.
    let large = scripted(|_| answer(200, 3_000_000));
    for (address, bytes) in [(chunked, 5), (closing, 5), (old, 5), (large, 3_000_000)] {
        let done = done(address, &Load { body: Some(bytes), ..some(3, 40) }).unwrap();
        assert_eq!((done.requests, done.wrong), (40, [0; 6]), "{done:?}");
    }
}

#[test]
fn a_load_goes_on_when_some_requests_fail() {
    let address = scripted(|number| match number % 4 {
        0 => answer(200, 3),
        1 => answer(500, 3),
        2 => answer(200, 4),
        _ => "HTTP/1.1 200 OK\r\nContent-Length: no\r\n\r\n".into(),
    });
    let done = done(address, &Load { body: Some(3), ..some(1, 40) }).unwrap();
    assert_eq!(done.requests, 10);
    for how in [Wrong::Status, Wrong::Body, Wrong::Malformed] {
        assert_eq!(failed(&done, how), 10, "{how:?}: {done:?}");
    }
}

#[test]
fn a_server_that_dies_midway_leaves_what_was_answered() {
    // Twenty answers of 46 bytes, and a part of the next one.
    let dies = proxy::tcp(usual(), |position, _| position < 46 * 20);
    let cut = done(dies, &some(1, 100)).unwrap();
    assert_eq!(cut.requests + failed(&cut, Wrong::Closed), 100, "{cut:?}");
    assert!(cut.requests >= 20 && failed(&cut, Wrong::Closed) >= 4, "{cut:?}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        drop(listener);
        for _ in 0..10 {
            asked(&mut stream).unwrap();
            stream.write_all(answer(200, 1).as_bytes()).unwrap();
        }
    });
    let gone = done(address, &some(1, 40)).unwrap();
    server.join().unwrap();
    assert_eq!((gone.requests, gone.wrong.iter().sum::<u64>()), (10, 30), "{gone:?}");
    assert!(failed(&gone, Wrong::Refused) >= 29, "{gone:?}");
}

#[test]
fn each_way_in_which_all_requests_fail_has_its_class() {
    use FailureClass::{Crash, Environment, Timeout, WrongOutput};
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // The kernel accepts for it.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let ways = [
        (nobody, Environment, "refuses connections"),
        (odd(drop), Crash, "closed the connection early"),
        (scripted(|_| "HTTP/1.1 200 OK\r\n".into()), Timeout, "does not answer"),
        (silent.local_addr().unwrap(), Timeout, "does not answer"),
        (scripted(|_| "SSH-2.0-server\r\n".into()), WrongOutput, "not HTTP"),
        (scripted(|_| answer(200, 2) + "more"), WrongOutput, "more than one answer"),
        (scripted(|_| answer(503, 2)), WrongOutput, "its status is 503, not 200"),
        (scripted(|_| answer(200, 2)), WrongOutput, "its body has 2 bytes, not 3"),
    ];
    for (address, class, words) in ways {
        for rate in [None, Some(1000)] {
            let failure = done(address, &Load { rate, body: Some(3), ..some(2, 6) }).unwrap_err();
            assert_eq!(failure.class, class, "{failure}");
            let reason = failure.reason;
            assert!(reason.contains(words) && reason.contains(&format!("`{address}`")), "{reason}");
        }
    }
}

#[test]
fn more_connections_than_files_are_refused_with_what_to_do() {
    let failure = done(usual(), &some(1 << 40, 1)).unwrap_err();
    assert_eq!(failure.class, FailureClass::Environment);
    assert!(failure.reason.contains("ulimit -n"), "{failure}");
}

#[test]
fn connections_that_say_nothing_or_half_a_request_delay_nobody() {
    let address = usual();
    let half_open: Vec<_> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    half_open.iter().for_each(|mut stream| stream.write_all(b"GET /netw").unwrap());
    let done = done(address, &some(4, 1000)).unwrap();
    assert_eq!((done.requests, done.wrong), (1000, [0; 6]));
    // The other half makes it a request.
    let mut last = &half_open[99];
    last.write_all(b"ork HTTP/1.0\r\n\r\n").unwrap();
    let mut said = String::new();
    last.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.ends_with("\r\n\r\ndunnage1"), "{said}");
}

/// The answers to these bytes, until the server closes the connection.
fn said(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut sending = stream.try_clone().unwrap();
    let bytes = bytes.to_vec();
    let sender = thread::spawn(move || sending.write_all(&bytes));
    // By now the server cannot send, and does not read either.
    thread::sleep(Duration::from_millis(50));
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    sender.join().unwrap().unwrap();
    said
}

#[test]
fn requests_in_a_row_are_answered_in_order_and_wrong_ones_as_such() {
    let address = usual();
    let row = "GET /network HTTP/1.1\r\n\r\nGET /none HTTP/1.1\r\n\r\n".repeat(100_000);
    let all = said(address, format!("{row}PUT / HTTP/1.1\r\nConnection: close\r\n\r\n").as_bytes());
    let codes: Vec<&str> = all.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(codes.len(), 200_001);
    assert!(codes.chunks_exact(2).all(|two| two == ["200", "404"]));
    assert_eq!(codes.last(), Some(&"400"));
    for wrong in ["hello\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"] {
        let said = said(address, wrong.as_bytes());
        assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("Connection: close"), "{said}");
    }
    assert!(said(address, b"GET /disk-io HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 404 "));
}

#[test]
fn connections_beyond_the_limit_are_closed() {
    let address = served("127.0.0.1:0", Settings { connections: 1, ..Settings::default() });
    let mut first = TcpStream::connect(address).unwrap();
    first.write_all(b"GET /network HTTP/1.1\r\n\r\n").unwrap();
    first.read_exact(&mut [0; 8]).unwrap();
    assert_eq!(done(address, &some(1, 3)).unwrap_err().class, FailureClass::Crash);
    drop(first);
    within_a_while(|| done(address, &some(1, 3)).is_ok());
}

/// Waits until it is true.
fn within_a_while(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(10), "it does not happen");
        thread::sleep(Duration::from_millis(5));
    }
}

fn files(directory: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.filter_map(|entry| std::fs::read(entry.unwrap().path()).ok()).collect()
}

#[test]
fn a_file_is_written_for_each_connection_and_removed_with_it() {
    let place = tempfile::tempdir().unwrap();
    let settings = |sync| Settings {
        directory: Some(place.path().to_owned()),
        bytes: 100_001,
        sync,
        ..Settings::default()
    };
    for sync in [false, true] {
        let address = served("127.0.0.1:0", settings(sync));
        let asked = Load { path: "/disk-io".into(), body: Some(8), ..some(5, 100) };
        assert_eq!(done(address, &asked).unwrap().requests, 100);
        within_a_while(|| files(place.path()).is_empty());
        let mut open = TcpStream::connect(address).unwrap();
        let mut once = || {
            open.write_all(b"GET /disk-io HTTP/1.1\r\n\r\n").unwrap();
            open.read_exact(&mut [0; 46]).unwrap();
            files(place.path()).pop().unwrap()
        };
        let [first, second] = [once(), once()];
        assert!(first.len() == 100_001 && first != second);
        let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(&first).unwrap();
        assert!(packed.finish().unwrap().len() > 99_000);
        drop(open);
        within_a_while(|| files(place.path()).is_empty());
    }
    let nowhere = Settings { directory: Some(place.path().join("none")), ..Settings::default() };
    let failure = Server::bind("127.0.0.1:0".parse().unwrap(), nowhere).unwrap_err();
    assert!(failure.reason.contains("cannot write to"), "{failure}");
}

#[test]
fn a_file_that_changes_in_the_meantime_is_found() {
    let place = tempfile::tempdir().unwrap();
    let settings = Settings { directory: Some(place.path().into()), bytes: 1 << 20, ..Settings::default() };
    let address = served("127.0.0.1:0", settings);
    let asked = Load { path: "/disk-io".into(), ..some(1, 1) };
    assert_eq!(done(address, &asked).unwrap().requests, 1);
    let path = place.path().to_owned();
    // Cut short between writing and reading back, until the test removes the directory.
    thread::spawn(move || {
        while let Ok(entries) = std::fs::read_dir(&path) {
            for entry in entries.flatten() {
                let file = std::fs::File::options().write(true).open(entry.path());
                let _ = file.and_then(|file| file.set_len(0));
            }
        }
    });
    let limit = Limit { count: 2000, time: Nanos::from_millis(5000) };
    let found = match done(address, &Load { limit, ..asked }) {
        Ok(done) => failed(&done, Wrong::Status) > 0,
        Err(failure) => failure.class == FailureClass::WrongOutput,
    };
    assert!(found);
}

#[test]
fn waiting_ends_with_the_first_answer() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let late = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        served(&free.to_string(), Settings::default())
    });
    let target = at(free);
    let answered =
        answers(&dunnage::load::Target { patience: Duration::from_secs(10), ..target }, "/none").unwrap();
    assert_eq!(answered.status, 404);
    assert!(answered.waited >= Nanos::from_millis(200), "{answered:?}");
    late.join().unwrap();
    assert!(answers(&at(free), "/network").unwrap().waited < answered.waited);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let rubbish = scripted(|_| "SSH-2.0-server\r\n".into());
    for (address, class) in [
        (nobody, FailureClass::Environment),
        (silent.local_addr().unwrap(), FailureClass::Timeout),
        (odd(drop), FailureClass::Crash),
        (rubbish, FailureClass::WrongOutput),
    ] {
        let failure = answers(&at(address), "/").unwrap_err();
        assert_eq!(failure.class, class, "{failure}");
    }
}
