//! The cgroup of the calling process, as it sees it: its CPU counters and its quota, read by the probe,
//! so without allocation and without libc. `membership` finds the directory.
//!
//! Files are opened once, and each reading is one `pread` of each: `cpu.stat` in version 2; `cpu.stat`,
//! `cpuacct.usage` and `cpuacct.stat` in version 1. Deliberately absent: limits of cgroups further up, and
//! what others in the same cgroup use, which its counters hold too.

mod membership;

use core::ffi::CStr;
use core::fmt;

use super::super::raw;
pub use membership::{Controller, Interface, Membership};
use membership::{Directory, File};

/// Clock ticks in a second as the kernel tells them to programs, whatever it counts itself.
const USER_HZ: u64 = 100;
/// The inode number of the root of a hierarchy; a container sees its own cgroup as the root, which keeps
/// the number that it has on the host.
const ROOT_INODE: u64 = 1;

/// What is missing, in a whole sentence, and the kernel's error number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// The sentence, without its end.
    pub what: &'static str,
    /// Why the kernel did not give it; zero where it gave something else than numbers.
    pub errno: i32,
}

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errno {
            0 => out.write_str(self.what),
            errno => write!(out, "{}: {}", self.what, std::io::Error::from_raw_os_error(errno)),
        }
    }
}

impl core::error::Error for Missing {}

const fn missing(what: &'static str) -> impl Fn(i32) -> Missing {
    move |errno| Missing { what, errno }
}

/// The CPU counters of the process's own cgroup, opened.
#[derive(Debug)]
pub struct CpuCounters {
    interface: Interface,
    directory: Directory,
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
    /// Of it in user mode. The kernel divides by what it saw at its clock ticks; version 1 tells it in
    /// steps of 10 ms.
    pub user: u64,
    /// And in the kernel.
    pub system: u64,
    /// What the quota did; none where the cgroup has no such counters.
    pub throttling: Option<Throttling>,
    /// What the burst did; none where the kernel has none (Linux before 5.15).
    pub bursts: Option<Bursts>,
}

/// How often the quota was used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Throttling {
    /// Periods in which anything in the cgroup was ready to run.
    pub periods: u64,
    /// Of them, those in which the quota was used up.
    pub throttled: u64,
    /// How long the cgroup's queues stood still, added up over CPUs, in nanoseconds.
    pub time: u64,
}

/// How often more than the quota was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bursts {
    /// Periods in which it was.
    pub periods: u64,
    /// How much more, in nanoseconds.
    pub time: u64,
}

/// The limit that the cgroup sets, in microseconds as its files have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// CPU time in each period; none for no limit.
    pub quota: Option<u64>,
    /// The period.
    pub period: u64,
    /// What unused quota may be saved up to; none where the kernel has no bursts.
    pub burst: Option<u64>,
}

impl CpuCounters {
    /// Finds and opens them.
    pub fn open() -> Result<CpuCounters, Missing> {
        let membership = Membership::read()?;
        let interface = membership
            .interface(Controller::Cpu)
            .ok_or(missing("`/proc/self/cgroup` names no hierarchy with the cpu controller")(0))?;
        let directory = membership
            .directory(Controller::Cpu)
            .map_err(missing("its cgroup of the cpu controller is not to be seen under `/sys/fs/cgroup`"))?;
        let stat = directory.open(c"cpu.stat").map_err(missing("its cgroup has no file `cpu.stat`"))?;
        let accounting = match interface {
            Interface::Second => None,
            Interface::First => {
                let directory = membership.directory(Controller::CpuAccounting).map_err(missing(
                    "its cgroup of the cpuacct controller is not to be seen under `/sys/fs/cgroup`",
                ))?;
                let open = |name, what| directory.open(name).map_err(missing(what));
                Some((
                    open(c"cpuacct.usage", "its cgroup has no file `cpuacct.usage`")?,
                    open(c"cpuacct.stat", "its cgroup has no file `cpuacct.stat`")?,
                ))
            }
        };
        Ok(CpuCounters { interface, directory, stat, accounting })
    }

    /// Which version of cgroups they are of.
    pub fn interface(&self) -> Interface {
        self.interface
    }

