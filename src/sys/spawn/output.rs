//! A program's output on its way through a pipe of dunnage's: when it is read, how much of it is kept, and a
//! line in it that is waited for.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use regex_lite::Regex;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use crate::sys::clock;
use crate::units::Stamp;

/// Output beyond this is read and discarded.
pub(super) const KEPT_OUTPUT: usize = 1 << 20;
/// The longest line that can be waited for.
const LONGEST: usize = 64 << 10;

/// The output of a started program, collected on demand.
#[derive(Debug)]
pub(super) struct Output {
    pub reader: OwnedFd,
    pub kept: Vec<u8>,
    /// All bytes that arrived, kept or not.
    pub count: u64,
    /// Whether no process holds the other end any more.
    pub is_over: bool,
    /// The line that is waited for in it.
    pub awaited: Option<Awaited>,
}

impl Output {
    /// A pipe of the largest size that an ordinary user may request: the collecting side, and the descriptor
    /// for a child.
    pub fn pipe() -> io::Result<(Output, OwnedFd)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        // If the size is refused, the default stays.
        let _ = fcntl_setpipe_size(&reader, KEPT_OUTPUT);
        Ok((Output { reader, kept: Vec::new(), count: 0, is_over: false, awaited: None }, writer))
    }

    /// Reads what is in the pipe now, without waiting, and returns the number of bytes.
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

/// A line that is waited for, and the file that signals it.
#[derive(Debug, Clone)]
pub struct Line {
    /// The pattern that it must match.
    pub pattern: Regex,
    /// The file whose permissions are reset when it has arrived, for a watching probe.
    pub told: PathBuf,
}

impl Line {
    /// The current time, if the line is among the complete lines of this text.
    pub fn among(&self, text: &[u8]) -> Option<Stamp> {
        let end = text.iter().rposition(|byte| *byte == b'\n')?;
        // Including the final newline, so that a terminal's carriage return is not part of a line.
        let text = String::from_utf8_lossy(&text[..=end]);
        let came = text.lines().any(|line| self.pattern.is_match(line)).then(clock::now)?;
        // If this fails, the probe that watches waits until its time is over.
        let _ = std::fs::metadata(&self.told)
            .and_then(|facts| std::fs::set_permissions(&self.told, facts.permissions()));
        Some(came)
    }
}

/// The state of a line that is waited for.
#[derive(Debug)]
pub(super) struct Awaited {
    pub line: Line,
    /// The part of the last line that has been read so far.
    pub begun: Vec<u8>,
    /// When it arrived.
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

/// When a program's output is read.
#[derive(Debug, Clone)]
pub enum Reading {
    /// When it has ended, or its pipes are full.
    Late,
    /// As it arrives, so that the program never waits for dunnage.
    AtOnce,
    /// The same, and a line is waited for.
    For(Line),
}

impl Reading {
    /// Whether it is read as it arrives.
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
