//! The cgroup of the calling process as it sees it: its path, CPU counters, quota and memory peak, read by
//! the probe.
//!
//! Files of counters are opened once, and a reading is one `pread` of each: `cpu.stat` in version 2;
//! `cpu.stat`, `cpuacct.usage` and `cpuacct.stat` in version 1. Deliberately absent: limits of cgroups
//! further up, and the use by other processes in the same cgroup, which the counters include.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::super::raw;
use super::{Hierarchy, Version, mounted, with_controller};
use crate::advise::Throttling;
use crate::units::Nanos;

/// Clock ticks per second in the kernel's interface to programs, independent of its own tick.
const USER_HZ: u64 = 100;
/// The inode number of the root of a hierarchy. A container sees its own cgroup as the root, but with the
/// inode number that it has on the host.
const ROOT_INODE: u64 = 1;

/// What is missing, as a sentence without its full stop.
pub type Missing = &'static str;
const NO_LIST: Missing = "there is no readable `/proc/self/cgroup`";

/// The version and the directory of the process's own cgroup for this controller. If the mount does not show
/// that cgroup, what it does show is used.
pub(crate) fn directory<'a>(
    hierarchies: &'a [Hierarchy],
    controller: &str,
) -> Option<(&'a Version, &'a Path)> {
    let hierarchy = with_controller(hierarchies, controller)?;
    let places = [hierarchy.own.as_deref(), Some(hierarchy.mount.as_path())];
    let own = places.into_iter().flatten().find(|place| place.join("cgroup.procs").exists())?;
    Some((&hierarchy.version, own))
}

/// The CPU counters of the process's own cgroup, opened.
#[derive(Debug)]
pub struct CpuCounters {
    version: Version,
    directory: PathBuf,
    /// `cpu.stat`.
    stat: File,
    /// `cpuacct.usage` and `cpuacct.stat` of version 1.
    accounting: Option<(File, File)>,
}

/// One reading. All durations are nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuReading {
    /// CPU time used by the cgroup and all below it.
    pub usage: u64,
    /// The part in user mode. The kernel splits by what it saw at its clock ticks; version 1 reports it in
    /// steps of 10 ms.
    pub user: u64,
    /// The part in the kernel.
    pub system: u64,
    /// The counters of the quota; `None` where the cgroup has none.
    pub throttling: Option<Throttling>,
    /// The counters of the burst; `None` where the kernel has none (Linux before 5.15).
    pub bursts: Option<Bursts>,
}

/// How often a period used more than its quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bursts {
    /// The number of such periods.
    pub periods: u64,
    /// The excess in total, in nanoseconds.
    pub time: u64,
}

/// The cgroup's limit, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// CPU time in each period; `None` without a limit.
    pub each: Option<u64>,
    /// The period.
    pub period: u64,
    /// The most unused quota that may be saved up; zero where the kernel has no bursts.
    pub burst: u64,
}

impl CpuCounters {
    /// Finds and opens them.
    pub fn open() -> Result<CpuCounters, Missing> {
        let hierarchies = mounted().map_err(|_| NO_LIST)?;
        let (version, own) =
            directory(&hierarchies, "cpu").ok_or("its cgroup of the cpu controller is not visible")?;
        let open = |directory: &Path, name| File::open(directory.join(name)).ok();
        let stat = open(own, "cpu.stat").ok_or("its cgroup has no file `cpu.stat`")?;
        let accounting = match version {
            Version::V2 => None,
            Version::V1(_) => {
                let (_, own) = directory(&hierarchies, "cpuacct")
                    .ok_or("its cgroup of the cpuacct controller is not visible")?;
                let both = open(own, "cpuacct.usage").zip(open(own, "cpuacct.stat"));
                Some(both.ok_or("its cgroup has no files `cpuacct.usage` and `cpuacct.stat`")?)
            }
        };
        Ok(CpuCounters { version: version.clone(), directory: own.to_owned(), stat, accounting })
    }

