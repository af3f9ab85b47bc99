//! One thread of a load: its connections, and the epoll that it waits for. Sockets do not block. A connection is free
//! after its request has succeeded or failed, and a heap holds when the next one is due on each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::time::Duration;

use dunnage_orders::network::{Load, Requests, Wrong};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{connect, sockopt};

use super::nothing;
use crate::http::{Whole, whole};
use crate::load::{Target, tcp_socket};
use crate::sys::{clock, raw};
use crate::units::{Nanos, Stamp};

/// How long a connection rests in a closed loop after it has failed, lest a dead server keeps a CPU busy.
const REST: u64 = 10_000_000;
/// How often the patience with each connection is looked at, in nanoseconds.
const LOOK: u64 = 10_000_000;
/// Bytes that are read at once.
const READ: usize = 64 << 10;

/// A thread's part of a load.
pub(super) struct Client<'a> {
    target: &'a Target,
    load: &'a Load,
    request: &'a [u8],
    epoll: OwnedFd,
    slots: Vec<Slot>,
    /// Free connections, by when their next requests are due.
    free: BinaryHeap<Reverse<(Stamp, usize)>>,
    /// Requests on their way, or connections that are being opened.
    busy: usize,
    /// Requests that a closed loop may still begin.
    left: u64,
    began: Stamp,
    last_answer: Stamp,
    /// When the connections were last looked at.
    looked: Stamp,
    scratch: Vec<u8>,
    pub(super) done: Requests,
    /// The first failure.
    pub(super) first: Option<(Wrong, io::Error)>,
}

/// A connection, or the place of one.
struct Slot {
    stream: Option<TcpStream>,
    step: Step,
    interest: EventFlags,
    /// When its request was due; none without a request.
    due: Option<Stamp>,
    /// When the patience with it ends.
    deadline: Stamp,
    /// The number of its next request in the schedule of an open loop.
    next: u64,
    /// The part of an answer that has come.
    received: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Closed,
    Connecting,
    /// So many bytes of the request are sent.
    Sending(usize),
    Waiting,
    /// Open, without a request.
    Idle,
}

