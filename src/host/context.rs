//! The state of the machine around a round, read once per round and stored with its samples.
//!
//! Shares are those of the window between two readings: every counter is read at both ends of the same window. `disturbed` is
//! the rule that marks a round; it is fixed before any run and never drops a round.

use std::fs;
use std::path::{Path, PathBuf};

use super::tree::Tree;
use crate::record::RoundContext;
use crate::sys::clock;
use crate::sys::ticks::Ticks;
use crate::units::{Nanos, Stamp};

/// 1 %. CPU time is stolen in slices of milliseconds, so one slice can be as long as a whole start of a container: at 1 %,
/// about one start of 10 ms in ten includes a slice of 1 ms.
pub const STEAL_LIMIT: f64 = 0.01;

/// Two more than there are CPUs. Client, engine and runtime of a launch mostly wait for each other, so dunnage itself keeps the
/// load below two; more than that on top of busy CPUs comes from other work.
const LOAD_ABOVE_CPUS: f64 = 2.0;

/// 75 %. The threads of a single engine client already make tasks wait for 30 to 55 % of the time on two CPUs, so only a share
/// well above that must come from other work.
const CPU_PRESSURE_LIMIT: f64 = 0.75;

/// 50 %. Engines wait for their own small durable writes during a part of each launch, and rounds also include quiet time, so
/// waiting for more than half of a round is attributed to other work.
const IO_PRESSURE_LIMIT: f64 = 0.50;

/// 128 MiB. With less, the kernel reclaims pages while a container starts, which slows down the start.
const MEMORY_LIMIT_BYTES: u64 = 128 << 20;

/// Why a round is disturbed on a machine with this many CPUs, or `None`.
///
/// The limits are above what dunnage's own launches cause, which run one at a time. The context is read between launches, when
/// none of dunnage's containers is left. Any other container marks the round, because its work, timers and network rules use
/// the kernel locks that a start takes; its helper process shows only that it runs, not that it is quiet.
fn disturbed(context: &RoundContext, cpus: Option<u32>, crowds: bool) -> Option<String> {
    let percent =
        |share: Option<f64>, limit: f64| share.filter(|share| *share > limit).map(|share| share * 100.0);
    let crowd = context.containers.filter(|count| *count > 0);
    // What crowds the machine itself is no disturbance.
    let of_others = |share: Option<f64>| share.filter(|_| !crowds);
    let load =
        of_others(context.load).zip(cpus).filter(|(load, cpus)| *load > f64::from(*cpus) + LOAD_ABOVE_CPUS);
    let short = context.available_memory.filter(|left| *left < MEMORY_LIMIT_BYTES);
    let reasons = [
        percent(context.steal, STEAL_LIMIT).map(|share| format!("{share:.1} % of the CPU time was stolen")),
        crowd.map(|count| {
            format!("{count} other {} running", if count == 1 { "container was" } else { "containers were" })
        }),
        load.map(|(load, cpus)| format!("the load was {load:.1} on {cpus} CPUs")),
        percent(of_others(context.cpu_pressure), CPU_PRESSURE_LIMIT)
            .map(|share| format!("tasks waited for CPU {share:.0} % of the time")),
        percent(of_others(context.io_pressure), IO_PRESSURE_LIMIT)
            .map(|share| format!("tasks waited for I/O {share:.0} % of the time")),
        short.map(|left| format!("only {} MiB of memory was available", left >> 20)),
    ];
    let reasons: Vec<String> = reasons.into_iter().flatten().collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Reads the context repeatedly; each reading closes a window and opens the next.
#[derive(Debug)]
pub struct Watch {
    /// Whether what is measured makes the machine busy itself.
    pub crowds: bool,
    since: Reading,
    frequencies: Vec<PathBuf>,
}

/// Counters at one moment.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Stamp,
    /// Ticks since boot.
    uptime: Option<u64>,
    ticks: Option<Ticks>,
    cpu_waited: Option<Nanos>,
    io_waited: Option<Nanos>,
}

/// Read clock rates of only this many CPUs, because on some kernels each reading waits for its CPU.
const CPUS_ASKED: usize = 8;

impl Default for Watch {
    /// Opens the first window.
    fn default() -> Watch {
        let rate = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        let paths = (0..CPUS_ASKED).map(|cpu| PathBuf::from(rate(cpu)));
        Watch {
            crowds: false,
            since: Reading::now(),
            frequencies: paths.filter(|path| path.exists()).collect(),
        }
    }
}

