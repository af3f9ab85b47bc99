//! Where do the three files of a run lie? In a run directory, or in a pack. The reader sees no difference: it
//! gets two small texts and one open file.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{ENVIRONMENT, PLAN, SAMPLES, pack};

/// The files of a run, open for reading.
pub(super) struct Source {
    /// What `env.json` holds.
    pub environment: Vec<u8>,
    /// What `plan.json` holds.
    pub plan: Vec<u8>,
    /// `samples.jsonl`.
    pub samples: File,
    place: Place,
}

enum Place {
    Directory(PathBuf),
    Pack(PathBuf),
}

impl Source {
    /// The files of a run directory or of a pack.
    pub fn open(path: &Path) -> Result<Source> {
        if !path.is_file() {
            return Source::directory(path);
        }
        let pack::Unpacked { environment, plan, samples } = pack::unpacked(path)?;
        Ok(Source { environment, plan, samples, place: Place::Pack(path.to_owned()) })
    }

    /// The files of a run directory.
    pub fn directory(directory: &Path) -> Result<Source> {
        let known = [ENVIRONMENT, PLAN, SAMPLES].map(|file| directory.join(file).try_exists());
        if let Some(Err(error)) = known.iter().find(|one| one.is_err()) {
            bail!("cannot look into `{}`: {error}", directory.display());
        }
        if !known.iter().flatten().any(|exists| *exists) {
            bail!(
                "`{}` is not a run directory\n\nhint: a run directory is what `dunnage run` wrote, named in its last lines",
                directory.display()
            );
        }
        let read = |name: &str| {
            let path = directory.join(name);
            std::fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))
        };
        let (environment, plan) = (read(ENVIRONMENT)?, read(PLAN)?);
        let path = directory.join(SAMPLES);
        let samples = File::open(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        Ok(Source { environment, plan, samples, place: Place::Directory(directory.to_owned()) })
    }

    /// One of the files, as a person would look for it.
    pub fn name(&self, file: &str) -> String {
        match &self.place {
            Place::Directory(directory) => format!("`{}`", directory.join(file).display()),
            Place::Pack(pack) => format!("`{file}` in `{}`", pack.display()),
        }
    }
}

/// The longest line that is read, of which a sample with a million numbers has a part; a longer one is damaged, and must not
/// fill the memory.
const LONGEST_LINE: u64 = 16 << 20;

/// Reads the next line in place of the one before, and gives its length in the file; 0 at the end. Of a line that is too
/// long nothing is kept but its end, which makes no line that anybody can read.
pub(super) fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let mut length = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', line)? as u64;
    if length == LONGEST_LINE && line.last() != Some(&b'\n') {
        length += reader.skip_until(b'\n')? as u64;
        line.clear();
        line.extend(TOO_LONG);
    }
    Ok(length)
}

/// What stands for a line that is too long.
const TOO_LONG: &[u8] = b"too long\n";

/// Reads a file from a place of its own, so that several can read the same one at once.
pub(super) struct ReadAt<'a> {
    file: &'a File,
    at: u64,
}

impl<'a> ReadAt<'a> {
    /// Reads from this place on.
    pub fn new(file: &'a File, at: u64) -> ReadAt<'a> {
        ReadAt { file, at }
    }
}

impl Read for ReadAt<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(bytes, self.at)?;
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
