//! The three files of a run, wherever they are: two small texts, and samples that several threads read at any
//! offset at once. Deliberately absent: opening them.

use std::io::{self, BufRead, Read};
use std::path::PathBuf;

/// The files of a run.
pub struct Source {
    /// The content of `env.json`.
    pub environment: Vec<u8>,
    /// The content of `plan.json`.
    pub plan: Vec<u8>,
    /// `samples.jsonl`.
    pub samples: Box<dyn Samples>,
    /// Where they are.
    pub place: Place,
}

/// Where the files of a run are, for messages.
pub enum Place {
    /// In a run directory.
    Directory(PathBuf),
    /// In a pack.
    Pack(PathBuf),
}

/// Samples that can be read at any offset.
pub trait Samples: Sync {
    /// The number of bytes.
    fn length(&self) -> io::Result<u64>;
    /// Reads from an offset, and returns the number of bytes; 0 at the end.
    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize>;
}

impl Source {
    /// The name of a file, as a user would look for it.
    pub fn name(&self, file: &str) -> String {
        match &self.place {
            Place::Directory(directory) => format!("`{}`", directory.join(file).display()),
            Place::Pack(pack) => format!("`{file}` in `{}`", pack.display()),
        }
    }
}

/// The longest line that is read: a sample with a million numbers needs only a part of it. A longer line is
/// damaged, and must not fill the memory.
const LONGEST_LINE: u64 = 16 << 20;

/// Reads the next line in place of the one before, and returns its length in the file; 0 at the end. Only the
/// end of a line that is too long is kept, which is not readable as a line.
pub fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let mut length = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', line)? as u64;
    if length == LONGEST_LINE && line.last() != Some(&b'\n') {
        length += reader.skip_until(b'\n')? as u64;
        line.clear();
        line.extend(TOO_LONG);
    }
    Ok(length)
}

/// Passes every line to `visit`.
pub(super) fn each_line(
    mut reader: impl BufRead,
    visit: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut line = Vec::new();
    while read_line(&mut reader, &mut line)? > 0 {
        visit(&line)?;
    }
    Ok(())
}

/// Replaces a line that is too long.
const TOO_LONG: &[u8] = b"too long\n";

/// Reads samples from an offset.
pub struct ReadAt<'a> {
    samples: &'a dyn Samples,
    at: u64,
}

impl<'a> ReadAt<'a> {
    /// Starts at this offset.
    pub fn new(samples: &'a dyn Samples, at: u64) -> ReadAt<'a> {
        ReadAt { samples, at }
    }
}

impl Read for ReadAt<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.samples.read_at(bytes, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_none_and_the_next_one_is_read() {
        let long = vec![b'x'; LONGEST_LINE as usize + 7];
        let text = [b"first\n", long.as_slice(), b"\nlast\ncut"].concat();
        let mut reader = text.as_slice();
        let mut line = Vec::new();
        let mut all = Vec::new();
        loop {
            let length = read_line(&mut reader, &mut line).unwrap();
            if length == 0 {
                break;
            }
            all.push((length, line.clone()));
        }
        let expected: [(u64, &[u8]); 4] =
            [(6, b"first\n"), (long.len() as u64 + 1, TOO_LONG), (5, b"last\n"), (3, b"cut")];
        assert_eq!(all, expected.map(|(length, text)| (length, text.to_vec())));
    }
}
