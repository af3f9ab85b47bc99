//! The time of a system call. Each call of `sys::calls` is made in batches on one CPU, and its time is
//! derived from undisturbed batches.
//!
//! A batch is long compared with two clock readings and short compared with the time between two
//! interruptions by timers and other programs. Disturbances (an interrupt, another program's time slice, a
//! busy SMT sibling) only make batches longer, so the reported value is a low quantile over batches: one in
//! fifty took no longer. A minimum would fall with the number of batches, of which the slower subject has
//! fewer in the same window; for the same reason every call has at least a hundred batches, however long they
//! take. A median follows the load of the machine as soon as half of the time is disturbed. The calls take
//! turns in several passes, so that a disturbance of some milliseconds is spread over all of them. The time
//! of two clock readings is measured in the same way, with empty batches, and subtracted. The batches that
//! determined the size have warmed up the call's path, and do not count.
//!
//! Deliberately absent: the time before and after a batch, and a mean, which would include every
//! interruption.

use dunnage_orders::work::{Called, Calls, Syscall, Whole};

use super::super::{LEAST_BATCHES, NOTHING};
use super::limit::{counters, fixed_work};
use super::{printable, unsupported};
use crate::outcome::Failure;
use crate::sys::affinity;
use crate::sys::calls::{self, Bench, Call, Program};
use crate::sys::cgroup::own::CpuCounters;
use crate::sys::raw;

/// The shortest batch in nanoseconds: some thousand times the resolution of the clock and some hundred times
/// the cost of reading it.
const LEAST: u64 = 50_000;
/// The most batches of one call; in longer windows batches are longer.
const MOST_BATCHES: usize = 2000;
/// The call of the fixed work.
const FIXED: &str = "getppid";
/// The most repetitions of a call, however long the window.
const MOST_CALLS: usize = 3_000_000;
/// How often all calls take turns.
const PASSES: usize = 5;
/// Empty batches, which measure the clock.
const EMPTY_BATCHES: usize = 255;
/// One batch in this many took no longer than the reported value.
const QUANTILE: usize = 50;

/// The batches of one call so far.
struct Series {
    call: Call,
    /// Calls per batch.
    size: usize,
    /// The cost of reading the clock twice, in nanoseconds.
    clock: u32,
    /// The durations of its batches.
    durations: Vec<u32>,
    /// The error number, if it failed.
    failed: Option<i32>,
}

/// Makes the calls that were asked for, and the first one in sequence.
pub fn work(order: &Syscall) -> Result<Calls, Failure> {
    let window = order.window.0.unsigned_abs();
    if window == 0 {
        return Err(unsupported("a window must be above zero"));
    }
    let cpu = pinned().map_err(|_| unsupported("it cannot bind itself to a CPU"))?;
    // The partner of a pipe joins the cgroup later, and only answers.
    let counters = counters();
    let path = rustix::param::linux_execfn();
    let mut bench = Bench::new(Program { path, arguments: [path, c"probe", NOTHING] })
        .map_err(|_| unsupported("it has no /proc, no /dev/zero or no /dev/null, or no file in memory"))?;
    let status = status();
    let is_asked = |call: &Call| order.calls.is_empty() || order.calls.iter().any(|name| name == call.name);
    let mut all: Vec<Series> = calls::ALL.into_iter().filter(is_asked).map(Series::new).collect();
    for series in &mut all {
        series.get_ready(&mut bench, window);
    }
    for pass in 1..=PASSES {
        for series in &mut all {
            series.go_on(&mut bench, window, pass);
        }
    }
    let fixed = in_a_row(order.fixed as usize, &mut bench, counters.as_ref().ok());
    let each = all.iter_mut().map(|series| (series.call.name.to_owned(), series.told())).collect();
    Ok(Calls { cpu, each, fixed, has_vdso: calls::has_vdso(), status, no_counters: counters.err() })
}

