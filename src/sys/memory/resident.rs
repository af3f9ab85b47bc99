//! The memory of processes, where a page that several of them map is divided among them (the proportional set size, PSS), so that
//! the sum over all is right.
//!
//! Deliberately absent: `VmRSS`, which counts such a page once for each.

use std::fs;
use std::io;

use super::super::page_cache::bytes_in;

/// What a process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resident {
    /// Its share of memory without a file.
    pub anon: i64,
    /// Its share of shared memory.
    pub shmem: i64,
    /// Its share of the page cache of files that it maps.
    pub file: i64,
    /// All that it maps, whole.
    pub rss: i64,
}

impl Resident {
    /// What no file holds.
    pub fn own(self) -> i64 {
        self.anon + self.shmem
    }
}

impl std::ops::AddAssign for Resident {
    fn add_assign(&mut self, more: Resident) {
        self.anon += more.anon;
        self.shmem += more.shmem;
        self.file += more.file;
        self.rss += more.rss;
    }
}

/// Reads that of a process. One of the kernel's own has none.
///
/// # Errors
/// The kernel's, if it may not be read or has ended.
pub fn of(pid: i32) -> io::Result<Resident> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    Ok(in_rollup(&text).unwrap_or_default())
}

/// What a `smaps_rollup` says; it is empty for a process without memory. Before Linux 5.4 the shares are not told apart.
fn in_rollup(text: &str) -> Option<Resident> {
    let bytes = |key: &str| bytes_in(text, key).map(|bytes| bytes as i64);
    Some(Resident {
        anon: bytes("Pss_Anon:")?,
        shmem: bytes("Pss_Shmem:")?,
        file: bytes("Pss_File:")?,
        rss: bytes("Rss:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_this_process_is_within_what_it_maps() {
        let own = of(std::process::id() as i32).unwrap();
        assert!(own.anon > 0 && own.file > 0 && own.anon + own.shmem + own.file <= own.rss, "{own:?}");
        assert!(of(i32::MAX).is_err());
        assert_eq!(in_rollup(""), None);
    }
}
