//! Messages of HTTP/1.1 as bytes: the heads of requests and answers, and where a body ends.
//!
//! Deliberately absent: connections, and what messages mean.

use httparse::{EMPTY_HEADER, Header, Status};

/// The largest body, or answer, that is read.
pub const MOST: usize = 16 << 20;
/// The largest head.
pub const MOST_OF_A_HEAD: usize = 64 << 10;
/// The most headers of a message.
const MOST_HEADERS: usize = 64;

/// What marks the end of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// It has none.
    Nothing,
    /// It has this many bytes.
    Length(usize),
    /// Each chunk says how long it is, and the last one is empty.
    Chunks,
    /// The connection ends with it.
    UntilTheEnd,
}

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// The length of the head in bytes.
    pub length: usize,
    /// The body that follows.
    pub body: Body,
    /// Whether the server closes the connection after this answer.
    pub last: bool,
}

impl Head {
    /// Whether another head follows this one.
    pub fn is_informational(&self) -> bool {
        self.status < 200 && self.status != 101
    }
}

/// The head at the beginning of these bytes, once it is complete.
///
/// # Errors
/// Why they cannot be one.
pub fn head(bytes: &[u8]) -> Result<Option<Head>, String> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut answer = httparse::Response::new(&mut headers);
    let length = match answer.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if bytes.len() > MOST_OF_A_HEAD => {
            return Err("the head of its answer is too long".into());
        }
        Ok(Status::Partial) => return Ok(None),
        Err(error) => return Err(format!("its answer is not HTTP: {error}")),
    };
    let status = answer.code.unwrap_or_default();
    let body = match (status, value_of(answer.headers, "content-length")) {
        (100..=199 | 204 | 304, _) => Body::Nothing,
        _ if has(answer.headers, "transfer-encoding", "chunked") => Body::Chunks,
        (_, Some(text)) => match number(text) {
            Some(length) => Body::Length(length),
            None => return Err(format!("its answer has the length `{}`", text.escape_ascii())),
        },
        (_, None) => Body::UntilTheEnd,
    };
    let last = is_last(answer.version, answer.headers) || body == Body::UntilTheEnd;
    Ok(Some(Head { status, reason: answer.reason.unwrap_or_default().to_owned(), length, body, last }))
}

/// A complete answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Whole {
    /// Its head.
    pub head: Head,
    /// The length of its content.
    pub content: usize,
}

/// The answer that these bytes are, once it is complete, without those before it that were only informational.
/// `ended` says that no more bytes come.
///
/// # Errors
/// Why they cannot be one.
pub fn whole(bytes: &[u8], ended: bool) -> Result<Option<Whole>, String> {
    let mut at = 0;
    let head = loop {
        match head(&bytes[at..])? {
            Some(head) if head.is_informational() => at += head.length,
            Some(head) => break head,
            None => return Ok(None),
        }
    };
    let body = &bytes[at + head.length..];
    let mut content = 0;
    match head.body.complete(body, ended, |piece| content += piece.len())? {
        Some(length) if length < body.len() => Err("it sends more than one answer".into()),
        Some(_) => Ok(Some(Whole { head, content })),
        None => Ok(None),
    }
}

/// A request without a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its target.
    pub path: &'a str,
    /// Its length in bytes.
    pub length: usize,
    /// Whether the client wants no other answer on this connection.
    pub last: bool,
}

/// The request at the beginning of these bytes, once it is complete.
///
/// # Errors
/// If it is not one, too long, or has a body.
pub fn request(bytes: &[u8]) -> Result<Option<Request<'_>>, &'static str> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut asked = httparse::Request::new(&mut headers);
    let length = match asked.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if bytes.len() > MOST_OF_A_HEAD => return Err("the request is too long"),
        Ok(Status::Partial) => return Ok(None),
        Err(_) => return Err("the request is not HTTP/1"),
    };
    let has_length = value_of(asked.headers, "content-length").is_some_and(|text| number(text) != Some(0));
    if has_length || value_of(asked.headers, "transfer-encoding").is_some() {
        return Err("the request has a body");
    }
    let last = is_last(asked.version, asked.headers);
    let (method, path) = (asked.method.unwrap_or_default(), asked.path.unwrap_or_default());
    Ok(Some(Request { method, path, length, last }))
}

fn value_of<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a [u8]> {
    let found = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
    found.map(|header| header.value.trim_ascii())
}

