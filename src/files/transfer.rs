//! Whole files, written or read in sequence, block by block.
//!
//! The time is that of the system calls: opening each file (which makes it, when it is written), every read or write,
//! the sync of a file that is synced or direct, and closing it. The clock stops while a block is marked before it is
//! written, or its marks are checked after it is read, which is about one cache line in 4 KiB.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use dunnage_orders::files::{Class, Files, How, Moved};

use super::channel::Channel;
use super::content::{Aligned, Content, is_marked};
use super::made::Made;
use super::watch::Watch;
use super::{Calls, failure, unsupported};
use crate::outcome::{Distribution, Failure};

/// What has been moved so far.
pub struct Progress {
    pub watch: Watch,
    pub bytes: u64,
    wrong: u64,
    block: Distribution,
}

impl Progress {
    pub fn new() -> Progress {
        Progress { watch: Watch::default(), bytes: 0, wrong: 0, block: Distribution::of_durations() }
    }

    fn done(self) -> Moved {
        let (took, cpu) = (self.watch.took(), self.watch.cpu());
        Moved { bytes: self.bytes, took, cpu, wrong: self.wrong, block: self.block }
    }
}

/// The path of a file by its number.
pub fn numbered(place: &Path, number: u64) -> PathBuf {
    place.join(number.to_string())
}

/// Writes new files, numbered from 0. One that is there is not touched.
///
/// # Errors
/// What ended it, after which none of the files is left.
pub fn write(place: &Path, files: Files, how: How) -> Result<Moved, Failure> {
    how.class.check(how.block, files.bytes)?;
    let mut channel = Channel::new(how.io, 1)?;
    let mut content = content_for(how.block, files.bytes.saturating_mul(files.count));
    let mut made = Made::at(place)?;
    let mut progress = Progress::new();
    for number in 0..files.count {
        let path = numbered(place, number);
        let open = || how.class.open(&path, OpenOptions::new().write(true).create_new(true));
        let file = progress.watch.time(open).0;
        // One that cannot be opened past the page cache has been made nevertheless.
        if file.as_ref().map_or_else(|error| how.class.is_refused(error), |_| true) {
            made.add(path.clone());
        }
        let file = file.map_err(|error| how.class.failure("cannot make", &path, &error))?;
        let target = Target { file: &file, path: &path, number, begin: 0 };
        fill(&target, files.bytes, how, &mut channel, &mut content, &mut progress)?;
        if how.class != Class::Cached {
            let synced = progress.watch.time(|| file.sync_all()).0;
            synced.map_err(|error| failure(after("cannot sync", progress.bytes), &path, &error))?;
        }
        progress.watch.time(|| drop(file));
    }
    made.keep();
    Ok(progress.done())
}

/// The content of so many bytes in such blocks.
pub fn content_for(block: u64, all: u64) -> Content {
    Content::new(block.min(all) as usize, all)
}

fn after(doing: &str, bytes: u64) -> String {
    format!("{doing}, after {bytes} bytes,")
}

/// An open file with its number.
pub struct Target<'a> {
    pub file: &'a File,
    pub path: &'a Path,
    pub number: u64,
    /// Where its first byte goes.
    pub begin: u64,
}

/// Writes so many bytes to a file, block by block.
pub fn fill(
    target: &Target<'_>,
    bytes: u64,
    how: How,
    channel: &mut Channel,
    content: &mut Content,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut written = 0;
    while written < bytes {
        let length = how.block.min(bytes - written) as usize;
        let block = content.block(target.number, target.begin + written, length);
        let (mut done, mut took) = (0, 0);
        while done < length {
            let at = target.begin + written + done as u64;
            let (wrote, nanos) = progress.watch.time(|| channel.write_at(target.file, &block[done..], at));
            took += nanos;
            match wrote {
                Ok(0) => {
                    return Err(Failure::environment(format!(
                        "`{}` takes no more bytes",
                        target.path.display()
                    )));
                }
                Ok(wrote) => done += wrote,
                Err(error) => {
                    let doing = after("cannot write", progress.bytes + done as u64);
                    return Err(how.class.failure(doing, target.path, &error));
                }
            }
        }
        progress.block.record(took);
        progress.bytes += length as u64;
        written += length as u64;
    }
    Ok(())
}

/// Reads files that were written here, numbered from 0, from begin to end. Blocks must have the size with which they were
/// written, or both sizes be multiples of 4 KiB: only then are the marks where they are looked for.
///
/// # Errors
/// What ended it.
pub fn read(place: &Path, count: u64, how: How) -> Result<Moved, Failure> {
    how.class.check(how.block, how.block)?;
    if how.class == Class::Synced {
        return Err(unsupported("a read is `direct` or `cached`".to_owned()));
    }
    let mut channel = Channel::new(how.io, 1)?;
    let mut memory = Aligned::random(how.block as usize, 1);
    let mut progress = Progress::new();
    for number in 0..count {
        let path = numbered(place, number);
        let open = || how.class.open(&path, OpenOptions::new().read(true));
        let file =
            progress.watch.time(open).0.map_err(|error| how.class.failure("cannot open", &path, &error))?;
        let length =
            file.metadata().map_err(|error| failure("cannot read the size of", &path, &error))?.len();
        let mut at = 0;
        while at < length {
            let (got, nanos) = progress.watch.time(|| channel.read_at(&file, memory.bytes(), at));
            let got =
                got.map_err(|error| how.class.failure(after("cannot read", progress.bytes), &path, &error))?;
            if got == 0 {
                return Err(Failure::environment(format!(
                    "`{}` ended after {at} of {length} bytes",
                    path.display()
                )));
            }
            progress.block.record(nanos);
            progress.wrong += u64::from(!is_marked(&memory.bytes()[..got], number, at));
            progress.bytes += got as u64;
            at += got as u64;
        }
        progress.watch.time(|| drop(file));
    }
    Ok(progress.done())
}
