//! What does isolation add to a system call? Each call is made in batches inside a started container, on one
//! CPU, and timed by the probe; starting the container is no part of it. Batches that nothing disturbed say what a call takes;
//! a fixed number of calls in a row says what a user waits for, under a limit too.
//!
//! Deliberately absent: how calls are made and timed, which stands in `sys::calls` and `probe::work`, and which
//! part of a container adds it, which is found by leaving parts out (`cause`).

mod cause;
pub mod suspects;
pub mod tables;

use super::fixed_work;
use super::question::{Concern, Event, Experiment, Metric, Scope, Variation};
use super::setting::{Setting, SettingKey, fits};
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::subject::spec::parse_duration;
use crate::units::{Nanos, Unit};

/// Its name, and that of the work that the probe does.
pub const NAME: &str = "syscall";
/// The one call that makes a process.
const FORK_EXEC_WAIT: &str = "fork_exec_wait";
/// In how many batches the probe makes each call at least.
pub const LEAST_BATCHES: usize = 100;

/// A difference below three nanoseconds is ten cycles of a CPU: less than one more taken branch that was
/// foreseen wrongly, and what moves when a program is laid out differently in memory.
const MARGIN: Margin = Margin::fixed(3e-9, 0.03);

const fn call(name: &'static str) -> Metric {
    Metric::named(name, seconds, name).of(Unit::Seconds, MARGIN)
}

fn seconds(sample: &Sample, call: &str) -> Option<f64> {
    Some(sample.counter(call)? as f64 * 1e-12)
}

/// How many of the metrics are calls; the others are of many in a row.
pub const CALLS: usize = 12;
/// What a call of the fixed work takes, for the prediction.
const FIXED_CALL: Nanos = Nanos(150);
/// By which name the probe reports it.
const FIXED: &str = "fixed";

/// One for each call, and what a user waits for.
pub static METRICS: [Metric; 16] = [
    call("getppid").meaning(
        "one `getppid` by the `syscall` instruction: the way into the kernel and back, what filters do \
         on it, and a process id that is looked up in the caller's PID namespace",
    ),
    call("getpid")
        .meaning("one `getpid` by the `syscall` instruction: the same with the caller's own process id"),
    call("clock_vdso").meaning(
        "one `clock_gettime(CLOCK_MONOTONIC)` of libc, which the kernel's vDSO answers inside the \
         program where it can read the clock source there; no system call then, so no filter sees it",
    ),
    call("clock_gettime").meaning("one `clock_gettime(CLOCK_MONOTONIC)` by the `syscall` instruction"),
    call("read_zero").meaning("one `read` of 1 byte from an open /dev/zero"),
    call("write_null").meaning("one `write` of 1 byte to an open /dev/null"),
    call("open_close").meaning(
        "one `openat` of an empty file in memory (`memfd_create`) by its name in an open /proc/self/fd, \
         and one `close`: two calls, and a file that lies on the same filesystem everywhere; the \
         container's root is not passed",
    ),
    call("stat").meaning("one `newfstatat` of the same file by the same name, nothing opened"),
    call("futex_wake").meaning("one private `FUTEX_WAKE` of a word for which nobody waits"),
    call("mmap_munmap").meaning(
        "one `mmap` of one anonymous page, one write to it, one `munmap`: two calls, and between them a \
         page fault, the page's zeroing and its accounting to the memory cgroup",
    ),
    call("pipe_round_trip").meaning(
        "one byte through a pipe to another process on the same CPU and another byte back: two writes, \
         two reads and two changes of process",
    ),
    call(FORK_EXEC_WAIT).meaning(
        "`clone` without shared memory, `execve` of the probe itself with a task that ends at once, and \
         `wait4` until it has: holds the libc start of the static executable and its page faults",
    ),
    fixed_work::elapsed("elapsed", FIXED).of(Unit::Seconds, Margin::fixed(0.0, 0.03)).meaning(
        "4 million `getppid` in a row, from before the first to after the last, with whatever holds them up: a CPU limit, \
         others on the CPU. What a user waits for; not a time of one call",
    ),
    fixed_work::cpu_time("cpu_time", FIXED).meaning("CPU time of the thread during `elapsed`, by the scheduler's count"),
    fixed_work::throttled_time("throttled_time", FIXED).meaning(
        "how long a CPU limit held the thread back during `elapsed`, by the `cpu.stat` of its own cgroup; without a limit it \
         does not apply",
    ),
    fixed_work::throttled_periods("throttled_periods", FIXED)
        .meaning("in how many of the limit's periods that was (`nr_throttled`)"),
];

static KEYS: [SettingKey; 1] = [SettingKey::of("window", &["10ms"]).or(takes_a_window).meaning(
    "for how long each call is made again and again, in 100 batches at least and at most 3 million \
          times; `200ms` for 3 million of the shortest",
)];

static GUARDED: [SettingKey; 1] = [SettingKey::of("fixed", &["4000000"])
    .or(|value| fits(matches!(value.parse(), Ok(0..=1_000_000_000)), "a whole number from 0 to 1000000000"))
    .meaning("how many `getppid` in a row are the fixed work of `elapsed`; 0 for none")];

/// How many calls in a row are the fixed work.
pub fn fixed_of(setting: &Setting) -> u32 {
    setting.get("fixed").unwrap_or(GUARDED[0].values[0]).parse().unwrap_or(0)
}

fn takes_a_window(value: &str) -> Result<(), String> {
    let is_one = parse_duration(value).is_some_and(|seconds| (0.001..=10.0).contains(&seconds));
    fits(is_one, "a time from 1ms to 10s, such as 200ms")
}

/// For how long each call is made.
pub fn window(setting: &Setting) -> Nanos {
    Nanos::from_seconds(setting.get("window").and_then(parse_duration).unwrap_or(0.01))
}

/// What all calls of a sample take: those in a row, and their windows, or the least number of batches where that is more, and what
/// finding the size of the batches takes.
pub fn takes(setting: &Setting) -> Nanos {
    const AROUND: Nanos = Nanos::from_millis(1);
    /// What a batch takes at least; one with a process in it on most machines.
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
    // A quarter of the calls in a row, which a limit still stretches over several periods.
    quick_values: |key| if key.name == "fixed" { &["1000000"] } else { key.values },
    // What is left out of containers, one at a time, to see which part of the difference goes. A user namespace is
    // what most are without: there it is added.
    varies: &[
        Variation::of("seccomp", &["off"]),
        Variation::of("pid", &["host"]),
        Variation::of("net", &["host"]),
        Variation::of("userns", &["host", "auto", "private"]),
        Variation::of("mounts", &["host"]),
        Variation::of("uts", &["host"]),
        Variation::of("ipc", &["host"]),
        Variation::of("cgroup", &["host"]),
        Variation::of("cgroupns", &["host"]),
        Variation::of("overlay", &["off"]),
        Variation::of("capabilities", &["all"]),
        Variation::of("no_new_privs", &["off"]),
    ],
    // Each brings its variants.
    scope: Scope::Few,
    event: Event::Often("call"),
    concern: Some(Concern {
        job: "many system calls",
        remedy: "make fewer and larger calls; what causes it, the table of causes says",
    }),
    cost: |setting, launch| launch + takes(setting),
    computes: true,
    ..Experiment::of(
        NAME,
        "what does isolation add to a system call, and which part of it?",
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