    /// Whether the cgroup is the root of its hierarchy, whose counters are the whole machine's.
    pub fn is_the_machine(&self) -> bool {
        self.directory.inode() == Some(ROOT_INODE)
    }

    /// Whether this process is the only one in the cgroup, so that its counters are the process's own.
    pub fn is_alone(&self) -> bool {
        let mut buffer = [0u8; 64];
        let Ok(file) = self.directory.open(c"cgroup.procs") else { return false };
        let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
        file.read(&mut buffer).is_ok_and(|text| lines(text) == 1)
    }

    /// Reads them. The calling thread's own CPU time is in them up to this call; that of others that run
    /// at the moment may be missing since the last clock tick of theirs.
    pub fn read(&self) -> Result<CpuReading, Missing> {
        account_for_this_thread();
        let mut buffer = [0u8; 1024];
        let mut reading = CpuReading::default();
        if let Some((usage, split)) = &self.accounting {
            let why = missing("its cgroup's `cpuacct.usage` is not to be read");
            reading.usage = number(usage.read(&mut buffer).map_err(&why)?).ok_or(why(0))?;
            let why = missing("its cgroup's `cpuacct.stat` is not to be read");
            let text = split.read(&mut buffer).map_err(&why)?;
            let ticks = |name| value(text, name).map(|ticks| ticks * (1_000_000_000 / USER_HZ)).ok_or(why(0));
            (reading.user, reading.system) = (ticks(b"user")?, ticks(b"system")?);
        }
        let why = missing("its cgroup's `cpu.stat` is not to be read");
        let text = self.stat.read(&mut buffer).map_err(&why)?;
        match self.interface {
            Interface::First => first_version(text, &mut reading),
            Interface::Second => second_version(text, &mut reading).ok_or(why(0))?,
        }
        Ok(reading)
    }

    /// Reads the limit.
    pub fn quota(&self) -> Result<Quota, Missing> {
        let mut buffer = [0u8; 64];
        match self.interface {
            Interface::Second => {
                // The root of the hierarchy has no such file and no limit.
                let why = missing("its cgroup has no readable `cpu.max`");
                let file = self.directory.open(c"cpu.max").map_err(&why)?;
                let (quota, period) = pair_in_max(file.read(&mut buffer).map_err(&why)?).ok_or(why(0))?;
                Ok(Quota { quota, period, burst: self.small(c"cpu.max.burst") })
            }
            Interface::First => {
                let period = self
                    .small(c"cpu.cfs_period_us")
                    .ok_or(missing("its cgroup has no readable `cpu.cfs_period_us`")(0))?;
                let why = missing("its cgroup has no readable `cpu.cfs_quota_us`");
                let file = self.directory.open(c"cpu.cfs_quota_us").map_err(&why)?;
                // Without a limit it is -1.
                let quota = number(file.read(&mut buffer).map_err(&why)?);
                Ok(Quota { quota, period, burst: self.small(c"cpu.cfs_burst_us") })
            }
        }
    }

    fn small(&self, name: &CStr) -> Option<u64> {
        number(self.directory.open(name).ok()?.read(&mut [0u8; 64]).ok()?)
    }
}

