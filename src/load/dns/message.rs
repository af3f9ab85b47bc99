//! Messages of DNS (RFC 1035): a query for the IPv4 address of one name, and its answer.
//!
//! Deliberately absent: sockets, other types of records, and names that are compressed in a query, which no
//! query has.

use std::net::Ipv4Addr;

/// The longest message over UDP without extensions.
pub const LONGEST: usize = 512;

const HEADER: usize = 12;
/// The bits of the flags: a response, an authoritative one, recursion wanted and available, and the code.
const RESPONSE: u16 = 0x8000;
const OPERATION: u16 = 0x7800;
const AUTHORITATIVE: u16 = 0x0400;
const WANTED: u16 = 0x0100;
const AVAILABLE: u16 = 0x0080;
const CODE: u16 = 0x000f;
/// The type of IPv4 addresses, and the class of the Internet.
pub const ADDRESS: u16 = 1;
const INTERNET: u16 = 1;
/// The name of the question, as a compressed name.
const SAME_NAME: u16 = 0xc000 | HEADER as u16;
/// How long an answer may be cached, in seconds: longer than any sample.
const LIVES: u32 = 300;

/// What a query asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The name in lower case, without a dot at its end.
    pub name: String,
    /// The type of records.
    pub kind: u16,
    /// Where the question ends in the message.
    end: usize,
}

/// What a resolver says about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Its address.
    Address(Ipv4Addr),
    /// No address, with this code, which is zero where the name has none.
    None(u8),
}

impl std::fmt::Display for Answer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const CODES: [&str; 6] = ["no address", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];
        match self {
            Answer::Address(address) => write!(out, "{address}"),
            Answer::None(code) => match CODES.get(usize::from(*code)) {
                Some(name) => out.write_str(name),
                None => write!(out, "the code {code}"),
            },
        }
    }
}

/// Writes a query for the address of a name whose labels have at most 63 bytes.
pub fn query(number: u16, name: &str, message: &mut Vec<u8>) {
    message.clear();
    write(message, &[number, WANTED, 1, 0, 0, 0]);
    for label in name.split('.') {
        message.push(label.len() as u8);
        message.extend(label.as_bytes());
    }
    message.push(0);
    write(message, &[ADDRESS, INTERNET]);
}

/// The question of a query; none if the message is not a query with one question.
pub fn question(message: &[u8]) -> Option<Question> {
    let is_query = half(message, 2)? & (RESPONSE | OPERATION) == 0 && half(message, 4)? == 1;
    let (mut at, mut labels) = (HEADER, Vec::new());
    loop {
        match usize::from(*message.get(at)?) {
            0 => break,
            length @ 1..=63 => {
                labels.push(std::str::from_utf8(message.get(at + 1..=at + length)?).ok()?);
                at += 1 + length;
            }
            _ => return None,
        }
    }
    let (kind, class) = (half(message, at + 1)?, half(message, at + 3)?);
    (is_query && class == INTERNET).then(|| Question {
        name: labels.join(".").to_ascii_lowercase(),
        kind,
        end: at + 5,
    })
}

/// The answer to a query with this question.
pub fn answer(query: &[u8], question: &Question, answer: Answer) -> Vec<u8> {
    let mut message = Vec::with_capacity(LONGEST);
    let wanted = half(query, 2).unwrap_or_default() & WANTED;
    let (code, count) = match answer {
        Answer::Address(_) => (0, 1),
        Answer::None(code) => (u16::from(code) & CODE, 0),
    };
    message.extend(&query[..2]);
    write(&mut message, &[RESPONSE | AUTHORITATIVE | wanted | AVAILABLE | code, 1, count, 0, 0]);
    message.extend(&query[HEADER..question.end]);
    if let Answer::Address(address) = answer {
        write(&mut message, &[SAME_NAME, ADDRESS, INTERNET]);
        message.extend(LIVES.to_be_bytes());
        write(&mut message, &[4]);
        message.extend(address.octets());
    }
    message
}

/// What a message says about the name that this query asked for; none if it is not an answer to it.
pub fn read(message: &[u8], query: &[u8]) -> Option<Answer> {
    let flags = half(message, 2)?;
    if message[..2] != query[..2] || flags & RESPONSE == 0 {
        return None;
    }
    match (flags & CODE) as u8 {
        0 => Some(first_address(message).map_or(Answer::None(0), Answer::Address)),
        code => Some(Answer::None(code)),
    }
}

