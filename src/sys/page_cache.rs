//! The kernel's page cache: its size, how much of a file is in it, and emptying it. That affects the whole
//! machine, so callers of `empty` need the user's explicit request.
//!
//! Deliberately absent: a check that everything is gone. Mapped pages, such as those of every running
//! program, stay, and so does what is written meanwhile.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::ptr;

use rustix::mm::{self, MapFlags, ProtFlags};

/// The file that empties the cache.
pub const SWITCH: &str = "/proc/sys/vm/drop_caches";

const PAGE: usize = 4096;

/// Whether dunnage may empty it; does nothing.
pub fn may_be_emptied() -> io::Result<()> {
    OpenOptions::new().write(true).open(SWITCH).map(drop)
}

/// Writes dirty pages back, then drops pages, directory entries and inodes.
pub fn empty() -> io::Result<()> {
    let mut switch = OpenOptions::new().write(true).open(SWITCH)?;
    rustix::fs::sync();
    switch.write_all(b"3\n")
}

/// Bytes in the cache, from the line `Cached` of `/proc/meminfo`.
pub fn bytes() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    bytes_in(&text, "Cached:").ok_or_else(|| io::Error::other("`/proc/meminfo` has no line `Cached`"))
}

/// The bytes in the line with this name, which has kilobytes.
pub(super) fn bytes_in(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// How many pages of a file are in the cache, without reading any. Only for dunnage's own files: for other
/// files the kernel reports all pages as resident.
pub fn resident(path: &Path) -> io::Result<usize> {
    let file = File::open(path)?;
    let length = file.metadata()?.len() as usize;
    if length == 0 {
        return Ok(0);
    }
    let mut pages = vec![0u8; length.div_ceil(PAGE)];
    // SAFETY: a new read-only mapping that is never read, unmapped at once; `pages` has one byte for each of
    // its pages, and the kernel writes no more.
    unsafe {
        let base = mm::mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, &file, 0)?;
        let told = libc::mincore(base, length, pages.as_mut_ptr());
        let error = io::Error::last_os_error();
        mm::munmap(base, length)?;
        if told != 0 {
            return Err(error);
        }
    }
    Ok(pages.iter().filter(|page| **page & 1 != 0).count())
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
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        assert!(resident(&path).unwrap() < 64);
    }

    #[test]
    fn the_size_of_the_cache_is_read_in_bytes() {
        assert_eq!(
            bytes_in("MemFree: 1 kB\nCached:         12 kB\nSwapCached: 3 kB\n", "Cached:"),
            Some(12 * 1024)
        );
        assert_eq!(bytes_in("Cached: much\n", "Cached:"), None);
        assert!(bytes().unwrap() > 0);
    }
}
