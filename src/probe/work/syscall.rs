//! What does a system call take? Each call of `sys::calls` is made in batches on one CPU, and what it takes
//! is told from the batches that nothing disturbed.
//!
//! A batch is long beside two readings of the clock and short beside the time between two interruptions by
//! timers and other programs. Whatever disturbs (an interrupt, another program's turn, a busy sibling of the
//! CPU) only ever makes batches longer, so what is told is a low quantile over batches: one in fifty took
//! no longer. A minimum would fall with the number of batches, of which the slower subject has fewer in the same
//! window; for the same reason every call has a hundred of them at least, however long they take. A median
//! moves with the load of the machine as soon as half of the time is disturbed. The calls take turns in several passes, so that a disturbance of some
//! milliseconds is spread over all of them. What two readings of the clock take is measured in the same way, with
//! batches of no call, and taken off. The batches that found the right size have warmed the call's path, and
//! do not count.
//!
//! Deliberately absent: whatever happens before and after a batch, and a mean, which would hold every
//! interruption.

use core::ffi::CStr;

use super::super::{LEAST_BATCHES, NOTHING};
use super::limit::{counters, fixed_work};
use super::{Report, Words};
use crate::sys::affinity;
use crate::sys::calls::{self, Bench, Call, Program};
use crate::sys::cgroup::own::CpuCounters;
use crate::sys::raw;

/// The least that a batch takes, in nanoseconds: some thousand times what the clock resolves and some
/// hundred times what reading it takes.
const LEAST: u64 = 50_000;
/// The most batches of one call; with longer windows they get longer.
const MOST_BATCHES: usize = 2000;
/// No call is made more often than this, however long the window.
const MOST_CALLS: usize = 3_000_000;
/// How often all calls take their turns.
const PASSES: usize = 5;
/// Batches of no call, by which the clock is measured.
const EMPTY_BATCHES: usize = 255;
/// One batch in so many took no longer than what is told.
const QUANTILE: usize = 50;

/// The batches of one call so far.
struct Series {
    call: Call,
    /// Calls a batch.
    size: usize,
    /// What reading the clock twice takes, in nanoseconds.
    clock: u32,
    /// Of its batches.
    durations: Vec<u32>,
    /// The error number with which it failed.
    failed: Option<i32>,
}

/// `syscall WINDOW COUNT [CALL…]`: makes every call, or those named, for so many nanoseconds each, and the first of all so
/// often in a row. Reports picoseconds, how many calls were made, and in how many batches; and of those in a row wall and CPU
/// time, and what a CPU limit did meanwhile.
pub fn work(words: Words, report: &mut Report<'_, '_>) {
    let Some(window) = words.number(0).filter(|window| *window > 0) else {
        return report.refuse("`syscall` needs a window in nanoseconds");
    };
    match pinned() {
        Ok(cpu) => report.result("cpu", cpu as i64),
        Err(_) => return report.refuse("it cannot be bound to a CPU"),
    }
    // The partner of a pipe comes into the cgroup later, and only answers.
    let counters = counters(report);
    let path = rustix::param::linux_execfn();
    let Ok(mut bench) = Bench::new(Program { path, arguments: [path, c"probe", NOTHING] }) else {
        return report.refuse("it has no /proc, no /dev/zero or no /dev/null, or no file in memory");
    };
    conditions(report);
    let asked = |call: Call| {
        let is_it = |word: &CStr| word.to_bytes() == call.name.as_bytes();
        words.get(2).is_none() || (2..=calls::ALL.len() + 1).filter_map(|index| words.get(index)).any(is_it)
    };
    let mut all: Vec<Series> = calls::ALL.into_iter().filter(|call| asked(*call)).map(Series::new).collect();
    for series in &mut all {
        series.get_ready(&mut bench, window);
    }
    for pass in 1..=PASSES {
        for series in &mut all {
            series.go_on(&mut bench, window, pass);
        }
    }
    in_a_row(words.number(1).unwrap_or(0) as usize, &mut bench, counters.as_ref(), report);
    for series in &mut all {
        let name = series.call.name;
        match series.failed {
            Some(errno) => report.result(&format!("{name}.errno"), i64::from(errno)),
            None => {
                report.result(name, series.picoseconds() as i64);
                report.result(&format!("{name}.calls"), series.calls() as i64);
                report.result(&format!("{name}.batches"), series.durations.len() as i64);
            }
        }
    }
}