    /// Whether the cgroup is the root of its hierarchy, whose counters are the whole machine's.
    pub fn is_the_machine(&self) -> bool {
        self.directory.metadata().is_ok_and(|about| about.ino() == ROOT_INODE)
    }

    /// Whether this process is the only one in the cgroup, so that its counters are the process's own.
    pub fn is_alone(&self) -> bool {
        fs::read_to_string(self.directory.join("cgroup.procs")).is_ok_and(|list| list.lines().count() == 1)
    }

    /// Reads them; `None` if they cannot be read. The calling thread's CPU time is included up to this call;
    /// other running threads may lack the time since their last clock tick.
    pub fn read(&self) -> Option<CpuReading> {
        // The kernel charges a thread's CPU time at clock ticks and when the thread leaves its CPU. Reading
        // the thread's own time makes it charge at once, also to the cgroup.
        let _ = raw::thread_cpu();
        let mut buffer = [0u8; 1024];
        let mut reading = match &self.accounting {
            None => CpuReading::default(),
            Some((usage, split)) => {
                let usage = number(read(usage, &mut buffer)?)?;
                let text = read(split, &mut buffer)?;
                let ticks = |name| value(text, name).map(|ticks| ticks * (1_000_000_000 / USER_HZ));
                CpuReading {
                    usage,
                    user: ticks(b"user")?,
                    system: ticks(b"system")?,
                    ..CpuReading::default()
                }
            }
        };
        add_stat(read(&self.stat, &mut buffer)?, &self.version, &mut reading)?;
        Some(reading)
    }

    /// Reads the limit; `None` where the file does not exist, as at the root of version 2.
    pub fn quota(&self) -> Option<Quota> {
        quota_in(&self.directory)
    }
}

/// The limit of the cgroup with this directory.
pub(crate) fn quota_in(directory: &Path) -> Option<Quota> {
    let text = |name: &str| fs::read(directory.join(name)).ok();
    let one = |name: &str| number(&text(name)?);
    let (each, period) = match text("cpu.max") {
        Some(text) => pair_in_max(&text)?,
        // -1 means no limit.
        None => (one("cpu.cfs_quota_us"), one("cpu.cfs_period_us")?),
    };
    let burst = one("cpu.max.burst").or_else(|| one("cpu.cfs_burst_us"));
    let nanos = |micros: u64| micros.saturating_mul(1000);
    Some(Quota { each: each.map(nanos), period: nanos(period.max(1)), burst: nanos(burst.unwrap_or(0)) })
}

/// The peak of the memory in bytes charged to the process's own cgroup and those below it: memory of
/// processes, kernel memory for them, and page cache.
pub fn peak_memory() -> Result<u64, Missing> {
    let hierarchies = mounted().map_err(|_| NO_LIST)?;
    let (version, own) =
        directory(&hierarchies, "memory").ok_or("its cgroup of the memory controller is not visible")?;
    peak_in(version, own)
}

fn peak_in(version: &Version, directory: &Path) -> Result<u64, Missing> {
    let (file, missing) = match version {
        Version::V1(_) => {
            ("memory.max_usage_in_bytes", "its cgroup has no readable `memory.max_usage_in_bytes`")
        }
        Version::V2 => (
            "memory.peak",
            "its cgroup has no readable `memory.peak` (Linux before 5.19, or no memory controller)",
        ),
    };
    fs::read(directory.join(file)).ok().and_then(|text| number(&text)).ok_or(missing)
}

/// The first bytes of a file as it is now.
fn read<'a>(file: &File, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let length = file.read_at(buffer, 0).ok()?;
    Some(&buffer[..length])
}

/// Adds the values of `cpu.stat`, in version 2 also the usage.
fn add_stat(text: &[u8], version: &Version, reading: &mut CpuReading) -> Option<()> {
    if *version == Version::V2 {
        reading.usage = micros(text, b"usage_usec")?;
        (reading.user, reading.system) = (micros(text, b"user_usec")?, micros(text, b"system_usec")?);
    }
    reading.throttling = throttling(text);
    reading.bursts = bursts(text);
    Some(())
}

