//! Block devices as sysfs shows them: their names, their write caches, and counters of what they have
//! transferred since they exist. For a partition, the disk that it is on has the cache and counts flushes.
//!
//! Deliberately absent: devices below a mapping or an array, which have counters of their own; and flushes of
//! a mapping, which the kernel does not count.

use std::io;
use std::path::{Path, PathBuf};

/// The unit of the counters; the device's own sectors may be larger.
const SECTOR: u64 = 512;

/// Major and minor number.
pub type Number = (u32, u32);

/// What a device has done since it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Completed reads.
    pub reads: u64,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Completed writes.
    pub writes: u64,
    /// Bytes that were written.
    pub bytes_written: u64,
    /// Completed flushes of the whole disk's write cache; `None` before Linux 5.5, which does not count them.
    /// A disk without such a cache gets none.
    pub flushes: Option<u64>,
    /// Milliseconds that these took, one after the other or together; `None` where they are not counted.
    pub flushing: Option<u64>,
}

impl Counters {
    /// What was done since an earlier reading; `None` if that was of another device with the same number.
    pub fn since(self, earlier: Counters) -> Option<Counters> {
        let since = |now: Option<u64>, before: Option<u64>| match (now, before) {
            (Some(now), Some(before)) => Some(Some(now.checked_sub(before)?)),
            _ => Some(None),
        };
        Some(Counters {
            reads: self.reads.checked_sub(earlier.reads)?,
            bytes_read: self.bytes_read.checked_sub(earlier.bytes_read)?,
            writes: self.writes.checked_sub(earlier.writes)?,
            bytes_written: self.bytes_written.checked_sub(earlier.bytes_written)?,
            flushes: since(self.flushes, earlier.flushes)?,
            flushing: since(self.flushing, earlier.flushing)?,
        })
    }
}

/// Whether written bytes are safe when the device reports them as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteCache {
    /// Only after a flush: they may be in its cache.
    Back,
    /// At once: the kernel sends it no flushes.
    Through,
}

/// The counters of a device. One that the kernel does not know, or does not count for, is an error.
pub fn counters(device: Number) -> io::Result<Counters> {
    counters_at(&place(device)?)
}

/// Its write cache, if the kernel knows.
pub fn write_cache(device: Number) -> Option<WriteCache> {
    write_cache_at(&place(device).ok()?)
}

/// Its name below `/dev`.
pub fn name(device: Number) -> Option<String> {
    let uevent = std::fs::read_to_string(place(device).ok()?.join("uevent")).ok()?;
    uevent.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(str::to_owned)
}

/// The file that a loop device is attached to.
pub fn backing_file(device: Number) -> Option<PathBuf> {
    let path = std::fs::read_to_string(place(device).ok()?.join("loop/backing_file")).ok()?;
    Some(PathBuf::from(path.trim_end_matches('\n')))
}

fn place((major, minor): Number) -> io::Result<PathBuf> {
    let place = format!("/sys/dev/block/{major}:{minor}");
    let lacking =
        |error: io::Error| io::Error::new(error.kind(), format!("no block device `{place}`: {error}"));
    std::fs::canonicalize(&place).map_err(lacking)
}

/// The disk that a partition is on; a disk is its own.
fn whole(place: &Path) -> &Path {
    if place.join("partition").exists() { place.parent().unwrap_or(place) } else { place }
}

fn counters_at(place: &Path) -> io::Result<Counters> {
    let read = |place: &Path| {
        let path = place.join("stat");
        let text = std::fs::read_to_string(&path)?;
        parse(&text)
            .ok_or_else(|| io::Error::other(format!("cannot parse `{}`: `{}`", path.display(), text.trim())))
    };
    let disk = whole(place);
    let switch = disk.join("queue/iostats");
    if std::fs::read_to_string(&switch).is_ok_and(|text| text.trim() == "0") {
        return Err(io::Error::other(format!("the kernel does not count here: `{}` is 0", switch.display())));
    }
    let own = read(place)?;
    let whole = if disk == place { own } else { read(disk)? };
    Ok(Counters { flushes: whole.flushes, flushing: whole.flushing, ..own })
}

fn write_cache_at(place: &Path) -> Option<WriteCache> {
    match std::fs::read_to_string(whole(place).join("queue/write_cache")).ok()?.trim() {
        "write back" => Some(WriteCache::Back),
        "write through" => Some(WriteCache::Through),
        _ => None,
    }
}

/// The file `stat` of a device; see the kernel's `Documentation/block/stat.rst`.
fn parse(stat: &str) -> Option<Counters> {
    let fields: Vec<u64> = stat.split_whitespace().map(|field| field.parse().ok()).collect::<Option<_>>()?;
    Some(Counters {
        reads: *fields.first()?,
        bytes_read: fields.get(2)?.checked_mul(SECTOR)?,
        writes: *fields.get(4)?,
        bytes_written: fields.get(6)?.checked_mul(SECTOR)?,
        flushes: fields.get(15).copied(),
        flushing: fields.get(16).copied(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "   4 1 96 2   10 3 2048 7   0 9 11   0 0 0 0   5 6\n";

    #[test]
    fn counters_are_read_with_and_without_flushes() {
        let all = Counters {
            reads: 4,
            bytes_read: 96 * 512,
            writes: 10,
            bytes_written: 1 << 20,
            flushes: Some(5),
            flushing: Some(6),
        };
        assert_eq!(parse(STAT), Some(all));
        let older = parse("4 1 96 2 10 3 2048 7 0 9 11");
        assert_eq!(older, Some(Counters { flushes: None, flushing: None, ..all }));
        assert_eq!((parse("4 1 96"), parse("4 1 x 2 10 3 2048 7"), parse("")), (None, None, None));
        let written = |bytes_written| Counters { bytes_written, ..all };
        assert_eq!(
            written(4 << 20).since(all).map(|more| (more.bytes_written, more.flushes)),
            Some((3 << 20, Some(0)))
        );
        assert_eq!(all.since(written(2 << 20)), None);
    }

    #[test]
    fn a_partition_has_its_own_counters_and_its_disks_flushes_and_cache() {
        let sys = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = sys.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        file("vda/stat", STAT);
        file("vda/queue/write_cache", "write back\n");
        file("vda/vda1/partition", "1\n");
        file("vda/vda1/stat", "1 0 8 0 2 0 16 0 0 0 0 0 0 0 0 0 0\n");
        let partition = sys.path().join("vda/vda1");
        let found = counters_at(&partition).unwrap();
        assert_eq!((found.writes, found.bytes_written, found.flushes), (2, 8192, Some(5)));
        assert_eq!(write_cache_at(&partition), Some(WriteCache::Back));
        file("vda/queue/write_cache", "write through\n");
        assert_eq!(write_cache_at(&partition), Some(WriteCache::Through));
        file("vda/queue/iostats", "0\n");
        assert!(counters_at(&partition).unwrap_err().to_string().contains("does not count"));
    }

    #[test]
    fn a_device_that_does_not_exist_is_an_error_that_names_it() {
        let error = counters((4095, 7)).unwrap_err().to_string();
        assert!(error.contains("/sys/dev/block/4095:7"), "{error}");
        assert_eq!((write_cache((4095, 7)), name((4095, 7)), backing_file((4095, 7))), (None, None, None));
    }
}
