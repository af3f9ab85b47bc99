//! What a program writes, on its way through a pipe of ours: when it is read, and how much of it is kept.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// Output beyond this is read and thrown away.
pub(super) const KEPT_OUTPUT: usize = 1 << 20;

/// What a started program writes, collected on demand.
#[derive(Debug)]
pub(super) struct Output {
    pub reader: OwnedFd,
    pub kept: Vec<u8>,
    /// All bytes that came, kept or not.
    pub count: u64,
    /// Whether nobody holds the other end any more.
    pub is_over: bool,
}

impl Output {
    /// A pipe that holds as much as an ordinary user may ask for: the collecting side, and the descriptor to give
    /// to a child.
    pub fn pipe() -> io::Result<(Output, OwnedFd)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        // A refused size leaves the old one.
        let _ = fcntl_setpipe_size(&reader, KEPT_OUTPUT);
        Ok((Output { reader, kept: Vec::new(), count: 0, is_over: false }, writer))
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

/// When what a program writes is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// When it has ended, or its pipes are full.
    Late,
    /// As it comes, so that it never waits for us.
    AtOnce,
}
