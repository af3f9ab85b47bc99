//! Is writing and reading slower in a container? A program writes a large file, reads it back from the device and from
//! the page cache, appends small synced records, and reads and writes at random places: in its root, in a mount of
//! the host's, in a volume, and in memory.
//!
//! The device's own counters say whether the bytes arrived (`class`). Deliberately absent: numbers of a page cache
//! that are called a disk's.

use super::class::Class;
use super::{AROUND, is_size, of_a_gigabyte, share};
use crate::experiment::question::{Event, Experiment, Metric, Scope, each, quotient};
use crate::experiment::setting::{Controlled, Setting, SettingKey, fits};
use crate::experiment::variation::{Variation, Varied};
use crate::names::names;
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::subject::spec::parse_size;
use crate::units::{Better, Nanos, Unit};
use names::{
    APPEND, APPEND_BYTES, APPEND_DEVICE_BYTES, APPENDED, CEILING_BYTES, CEILING_TOOK, DEVICE_BYTES, FLUSHES,
    OTHERS_BYTES, RANDOM_READ, RANDOM_WRITE_TOOK, RANDOM_WRITES, READ_AGAIN_TOOK, READ_BYTES, READ_TOOK,
    WRITE_BYTES, WRITE_CPU, WRITE_TOOK,
};

pub mod tables;

names! {
    [crate::experiment::storage::names]
    Counter {
        WRITE_TOOK = "write_took", WRITE_CPU = "write_cpu", WRITE_BYTES = "write_bytes", READ_TOOK = "read_took",
        READ_AGAIN_TOOK = "read_again_took", READ_BYTES = "read_bytes", APPENDED = "appends",
        APPEND_BYTES = "append_bytes", APPEND_DEVICE_BYTES = "append_device_bytes", FLUSHES = "flushes",
        RANDOM_WRITES = "random_writes", RANDOM_WRITE_TOOK = "random_write_took", CEILING_TOOK = "ceiling_took",
        CEILING_BYTES = "ceiling_bytes",
    }
    Spread { APPEND = "append", RANDOM_READ = "random_read", }
}

/// Its name.
pub const NAME: &str = "disk";

/// A directory of the host's, bound into the container.
pub const BIND: &str = "bind";
/// The container's own root.
pub const ROOT: &str = "root";
/// A named volume of the engine's.
pub const VOLUME: &str = "volume";
/// A filesystem in memory.
pub const TMPFS: &str = "tmpfs";

const SIZE: &str = "100MiB";
const QUICK: &str = "32MiB";
/// The most files of a sample.
const MOST_FILES: u64 = 1000;

/// Synced records are appended until there are so many, or for so long.
pub const APPENDS: (u64, Nanos) = (200, Nanos::from_millis(300));
/// Bytes of a synced record, and of a random read or write.
pub const SMALL: u64 = 4096;
/// Random reads, and random writes.
pub const RANDOM: (u64, Nanos) = (1000, Nanos::from_millis(200));

const MARGIN: Margin = Margin::fixed(5e-3, 0.05);
/// Less than the difference between two wake-ups of a thread that waits for a device.
const SMALL_MARGIN: Margin = Margin::fixed(5e-6, 0.05);

const fn gigabyte(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(Unit::Seconds, MARGIN)
}

const fn small(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(Unit::Seconds, SMALL_MARGIN)
}

const fn rate(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(Unit::BytesPerSecond, Margin::fixed(0.0, 0.05)).with(Better::More).context()
}

fn inverse(seconds: Option<f64>) -> Option<f64> {
    seconds.filter(|seconds| *seconds > 0.0).map(|seconds| super::GB / seconds)
}

