//! Names, resolved one after the other by a stub resolver as in a C library: a socket of its own for each query,
//! to the first resolver of `/etc/resolv.conf`. A name's time is from before the socket is made until the
//! answer has arrived; writing the query and reading the answer are not included.
//!
//! Deliberately absent: search domains, since names are complete, and a second resolver, since a load that
//! moved to another one would measure two.

mod message;
pub mod server;

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use dunnage_orders::network::{Names, Which};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

use self::message::Answer;
use super::{Limit, Target, failure};
use crate::outcome::{Distribution, Failure, FailureClass, OrEnvironment};
use crate::sys::clock;
use crate::units::Nanos;

/// A query without an answer after this long is lost.
const LOST_AFTER: Duration = Duration::from_millis(200);
/// The code of a resolver that got no answer from the one that it forwards to.
const SERVFAIL: Answer = Answer::None(2);

/// The first resolver that this file names.
///
/// # Errors
/// If it names none.
pub fn resolver_in(file: &Path) -> Result<IpAddr, Failure> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).or_environment(format_args!("cannot read `{shown}`"))?;
    let words = |line: &str| Some(line.trim().strip_prefix("nameserver")?.trim().to_owned());
    let Some(first) = text.lines().find_map(words) else {
        return Err(Failure::environment(format!("`{shown}` names no resolver")));
    };
    first.parse().or_environment(format_args!("`{shown}` names `{first}` as its resolver"))
}

/// Resolves names until the limit. The first one must have its address, so that a resolver which asks others is
/// asked once.
///
/// # Errors
/// What ended the load before its limit, with the number of names until then.
pub fn names(target: &Target, which: &Which, limit: Limit) -> Result<Names, Failure> {
    let run = clock::now().0;
    let mut queries =
        Queries { target, which, run, asked: 0, name: String::new(), query: Vec::new(), in_a_row: 0 };
    let [mut before, mut names] = [(); 2].map(|()| Names {
        resolver: target.address,
        count: 0,
        warm_up: 0,
        took: Nanos(0),
        wrong: 0,
        lost: 0,
        name: Distribution::of_durations(),
    });
    queries
        .introduce()
        .and_then(|()| queries.repeat(limit.hundredth(), &mut before))
        .and_then(|()| queries.repeat(limit, &mut names))
        .map_err(|failure| {
            let reason = format!("{} after {} names", failure.reason, before.count + names.count);
            Failure { reason, ..failure }
        })?;
    Ok(Names {
        warm_up: before.count + before.lost,
        wrong: before.wrong + names.wrong,
        lost: before.lost + names.lost,
        ..names
    })
}

/// How many names one of dunnage's resolvers has been asked for.
pub fn queries(target: &Target) -> Result<u32, Failure> {
    let (mut query, mut said) = (Vec::new(), [0; message::LONGEST]);
    message::query(1, server::COUNT, &mut query);
    let (length, _) = exchange(target, &query, &mut said).map_err(|error| failure(target.address, &error))?;
    match message::read(&said[..length], &query) {
        Some(Answer::Address(count)) => Ok(count.into()),
        said => Err(other_answer(target, server::COUNT, said)),
    }
}

/// Names one after the other.
struct Queries<'a> {
    target: &'a Target,
    which: &'a Which,
    /// Makes names differ from those of other loads.
    run: u64,
    asked: u64,
    name: String,
    query: Vec<u8>,
    /// Queries in a row without an answer.
    in_a_row: u32,
}

impl Queries<'_> {
    /// Resolves the next name. Returns the time and what the answer says, which may be an answer to something
    /// else; none if there was no answer.
    fn next(&mut self) -> Result<Option<(Nanos, Option<Answer>)>, Failure> {
        match self.which {
            Which::Given(name, _) => name.clone_into(&mut self.name),
            Which::Repeated if self.asked > 0 => {}
            _ => self.name = format!("n{}-{:x}.{}", self.asked, self.run, server::ZONE),
        }
        self.asked += 1;
        message::query(self.asked as u16, &self.name, &mut self.query);
        let mut said = [0; message::LONGEST];
        match exchange(self.target, &self.query, &mut said) {
            Ok((length, took)) => {
                self.in_a_row = 0;
                Ok(Some((took, message::read(&said[..length], &self.query))))
            }
            Err(error) => {
                self.in_a_row += 1;
                let is_silent = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
                let is_lost = is_silent && LOST_AFTER * self.in_a_row < self.target.patience;
                if is_lost { Ok(None) } else { Err(failure(self.target.address, &error)) }
            }
        }
    }

    fn expected(&self) -> Option<Answer> {
        Some(Answer::Address(match self.which {
            Which::Given(_, address) => *address,
            Which::Fresh | Which::Repeated => server::address_of(&self.name),
        }))
    }

    /// Resolves the first name.
    fn introduce(&mut self) -> Result<(), Failure> {
        loop {
            match self.next()? {
                Some((_, said)) if said == self.expected() => return Ok(()),
                Some((_, said)) => return Err(other_answer(self.target, &self.name, said)),
                None => {}
            }
        }
    }

    /// Resolves names until the limit.
    fn repeat(&mut self, limit: Limit, names: &mut Names) -> Result<(), Failure> {
        let began = clock::now();
        loop {
            match self.next()? {
                Some((took, said)) => {
                    names.name.record(took.0 as u64);
                    names.count += 1;
                    names.wrong += u64::from(said != self.expected());
                }
                None => names.lost += 1,
            }
            names.took = clock::now().since(began);
            if limit.is_reached(names.count + names.lost, names.took) {
                return Ok(());
            }
        }
    }
}

/// Sends a query from a socket of its own and waits for the answer. Returns its length and the time.
fn exchange(target: &Target, query: &[u8], said: &mut [u8]) -> io::Result<(usize, Nanos)> {
    let family = if target.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let before = clock::now();
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(LOST_AFTER.min(target.patience)))?;
    connect(&socket, &target.address)?;
    let socket = UdpSocket::from(socket);
    socket.send(query)?;
    let length = socket.recv(said)?;
    Ok((length, clock::now().since(before)))
}

fn other_answer(target: &Target, name: &str, said: Option<Answer>) -> Failure {
    let address = target.address;
    match said {
        Some(SERVFAIL) => {
            Failure::environment(format!("`{address}` gets no answer from dunnage's resolver ({SERVFAIL})"))
        }
        Some(said) => Failure::new(
            FailureClass::WrongOutput,
            format!("`{address}` answers `{name}` with {said}: it does not ask dunnage's resolver"),
        ),
        None => Failure::new(FailureClass::WrongOutput, format!("`{address}` is not a resolver")),
    }
}
