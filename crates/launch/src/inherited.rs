//! What a process inherits from the one that started it, as far as its container does not replace it: limits,
//! CPUs, umask, niceness, timer slack, how soon the kernel kills it, environment. Of a variable only its name
//! is written, and a hash that shows whether two values are equal.
//!
//! Read only where it is asked for, so it is not part of a launch that is measured unless that has a limit.

use crate::calls;
use crate::message::{Message, whole};
use crate::words::Variables;

/// The number of resources with limits.
pub const RESOURCES: usize = 16;

/// The most variables that are written one by one, so that the message fits.
const MOST_VARIABLES: usize = 100;
/// The longest name of a variable that is written.
const LONGEST_NAME: usize = 60;

impl Message<'_> {
    /// Everything but the environment; `own` is the process's directory in `/proc`.
    #[cold]
    #[inline(never)]
    pub(crate) fn inherited(&mut self, own: i32) {
        for resource in 0..RESOURCES {
            if let Some([soft, hard]) = calls::limit(resource) {
                self.push(b"ulimit");
                self.more(resource as u64);
                self.more(soft);
                self.more(hard);
                self.push(b"\n");
            }
        }
        self.allowed_cpus();
        self.number("umask", calls::mask());
        if let Some(nice) = calls::niceness() {
            self.number("nice", nice);
        }
        if let Ok(slack) = calls::prctl(libc::PR_GET_TIMERSLACK, 0) {
            self.number("timer_slack", slack as u64);
        }
        self.file("oom_score_adj", own, c"oom_score_adj", 1, whole);
    }

    /// The CPUs that it may use, as words of 64 bits, the lowest first.
    fn allowed_cpus(&mut self) {
        let piece = core::mem::take(&mut self.piece);
        let count = calls::allowed_cpus(piece).unwrap_or(0);
        self.push(b"cpus_allowed");
        let mut rest = piece.get(..count).unwrap_or_default();
        while let Some((word, more)) = rest.split_first_chunk::<8>() {
            self.more(u64::from_le_bytes(*word));
            rest = more;
        }
        self.push(b"\n");
        self.piece = piece;
    }

    /// Its environment: each name after the hash of its value, which does not leave dunnage's memory on the other side. Variables
    /// beyond the first hundred, and those with other names than shells allow, are one line together.
    #[cold]
    #[inline(never)]
    pub(crate) fn environment(&mut self, variables: Variables<'_>) {
        let (mut others, mut mixed) = (0, 0);
        for (at, entry) in variables.enumerate() {
            let end = entry.iter().position(|&byte| byte == b'=').unwrap_or(entry.len());
            let name = entry.get(..end).unwrap_or_default();
            let is_plain = !name.is_empty()
                && name.len() <= LONGEST_NAME
                && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
            if is_plain && at < MOST_VARIABLES {
                self.push(b"variable");
                self.more(hash(entry.get(end..).unwrap_or_default()));
                self.push(b" ");
                self.push(name);
                self.push(b"\n");
            } else {
                others += 1;
                mixed = u64::wrapping_add(mixed, hash(entry));
            }
        }
        if others > 0 {
            self.push(b"variables");
            self.more(mixed);
            self.more(others);
            self.push(b"\n");
        }
    }
}

/// FNV-1a, 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}