/// The throttling counters in `cpu.stat` of version 1 (nanoseconds) or 2 (microseconds).
pub(crate) fn throttling(text: &[u8]) -> Option<Throttling> {
    let waited = value(text, b"throttled_time").or_else(|| micros(text, b"throttled_usec"))?;
    Some(Throttling {
        periods: value(text, b"nr_periods")?,
        throttled: value(text, b"nr_throttled")?,
        waited: Nanos(waited as i64),
    })
}

fn bursts(text: &[u8]) -> Option<Bursts> {
    let time = value(text, b"burst_time").or_else(|| micros(text, b"burst_usec"))?;
    Some(Bursts { periods: value(text, b"nr_bursts")?, time })
}

/// Microseconds in the line of this name, in nanoseconds.
pub(crate) fn micros(text: &[u8], name: &[u8]) -> Option<u64> {
    value(text, name).map(|micros| micros * 1000)
}

/// The number in the line of this name.
fn value(text: &[u8], name: &[u8]) -> Option<u64> {
    let rest = |line: &'_ [u8]| -> Option<u64> { number(line.strip_prefix(name)?.strip_prefix(b" ")?) };
    text.split(|byte| *byte == b'\n').find_map(rest)
}

/// An integer, with or without a final newline.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    core::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

/// `cpu.max`: quota, or `max`, and period.
pub(crate) fn pair_in_max(text: &[u8]) -> Option<(Option<u64>, u64)> {
    let mut words = text.trim_ascii().split(|byte| *byte == b' ');
    let quota = match words.next()? {
        b"max" => None,
        digits => Some(number(digits)?),
    };
    Some((quota, number(words.next()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_the_counters_are_nanoseconds() {
        let first = Version::V1("cpu".into());
        let mut reading = CpuReading::default();
        let text = b"usage_usec 7000\nuser_usec 5000\nsystem_usec 2000\nnr_periods 9\nnr_throttled 4\n\
            throttled_usec 12\nnr_bursts 3\nburst_usec 6\n";
        add_stat(text, &Version::V2, &mut reading).unwrap();
        let throttling = Throttling { periods: 9, throttled: 4, waited: Nanos(12_000) };
        let bursts = Bursts { periods: 3, time: 6000 };
        let whole = CpuReading {
            usage: 7_000_000,
            user: 5_000_000,
            system: 2_000_000,
            throttling: Some(throttling),
            bursts: Some(bursts),
        };
        assert_eq!(reading, whole);
        let mut reading = CpuReading::default();
        let text = b"nr_periods 9\nnr_throttled 4\nthrottled_time 12000\nnr_bursts 3\nburst_time 6000\n";
        add_stat(text, &first, &mut reading).unwrap();
        assert_eq!((reading.throttling, reading.bursts), (Some(throttling), Some(bursts)));
    }

    #[test]
    fn counters_that_are_not_there_are_not_zero() {
        let first = Version::V1("cpu".into());
        let mut reading = CpuReading::default();
        // The root of version 2, or a cgroup without the controller.
        add_stat(b"usage_usec 7\nuser_usec 5\nsystem_usec 2\n", &Version::V2, &mut reading).unwrap();
        assert_eq!((reading.usage, reading.throttling, reading.bursts), (7000, None, None));
        // Linux before 5.15.
        add_stat(b"nr_periods 1\nnr_throttled 0\nthrottled_time 0\n", &first, &mut reading).unwrap();
        assert_eq!((reading.throttling.map(|it| it.periods), reading.bursts), (Some(1), None));
        assert_eq!(add_stat(b"usage 7\n", &Version::V2, &mut reading), None);
        assert_eq!(value(b"nr_bursts 3\nnr 4\n", b"nr"), Some(4));
    }

    #[test]
    fn the_directory_that_is_seen_is_taken() {
        let top = tempfile::tempdir().unwrap();
        let hierarchy = |controllers: &str, name: &str, own: &str| Hierarchy {
            version: Version::V1(controllers.into()),
            mount: top.path().join(name),
            own: Some(top.path().join(name).join(own)),
        };
        let hierarchies = [hierarchy("cpu", "c", "d"), hierarchy("memory", "m", "gone")];
        assert_eq!(directory(&hierarchies, "cpu"), None, "no cgroup is there");
        for place in ["c", "c/d", "m"] {
            std::fs::create_dir_all(top.path().join(place)).unwrap();
            std::fs::write(top.path().join(place).join("cgroup.procs"), "").unwrap();
        }
        let found = |controller| directory(&hierarchies, controller).map(|(_, own)| own.to_owned());
        assert_eq!(found("cpu"), Some(top.path().join("c/d")));
        assert_eq!(found("memory"), Some(top.path().join("m")));
        assert_eq!(found("cpuacct"), None);
    }

    #[test]
    fn limits_of_both_versions_are_read() {
        let of = |files: &[(&str, &str)]| {
            let top = tempfile::tempdir().unwrap();
            files.iter().for_each(|(name, text)| std::fs::write(top.path().join(name), text).unwrap());
            quota_in(top.path()).map(|quota| (quota.each, quota.period, quota.burst))
        };
        let half = (Some(50_000_000), 100_000_000, 7_000);
        assert_eq!(of(&[("cpu.max", "50000 100000\n"), ("cpu.max.burst", "7\n")]), Some(half));
        let first = [("cpu.cfs_quota_us", "50000\n"), ("cpu.cfs_period_us", "100000\n")];
        assert_eq!(of(&[first[0], first[1], ("cpu.cfs_burst_us", "7\n")]), Some(half));
        let none = Some((None, 100_000_000, 0));
        assert_eq!(of(&[("cpu.max", "max 100000\n")]), none);
        assert_eq!(of(&[("cpu.cfs_quota_us", "-1\n"), first[1]]), none);
        assert_eq!((of(&[]), of(&[("cpu.max", "")])), (None, None));
    }

    #[test]
    fn the_peak_of_memory_is_a_number_or_a_reason() {
        let top = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(top.path().join(name), text).unwrap();
        let first = || peak_in(&Version::V1("memory".into()), top.path());
        let second = || peak_in(&Version::V2, top.path());
        assert!(first().unwrap_err().contains("max_usage") && second().unwrap_err().contains("5.19"));
        write("memory.max_usage_in_bytes", "7000\n");
        write("memory.peak", "");
        assert_eq!((first(), second().is_err()), (Ok(7000), true));
        write("memory.peak", "9000\n");
        assert_eq!(second(), Ok(9000));
    }

    #[test]
    fn limits_are_read() {
        assert_eq!(pair_in_max(b"50000 100000\n"), Some((Some(50_000), 100_000)));
        assert_eq!(pair_in_max(b"max 100000\n"), Some((None, 100_000)));
        assert_eq!((pair_in_max(b"50000\n"), pair_in_max(b"x 1\n"), number(b"-1\n")), (None, None, None));
    }

    /// On this machine, with either version: what a thread uses is in its cgroup at once.
    #[test]
    fn what_this_thread_uses_is_counted() {
        let counters = match CpuCounters::open() {
            Ok(counters) => counters,
            // A machine without the controller says so.
            Err(missing) => return assert!(missing.contains("cgroup"), "{missing}"),
        };
        let own = raw::thread_cpu;
        let before = counters.read().unwrap();
        let began = own();
        while own() - began < 3_000_000 {}
        let used = own() - began;
        let after = counters.read().unwrap();
        // Version 2 truncates to microseconds, and its root includes only what was seen at clock ticks.
        let by_ticks = counters.version == Version::V2 && counters.is_the_machine();
        let counted = after.usage - before.usage + 1000;
        assert!(by_ticks || counted >= used, "{used} ns in {before:?} to {after:?}");
        assert!(after.user >= before.user && after.system >= before.system);
        if let Some(quota) = counters.quota() {
            assert!(quota.period > 0);
        }
    }
}