static METRICS: [Metric; 16] = [
    gigabyte("write_gb", |sample| of_a_gigabyte(sample, WRITE_TOOK, WRITE_BYTES)).meaning(
        "the time of a gigabyte that is written to new files from their first byte on, with the sync of each file where the setting \
         has one",
    ),
    gigabyte("read_gb", |sample| of_a_gigabyte(sample, READ_TOOK, READ_BYTES)).meaning(
        "the time of a gigabyte that is read from the same files, none of which is in the page cache then",
    ),
    small("fsync", |sample| sample.quantile(APPEND, 0.5)).meaning(
        "the median time to append 4 KiB to a file and to sync it (`fdatasync`)",
    ),
    small("random_read", |sample| sample.quantile(RANDOM_READ, 0.5)).meaning(
        "the median time to read 4 KiB at a random place of a file that is not in the page cache",
    ),
    small("random_write", |sample| each(sample, RANDOM_WRITE_TOOK, RANDOM_WRITES)).meaning(
        "the time to write 4 KiB at a random place of a file, on average, with one sync of all of them at the end where the setting \
         has one",
    ),
    Metric::tail("fsync_p99", APPEND, 0.99)
        .of(Unit::Seconds, SMALL_MARGIN)
        .meaning("as `fsync`, the 99th percentile over all rounds"),
    Metric::tail("random_read_p99", RANDOM_READ, 0.99)
        .of(Unit::Seconds, SMALL_MARGIN)
        .meaning("as `random_read`, the 99th percentile over all rounds"),
    gigabyte("read_gb_again", |sample| of_a_gigabyte(sample, READ_AGAIN_TOOK, READ_BYTES))
        .context()
        .meaning("as `read_gb`, when the files are in the page cache"),
    rate("write_rate", |sample| inverse(of_a_gigabyte(sample, WRITE_TOOK, WRITE_BYTES)))
        .meaning("bytes written in a second"),
    rate("read_rate", |sample| inverse(of_a_gigabyte(sample, READ_TOOK, READ_BYTES)))
        .meaning("bytes read in a second from the device"),
    gigabyte("write_cpu", |sample| of_a_gigabyte(sample, WRITE_CPU, WRITE_BYTES))
        .context()
        .meaning("CPU time of the writing process for each gigabyte; not that of the kernel's threads or of a filesystem's process"),
    share("device_share", |sample| quotient(sample, DEVICE_BYTES, WRITE_BYTES))
        .meaning("bytes that arrived at the device while the files were written, as a share of theirs"),
    share("others_share", |sample| quotient(sample, OTHERS_BYTES, WRITE_BYTES)).meaning(
        "bytes that others would have written to the device in the same time, if they went on as right before, likewise",
    ),
    Metric::by("flushes", |sample| quotient(sample, FLUSHES, APPENDED))
        .of(Unit::Ratio, Margin::fixed(0.1, 0.0))
        .with(Better::Neither)
        .context()
        .meaning("flushes of the device's own cache for each synced append; 0 where the device has none to flush"),
    share("append_share", |sample| quotient(sample, APPEND_DEVICE_BYTES, APPEND_BYTES))
        .meaning("bytes that arrived at the device during the synced appends, as a share of theirs"),
    rate("ceiling", |sample| inverse(of_a_gigabyte(sample, CEILING_TOOK, CEILING_BYTES))).meaning(
        "only for `bare`: what the device takes with 16 writes of 1 MiB on their way at a time, past the page cache",
    ),
];

static KEYS: [SettingKey; 4] = [
    SettingKey::of("place", &[BIND, ROOT, VOLUME, TMPFS]).meaning(
        "where the files are: `bind`: in a directory of the host's that is mounted into the container; \
         `root`: in the container's own root, its writable layer; `volume`: in a named volume of the engine's; `tmpfs`: in \
         memory. For `bare` all but `tmpfs` are directories of the host's",
    ),
    SettingKey::of("size", &[SIZE])
        .or(|value| {
            let is_known = files_in(value).is_some_and(|(count, _)| (1..=MOST_FILES).contains(&count));
            let bytes = value.rsplit_once('x').map_or(value, |(_, bytes)| bytes);
            is_size(bytes).and_then(|()| fits(is_known, "a size such as 100MiB, or files such as 10x100MiB"))
        })
        .meaning("bytes that a sample writes and reads, such as `100MiB` or `1GiB`, or files: `10x100MiB`"),
    SettingKey::of("sync", &["synced"])
        .or(|value| fits(["direct", "cached"].contains(&value), "synced, direct, cached"))
        .meaning(
            "`synced`: each file is synced (`fsync`) before its time ends; `direct`: the same past the page cache (`O_DIRECT`); \
             `cached`: nothing is synced, so this is the page cache and not a disk",
        ),
    SettingKey::of("io", &["plain"])
        .or(|value| fits(value == "uring", "plain, uring"))
        .meaning("`plain`: system calls `read` and `write`; `uring`: io_uring, which engines may forbid"),
];

/// The number of files in a size, and the bytes of each.
fn files_in(size: &str) -> Option<(u64, u64)> {
    match size.rsplit_once('x') {
        Some((count, bytes)) => Some((count.parse().ok()?, parse_size(bytes)?)),
        None => Some((1, parse_size(size)?)),
    }
}