impl Watch {
    /// The activity since the last call, and the current state.
    pub fn read(&mut self) -> RoundContext {
        let now = Reading::now();
        let before = std::mem::replace(&mut self.since, now);
        let window = now.at.since(before.at);
        let spent = now.ticks.zip(before.ticks).and_then(|(now, before)| now.since(before));
        // In fewer, a single tick would already exceed the limit.
        let spent = spent.filter(|spent| spent.total >= 100);
        let share = |now: Option<Nanos>, before: Option<Nanos>| {
            let waited = now?.0.checked_sub(before?.0)?;
            (window.0 > 0).then(|| (waited as f64 / window.0 as f64).clamp(0.0, 1.0))
        };
        let mut context = RoundContext {
            steal: spent.map(|spent| spent.steal as f64 / spent.total as f64),
            busy: spent.map(|spent| spent.busy as f64 / spent.total as f64),
            load: read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
            cpu_pressure: share(now.cpu_waited, before.cpu_waited),
            io_pressure: share(now.io_waited, before.io_waited),
            containers: helpers(Path::new("/proc"), before.uptime).map(|found| found.len() as u64),
            frequency: self.mean_hertz(),
            available_memory: Tree::machine().memory("MemAvailable"),
            ..RoundContext::default()
        };
        context.disturbed = disturbed(&context, now.ticks.map(|ticks| ticks.cpus), self.crowds);
        context
    }

    fn mean_hertz(&self) -> Option<f64> {
        let rates: Option<Vec<f64>> =
            self.frequencies.iter().map(|path| read(path)?.trim().parse().ok()).collect();
        let rates = rates.filter(|rates| !rates.is_empty())?;
        // The files are in kHz.
        Some(rates.iter().sum::<f64>() / rates.len() as f64 * 1000.0)
    }
}

impl Reading {
    fn now() -> Reading {
        Reading {
            at: clock::now(),
            uptime: read("/proc/uptime").and_then(|text| uptime(&text)),
            ticks: Ticks::now(),
            cpu_waited: read("/proc/pressure/cpu").and_then(|text| waited(&text)),
            io_waited: read("/proc/pressure/io").and_then(|text| waited(&text)),
        }
    }
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// How long any task has waited since boot, from a file in `/proc/pressure`.
fn waited(pressure: &str) -> Option<Nanos> {
    let row = pressure.lines().find(|line| line.starts_with("some "))?;
    let micros: i64 = row.split(' ').find_map(|word| word.strip_prefix("total="))?.parse().ok()?;
    Some(Nanos(micros * 1000))
}

/// Ticks since boot, from the hundredths of seconds in `/proc/uptime`: the kernel's `USER_HZ` is 100 on all platforms of
/// dunnage.
fn uptime(text: &str) -> Option<u64> {
    let (seconds, hundredths) = text.split(' ').next()?.split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 100 + hundredths.parse::<u64>().ok()?)
}

