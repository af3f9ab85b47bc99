//! Single operations on files that are there, each with the time of exactly the system calls that are named.
//!
//! What must be known before, such as a file's mode, is read outside the time; that leaves its inode warm. Deliberately
//! absent: syncs of directories, so a file that was deleted or renamed may come back after a crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;

use dunnage_orders::files::{Class, EachTime, Modified, Single, Touched};
use rustix::fs::{AtFlags, CWD, Gid, Mode, chmodat, chownat, lstat};

use super::transfer::{content_for, numbered};
use super::watch::Watch;
use super::{Calls, failure, unsupported};
use crate::outcome::{Distribution, Failure};
use crate::sys::extents;
use crate::units::Nanos;

/// Bytes of each write.
const BLOCK: u64 = 1 << 20;
/// The number in the marks of what is appended or written anew.
const NUMBER: u64 = 0xabcd;

impl From<Watch> for Single {
    fn from(watch: Watch) -> Single {
        Single { took: watch.took(), cpu: watch.cpu() }
    }
}

/// Carries out an operation on each file numbered from 0, one after the other, and stops at the first that fails.
///
/// # Errors
/// Those of the operation.
pub fn each(
    place: &Path,
    count: u64,
    operation: fn(&Path) -> Result<Single, Failure>,
) -> Result<EachTime, Failure> {
    let (mut all, mut each) = (Single { took: Nanos(0), cpu: Nanos(0) }, Distribution::of_durations());
    for number in 0..count {
        let one = operation(&numbered(place, number))?;
        all = Single { took: all.took + one.took, cpu: all.cpu + one.cpu };
        each.record(one.took.0 as u64);
    }
    Ok(EachTime { all, each })
}

/// Opens a file for reading and closes it: `openat` and `close`.
///
/// # Errors
/// If it cannot be opened.
pub fn open(path: &Path) -> Result<Single, Failure> {
    timed(path, "cannot open", || Class::Cached.open(path, OpenOptions::new().read(true)).map(drop))
}

/// Changes the byte in the middle: `openat` for reading and writing, `pwrite`, `fsync`, `close`. Its old value is read
/// after the file is open, while the clock stops; so that block of the file is in the page cache.
///
/// # Errors
/// If one of these fails.
pub fn modify(path: &Path) -> Result<Modified, Failure> {
    let failed = |error: io::Error| failure("cannot modify", path, &error);
    let mut watch = Watch::default();
    let open = || Class::Cached.open(path, OpenOptions::new().read(true).write(true));
    let file = watch.time(open).0.map_err(failed)?;
    let opened = watch.took();
    let middle = file.metadata().map_err(failed)?.len() / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, middle).map_err(failed)?;
    byte[0] = !byte[0];
    let done = watch.time(|| {
        file.write_all_at(&byte, middle)?;
        file.sync_all()?;
        drop(file);
        Ok(())
    });
    done.0.map_err(failed)?;
    Ok(Modified { all: watch.into(), opened })
}

/// Appends so many bytes: `openat`, `write` for each MiB, `fsync`, `close`.
///
/// # Errors
/// If one of these fails.
pub fn append_to(path: &Path, bytes: u64) -> Result<Single, Failure> {
    written(path, OpenOptions::new().append(true), bytes, "cannot append to")
}

/// Replaces the contents by so many bytes: `openat` with `O_TRUNC`, `write` for each MiB, `fsync`, `close`.
///
/// # Errors
/// If one of these fails.
pub fn truncate(path: &Path, bytes: u64) -> Result<Single, Failure> {
    written(path, OpenOptions::new().write(true).truncate(true), bytes, "cannot write anew")
}

fn written(path: &Path, options: &mut OpenOptions, bytes: u64, doing: &str) -> Result<Single, Failure> {
    Class::Synced.check(BLOCK, bytes)?;
    let mut content = content_for(BLOCK, bytes);
    let mut watch = Watch::default();
    let mut written = 0;
    let mut all = || -> io::Result<()> {
        let mut file: File = watch.time(|| Class::Synced.open(path, options)).0?;
        let begin = file.metadata()?.len();
        while written < bytes {
            let block = content.block(NUMBER, begin + written, BLOCK.min(bytes - written) as usize);
            watch.time(|| file.write_all(block)).0?;
            written += block.len() as u64;
        }
        watch.time(|| file.sync_all().map(|()| drop(file))).0
    };
    let done = all();
    done.map_err(|error| failure(format_args!("after {written} bytes, {doing}"), path, &error))?;
    Ok(watch.into())
}

