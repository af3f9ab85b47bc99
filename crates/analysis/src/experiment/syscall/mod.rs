//! What does isolation add to a system call? The probe makes each call in batches inside a started container,
//! on one CPU, and times it; starting the container is not included. Undisturbed batches show what a call
//! costs; a fixed number of calls in a row shows how long a user waits, also under a limit.
//!
//! Deliberately absent: how calls are made and timed (see `sys::calls` and `probe::work`), and which part of
//! a container adds the cost, which is found by leaving parts out (`cause`).

pub(in crate::experiment) mod cause;
pub mod suspects;
pub mod tables;

use super::fixed_work::{self, FIXED};
use super::question::{Concern, Event, Experiment, Metric, Scope};
use super::setting::{Setting, SettingKey, fits};
use super::variation::{Variation, Varied};
use crate::names::{Counter, Name, names};
use crate::stats::Margin;
use crate::subject::Need;
use crate::subject::spec::parse_duration;
use crate::units::{Nanos, Unit};

/// Its name, and the name of the probe's work.
pub const NAME: &str = "syscall";
/// The minimum number of batches of each call.
pub const LEAST_BATCHES: usize = 100;

/// Three nanoseconds are ten cycles of a CPU. A smaller difference is less than one more mispredicted branch,
/// and can come from a different layout of the program in memory.
const MARGIN: Margin = Margin::fixed(3e-9, 0.03);

/// The names of a call's counters; the first is also its own and that of its metric.
#[derive(Debug, Clone, Copy)]
pub struct CallNames {
    /// Picoseconds of one call.
    pub time: Counter,
    /// Calls that were made.
    pub calls: Counter,
    /// Their batches.
    pub batches: Counter,
    /// The error number of one that failed.
    pub error: Counter,
}

macro_rules! calls {
    ($($call:literal)*) => {
        [$(CallNames {
            time: Name::declared($call),
            calls: Name::declared(concat!($call, ".calls")),
            batches: Name::declared(concat!($call, ".batches")),
            error: Name::declared(concat!($call, ".errno")),
        }),*]
    };
}

/// The single calls, in the order of their metrics.
pub const CALLS: [CallNames; 12] = calls![
    "getppid" "getpid" "clock_vdso" "clock_gettime" "read_zero" "write_null" "open_close" "stat" "futex_wake"
    "mmap_munmap" "pipe_round_trip" "fork_exec_wait"
];

/// The only call that creates a process.
const FORK_EXEC_WAIT: CallNames = CALLS[CALLS.len() - 1];

names! {
    Counter { CPU_BOUND = "cpu", }
    Fact {
        VDSO = "vdso", STORE_BYPASS = "store_bypass", INDIRECT_BRANCH = "indirect_branch",
        SECCOMP_FILTERS = "seccomp_filters",
    }
}

/// Those of calls, as they are recorded.
pub(super) fn recorded() -> impl Iterator<Item = &'static str> {
    CALLS.iter().flat_map(|own| [own.time, own.calls, own.batches, own.error]).map(Name::text)
}

const fn call(at: usize) -> Metric {
    Metric::counted(CALLS[at].time.text(), CALLS[at].time, 1e12).of(Unit::Seconds, MARGIN)
}

/// The time of one call of the fixed work, for the prediction.
const FIXED_CALL: Nanos = Nanos(150);

/// One for each call, and those of the fixed work.
pub static METRICS: [Metric; 16] = [
    call(0).meaning(
        "one `getppid` by the `syscall` instruction: entering and leaving the kernel, the filters' work, \
         and the lookup of a process id in the caller's PID namespace",
    ),
    call(1)
        .meaning("one `getpid` by the `syscall` instruction: like `getppid`, with the caller's own process id"),
    call(2).meaning(
        "one `clock_gettime(CLOCK_MONOTONIC)` of libc, answered by the kernel's vDSO inside the program if the \
         clock source is readable there; it then makes no system call, so no filter sees it",
    ),
    call(3).meaning("one `clock_gettime(CLOCK_MONOTONIC)` by the `syscall` instruction"),
    call(4).meaning("one `read` of 1 byte from an open /dev/zero"),
    call(5).meaning("one `write` of 1 byte to an open /dev/null"),
    call(6).meaning(
        "one `openat` of an empty file in memory (`memfd_create`) by its name in an open /proc/self/fd, \
         and one `close`: two calls, on a file of the same filesystem everywhere; the container's root is \
         not involved",
    ),
    call(7).meaning("one `newfstatat` of the same file by the same name, without opening it"),
    call(8).meaning("one private `FUTEX_WAKE` of a word with no waiters"),
    call(9).meaning(
        "one `mmap` of one anonymous page, one write to it, one `munmap`: two calls and, between them, a \
         page fault with the page's zeroing and its accounting in the memory cgroup",
    ),
    call(10).meaning(
        "one byte through a pipe to another process on the same CPU, and one byte back: two writes, \
         two reads and two context switches",
    ),
    call(CALLS.len() - 1).meaning(
        "`clone` without shared memory, `execve` of the probe itself with a task that ends at once, and \
         `wait4` until it has ended; includes the libc start of the static executable and its page faults",
    ),
    fixed_work::elapsed("elapsed", FIXED).of(Unit::Seconds, Margin::fixed(0.0, 0.03)).meaning(
        "2 million `getppid` in a row, from before the first to after the last, including all delays: a CPU limit, \
         others on the CPU. What a user waits for, not the time of one call",
    ),
    fixed_work::part(Metric::nanos("cpu_time", FIXED.cpu), Unit::Seconds).meaning("CPU time of the thread during `elapsed`, as the scheduler counts it"),
    fixed_work::part(Metric::nanos("throttled_time", FIXED.throttled_time), Unit::Seconds).meaning(
        "how long a CPU limit held the thread back during `elapsed`, from the `cpu.stat` of its own cgroup; does not \
         apply without a limit",
    ),
    fixed_work::part(Metric::counted("throttled_periods", FIXED.throttled, 1.0), Unit::Count)
        .meaning("in how many of the limit's periods the thread was held back (`nr_throttled`)"),
];