fn has(headers: &[Header<'_>], name: &str, word: &str) -> bool {
    let is_it = |part: &[u8]| part.trim_ascii().eq_ignore_ascii_case(word.as_bytes());
    value_of(headers, name).is_some_and(|value| value.split(|byte| *byte == b',').any(is_it))
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Whether the connection ends after a message of this version with these headers.
fn is_last(version: Option<u8>, headers: &[Header<'_>]) -> bool {
    has(headers, "connection", "close") || (version == Some(0) && !has(headers, "connection", "keep-alive"))
}

impl Body {
    /// The number of bytes that this body takes up at the beginning of these, once it is complete. `ended` says
    /// that no more bytes come. Its content, as far as it is there, goes to `content` in pieces.
    ///
    /// # Errors
    /// Why they cannot be one.
    pub fn complete(
        self,
        bytes: &[u8],
        ended: bool,
        mut content: impl FnMut(&[u8]),
    ) -> Result<Option<usize>, String> {
        let length = match self {
            Body::Nothing => Some(0),
            Body::Length(length) if length > MOST => return Err(too_large()),
            Body::Length(length) => Some(length).filter(|length| *length <= bytes.len()),
            Body::Chunks => return chunks(bytes, content),
            Body::UntilTheEnd if bytes.len() > MOST => return Err(too_large()),
            Body::UntilTheEnd => ended.then_some(bytes.len()),
        };
        content(&bytes[..length.unwrap_or_default()]);
        Ok(length)
    }
}

fn too_large() -> String {
    format!("its answer is larger than {MOST} bytes")
}

/// The number of bytes that chunks take up, once the last one is complete.
fn chunks(bytes: &[u8], mut content: impl FnMut(&[u8])) -> Result<Option<usize>, String> {
    if bytes.len() > MOST {
        return Err(too_large());
    }
    let mut at = 0;
    loop {
        let (begin, size) = match httparse::parse_chunk_size(&bytes[at..]) {
            Ok(Status::Complete((length, size))) => (at + length, size),
            Ok(Status::Partial) => return Ok(None),
            Err(_) => return Err("its answer has a chunk without a size".into()),
        };
        if size > MOST as u64 {
            return Err(too_large());
        }
        if size == 0 {
            return Ok(trailer(&bytes[begin..]).map(|length| begin + length));
        }
        let end = begin + size as usize;
        match bytes.get(end..end + 2) {
            None => return Ok(None),
            Some(b"\r\n") => content(&bytes[begin..end]),
            Some(_) => return Err("its answer has a chunk that is longer than its size".into()),
        }
        at = end + 2;
    }
}

/// The length of the lines after the last chunk, the last of which is empty.
fn trailer(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let end = at + bytes[at..].windows(2).position(|two| two == b"\r\n")?;
        if end == at {
            return Some(at + 2);
        }
        at = end + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_taken_apart() {
        let two = b"GET /network HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.0\r\n\r\n";
        let first = request(two).unwrap().unwrap();
        assert_eq!(first, Request { method: "GET", path: "/network", length: 34, last: false });
        assert_eq!(request(&two[34..]).unwrap().map(|second| (second.path, second.last)), Some(("/", true)));
        assert_eq!(request(&two[..30]), Ok(None));
        let closing = b"GET / HTTP/1.1\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n";
        assert!(request(closing).unwrap().unwrap().last);
        let wrong: [&[u8]; 4] = [
            b"hello\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            &[b"GET / HTTP/1.1\r\nA: ".as_slice(), &[b'a'; 70_000]].concat(),
        ];
        assert!(wrong.iter().all(|bytes| request(bytes).is_err()));
    }

    fn of(text: &str, ended: bool) -> Result<Option<(u16, usize, bool)>, String> {
        let whole = whole(text.as_bytes(), ended)?;
        Ok(whole.map(|whole| (whole.head.status, whole.content, whole.head.last)))
    }

    #[test]
    fn an_answer_is_complete_with_its_last_byte() {
        let chunked =
            "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n2\r\nab\r\n0\r\n\r\n";
        let both = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab";
        for (text, expected) in [(chunked, (404, 5, false)), (both, (200, 2, true))] {
            for cut in 0..text.len() {
                assert_eq!(of(&text[..cut], false), Ok(None), "{cut}");
            }
            assert_eq!(of(text, false), Ok(Some(expected)));
            assert!(of(&format!("{text}H"), false).is_err());
        }
        let old = "HTTP/1.0 200 OK\r\n\r\nuntil the end";
        assert_eq!((of(old, false), of(old, true)), (Ok(None), Ok(Some((200, 13, true)))));
        assert!(of("hello\r\n\r\n", false).is_err());
    }

    proptest! {
        #[test]
        fn chunks_give_back_what_was_put_into_them(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..6), cut in 0usize..400) {
            let mut bytes: Vec<u8> = Vec::new();
            for piece in &pieces {
                bytes.extend(format!("{:x}\r\n", piece.len()).into_bytes());
                bytes.extend(piece);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
            let mut content: Vec<u8> = Vec::new();
            prop_assert_eq!(chunks(&bytes, |piece| content.extend(piece)), Ok(Some(bytes.len())));
            prop_assert_eq!(content, pieces.concat());
            if cut < bytes.len() {
                prop_assert_eq!(chunks(&bytes[..cut], |_| {}), Ok(None));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (head(&bytes), request(&bytes), chunks(&bytes, |_| {}));
        }
    }
}