/// This many calls without reading the clock; nothing is measured if one fails.
fn in_a_row(count: usize, bench: &mut Bench<'_>, counters: Option<&CpuCounters>) -> (String, Option<Whole>) {
    let call = *calls::ALL.iter().find(|call| call.name == FIXED).expect("it is one of the calls");
    let words = format!("{count} {} in a row", call.name);
    if count == 0 || bench.repeat(call, 1).is_err() {
        return (words, None);
    }
    let whole = fixed_work(counters, || {
        let cpu = raw::thread_cpu();
        let _ = bench.repeat(call, count);
        raw::thread_cpu() - cpu
    });
    (words, Some(whole))
}

/// Binds this process to the last CPU that it may use: the first ones serve most interrupts.
fn pinned() -> std::io::Result<usize> {
    let cpu = *affinity::allowed()?.last().ok_or(std::io::ErrorKind::NotFound)?;
    affinity::bind_to(cpu)?;
    Ok(cpu)
}

/// The kernel's speculation mitigations for this process, in the words of `/proc/self/status`, and the number of filters that a
/// call passes.
fn status() -> [Option<String>; 3] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ["Speculation_Store_Bypass:", "SpeculationIndirectBranch:", "Seccomp_filters:"].map(|begin| {
        let rest = status.lines().find_map(|line| line.strip_prefix(begin))?;
        Some(printable(rest.trim()))
    })
}

impl Series {
    fn new(call: Call) -> Series {
        Series { call, size: 1, clock: 0, durations: Vec::with_capacity(MOST_BATCHES), failed: None }
    }

    /// Finds the size of its batches, and the cost of the clock.
    fn get_ready(&mut self, bench: &mut Bench<'_>, window: u64) {
        let least = LEAST.max(window / MOST_BATCHES as u64);
        if let Err(errno) = self.sized(bench, u32::try_from(least).unwrap_or(u32::MAX)) {
            self.failed = Some(errno);
        }
    }

    fn sized(&mut self, bench: &mut Bench<'_>, least: u32) -> Result<(), i32> {
        // Twice in sequence, so that an interruption does not make it too small; and never so large that too
        // few calls are left for the required number of batches.
        while self.size * 2 * LEAST_BATCHES <= MOST_CALLS
            && (batch(bench, self.call, self.size)? < least || batch(bench, self.call, self.size)? < least)
        {
            self.size *= 2;
        }
        let empty = (0..EMPTY_BATCHES).map(|_| batch(bench, self.call, 0));
        self.clock = low(&mut empty.collect::<Result<Vec<u32>, _>>()?);
        Ok(())
    }

    /// Does its part of this pass, counted from 1: of the window, and of the required batches.
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

    /// Its result, or its error number.
    fn told(&mut self) -> Result<Called, i32> {
        let (calls, batches) = (self.calls() as u64, self.durations.len() as u64);
        match self.failed {
            Some(errno) => Err(errno),
            None => Ok(Called { picoseconds: self.picoseconds(), calls, batches }),
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

/// The time of this many calls, including the two clock readings.
#[inline(never)]
fn batch(bench: &mut Bench<'_>, call: Call, size: usize) -> Result<u32, i32> {
    let began = raw::monotonic();
    bench.repeat(call, size)?;
    Ok(u32::try_from(raw::monotonic() - began).unwrap_or(u32::MAX))
}

/// One in fifty is not longer. Interpolated if the number of batches is not a multiple of fifty, so that it
/// is the same quantile for many and for few; the shortest of fewer than fifty.
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
        let named = format!("this one the {} % quantile over batches", 100 / QUANTILE);
        assert!(same.is_some_and(|same| same.differs.contains(&named)), "{same:?}");
    }

    #[test]
    fn what_is_told_of_few_batches_is_the_same_quantile_as_of_many() {
        let of = |count: u32| low(&mut (0..count).map(|index| index * 5000 / count).collect::<Vec<_>>());
        for count in LEAST_BATCHES..=MOST_BATCHES {
            // Fifty does not always divide their number, and the first value is zero.
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
