//! What does isolation add to a system call? Each call is made in batches inside a started container, on one
//! CPU, and timed by the probe; starting the container is no part of it.
//!
//! Deliberately absent: how calls are made and timed, which stands in `sys::calls` and `probe::work`, and which
//! part of a container adds it, which is found by leaving parts out (`verdict::cause`).

mod exhibits;

use super::{
    About, Company, Experiment, Metric, Occasion, Setting, SettingKey, Taken, Variation, Weight, work_sample,
    worked,
};
use crate::outcome::{Abort, Sample};
use crate::probe::LEAST_BATCHES;
use crate::stats::Margin;
use crate::subject::spec::parse_duration;
use crate::subject::{Need, RunContext, Subject, Work};
use crate::sys::calls::{self, Call};
use crate::units::{Nanos, Unit};
use crate::verdict::exhibit::{Evidence, Exhibit};

/// The experiment `syscall`.
pub struct Syscall;

/// Its name, and that of the work that the probe does.
const NAME: &str = "syscall";

/// A difference below three nanoseconds is ten cycles of a CPU: less than one more taken branch that was
/// foreseen wrongly, and what moves when a program is laid out differently in memory.
const MARGIN: Margin = Margin::fixed(3e-9, 0.03);

const fn call(call: Call, meaning: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric {
        name: call.name(),
        unit: Unit::Seconds,
        weight: Weight::Verdict,
        margin: MARGIN,
        meaning,
        derive,
    }
}

fn seconds(sample: &Sample, call: Call) -> Option<f64> {
    Some(sample.counter(call.name())? as f64 * 1e-12)
}

static METRICS: [Metric; 12] = [
    call(
        Call::GetPpid,
        "one `getppid` by the `syscall` instruction: the way into the kernel and back, what filters do on it, and a \
         process id that is looked up in the caller's PID namespace",
        |sample| seconds(sample, Call::GetPpid),
    ),
    call(
        Call::GetPid,
        "one `getpid` by the `syscall` instruction: the same with the caller's own process id",
        |sample| seconds(sample, Call::GetPid),
    ),
    call(
        Call::ClockVdso,
        "one `clock_gettime(CLOCK_MONOTONIC)` of libc, which the kernel's vDSO answers inside the program where it \
         can read the clock source there; no system call then, so no filter sees it",
        |sample| seconds(sample, Call::ClockVdso),
    ),
    call(Call::Clock, "one `clock_gettime(CLOCK_MONOTONIC)` by the `syscall` instruction", |sample| {
        seconds(sample, Call::Clock)
    }),
    call(Call::ReadZero, "one `read` of 1 byte from an open /dev/zero", |sample| {
        seconds(sample, Call::ReadZero)
    }),
    call(Call::WriteNull, "one `write` of 1 byte to an open /dev/null", |sample| {
        seconds(sample, Call::WriteNull)
    }),
    call(
        Call::OpenClose,
        "one `openat` of an empty file in memory (`memfd_create`) by its name in an open /proc/self/fd, and one `close`: \
         two calls, and a file that lies on the same filesystem everywhere; the container's root is not passed",
        |sample| seconds(sample, Call::OpenClose),
    ),
    call(Call::Stat, "one `newfstatat` of the same file by the same name, nothing opened", |sample| {
        seconds(sample, Call::Stat)
    }),
    call(Call::FutexWake, "one private `FUTEX_WAKE` of a word for which nobody waits", |sample| {
        seconds(sample, Call::FutexWake)
    }),
    call(
        Call::MapUnmap,
        "one `mmap` of one anonymous page, one write to it, one `munmap`: two calls, and between them a page fault, \
         the page's zeroing and its accounting to the memory cgroup",
        |sample| seconds(sample, Call::MapUnmap),
    ),
    call(
        Call::PipeRoundTrip,
        "one byte through a pipe to another process on the same CPU and another byte back: two writes, two reads and two \
         changes of process",
        |sample| seconds(sample, Call::PipeRoundTrip),
    ),
    call(
        Call::ForkExecWait,
        "`clone` without shared memory, `execve` of the probe itself with a task that ends at once, and `wait4` until it \
         has: holds the libc start of the static executable and its page faults",
        |sample| seconds(sample, Call::ForkExecWait),
    ),
];

static KEYS: [SettingKey; 1] = [SettingKey {
    name: "window",
    values: &["10ms"],
    taken: Taken::Also(takes_a_window),
    meaning: "for how long each call is made again and again, in 100 batches at least and at most 3 million times; `200ms` \
              for 3 million of the shortest",
}];