/// The start of a process in ticks since boot: field 22 of its `stat`. Field 2, the name in parentheses, may contain
/// anything.
fn begun(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

/// The running containers, by the name or id in the command line of each helper.
pub fn named_containers(proc: &Path) -> Vec<String> {
    let named = |pid: String| {
        let line = fs::read(proc.join(&pid).join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        let mut words = line.split('\0').skip_while(|word| !["-n", "--name", "-id"].contains(word)).skip(1);
        match words.next() {
            // Engines shorten an id to 12 digits.
            Some(id) if id.len() == 64 => format!("`{id:.12}`"),
            Some(name) => format!("`{name}`"),
            None => format!("that of process {pid}"),
        }
    };
    helpers(proc, None).into_iter().flatten().map(named).collect()
}

/// The process ids of the helpers that live as long as a container and started before this moment: conmon of podman and
/// cri-o, and the shims of containerd (one per pod). Containers started by a runtime alone have no helper and are not counted.
fn helpers(proc: &Path, before: Option<u64>) -> Option<Vec<String>> {
    let entries = fs::read_dir(proc).ok()?;
    let is_helper = |pid: &String| {
        let name = fs::read_to_string(proc.join(pid).join("comm")).unwrap_or_default();
        let name = name.trim_end();
        let helps = name == "conmon" || name == "conmonrs" || name.starts_with("containerd-shim");
        let begun = || begun(&fs::read_to_string(proc.join(pid).join("stat")).ok()?);
        helps && before.is_none_or(|before| begun().is_some_and(|begun| begun < before))
    };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Some(pids.filter(|name| name.starts_with(|c: char| c.is_ascii_digit())).filter(is_helper).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn containers(proc: &Path, before: Option<u64>) -> Option<usize> {
        helpers(proc, before).map(|found| found.len())
    }

    fn quiet() -> RoundContext {
        RoundContext {
            steal: Some(0.01),
            busy: Some(1.0),
            load: Some(4.0),
            cpu_pressure: Some(0.75),
            io_pressure: Some(0.5),
            containers: Some(0),
            available_memory: Some(128 << 20),
            ..RoundContext::default()
        }
    }

    #[test]
    fn a_round_at_all_limits_is_not_marked() {
        assert_eq!(disturbed(&quiet(), Some(2), false), None);
        assert_eq!(disturbed(&RoundContext::default(), None, false), None, "unknown values do not disturb");
    }

    #[test]
    fn each_limit_marks_a_round_beyond_it() {
        let marked = |change: fn(&mut RoundContext)| {
            let mut context = quiet();
            change(&mut context);
            disturbed(&context, Some(2), false).expect("a reason")
        };
        assert_eq!(marked(|c| c.steal = Some(0.024)), "2.4 % of the CPU time was stolen");
        assert_eq!(marked(|c| c.containers = Some(1)), "1 other container was running");
        assert_eq!(marked(|c| c.containers = Some(3)), "3 other containers were running");
        assert_eq!(marked(|c| c.load = Some(4.1)), "the load was 4.1 on 2 CPUs");
        assert_eq!(marked(|c| c.cpu_pressure = Some(0.9)), "tasks waited for CPU 90 % of the time");
        assert_eq!(marked(|c| c.io_pressure = Some(0.6)), "tasks waited for I/O 60 % of the time");
        let crowd =
            RoundContext { load: Some(40.0), cpu_pressure: Some(0.9), io_pressure: Some(0.6), ..quiet() };
        assert_eq!(disturbed(&crowd, Some(2), true), None, "it is its own");
        let short = marked(|c| c.available_memory = Some(5 << 20));
        assert_eq!(short, "only 5 MiB of memory was available");
        let two = marked(|c| (c.steal, c.containers) = (Some(0.5), Some(2)));
        assert_eq!(two, "50.0 % of the CPU time was stolen; 2 other containers were running");
    }

    #[test]
    fn pressure_is_read_from_its_total() {
        let text = "some avg10=7.44 avg60=3.14 avg300=6.36 total=220611066\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(waited(text), Some(Nanos(220_611_066_000)));
        assert_eq!(waited(""), None);
    }

    #[test]
    fn helpers_of_containers_are_counted_by_name() {
        let proc = tempfile::tempdir().unwrap();
        let names = [
            ("12", "conmon"),
            ("13", "containerd-shim"),
            ("14", "containerd"),
            ("15", "bash"),
            ("self", "conmon"),
        ];
        for (pid, name) in names {
            fs::create_dir(proc.path().join(pid)).unwrap();
            fs::write(proc.path().join(pid).join("comm"), format!("{name}\n")).unwrap();
        }
        assert_eq!(containers(proc.path(), None), Some(2));
        assert_eq!(containers(Path::new("/no/such"), None), None);
        let id = "0123456789abcdef".repeat(4);
        for (pid, line) in
            [("12", "conmon\0-c\0ab\0-n\0web\0"), ("13", &format!("shim\0-namespace\0moby\0-id\0{id}\0"))]
        {
            fs::write(proc.path().join(pid).join("cmdline"), line).unwrap();
        }
        let mut named = named_containers(proc.path());
        named.sort();
        assert_eq!(named, ["`0123456789ab`", "`web`"]);
    }

    #[test]
    fn helpers_that_began_in_the_window_are_our_own() {
        let proc = tempfile::tempdir().unwrap();
        for (pid, begun) in [("12", 5000), ("13", 5001)] {
            let fields = ["0"; 18].join(" ");
            fs::create_dir(proc.path().join(pid)).unwrap();
            fs::write(proc.path().join(pid).join("comm"), "conmon\n").unwrap();
            let stat = format!("{pid} (con) mon) S {fields} {begun} 10 0\n");
            fs::write(proc.path().join(pid).join("stat"), stat).unwrap();
        }
        assert_eq!(containers(proc.path(), uptime("50.01 93.20\n")), Some(1));
        assert_eq!(containers(proc.path(), uptime("50.00 93.20\n")), Some(0));
        assert_eq!(containers(proc.path(), uptime("50.02 93.20\n")), Some(2));
    }

    #[test]
    fn this_process_began_before_now() {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let now = uptime(&fs::read_to_string("/proc/uptime").unwrap()).unwrap();
        assert!(begun(&stat).is_some_and(|begun| (1..=now).contains(&begun)));
    }

    #[test]
    fn reading_is_quick() {
        let mut watch = Watch::default();
        let quickest = (0..20)
            .map(|_| {
                let before = clock::thread_cpu();
                watch.read();
                Nanos(clock::thread_cpu().0 - before.0)
            })
            .min()
            .unwrap();
        // Generous enough for a machine with some hundred processes.
        assert!(quickest < Nanos::from_millis(10), "reading takes {quickest}");
    }
}
