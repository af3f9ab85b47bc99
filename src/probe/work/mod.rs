//! The works that the probe can do inside: each kind is one file, and a line in `KINDS`. The result is part
//! of the probe's message.
//!
//! Deliberately absent: the purpose of a work. Experiments choose its arguments and make metrics from its
//! report.

mod command;
mod cpu;
mod files;
mod limit;
mod network;
mod spin;
mod syscall;
mod throttle;

use core::ffi::CStr;
use core::fmt::Write;

use super::Message;
use crate::outcome::{Distribution, Failure};

/// The size of a work's message in bytes: some thousand numbers of a series.
pub(super) const CAPACITY: usize = 192 << 10;

/// The kinds of work, by name.
static KINDS: &[(&str, Kind)] = &[
    ("spin", spin::work),
    ("syscall", syscall::work),
    ("command", command::work),
    ("throttle", throttle::work),
    ("cpu", cpu::work),
    ("network", network::work),
    ("files", files::work),
];

/// A kind of work: parses its words, does it, reports.
type Kind = fn(Words<'_>, &mut Report<'_, '_>);

/// Does the work that these words ask for, which start with the name of its kind. Returns false if the kind
/// is unknown.
pub(super) fn run(words: &[&CStr], message: &mut Message<'_>) -> bool {
    let Some((name, words)) = words.split_first() else { return false };
    let Some((_, kind)) = KINDS.iter().find(|(own, _)| own.as_bytes() == name.to_bytes()) else {
        return false;
    };
    kind(Words(words), &mut Report { message });
    true
}

/// The words after the name of the kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'a>(&'a [&'a CStr]);

impl<'a> Words<'a> {
    /// The word at this index, from 0.
    pub fn get(self, index: usize) -> Option<&'a CStr> {
        self.0.get(index).copied()
    }

    /// The words from this index.
    pub fn from(self, index: usize) -> &'a [&'a CStr] {
        self.0.get(index..).unwrap_or_default()
    }

    /// The integer at this index.
    pub fn number(self, index: usize) -> Option<u64> {
        self.get(index)?.to_str().ok()?.parse().ok()
    }
}

/// The result of a work, on its way into the probe's message. Numbers have no unit here, since the experiment
/// that asked for them knows it.
pub(super) struct Report<'a, 'b> {
    message: &'a mut Message<'b>,
}

impl Report<'_, '_> {
    /// An integer.
    pub fn result(&mut self, name: &str, value: i64) {
        self.line(format_args!("result {name} {value}"));
    }

    /// A list of integers.
    pub fn series(&mut self, name: &str, values: &[u64]) {
        let numbers = values.iter().map(|value| format!(" {value}"));
        self.line(format_args!("series {name}{}", numbers.collect::<String>()));
    }

    /// Many values without their order.
    pub fn distribution(&mut self, name: &str, values: &Distribution) {
        self.line(format_args!("distribution {name} {}", values.text()));
    }

    /// How the work failed after it was begun.
    pub fn fail(&mut self, failure: &Failure) {
        self.message.named("failed", &printable(format!("{}: {}", failure.class, failure.reason).as_bytes()));
    }

    /// A fact about the conditions, which is recorded as part of the treatment.
    pub fn note(&mut self, name: &str, text: impl AsRef<[u8]>) {
        self.message.named(&format!("note {name}"), &printable(text.as_ref()));
    }

    /// Why the work was not done: the subject does not support it.
    pub fn refuse(&mut self, why: &str) {
        self.message.named("refused", &printable(why.as_bytes()));
    }

    fn line(&mut self, text: core::fmt::Arguments<'_>) {
        let _ = writeln!(self.message, "{text}");
    }
}

/// Control characters would end the line.
fn printable(text: &[u8]) -> Vec<u8> {
    text.iter().map(|byte| if byte.is_ascii_control() { b' ' } else { *byte }).collect()
}