fn takes_a_window(value: &str) -> Result<(), String> {
    let is_one = parse_duration(value).is_some_and(|seconds| (0.001..=10.0).contains(&seconds));
    if is_one { Ok(()) } else { Err("a time from 1ms to 10s, such as 200ms".into()) }
}

/// What is left out of containers, one at a time, to see which part of the difference goes. A user namespace is
/// what most are without: there it is added.
static VARIED: [Variation; 12] = [
    Variation { key: "seccomp", values: &["off"] },
    Variation { key: "pid", values: &["host"] },
    Variation { key: "net", values: &["host"] },
    Variation { key: "userns", values: &["host", "auto", "private"] },
    Variation { key: "mounts", values: &["host"] },
    Variation { key: "uts", values: &["host"] },
    Variation { key: "ipc", values: &["host"] },
    Variation { key: "cgroup", values: &["host"] },
    Variation { key: "cgroupns", values: &["host"] },
    Variation { key: "overlay", values: &["off"] },
    Variation { key: "capabilities", values: &["all"] },
    Variation { key: "no_new_privs", values: &["off"] },
];

fn window(setting: &Setting) -> Nanos {
    Nanos::from_seconds(setting.get("window").and_then(parse_duration).unwrap_or(0.01))
}

/// What all calls of a sample take: their windows, or the least number of batches where that is more, and what
/// finding the size of the batches takes.
fn takes(setting: &Setting) -> Nanos {
    const AROUND: Nanos = Nanos::from_millis(1);
    /// What a batch takes at least; one with a process in it on most machines.
    const BATCH: i64 = 75_000;
    const PROCESS: i64 = 1_000_000;
    let one = |call: Call| {
        let batch = if call == Call::ForkExecWait { PROCESS } else { BATCH };
        window(setting).max(Nanos(batch * LEAST_BATCHES as i64)) + AROUND
    };
    calls::ALL.into_iter().map(one).fold(Nanos(0), |sum, one| sum + one)
}

static ABOUT: About = About {
    keys: &KEYS,
    varies: &VARIED,
    // Each brings its variants.
    company: Company::Few,
    occasion: Occasion::Often("call"),
    ..About::of(NAME, "what does isolation add to a system call, and which part of it?", Need::Work, &METRICS)
};

impl Experiment for Syscall {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn exhibits(&self, evidence: &Evidence<'_>) -> Vec<Exhibit> {
        exhibits::all(evidence)
    }

    fn measure(
        &self,
        subject: &mut dyn Subject,
        setting: &Setting,
        run: &RunContext,
    ) -> Result<Sample, Abort> {
        let work = Work::new(NAME, vec![window(setting).0.to_string()], takes(setting));
        let launch = worked(subject, run, &work)?;
        Ok(with_failures(work_sample(&launch)?))
    }

    fn cost(&self, setting: &Setting, launch: Nanos) -> Nanos {
        launch + takes(setting)
    }
}

/// Says of each call that failed inside why it has no value.
fn with_failures(mut sample: Sample) -> Sample {
    for call in calls::ALL {
        if let Some(errno) = sample.counter(&format!("{}.errno", call.name())) {
            let error = std::io::Error::from_raw_os_error(errno as i32);
            sample.missing.push((call.name().into(), format!("the call failed inside: {error}")));
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_a_metric() {
        let mut names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        let mut calls: Vec<_> = calls::ALL.into_iter().map(Call::name).collect();
        names.sort_unstable();
        calls.sort_unstable();
        assert_eq!(names, calls);
    }

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
        for (index, metric) in METRICS.iter().enumerate() {
            let counters = METRICS
                .iter()
                .enumerate()
                .map(|(other, one)| (one.name.into(), if other == index { 123_456 } else { 7 }));
            let sample = Sample { counters: counters.collect(), ..Sample::default() };
            assert_eq!((metric.derive)(&sample), Some(123_456.0 * 1e-12), "{}", metric.name);
            assert_eq!((metric.derive)(&Sample::default()), None);
        }
    }

    #[test]
    fn a_call_that_failed_inside_is_missing_with_the_reason() {
        let counters = vec![("stat.errno".into(), i64::from(libc::ENOSYS)), ("getpid".into(), 100_000)];
        let sample = with_failures(Sample { counters, ..Sample::default() });
        assert_eq!(sample.missing.len(), 1);
        assert_eq!(&*sample.missing[0].0, "stat");
        assert!(sample.missing[0].1.contains("not implemented"), "{}", sample.missing[0].1);
    }
}
