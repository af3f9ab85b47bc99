//! What the probe can be asked to do inside beside starting: each kind of work is one file, and a line in
//! `KINDS`. A work allocates nothing and starts no runtime; what came of it goes into the probe's message.
//!
//! Deliberately absent: what a work is good for. Experiments choose its arguments and make metrics of
//! what it reports.

mod command;
mod cpu;
mod network;
mod spin;
mod syscall;
mod throttle;

use core::ffi::{CStr, c_int};

use super::Message;
use super::entry::Arguments;
use crate::sys::command::Strings;

/// Bytes that the message of a work may have: room for some thousand numbers of a series.
pub(super) const ROOM: usize = 192 << 10;

/// The kinds of work, by name.
static KINDS: &[(&str, Kind)] = &[
    ("spin", spin::work),
    ("syscall", syscall::work),
    ("command", command::work),
    ("throttle", throttle::work),
    ("cpu", cpu::work),
    ("network", network::work),
];

/// A kind of work: reads its words, does it, reports.
type Kind = fn(Words<'_>, &mut Report<'_>);

/// Does the work that these arguments ask for, from the name of its kind on. False where no kind has
/// this name.
pub(super) fn run(arguments: Arguments<'_>, first: c_int, message: &mut Message<ROOM>) -> bool {
    let name = arguments.get(first).map_or(&b""[..], CStr::to_bytes);
    let Some((_, kind)) = KINDS.iter().find(|(own, _)| own.as_bytes() == name) else { return false };
    kind(Words { arguments, first: first + 1 }, &mut Report { message });
    true
}

/// The words after the name of the kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'a> {
    arguments: Arguments<'a>,
    first: c_int,
}

impl<'a> Words<'a> {
    /// The word at this place, from 0.
    pub fn get(self, index: usize) -> Option<&'a CStr> {
        self.arguments.get(self.first + index as c_int)
    }

    /// This word and all that follow, as a list for the kernel.
    pub fn strings(self, index: usize) -> Strings<'a> {
        self.arguments.from(self.first + index as c_int)
    }

    /// The whole number at this place.
    pub fn number(self, index: usize) -> Option<u64> {
        core::str::from_utf8(self.get(index)?.to_bytes()).ok()?.parse().ok()
    }
}

/// What came of a work, on its way into the probe's message. Names are words; numbers have no unit here,
/// since the experiment that asked knows it.
pub(super) struct Report<'a> {
    message: &'a mut Message<ROOM>,
}

impl Report<'_> {
    /// A whole number.
    pub fn result(&mut self, name: &str, value: i64) {
        self.parted_result(name, "", value);
    }

    /// A whole number whose name has two parts.
    pub fn parted_result(&mut self, name: &str, part: &str, value: i64) {
        self.begin("result", name);
        self.message.push(part.as_bytes());
        self.signed(value);
        self.message.push(b"\n");
    }

    /// Whole numbers in their order.
    pub fn series(&mut self, name: &str, values: &[u64]) {
        self.begin("series", name);
        for value in values {
            self.message.push(b" ");
            self.message.digits(*value);
        }
        self.message.push(b"\n");
    }

    /// A fact about the conditions, which is recorded as part of the treatment.
    pub fn note(&mut self, name: &str, text: &[u8]) {
        self.begin("note", name);
        self.message.push(b" ");
        self.text(text);
        self.message.push(b"\n");
    }

    /// Why the work was not done: the subject does not support it.
    pub fn refuse(&mut self, why: &str) {
        self.message.push(b"refused ");
        self.text(why.as_bytes());
        self.message.push(b"\n");
    }

    fn begin(&mut self, what: &str, name: &str) {
        self.message.push(what.as_bytes());
        self.message.push(b" ");
        self.message.push(name.as_bytes());
    }

    fn signed(&mut self, value: i64) {
        self.message.push(if value < 0 { b" -" } else { b" " });
        self.message.digits(value.unsigned_abs());
    }

    /// Bytes that end no line of the message.
    fn text(&mut self, text: &[u8]) {
        for byte in text {
            self.message.push(if byte.is_ascii_control() { b" " } else { core::slice::from_ref(byte) });
        }
    }
}