/// Removes a file: `unlink`.
///
/// # Errors
/// If it cannot be removed.
pub fn delete(path: &Path) -> Result<Single, Failure> {
    timed(path, "cannot delete", || fs::remove_file(path))
}

/// Gives a file another path, where nothing is: `rename`.
///
/// # Errors
/// If something is there, or the file cannot be renamed.
pub fn rename(path: &Path, new: &Path) -> Result<Single, Failure> {
    if fs::symlink_metadata(new).is_ok() {
        return Err(Failure::environment(format!("`{}` is there already", new.display())));
    }
    timed(path, format!("cannot rename to `{}`", new.display()).as_str(), || fs::rename(path, new))
}

/// Changes whether others may execute a file: `fchmodat`.
///
/// # Errors
/// If it is not a regular file, or its mode cannot be changed.
pub fn chmod(path: &Path) -> Result<Single, Failure> {
    const OTHERS_EXECUTE: u32 = 1;
    let mode = Mode::from_raw_mode(regular(path)?.permissions().mode() ^ OTHERS_EXECUTE);
    timed(path, "cannot change the mode of", || Ok(chmodat(CWD, path, mode, AtFlags::empty())?))
}

/// Changes the group of a file to another one that the user namespace has: `fchownat`.
///
/// # Errors
/// Unsupported if there is no other group, or the change is not permitted.
pub fn chown(path: &Path) -> Result<Single, Failure> {
    let own = regular(path)?.gid();
    let map = fs::read_to_string("/proc/self/gid_map").unwrap_or_default();
    let group = another_group(&map, own);
    let group = group.ok_or_else(|| unsupported(format!("the user namespace has no group but {own}")))?;
    let change = || Ok(chownat(CWD, path, None, Some(Gid::from_raw(group)), AtFlags::SYMLINK_NOFOLLOW)?);
    timed(path, format!("cannot give group {group} to").as_str(), change).map_err(|failure| Failure {
        // As which user it runs belongs to the subject.
        class: crate::outcome::FailureClass::Unsupported,
        ..failure
    })
}

/// The first group in a map of a user namespace that is not this one.
fn another_group(map: &str, own: u32) -> Option<u32> {
    let ranges = map.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace().map(|word| word.parse::<u64>().ok());
        Some((numbers.next()??, numbers.nth(1)??))
    });
    let groups = ranges.flat_map(|(first, count)| first..first + count.min(2));
    groups.filter_map(|group| u32::try_from(group).ok()).find(|group| *group != own)
}

/// Reads a file's metadata: `newfstatat`.
///
/// # Errors
/// If it cannot be read.
pub fn stat(path: &Path) -> Result<Single, Failure> {
    timed(path, "cannot read the metadata of", || Ok(lstat(path).map(drop)?))
}

fn timed(path: &Path, doing: &str, call: impl FnOnce() -> io::Result<()>) -> Result<Single, Failure> {
    let mut watch = Watch::default();
    watch.time(call).0.map_err(|error| failure(doing, path, &error))?;
    Ok(watch.into())
}

/// The metadata of a file that must be a regular one, since a link would be followed.
fn regular(path: &Path) -> Result<fs::Metadata, Failure> {
    let found = fs::symlink_metadata(path).map_err(|error| failure("cannot find", path, &error))?;
    match found.is_file() {
        true => Ok(found),
        false => Err(Failure::environment(format!("`{}` is not a regular file", path.display()))),
    }
}

/// Whether a file is there, its size, and whether its bytes have places on the device. Nothing is synced.
///
/// # Errors
/// If it is there and cannot be opened.
pub fn touch(path: &Path) -> Result<Option<Touched>, Failure> {
    let file = match Class::Cached.open(path, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failure("cannot open", path, &error)),
    };
    let size = file.metadata().map_err(|error| failure("cannot read the size of", path, &error))?.len();
    Ok(Some(Touched { size, extents: extents::of(&file).map_err(|error| error.to_string()) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_group_is_one_that_the_user_namespace_maps() {
        let whole = "         0          0 4294967295\n";
        assert_eq!(another_group(whole, 0), Some(1));
        assert_eq!(another_group(whole, 1000), Some(0));
        assert_eq!(another_group("1000 1000 1\n", 1000), None);
        assert_eq!(another_group("0 1000 1\n1 100000 65536\n", 0), Some(1));
        assert_eq!(another_group("", 0), None);
    }
}
