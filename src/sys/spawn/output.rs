//! What a program writes, on its way through a pipe of ours: when it is read, how much of it is kept, and a line in it that is
//! waited for.

use std::fs::Permissions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use regex_lite::Regex;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use crate::sys::clock;
use crate::units::Stamp;

/// Output beyond this is read and thrown away.
pub(super) const KEPT_OUTPUT: usize = 1 << 20;
/// No line that is waited for is longer.
const LONGEST: usize = 64 << 10;

/// What a started program writes, collected on demand.
#[derive(Debug)]
pub(super) struct Output {
    pub reader: OwnedFd,
    pub kept: Vec<u8>,
    /// All bytes that came, kept or not.
    pub count: u64,
    /// Whether nobody holds the other end any more.
    pub is_over: bool,
    /// The line that is waited for in it.
    pub awaited: Option<Awaited>,
}

impl Output {
    /// A pipe that holds as much as an ordinary user may ask for: the collecting side, and the descriptor to give
    /// to a child.
    pub fn pipe() -> io::Result<(Output, OwnedFd)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        // A refused size leaves the old one.
        let _ = fcntl_setpipe_size(&reader, KEPT_OUTPUT);
        Ok((Output { reader, kept: Vec::new(), count: 0, is_over: false, awaited: None }, writer))
    }

    /// Takes what is in the pipe now, without waiting, and returns how many bytes that was.
    pub fn drain(&mut self) -> usize {
        let mut chunk = [0u8; 65536];
        let mut total = 0;
        loop {
            match rustix::io::read(&self.reader, &mut chunk) {
                Ok(count @ 1..) => {
                    total += count;
                    self.count += count as u64;
                    if let Some(awaited) = &mut self.awaited {
                        awaited.look(&chunk[..count]);
                    }
                    let missing = KEPT_OUTPUT - self.kept.len();
                    self.kept.extend_from_slice(&chunk[..count.min(missing)]);
                }
                end => {
                    self.is_over = end.is_ok();
                    return total;
                }
            }
        }
    }

    /// Everything collected so far.
    pub fn finish(mut self) -> Vec<u8> {
        self.drain();
        self.kept
    }
}

/// A line that is waited for, and whom to tell.
#[derive(Debug, Clone)]
pub struct Line {
    /// What it fits.
    pub pattern: Regex,
    /// The file whose permissions are set again when it has come, for whoever watches it.
    pub told: PathBuf,
}

impl Line {
    /// When it came, which is now, if it is among the whole lines of this text.
    pub fn among(&self, text: &[u8]) -> Option<Stamp> {
        let end = text.iter().rposition(|byte| *byte == b'\n')?;
        // With its end, so that a terminal's carriage return before it belongs to no line.
        let text = String::from_utf8_lossy(&text[..=end]);
        let came = text.lines().any(|line| self.pattern.is_match(line)).then(clock::now)?;
        // Where this fails, whoever watches waits until it is late.
        let _ = std::fs::set_permissions(&self.told, Permissions::from_mode(0o666));
        Some(came)
    }
}

/// A line that has come, or may be about to.
#[derive(Debug)]
pub(super) struct Awaited {
    pub line: Line,
    /// What was read of the last line so far.
    pub begun: Vec<u8>,
    /// When it came.
    pub came: Option<Stamp>,
}

impl Awaited {
    fn look(&mut self, bytes: &[u8]) {
        if self.came.is_some() {
            return;
        }
        self.begun.extend_from_slice(bytes);
        self.came = self.line.among(&self.begun);
        let end = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let is_too_long = self.begun.len() - end > LONGEST;
        self.begun.drain(..if is_too_long { self.begun.len() } else { end });
    }
}

/// When what a program writes is read.
#[derive(Debug, Clone)]
pub enum Reading {
    /// When it has ended, or its pipes are full.
    Late,
    /// As it comes, so that it never waits for us.
    AtOnce,
    /// The same, and a line is waited for.
    For(Line),
}

impl Reading {
    /// Whether it is read as it comes.
    pub fn is_at_once(&self) -> bool {
        !matches!(self, Reading::Late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_when_it_is_whole_also_as_a_terminal_ends_it() {
        let line = Line { pattern: Regex::new("^is ready$").unwrap(), told: PathBuf::from("/nonexistent") };
        let came = |text: &[u8]| line.among(text).is_some();
        assert!(came(b"is not\nis ready\n") && came(b"is not\r\nis ready\r\n"));
        assert!(!came(b"is ready") && !came(b"is ready now\n"));
    }
}