/// The kernel charges what a thread uses at clock ticks and when it leaves its CPU. Asked for the thread's
/// own time it charges it at once, to its cgroup too.
fn account_for_this_thread() {
    let mut time = [0u64; 2];
    let arguments = [libc::CLOCK_THREAD_CPUTIME_ID as usize, time.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes one timespec, which is two 64-bit words here.
    let _ = unsafe { raw::syscall(libc::SYS_clock_gettime, arguments) };
}

/// `cpu.stat` of version 1: nanoseconds.
fn first_version(text: &[u8], reading: &mut CpuReading) {
    reading.throttling = throttling(text, b"throttled_time", 1);
    reading.bursts = bursts(text, b"burst_time", 1);
}

/// `cpu.stat` of version 2: microseconds, and the usage too.
fn second_version(text: &[u8], reading: &mut CpuReading) -> Option<()> {
    reading.usage = value(text, b"usage_usec")? * 1000;
    (reading.user, reading.system) = (value(text, b"user_usec")? * 1000, value(text, b"system_usec")? * 1000);
    reading.throttling = throttling(text, b"throttled_usec", 1000);
    reading.bursts = bursts(text, b"burst_usec", 1000);
    Some(())
}

fn throttling(text: &[u8], time: &[u8], unit: u64) -> Option<Throttling> {
    Some(Throttling {
        periods: value(text, b"nr_periods")?,
        throttled: value(text, b"nr_throttled")?,
        time: value(text, time)? * unit,
    })
}

fn bursts(text: &[u8], time: &[u8], unit: u64) -> Option<Bursts> {
    Some(Bursts { periods: value(text, b"nr_bursts")?, time: value(text, time)? * unit })
}

/// The number in the line of this name.
fn value(text: &[u8], name: &[u8]) -> Option<u64> {
    let rest = |line: &'_ [u8]| -> Option<u64> { number(line.strip_prefix(name)?.strip_prefix(b" ")?) };
    text.split(|byte| *byte == b'\n').find_map(rest)
}

/// A whole number, with or without the end of the line.
fn number(text: &[u8]) -> Option<u64> {
    core::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

/// `cpu.max`: quota, or `max`, and period.
fn pair_in_max(text: &[u8]) -> Option<(Option<u64>, u64)> {
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
        let mut reading = CpuReading::default();
        let text = b"usage_usec 7000\nuser_usec 5000\nsystem_usec 2000\nnr_periods 9\nnr_throttled 4\n\
            throttled_usec 12\nnr_bursts 3\nburst_usec 6\n";
        second_version(text, &mut reading).unwrap();
        let throttling = Throttling { periods: 9, throttled: 4, time: 12_000 };
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
        first_version(text, &mut reading);
        assert_eq!((reading.throttling, reading.bursts), (Some(throttling), Some(bursts)));
    }

    #[test]
    fn counters_that_are_not_there_are_not_zero() {
        let mut reading = CpuReading::default();
        // The root of version 2, or a cgroup to which the controller was not given.
        second_version(b"usage_usec 7\nuser_usec 5\nsystem_usec 2\n", &mut reading).unwrap();
        assert_eq!((reading.usage, reading.throttling, reading.bursts), (7000, None, None));
        // Linux before 5.15.
        first_version(b"nr_periods 1\nnr_throttled 0\nthrottled_time 0\n", &mut reading);
        assert_eq!((reading.throttling.map(|it| it.periods), reading.bursts), (Some(1), None));
        assert_eq!(second_version(b"usage 7\n", &mut reading), None);
        assert_eq!(value(b"nr_bursts 3\nnr 4\n", b"nr"), Some(4));
    }

    #[test]
    fn limits_are_read() {
        assert_eq!(pair_in_max(b"50000 100000\n"), Some((Some(50_000), 100_000)));
        assert_eq!(pair_in_max(b"max 100000\n"), Some((None, 100_000)));
        assert_eq!((pair_in_max(b"50000\n"), pair_in_max(b"x 1\n"), number(b"-1\n")), (None, None, None));
    }

    /// On this machine, whichever version it has: what a thread uses is in its cgroup at once.
    #[test]
    fn what_this_thread_uses_is_counted() {
        let counters = match CpuCounters::open() {
            Ok(counters) => counters,
            // A machine without the controller says so.
            Err(missing) => return assert!(missing.what.contains("cgroup"), "{missing}"),
        };
        let own = || {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `time` is writable for the whole call.
            unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        };
        let before = counters.read().unwrap();
        let began = own();
        while own() - began < 3_000_000 {}
        let used = own() - began;
        let after = counters.read().unwrap();
        // Version 2 cuts off to microseconds, and its root has only what was seen at clock ticks.
        let by_ticks = counters.interface() == Interface::Second && counters.is_the_machine();
        let counted = after.usage - before.usage + 1000;
        assert!(by_ticks || counted >= used, "{used} ns in {before:?} to {after:?}");
        assert!(after.user >= before.user && after.system >= before.system);
        if let Ok(quota) = counters.quota() {
            assert!(quota.period > 0);
        }
    }
}