/// So many calls without a look at the clock; none are reported of which one failed.
fn in_a_row(
    count: usize,
    bench: &mut Bench<'_>,
    counters: Option<&CpuCounters>,
    report: &mut Report<'_, '_>,
) {
    let call = calls::ALL[0];
    if count == 0 || bench.repeat(call, 1).is_err() {
        return;
    }
    fixed_work(report, counters, "fixed", || {
        let cpu = raw::thread_cpu();
        let _ = bench.repeat(call, count);
        raw::thread_cpu() - cpu
    });
}

/// Binds this process to the last CPU that it is allowed: the first ones serve most interrupts.
fn pinned() -> std::io::Result<usize> {
    let cpu = *affinity::allowed()?.last().ok_or(std::io::ErrorKind::NotFound)?;
    affinity::bind_to(cpu)?;
    Ok(cpu)
}

/// What the kernel does about speculation in this process, in the words of `/proc/self/status`, how many
/// filters a call passes, and whether there is a vDSO.
fn conditions(report: &mut Report<'_, '_>) {
    report.note("vdso", if calls::has_vdso() { "present" } else { "absent" });
    let lines = [
        ("store_bypass", "Speculation_Store_Bypass:"),
        ("indirect_branch", "SpeculationIndirectBranch:"),
        ("seccomp_filters", "Seccomp_filters:"),
    ];
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for (name, begin) in lines {
        if let Some(rest) = status.lines().find_map(|line| line.strip_prefix(begin)) {
            report.note(name, rest.trim());
        }
    }
}

impl Series {
    fn new(call: Call) -> Series {
        Series { call, size: 1, clock: 0, durations: Vec::with_capacity(MOST_BATCHES), failed: None }
    }

    /// Finds the size of its batches, and what the clock takes.
    fn get_ready(&mut self, bench: &mut Bench<'_>, window: u64) {
        let least = LEAST.max(window / MOST_BATCHES as u64);
        if let Err(errno) = self.sized(bench, u32::try_from(least).unwrap_or(u32::MAX)) {
            self.failed = Some(errno);
        }
    }

    fn sized(&mut self, bench: &mut Bench<'_>, least: u32) -> Result<(), i32> {
        // Twice in a row, so that an interruption does not make it too small; and never so large that there
        // are calls left for fewer batches than there have to be.
        while self.size * 2 * LEAST_BATCHES <= MOST_CALLS
            && (batch(bench, self.call, self.size)? < least || batch(bench, self.call, self.size)? < least)
        {
            self.size *= 2;
        }
        let empty = (0..EMPTY_BATCHES).map(|_| batch(bench, self.call, 0));
        self.clock = low(&mut empty.collect::<Result<Vec<u32>, _>>()?);
        Ok(())
    }

    /// Takes its turn in this pass, counted from 1: its part of the window, and of the least.
    fn go_on(&mut self, bench: &mut Bench<'_>, window: u64, pass: usize) {
        let began = raw::monotonic();
        let part = |all: usize| all * pass / PASSES;
        let (least, most) = (part(LEAST_BATCHES), part((MOST_CALLS / self.size).min(MOST_BATCHES)));
        while self.failed.is_none()
            && self.durations.len() < most
            && (self.durations.len() < least || raw::monotonic() - began < window / PASSES as u64)
        {
            match batch(bench, self.call, self.size) {
                Ok(duration) => self.durations.push(duration),
                Err(errno) => self.failed = Some(errno),
            }
        }
    }

    fn calls(&self) -> usize {
        self.size * self.durations.len()
    }

    fn picoseconds(&mut self) -> u64 {
        let duration = low(&mut self.durations);
        u64::from(duration.saturating_sub(self.clock)) * 1000 / self.size as u64
    }
}

/// How long so many calls took, with the two readings of the clock.
#[inline(never)]
fn batch(bench: &mut Bench<'_>, call: Call, size: usize) -> Result<u32, i32> {
    let began = raw::monotonic();
    bench.repeat(call, size)?;
    Ok(u32::try_from(raw::monotonic() - began).unwrap_or(u32::MAX))
}