fn first_address(message: &[u8]) -> Option<Ipv4Addr> {
    /// Type, class, lifetime and length.
    const RECORD: usize = 10;
    let (questions, answers) = (half(message, 4)?, half(message, 6)?);
    let mut at = HEADER;
    for _ in 0..questions {
        at = after_name(message, at)? + 4;
    }
    for _ in 0..answers {
        at = after_name(message, at)?;
        let (kind, length) = (half(message, at)?, usize::from(half(message, at + 8)?));
        let content = message.get(at + RECORD..at + RECORD + length)?;
        if kind == ADDRESS {
            return Some(Ipv4Addr::from(<[u8; 4]>::try_from(content).ok()?));
        }
        at += RECORD + length;
    }
    None
}

/// Where a name ends that may be compressed.
fn after_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match usize::from(*message.get(at)?) {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + length,
            0xc0..=0xff => return Some(at + 2),
            _ => return None,
        }
    }
}

fn half(message: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?))
}

fn write(message: &mut Vec<u8>, halves: &[u16]) {
    halves.iter().for_each(|half| message.extend(half.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ADDRESS_OF_IT: Answer = Answer::Address(Ipv4Addr::new(198, 18, 3, 4));

    fn asked(name: &str) -> Vec<u8> {
        let mut message = vec![7];
        query(0x1234, name, &mut message);
        message
    }

    #[test]
    fn a_query_has_the_bytes_of_the_standard() {
        let expected = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01n\x04test\x00\x00\x01\x00\x01";
        assert_eq!(asked("n.test"), expected);
        let question = question(expected).unwrap();
        assert_eq!((question.name.as_str(), question.kind), ("n.test", ADDRESS));
    }

    #[test]
    fn an_answer_is_read_back() {
        let query = asked("a.dunnage.test");
        let question = question(&query).unwrap();
        for said in [ADDRESS_OF_IT, Answer::None(0), Answer::None(3)] {
            assert_eq!(read(&answer(&query, &question, said), &query), Some(said));
        }
        assert_eq!(Answer::None(3).to_string(), "NXDOMAIN");
        let mut other = query.clone();
        other[0] += 1;
        assert_eq!(read(&answer(&query, &question, ADDRESS_OF_IT), &other), None, "another number");
        assert_eq!(read(&query, &query), None, "a query");
    }

    #[test]
    fn an_address_behind_another_name_is_found() {
        let query = asked("a.test");
        let mut message = answer(&query, &question(&query).unwrap(), Answer::None(0));
        message[7] = 2;
        // a.test is b.test by CNAME, and b.test has the address.
        message.extend(b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x07\x00\x04\x01b\xc0\x0e");
        message.extend(b"\xc0\x20\x00\x01\x00\x01\x00\x00\x00\x07\x00\x04\xc6\x12\x03\x04");
        assert_eq!(read(&message, &query), Some(ADDRESS_OF_IT));
        message.truncate(message.len() - 1);
        assert_eq!(read(&message, &query), Some(Answer::None(0)));
    }

    #[test]
    fn case_does_not_matter_and_is_kept() {
        let query = asked("A.Dunnage.TEST");
        let question = question(&query).unwrap();
        assert_eq!(question.name, "a.dunnage.test");
        assert_eq!(answer(&query, &question, ADDRESS_OF_IT)[HEADER..question.end], query[HEADER..]);
    }

    proptest! {
        #[test]
        fn malformed_messages_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(question) = question(&bytes) {
                let _ = answer(&bytes, &question, ADDRESS_OF_IT);
            }
            let _ = read(&bytes, &[bytes.first().copied().unwrap_or(0), bytes.get(1).copied().unwrap_or(0)]);
        }

        /// Nearly right ones reach more of the code.
        #[test]
        fn a_changed_or_cut_message_does_no_harm(at in 0usize..64, byte: u8, length in 0usize..64) {
            let query = asked("a.dunnage.test");
            let mut message = answer(&query, &question(&query).unwrap(), ADDRESS_OF_IT);
            if let Some(place) = message.get_mut(at) {
                *place = byte;
            }
            message.truncate(length);
            let _ = read(&message, &query);
            message.iter_mut().skip(2).take(1).for_each(|flags| *flags = 0);
            if let Some(question) = question(&message) {
                let _ = answer(&message, &question, ADDRESS_OF_IT);
            }
        }
    }
}