static KEYS: [SettingKey; 1] = [SettingKey::of("window", &["10ms"]).or(takes_a_window).meaning(
    "how long each call is repeated, in at least 100 batches and at most 3 million times; `200ms` gives \
     3 million of the shortest call",
)];

static GUARDED: [SettingKey; 1] = [SettingKey::of("fixed", &["2000000"])
    .or(|value| fits(matches!(value.parse(), Ok(0..=1_000_000_000)), "a whole number from 0 to 1000000000"))
    .meaning("how many `getppid` in a row are the fixed work of `elapsed`; 0 for none")];

/// The number of calls of the fixed work.
pub fn fixed_of(setting: &Setting) -> u32 {
    setting.get("fixed").unwrap_or(GUARDED[0].values[0]).parse().unwrap_or(0)
}

fn takes_a_window(value: &str) -> Result<(), String> {
    let is_one = parse_duration(value).is_some_and(|seconds| (0.001..=10.0).contains(&seconds));
    fits(is_one, "a time from 1ms to 10s, such as 200ms")
}

/// How long each call is repeated.
pub fn window(setting: &Setting) -> Nanos {
    Nanos::from_seconds(setting.get("window").and_then(parse_duration).unwrap_or(0.01))
}

/// The time of all calls of a sample: those in a row, the windows (or the minimum number of batches if that
/// takes longer), and finding the size of the batches.
pub fn takes(setting: &Setting) -> Nanos {
    const AROUND: Nanos = Nanos::from_millis(1);
    /// The minimum for a batch; one that creates a process, on most machines.
    const BATCH: i64 = 75_000;
    const PROCESS: i64 = 1_000_000;
    let one = |call: &Metric| {
        let batch = if call.name == FORK_EXEC_WAIT.time.text() { PROCESS } else { BATCH };
        window(setting).max(Nanos(batch * LEAST_BATCHES as i64)) + AROUND
    };
    let fixed = Nanos(FIXED_CALL.0 * i64::from(fixed_of(setting)));
    METRICS[..CALLS.len()].iter().map(one).fold(fixed, |sum, one| sum + one)
}

/// The experiment `syscall`.
pub static SYSCALL: Experiment = Experiment {
    keys: &KEYS,
    guarded: &GUARDED,
    // A quarter of the calls, which a limit of half a CPU may just miss, and the fewest batches.
    quick_values: |key| if key.name == "fixed" { &["500000"] } else { &["5ms"] },
    // Left out of containers, one at a time, to see which part of the difference disappears. The floor has no user
    // namespace, so it is added. Others are varied only in what a call itself meets: each has a filter of its own,
    // and process ids are looked up in a namespace.
    varies: &[
        Variation::of("seccomp", &["off"]),
        Variation::of("pid", &["host"]),
        Variation::of("net", &["host"]).only(Varied::Floor),
        Variation::of("userns", &["private"]).only(Varied::Floor),
        Variation::of("mounts", &["host"]).only(Varied::Floor),
        Variation::of("uts", &["host"]).only(Varied::Floor),
        Variation::of("ipc", &["host"]).only(Varied::Floor),
        Variation::of("cgroup", &["host"]).only(Varied::Floor),
        Variation::of("cgroupns", &["host"]).only(Varied::Floor),
        Variation::of("overlay", &["off"]).only(Varied::Floor),
        Variation::of("capabilities", &["all"]).only(Varied::Floor),
        Variation::of("no_new_privs", &["off"]).only(Varied::Floor),
    ],
    // Each has variants of its own.
    scope: Scope::Few,
    event: Event::Often("call"),
    concern: Some(Concern {
        job: "many system calls",
        remedy: "make fewer and larger calls; the table of causes says what slows them down",
    }),
    cost: |setting, launch| launch + takes(setting),
    computes: true,
    ..Experiment::of(
        NAME,
        "what does isolation add to a system call, and which part adds it?",
        Need::Work,
        &METRICS,
    )
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Sample;

    #[test]
    fn a_window_is_a_time_that_makes_sense() {
        assert_eq!(KEYS[0].take("200ms"), Ok("200ms"));
        assert_eq!(KEYS[0].take("1s"), Ok("1s"));
        for wrong in ["0ms", "20", "1us", "60s", "long"] {
            assert!(KEYS[0].take(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_metric_is_its_own_counter_in_picoseconds() {
        for (index, metric) in METRICS[..CALLS.len()].iter().enumerate() {
            let counters = CALLS.iter().enumerate();
            let counters = counters.map(|(other, one)| (one.time, if other == index { 123_456 } else { 7 }));
            let sample = Sample::default().with(counters);
            assert_eq!(metric.value(&sample), Some(123_456.0 * 1e-12), "{}", metric.name);
            assert_eq!(metric.value(&Sample::default()), None);
        }
    }
}
