//! The extents of a file, as its filesystem reports them (FIEMAP): how many it has, and how many of them have no
//! place on the device yet.
//!
//! Deliberately absent: a sync, which would place them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use dunnage_orders::files::Extents;

/// From linux/fs.h and linux/fiemap.h.
const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;
const LAST: u32 = 1;
const DELAYED: u32 = 4;

/// Extents that one call reports.
const BATCH: usize = 128;

/// A `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

/// A `struct fiemap` with room for extents.
#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; BATCH],
}

/// Counts them.
///
/// # Errors
/// The kernel's: `EOPNOTSUPP` where the filesystem does not report extents.
pub fn of(file: &File) -> io::Result<Extents> {
    let mut found = Extents::default();
    let mut start = 0;
    loop {
        let mut map = Map {
            start,
            length: u64::MAX - start,
            flags: 0,
            mapped: 0,
            count: BATCH as u32,
            reserved: 0,
            extents: [Extent::default(); BATCH],
        };
        // SAFETY: the record has the form that this ioctl reads and writes, with room for `count` extents.
        if unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mapped = &map.extents[..(map.mapped as usize).min(BATCH)];
        found.all += mapped.len() as u64;
        found.delayed += mapped.iter().filter(|extent| extent.flags & DELAYED != 0).count() as u64;
        match mapped.last() {
            Some(last) if last.flags & LAST == 0 => start = last.logical + last.length,
            _ => return Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn every_extent_of_a_file_with_holes_is_counted() {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        const HOLES: u64 = 300;
        (0..HOLES).for_each(|hole| file.write_all_at(&[1; 4096], hole * 3 * 4096).unwrap());
        match of(&file) {
            Ok(extents) => assert_eq!(extents.all, HOLES),
            Err(error) => return assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP)),
        }
        file.sync_all().unwrap();
        assert_eq!(of(&file).unwrap(), Extents { all: HOLES, delayed: 0 });
    }
}
