//! What does isolation add to a system call? The probe makes each call in batches inside a started container,
//! on one CPU, and times it; starting the container is not included. Undisturbed batches show what a call
//! costs; a fixed number of calls in a row shows how long a user waits, also under a limit.
//!
//! Deliberately absent: how calls are made and timed (see `sys::calls` and `probe::work`), and which part of
//! a container adds the cost, which is found by leaving parts out (`cause`).

mod cause;
pub mod suspects;
pub mod tables;

use super::fixed_work;
use super::question::{Concern, Event, Experiment, Metric, Scope, Variation, Varied};
use super::setting::{Setting, SettingKey, fits};
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::subject::spec::parse_duration;
use crate::units::{Nanos, Unit};

/// Its name, and the name of the probe's work.
pub const NAME: &str = "syscall";
/// The only call that creates a process.
const FORK_EXEC_WAIT: &str = "fork_exec_wait";
/// The minimum number of batches of each call.
pub const LEAST_BATCHES: usize = 100;

/// Three nanoseconds are ten cycles of a CPU. A smaller difference is less than one more mispredicted branch,
/// and can come from a different layout of the program in memory.
const MARGIN: Margin = Margin::fixed(3e-9, 0.03);

const fn call(name: &'static str) -> Metric {
    Metric::named(name, seconds, name).of(Unit::Seconds, MARGIN)
}

fn seconds(sample: &Sample, call: &str) -> Option<f64> {
    Some(sample.counter(call)? as f64 * 1e-12)
}

/// How many of the metrics are single calls; the others are of many in a row.
pub const CALLS: usize = 12;
/// The time of one call of the fixed work, for the prediction.
const FIXED_CALL: Nanos = Nanos(150);
/// The probe's name for it.
const FIXED: &str = "fixed";

/// One for each call, and those of the fixed work.
pub static METRICS: [Metric; 16] = [
    call("getppid").meaning(
        "one `getppid` by the `syscall` instruction: entering and leaving the kernel, the filters' work, \
         and the lookup of a process id in the caller's PID namespace",
    ),
    call("getpid")
        .meaning("one `getpid` by the `syscall` instruction: like `getppid`, with the caller's own process id"),
    call("clock_vdso").meaning(
        "one `clock_gettime(CLOCK_MONOTONIC)` of libc, answered by the kernel's vDSO inside the program if the \
         clock source is readable there; it then makes no system call, so no filter sees it",
    ),
    call("clock_gettime").meaning("one `clock_gettime(CLOCK_MONOTONIC)` by the `syscall` instruction"),
    call("read_zero").meaning("one `read` of 1 byte from an open /dev/zero"),
    call("write_null").meaning("one `write` of 1 byte to an open /dev/null"),
    call("open_close").meaning(
        "one `openat` of an empty file in memory (`memfd_create`) by its name in an open /proc/self/fd, \
         and one `close`: two calls, on a file of the same filesystem everywhere; the container's root is \
         not involved",
    ),
    call("stat").meaning("one `newfstatat` of the same file by the same name, without opening it"),
    call("futex_wake").meaning("one private `FUTEX_WAKE` of a word with no waiters"),
    call("mmap_munmap").meaning(
        "one `mmap` of one anonymous page, one write to it, one `munmap`: two calls and, between them, a \
         page fault with the page's zeroing and its accounting in the memory cgroup",
    ),
    call("pipe_round_trip").meaning(
        "one byte through a pipe to another process on the same CPU, and one byte back: two writes, \
         two reads and two context switches",
    ),
    call(FORK_EXEC_WAIT).meaning(
        "`clone` without shared memory, `execve` of the probe itself with a task that ends at once, and \
         `wait4` until it has ended; includes the libc start of the static executable and its page faults",
    ),
    fixed_work::elapsed("elapsed", FIXED).of(Unit::Seconds, Margin::fixed(0.0, 0.03)).meaning(
        "2 million `getppid` in a row, from before the first to after the last, including all delays: a CPU limit, \
         others on the CPU. What a user waits for, not the time of one call",
    ),
    fixed_work::cpu_time("cpu_time", FIXED).meaning("CPU time of the thread during `elapsed`, as the scheduler counts it"),
    fixed_work::throttled_time("throttled_time", FIXED).meaning(
        "how long a CPU limit held the thread back during `elapsed`, from the `cpu.stat` of its own cgroup; does not \
         apply without a limit",
    ),
    fixed_work::throttled_periods("throttled_periods", FIXED)
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
        let batch = if call.name == FORK_EXEC_WAIT { PROCESS } else { BATCH };
        window(setting).max(Nanos(batch * LEAST_BATCHES as i64)) + AROUND
    };
    let fixed = Nanos(FIXED_CALL.0 * i64::from(fixed_of(setting)));
    METRICS[..CALLS].iter().map(one).fold(fixed, |sum, one| sum + one)
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
        for (index, metric) in METRICS[..CALLS].iter().enumerate() {
            let counters = METRICS[..CALLS]
                .iter()
                .enumerate()
                .map(|(other, one)| (one.name.into(), if other == index { 123_456 } else { 7 }));
            let sample = Sample { counters: counters.collect(), ..Sample::default() };
            assert_eq!(metric.value(&sample), Some(123_456.0 * 1e-12), "{}", metric.name);
            assert_eq!(metric.value(&Sample::default()), None);
        }
    }
}
