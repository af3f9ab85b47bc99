//! The kernel's cache of files: how much is in it, whether a file is, and emptying it. That hits everybody
//! on the machine, so whoever calls `empty` has been told to by a person.
//!
//! Deliberately absent: a check that everything is gone. Pages that somebody has mapped, as every running
//! program's, stay, and so does what is written meanwhile.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;

/// Where the kernel is told.
pub const SWITCH: &str = "/proc/sys/vm/drop_caches";

const PAGE: usize = 4096;

/// Whether we may empty it; does nothing.
pub fn may_be_emptied() -> io::Result<()> {
    OpenOptions::new().write(true).open(SWITCH).map(drop)
}

/// Writes out what waits to be written, then drops pages, directory entries and inodes.
pub fn empty() -> io::Result<()> {
    let mut switch = OpenOptions::new().write(true).open(SWITCH)?;
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::sync() };
    switch.write_all(b"3\n")
}

/// Bytes in the cache, by the line `Cached` of `/proc/meminfo`.
pub fn bytes() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    cached(&text).ok_or_else(|| io::Error::other("`/proc/meminfo` has no line `Cached`"))
}

fn cached(meminfo: &str) -> Option<u64> {
    let rest = meminfo.lines().find_map(|line| line.strip_prefix("Cached:"))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// How many pages of a file are in the cache. Reads none of them. For files of our own: the kernel tells
/// others nothing but that all are.
pub fn resident(path: &Path) -> io::Result<usize> {
    let file = File::open(path)?;
    let length = file.metadata()?.len() as usize;
    if length == 0 {
        return Ok(0);
    }
    let mut pages = vec![0u8; length.div_ceil(PAGE)];
    // SAFETY: a new read-only mapping that is never read from, unmapped below; `pages` has a byte for
    // each of its pages, and the kernel writes no more.
    let told = unsafe {
        let flags = libc::MAP_SHARED;
        let base = libc::mmap(ptr::null_mut(), length, libc::PROT_READ, flags, file.as_raw_fd(), 0);
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let told = match libc::mincore(base, length, pages.as_mut_ptr()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        };
        libc::munmap(base, length);
        told
    };
    told.map(|()| pages.iter().filter(|page| **page & 1 != 0).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_just_written_is_in_the_cache_with_all_its_pages() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        fs::write(&path, vec![7; 3 * PAGE + 1]).unwrap();
        assert_eq!(resident(&path).unwrap(), 4);
        fs::write(&path, b"").unwrap();
        assert_eq!(resident(&path).unwrap(), 0);
    }

    #[test]
    fn pages_that_the_kernel_was_advised_to_drop_are_seen_to_be_gone() {
        let place = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        let path = place.path().join("file");
        fs::write(&path, vec![7; 64 * PAGE]).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        // SAFETY: advice on a descriptor that we own; no memory is involved.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        assert!(resident(&path).unwrap() < 64);
    }

    #[test]
    fn the_size_of_the_cache_is_read_in_bytes() {
        assert_eq!(cached("MemFree: 1 kB\nCached:         12 kB\nSwapCached: 3 kB\n"), Some(12 * 1024));
        assert_eq!(cached("Cached: much\n"), None);
        assert!(bytes().unwrap() > 0);
    }
}