/// The number of files of a setting, and the bytes of each.
pub fn files(setting: &Setting) -> (u64, u64) {
    setting.get("size").and_then(files_in).unwrap_or((1, 1))
}

/// The bytes that a sample keeps at a place.
pub fn bytes(setting: &Setting) -> u64 {
    let (count, bytes) = files(setting);
    count * bytes
}

/// Where the files of a setting are.
pub fn place(setting: &Setting) -> &'static str {
    setting.get("place").unwrap_or(BIND)
}

/// How they are synced.
pub fn sync(setting: &Setting) -> &'static str {
    setting.get("sync").unwrap_or("synced")
}

/// The class of what a sample wrote, with these facts read back.
fn class(setting: &Setting, sample: &Sample, facts: &[(String, String)]) -> Class {
    Class::of_sample(sync(setting), sample, facts, WRITE_BYTES)
}

/// Metrics that promise that bytes are on the device.
pub const DURABLE: [&str; 4] = ["write_gb", "fsync", "random_write", "write_rate"];

/// The experiment `disk`.
pub static DISK: Experiment = Experiment {
    keys: &KEYS,
    requires: &[("place", VOLUME, Need::Volumes)],
    controls: &[Controlled { key: "place", value: VOLUME, control: ROOT }],
    event: Event::Works,
    scope: Scope::Few,
    varies: &[Variation::of("rm", &["false"]).only(Varied::Engines)],
    maps: &["write_gb", "fsync"],
    quick_values: |key| match key.name {
        "size" => &[QUICK],
        "place" => &[BIND, ROOT],
        _ => key.values,
    },
    // At a gigabyte a second for each of three passes, a container that stays taking as long as two launches.
    cost: |setting, launch| AROUND + Nanos(2 * launch.0 + 3 * bytes(setting) as i64),
    class: |setting, sample, facts, metric| {
        DURABLE.contains(&metric).then(|| class(setting, sample, facts).word())
    },
    ..Experiment::of(
        NAME,
        "is writing and reading slower, and do the bytes reach the disk?",
        Need::Network,
        &METRICS,
    )
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Distribution;

    #[test]
    fn files_are_one_or_many() {
        assert_eq!(files_in("100MiB"), Some((1, 100 << 20)));
        assert_eq!(files_in("10x100MiB"), Some((10, 100 << 20)));
        for wrong in ["0x1MiB", "x", "10x", "1001x1MiB", "10", "much"] {
            assert!(KEYS[1].take(wrong).is_err(), "{wrong}");
        }
        assert!(KEYS[1].take("10x1GiB").is_ok());
    }

    #[test]
    fn metrics_are_of_a_gigabyte_or_of_one_record() {
        let counters = [
            ("write_bytes", 100_000_000),
            ("write_took", 50_000_000),
            ("read_bytes", 100_000_000),
            ("read_took", 20_000_000),
            ("random_writes", 1000),
            ("random_write_took", 5_000_000),
            ("device_bytes", 101_000_000),
            ("others_bytes", 0),
            ("appends", 100),
            ("flushes", 200),
        ];
        let sample = Sample {
            counters: counters.map(|(name, value)| (name.into(), value)).to_vec(),
            distributions: vec![("append".into(), Distribution::of([200_000; 100]))],
            ..Sample::default()
        };
        let value = |name: &str| METRICS.iter().find(|one| one.name == name).unwrap().value(&sample);
        assert_eq!(
            (value("write_gb"), value("read_gb"), value("write_rate")),
            (Some(0.5), Some(0.2), Some(2e9))
        );
        assert_eq!((value("random_write"), value("flushes")), (Some(5e-6), Some(2.0)));
        assert_eq!((value("device_share"), value("ceiling")), (Some(1.01), None));
        assert!((value("fsync").unwrap() - 200e-6).abs() < 1e-6);
        let setting = Setting(vec![("place", ROOT), ("size", SIZE), ("sync", "synced"), ("io", "plain")]);
        let facts = [("device".to_owned(), "vda".to_owned())];
        assert_eq!(class(&setting, &sample, &facts), Class::Durable);
        assert_eq!((DISK.class)(&setting, &sample, &facts, "write_gb"), Some("durable"));
        assert_eq!((DISK.class)(&setting, &sample, &facts, "read_gb"), None);
    }
}
