//! Answers as engines give them, whole, in pieces, and broken, over a real socket.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use proptest::prelude::*;

use super::*;

/// A connection, and its other side.
fn connected() -> (Connection, UnixStream) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let connection = Connection::open(&path, &mut patience()).unwrap();
    (connection, listener.accept().unwrap().0)
}

fn patience() -> Patience<'static> {
    Patience::new(Nanos::from_millis(20_000), None)
}

/// The result of a request whose answer has already been sent; the connection then ends.
fn answered(bytes: &[u8]) -> Result<Answer, Fault> {
    let (mut connection, mut other) = connected();
    other.write_all(bytes).unwrap();
    other.shutdown(std::net::Shutdown::Write).unwrap();
    connection.exchange(&Request::plain("GET", "/version"), &mut patience(), None)
}

fn body(bytes: &[u8]) -> Vec<u8> {
    answered(bytes).unwrap().body
}

#[test]
fn bodies_end_by_length_by_chunks_and_with_the_connection() {
    assert_eq!(body(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nword and more"), b"word");
    assert_eq!(body(b"HTTP/1.1 204 No Content\r\n\r\n"), b"");
    assert_eq!(body(b"HTTP/1.0 200 OK\r\n\r\nuntil the end"), b"until the end");
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\nA;x=y\r\n0123456789\r\n0\r\nA: b\r\n\r\n";
    assert_eq!(body(chunked), b"one0123456789");
    let informal = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
    assert_eq!(body(informal), b"hi");
}

#[test]
fn several_answers_come_over_one_connection() {
    let (mut connection, mut other) = connected();
    let two = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
    other.write_all(two).unwrap();
    let request = Request::with_json("/create", &serde_json::json!({}));
    let first = connection.exchange(&request, &mut patience(), None).unwrap();
    assert_eq!((first.status, first.reason.as_str(), connection.is_over()), (201, "Created", false));
    let second = connection.exchange(&request, &mut patience(), None).unwrap();
    assert_eq!((second.status, second.body.as_slice(), connection.is_over()), (404, &b"x"[..], true));
    let mut sent = vec![0; 4096];
    let length = other.read(&mut sent).unwrap();
    let sent = String::from_utf8_lossy(&sent[..length]).into_owned();
    assert!(sent.starts_with("POST /create HTTP/1.1\r\nHost: localhost\r\n"), "{sent}");
    assert_eq!(sent.matches("\r\nContent-Length: 2\r\n\r\n{}").count(), 2, "{sent}");
}

#[test]
fn a_file_is_sent_whole_after_the_head() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("archive");
    std::fs::write(&path, vec![b'x'; 3_000_000]).unwrap();
    let (mut connection, mut other) = connected();
    let reader = std::thread::spawn(move || {
        let mut sent = vec![0; 3_000_000];
        let (mut head, mut at) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            other.read_exact(&mut at).unwrap();
            head.push(at[0]);
        }
        other.read_exact(&mut sent).unwrap();
        other.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        (String::from_utf8(head).unwrap(), sent)
    });
    let request = Request::with_file("POST", "/images/load", "application/x-tar", &path).unwrap();
    assert_eq!(connection.exchange(&request, &mut patience(), None).unwrap().status, 200);
    let (head, sent) = reader.join().unwrap();
    assert!(head.contains("\r\nContent-Length: 3000000\r\n"), "{head}");
    assert!(sent.iter().all(|byte| *byte == b'x'));
}

#[test]
fn half_an_answer_is_no_answer() {
    let cut: [(&[u8], &str); 5] = [
        (b"", "before"),
        (b"HTTP/1.1 20", "in the middle of"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwo", "in the middle of"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwo", "in the middle of"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nwo\r\n", "in the middle of"),
    ];
    for (bytes, expected) in cut {
        match answered(bytes) {
            Err(Fault::Closed(when)) => assert_eq!(when, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn garbage_is_called_garbage() {
    for bytes in [
        &b"hello\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nlonger\r\n0\r\n\r\n",
        &[b"HTTP/1.1 200 OK\r\nA: ".as_slice(), &[b'a'; 70_000]].concat(),
    ] {
        match answered(bytes) {
            Err(Fault::Garbage(why)) => {
                assert!(why.starts_with("its answer") || why.starts_with("the head"), "{why}")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_answer_that_does_not_come_is_late() {
    let (mut connection, _other) = connected();
    let mut short = Patience::new(Nanos::from_millis(30), None);
    let answer = connection.exchange(&Request::plain("GET", "/"), &mut short, None);
    assert!(matches!(answer, Err(Fault::Stopped(Stopped::Late))), "{answer:?}");
}

#[test]
fn a_stream_carries_both_outputs() {
    let (connection, mut other) = connected();
    let frames = [&[1, 0, 0, 0, 0, 0, 0, 2][..], b"ab", &[2, 0, 0, 0, 0, 0, 0, 1], b"!"].concat();
    other.write_all(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n").unwrap();
    other.write_all(&frames).unwrap();
    let stream = connection.hijack(&Request::upgrading("/attach", b""), &mut patience()).unwrap().unwrap();
    drop(other);
    let (bytes, _) = stream.into_bytes(&mut patience()).unwrap();
    assert_eq!(demultiplexed(&bytes), Some((b"ab".to_vec(), b"!".to_vec())));
    assert_eq!(demultiplexed(b"plain text"), None);
    assert_eq!(demultiplexed(&frames[..9]), Some((b"a".to_vec(), Vec::new())));
}

#[test]
fn a_refused_stream_is_an_answer() {
    let (connection, mut other) = connected();
    other.write_all(b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nno").unwrap();
    let refused =
        connection.hijack(&Request::upgrading("/attach", b""), &mut patience()).unwrap().unwrap_err();
    assert_eq!((refused.status, refused.body.as_slice()), (409, &b"no"[..]));
}

#[test]
fn output_does_not_fill_up_while_an_answer_is_awaited() {
    let (connection, mut flooding) = connected();
    flooding.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let mut stream =
        connection.hijack(&Request::upgrading("/attach", b""), &mut patience()).unwrap().unwrap();
    let (mut connection, mut other) = connected();
    // The output exceeds the socket's buffer, so the answer comes only if the output is drained.
    let flood = std::thread::spawn(move || {
        flooding.write_all(&vec![b'x'; 3 << 20]).unwrap();
        other.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        other
    });
    let answer = connection.exchange(&Request::plain("POST", "/wait"), &mut patience(), Some(&mut stream));
    assert_eq!(answer.unwrap().status, 204);
    flood.join().unwrap();
    assert_eq!(stream.into_bytes(&mut patience()).unwrap().0.len(), KEPT_OUTPUT);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = demultiplexed(&bytes);
    }
}
