//! Memory for work that may not use libc's: anonymous pages, small or huge, kept until the process ends.
//!
//! Deliberately absent: giving them back. The probe maps once and ends soon.

use core::ffi::CStr;

use super::raw;

/// How large the pages are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// 4 KiB, also where the kernel would prefer huge ones.
    Small,
    /// 2 MiB as far as the kernel gives them; the mapping is aligned to that.
    Huge,
}

const HUGE: usize = 2 << 20;

/// Maps so many words of zeros, readable and writable, that nobody else has. Nothing is touched yet.
///
/// # Errors
/// The kernel's error number, where there is no room.
pub fn map(words: usize, size: Size) -> core::result::Result<&'static mut [u64], i32> {
    let bytes = words * size_of::<u64>();
    let (slack, advice) = match size {
        Size::Small => (0, libc::MADV_NOHUGEPAGE),
        Size::Huge => (HUGE, libc::MADV_HUGEPAGE),
    };
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    let arguments = [0, bytes + slack, protection, flags, usize::MAX, 0];
    // SAFETY: a fresh private mapping that overlaps nothing.
    let base = unsafe { raw::syscall(libc::SYS_mmap, arguments) }?;
    let base = base.next_multiple_of(slack.max(1));
    // A kernel without huge pages refuses the advice, and has none either way.
    // SAFETY: advice about the mapping just made; it changes no contents.
    let _ = unsafe { raw::syscall(libc::SYS_madvise, [base, bytes, advice as usize, 0, 0, 0]) };
    // SAFETY: mapped, zeroed, aligned to a page, never unmapped, and nobody else's.
    Ok(unsafe { core::slice::from_raw_parts_mut(base as *mut u64, words) })
}

/// How many bytes of this process lie on huge pages; none where the kernel does not say.
pub fn huge_bytes() -> Option<u64> {
    let path: &CStr = c"/proc/self/smaps_rollup";
    let fd = raw::open(path).ok()?;
    let mut buffer = [0u8; 2048];
    let mut filled = 0;
    while let Ok(count @ 1..) = raw::read(fd, &mut buffer[filled..]) {
        filled += count;
    }
    raw::close(fd);
    told_of_huge_pages(&buffer[..filled])
}

fn told_of_huge_pages(text: &[u8]) -> Option<u64> {
    let line = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"AnonHugePages:"))?;
    let digits = line.iter().filter(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')) * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_writable_and_aligned() {
        for (size, alignment) in [(Size::Small, 4096), (Size::Huge, HUGE)] {
            let words = map(3000, size).unwrap();
            assert!(words.len() == 3000 && words.iter().all(|word| *word == 0), "{size:?}");
            assert_eq!(words.as_ptr() as usize % alignment, 0, "{size:?}");
            words[2999] = 7;
            assert_eq!(words.iter().sum::<u64>(), 7);
        }
        assert_eq!(map(usize::MAX / 64, Size::Small), Err(libc::ENOMEM));
    }

    #[test]
    fn huge_pages_are_counted_in_bytes() {
        assert_eq!(told_of_huge_pages(b"Rss: 4 kB\nAnonHugePages:      2048 kB\nx"), Some(2 << 20));
        assert_eq!(told_of_huge_pages(b"Rss: 4 kB\n"), None);
    }
}
