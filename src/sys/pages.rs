//! Memory for work that depends on the page size: anonymous pages, kept until the process ends.
//!
//! Deliberately absent: unmapping. The probe maps once and ends soon.

use std::io;

use super::page_cache::bytes_in;
use rustix::mm::{self, Advice, MapFlags, ProtFlags};

/// Maps this many words of zeros, readable, writable and private, on pages of 4 KiB even where the kernel
/// prefers huge ones. No page is touched yet.
///
/// # Errors
/// The kernel's, if there is not enough memory.
pub fn map(words: usize) -> io::Result<&'static mut [u64]> {
    let bytes = words * size_of::<u64>();
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping that overlaps nothing, zeroed, page-aligned, never unmapped, and not
    // shared. The advice changes no contents; a kernel without huge pages refuses it, and has none either
    // way.
    unsafe {
        let base = mm::mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE)?;
        let _ = mm::madvise(base, bytes, Advice::LinuxNoHugepage);
        Ok(std::slice::from_raw_parts_mut(base.cast(), words))
    }
}

/// How many bytes of this process are on huge pages; `None` if the kernel does not report it.
pub fn huge_bytes() -> Option<u64> {
    bytes_in(&std::fs::read_to_string("/proc/self/smaps_rollup").ok()?, "AnonHugePages:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_writable_and_aligned() {
        let words = map(3000).unwrap();
        assert!(words.len() == 3000 && words.iter().all(|word| *word == 0));
        assert_eq!(words.as_ptr() as usize % 4096, 0);
        words[2999] = 7;
        assert_eq!(words.iter().sum::<u64>(), 7);
        assert_eq!(map(usize::MAX / 64).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    }

    #[test]
    fn huge_pages_are_counted_in_bytes() {
        assert_eq!(bytes_in("Rss: 4 kB\nAnonHugePages:      2048 kB\nx", "AnonHugePages:"), Some(2 << 20));
        assert_eq!(bytes_in("Rss: 4 kB\n", "AnonHugePages:"), None);
    }
}