/// One in fifty is not longer. Between two batches where fifty does not divide their number, so that it is the
/// same quantile of many and of few; the shortest of fewer than fifty.
fn low(durations: &mut [u32]) -> u32 {
    durations.sort_unstable();
    let (whole, rest) = (durations.len() / QUANTILE, durations.len() % QUANTILE);
    let Some(below) = whole.checked_sub(1).map(|index| durations[index]) else { return durations[0] };
    let above = durations[whole.min(durations.len() - 1)];
    below + ((above - below) as usize * rest / QUANTILE) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: Program<'_> = Program { path: c"/nonexistent", arguments: [c"x"; 3] };

    fn named(name: &str) -> Call {
        calls::ALL.into_iter().find(|call| call.name == name).unwrap()
    }

    fn measured(call: Call, window: u64) -> Series {
        let mut bench = Bench::new(NOWHERE).unwrap();
        let mut series = Series::new(call);
        series.get_ready(&mut bench, window);
        (1..=PASSES).for_each(|pass| series.go_on(&mut bench, window, pass));
        series
    }

    #[test]
    fn what_is_told_is_a_short_batch_but_not_the_shortest_of_many() {
        let mut durations: [u32; 500] = std::array::from_fn(|index| 500 - index as u32);
        assert_eq!([low(&mut durations), low(&mut durations[..100]), low(&mut durations[..49])], [10, 2, 1]);
        assert_eq!(low(&mut durations[..1]), 1);
    }

    #[test]
    fn what_stands_beside_published_calls_is_named_as_it_is() {
        use crate::reference::counterpart::{Counterpart, of};
        let calls = crate::reference::sources().iter().flat_map(|source| &source.numbers);
        let same = calls.filter(|one| one.metric == "call_time").find_map(|one| match of(one) {
            Counterpart::Metric(same) => Some(same),
            _ => None,
        });
        let named = format!("ours the {} % quantile over batches", 100 / QUANTILE);
        assert!(same.is_some_and(|same| same.differs.contains(&named)), "{same:?}");
    }

    #[test]
    fn what_is_told_of_few_batches_is_the_same_quantile_as_of_many() {
        let of = |count: u32| low(&mut (0..count).map(|index| index * 5000 / count).collect::<Vec<_>>());
        for count in LEAST_BATCHES..=MOST_BATCHES {
            // Fifty does not always divide their number, and the first of so many stands at zero.
            let told = of(count as u32) as usize;
            assert!((50..=100).contains(&told), "{count}: {told}");
        }
        assert!(of(149) > of(101), "{} {}", of(149), of(101));
    }

    #[test]
    fn every_call_takes_some_time_and_is_made_as_often_as_is_said() {
        for call in calls::ALL.into_iter().filter(|call| call.name != "fork_exec_wait") {
            let mut series = measured(call, 2_000_000);
            assert_eq!(series.failed, None, "{}", call.name);
            assert!(series.picoseconds() > 0, "{}", call.name);
            assert!((LEAST_BATCHES..=MOST_BATCHES).contains(&series.durations.len()), "{}", call.name);
            assert_eq!(series.calls(), series.size * series.durations.len());
        }
    }

    #[test]
    fn a_call_that_fails_is_said_and_not_made_again() {
        let series = measured(named("fork_exec_wait"), 1);
        assert_eq!((series.failed, series.durations.len()), (Some(libc::ENOEXEC), 0));
    }

    #[test]
    fn no_call_is_made_more_often_than_is_said_however_long_the_window() {
        let series = measured(named("clock_vdso"), 400_000_000);
        assert!(series.calls() <= MOST_CALLS);
    }

    #[test]
    fn a_window_of_seconds_leaves_batches_enough_and_a_short_one_too() {
        for window in [1, 10_000_000_000] {
            let mut bench = Bench::new(NOWHERE).unwrap();
            let mut series = Series::new(named("getpid"));
            series.get_ready(&mut bench, window);
            (1..=PASSES).for_each(|pass| series.go_on(&mut bench, window.min(1_000_000), pass));
            assert!(
                (LEAST_BATCHES..=MOST_BATCHES).contains(&series.durations.len()),
                "{window}: {}",
                series.durations.len()
            );
            assert!(series.size * LEAST_BATCHES <= MOST_CALLS, "{window}: {}", series.size);
        }
    }
}