impl<'a> Client<'a> {
    /// The client of the thread with this number, with its connections.
    pub fn open(
        target: &'a Target,
        load: &'a Load,
        request: &'a [u8],
        number: usize,
    ) -> io::Result<Client<'a>> {
        let slot = |next: usize| Slot {
            stream: None,
            step: Step::Closed,
            interest: EventFlags::OUT,
            due: None,
            deadline: Stamp(0),
            next: next as u64,
            received: Vec::new(),
        };
        let threads = load.threads as u64;
        let left = match load.limit.count {
            0 => u64::MAX,
            count => count / threads + u64::from((number as u64) < count % threads),
        };
        let now = clock::now();
        let mut client = Client {
            target,
            load,
            request,
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            slots: (number..load.connections).step_by(load.threads).map(slot).collect(),
            free: BinaryHeap::new(),
            busy: 0,
            left,
            began: now,
            last_answer: now,
            looked: now,
            scratch: vec![0; READ],
            done: nothing(),
            first: None,
        };
        for index in 0..client.slots.len() {
            client.connect(index, now);
        }
        let mut events = Vec::with_capacity(client.slots.len());
        while client.busy > 0 {
            client.turn(&mut events)?;
        }
        client.done.opened = client.slots.iter().filter(|slot| slot.step == Step::Idle).count() as u64;
        Ok(client)
    }

    /// Makes the requests that are due from this moment on.
    pub fn run(mut self, began: Stamp) -> io::Result<(Requests, Option<(Wrong, io::Error)>)> {
        // The kernel may delay the end of a wait by 50 µs else, and requests would be late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        (self.began, self.last_answer) = (began, began);
        for index in 0..self.slots.len() {
            self.release(index, began);
        }
        let mut events = Vec::with_capacity(self.slots.len());
        self.begin(clock::now());
        while self.busy > 0 || !self.free.is_empty() {
            self.turn(&mut events)?;
        }
        self.done.took = self.last_answer.since(began);
        Ok((self.done, self.first))
    }

    /// Waits until something happens or is due, and does what is to be done then.
    fn turn(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        let look = Stamp(self.looked.0 + LOOK);
        let until = self.free.peek().map_or(look, |Reverse((due, _))| look.min(*due));
        let wait = Duration::from_nanos(until.since(clock::now()).0.max(0) as u64);
        let mut wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        events.clear();
        if until < look {
            // The wait of epoll is in whole milliseconds, and requests would be late by up to one.
            match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&wait)) {
                Err(Errno::INTR) => {}
                waited => drop(waited?),
            }
            wait = Timespec { tv_sec: 0, tv_nsec: 0 };
        }
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&wait)) {
            Err(Errno::INTR) => {}
            waited => drop(waited?),
        }
        for event in events.iter() {
            self.attend(event.data.u64() as usize);
        }
        let now = clock::now();
        self.begin(now);
        if now >= look {
            self.looked = now;
            for index in 0..self.slots.len() {
                let Slot { step, deadline, .. } = self.slots[index];
                if now >= deadline && !matches!(step, Step::Closed | Step::Idle) {
                    self.fail(index, Wrong::Timeout, now, io::ErrorKind::TimedOut.into());
                }
            }
        }
        Ok(())
    }

    /// The connection is free now, and its next request not due before `earliest`.
    fn release(&mut self, index: usize, earliest: Stamp) {
        let patience = self.target.patience.as_nanos() as u64;
        while let Some(due) = self.due(index, earliest) {
            // Those for which a server was too slow must not last for ever.
            if self.load.rate.is_none() || earliest.0 <= self.end().0.saturating_add(patience) {
                self.free.push(Reverse((due, index)));
                return;
            }
            self.slots[index].next += self.load.connections as u64;
            self.done.wrong[Wrong::Timeout as usize] += 1;
        }
    }

    /// When no requests are due any more.
    fn end(&self) -> Stamp {
        match self.load.limit.time {
            Nanos(..=0) => Stamp(u64::MAX),
            Nanos(time) => Stamp(self.began.0 + time as u64),
        }
    }

    /// When the next request of this connection is due, if there is one.
    fn due(&self, index: usize, earliest: Stamp) -> Option<Stamp> {
        let (next, count) = (self.slots[index].next, self.load.limit.count);
        let due = match self.load.rate {
            None if self.left == 0 => return None,
            None => earliest,
            Some(_) if count > 0 && next >= count => return None,
            Some(rate) => {
                let after = u128::from(next) * 1_000_000_000 / u128::from(rate);
                Stamp(self.began.0.saturating_add(after as u64))
            }
        };
        Some(due).filter(|due| *due < self.end())
    }

    /// Begins all requests that are due.
    fn begin(&mut self, now: Stamp) {
        while self.free.peek().is_some_and(|Reverse((due, _))| *due <= now) {
            let Some(Reverse((due, index))) = self.free.pop() else { break };
            if self.load.rate.is_none() {
                let Some(left) = self.left.checked_sub(1) else { continue };
                self.left = left;
            }
            let slot = &mut self.slots[index];
            slot.next += self.load.connections as u64;
            slot.due = Some(due);
            if slot.step == Step::Closed {
                self.connect(index, now);
            } else {
                self.busy += 1;
                slot.deadline = patient(now, self.target);
                self.send(index, 0);
            }
        }
    }

    fn connect(&mut self, index: usize, now: Stamp) {
        self.busy += 1;
        let slot = &mut self.slots[index];
        slot.deadline = patient(now, self.target);
        slot.step = Step::Connecting;
        slot.interest = EventFlags::OUT;
        let opened = tcp_socket(self.target.address, self.target.patience).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            match connect(&stream, &self.target.address) {
                Err(Errno::INPROGRESS) => {}
                connected => connected?,
            }
            epoll::add(&self.epoll, &stream, EventData::new_u64(index as u64), slot.interest)?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => slot.stream = Some(stream),
            Err(error) => self.fail(index, Wrong::Refused, now, error),
        }
    }

    /// Something has happened to a connection.
    fn attend(&mut self, index: usize) {
        let slot = &self.slots[index];
        let Some(stream) = &slot.stream else { return };
        match slot.step {
            Step::Connecting => {
                let connected = sockopt::socket_error(stream).and_then(|outcome| outcome);
                let now = clock::now();
                match connected {
                    Ok(()) if slot.due.is_some() => self.send(index, 0),
                    Ok(()) => {
                        self.busy -= 1;
                        self.wait_as(index, Step::Idle, EventFlags::IN);
                    }
                    Err(Errno::TIMEDOUT) => self.fail(index, Wrong::Timeout, now, Errno::TIMEDOUT.into()),
                    Err(error) => self.fail(index, Wrong::Refused, now, error.into()),
                }
            }
            Step::Sending(sent) => self.send(index, sent),
            Step::Waiting | Step::Idle => self.receive(index),
            Step::Closed => {}
        }
    }

    /// Sends the request from this byte on.
    fn send(&mut self, index: usize, sent: usize) {
        let Some(mut stream) = self.slots[index].stream.as_ref() else { return };
        let more = match stream.write(&self.request[sent..]) {
            Ok(length) => length,
            Err(error) if is_not_ready(&error) => 0,
            Err(error) => return self.fail(index, Wrong::Closed, clock::now(), error),
        };
        match sent + more {
            sent if sent < self.request.len() => self.wait_as(index, Step::Sending(sent), EventFlags::OUT),
            _ => self.wait_as(index, Step::Waiting, EventFlags::IN),
        }
    }

    fn wait_as(&mut self, index: usize, step: Step, interest: EventFlags) {
        let slot = &mut self.slots[index];
        slot.step = step;
        if slot.interest != interest {
            slot.interest = interest;
            let stream = slot.stream.as_ref().expect("only an open connection waits");
            let changed = epoll::modify(&self.epoll, stream, EventData::new_u64(index as u64), interest);
            changed.expect("an open socket that was added");
        }
    }

    fn receive(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(mut stream) = slot.stream.as_ref() else { return };
        let length = match stream.read(&mut self.scratch) {
            Ok(length) => length,
            Err(error) if is_not_ready(&error) => return,
            Err(error) if slot.due.is_some() => return self.fail(index, Wrong::Closed, clock::now(), error),
            Err(_) => 0,
        };
        let now = clock::now();
        let Some(due) = slot.due else {
            // A server may close a connection that has no request, and say so.
            return self.close(index);
        };
        self.done.bytes += length as u64;
        let piece = &self.scratch[..length];
        let bytes = if slot.received.is_empty() {
            piece
        } else {
            slot.received.extend_from_slice(piece);
            &slot.received
        };
        match whole(bytes, length == 0) {
            Ok(Some(whole)) => self.answered(index, due, &whole, now),
            Ok(None) if length == 0 => {
                self.fail(index, Wrong::Closed, now, io::ErrorKind::UnexpectedEof.into());
            }
            Ok(None) if slot.received.is_empty() => slot.received.extend_from_slice(piece),
            Ok(None) => {}
            Err(why) => self.fail(index, Wrong::Malformed, now, io::Error::other(why)),
        }
    }

    fn answered(&mut self, index: usize, due: Stamp, answer: &Whole, now: Stamp) {
        let (status, content) = (answer.head.status, answer.content);
        match (self.load.status, self.load.body) {
            (expected, _) if status != expected => {
                self.count(Wrong::Status, || format!("its status is {status}, not {expected}"));
            }
            (_, Some(expected)) if content != expected => {
                self.count(Wrong::Body, || format!("its body has {content} bytes, not {expected}"));
            }
            _ => {
                let latency = now.since(due);
                self.done.requests += 1;
                self.done.in_flight.0 += latency.0;
                self.done.latency.record(latency.0 as u64);
            }
        }
        self.last_answer = now;
        self.busy -= 1;
        let slot = &mut self.slots[index];
        slot.due = None;
        slot.received.clear();
        slot.step = Step::Idle;
        if answer.head.last {
            self.close(index);
        }
        self.release(index, now);
        let until = raw::thread_cpu() + self.load.computes.0.max(0) as u64;
        while self.load.computes.0 > 0 && raw::thread_cpu() < until {}
        self.begin(now);
    }

    fn count(&mut self, wrong: Wrong, why: impl FnOnce() -> String) {
        self.done.wrong[wrong as usize] += 1;
        self.first.get_or_insert_with(|| (wrong, io::Error::other(why())));
    }

    /// Ends a connection, and its request if it has one.
    fn fail(&mut self, index: usize, wrong: Wrong, now: Stamp, error: io::Error) {
        self.close(index);
        self.busy -= 1;
        self.first.get_or_insert((wrong, error));
        // Until the load begins, it is none of its requests.
        if self.slots[index].due.take().is_some() {
            self.done.wrong[wrong as usize] += 1;
            self.release(index, Stamp(now.0 + REST));
        }
    }

    fn close(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.stream = None;
        slot.step = Step::Closed;
        slot.received.clear();
    }
}

fn patient(now: Stamp, target: &Target) -> Stamp {
    Stamp(now.0.saturating_add(target.patience.as_nanos() as u64))
}

fn is_not_ready(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
