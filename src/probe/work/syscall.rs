//! What does a system call take? Each call of `sys::calls` is made in batches on one CPU, and what it takes
//! is told from the batch in the middle.
//!
//! A batch is long beside two readings of the clock and short beside the time between two interruptions by
//! timers and other programs, so the median over batches holds neither: an interruption makes one batch
//! of many longer. What two readings of the clock take is measured in the same way, with batches of no call, and
//! taken off. The batches that found the right size have warmed the call's path, and do not count.
//!
//! Deliberately absent: whatever happens before and after a batch, and a mean, which would hold every
//! interruption.

use core::ffi::CStr;

use super::super::NOTHING;
use super::{Report, Words};
use crate::sys::affinity::{self, CpuSet};
use crate::sys::calls::{self, Bench, Call, Program};
use crate::sys::raw;

/// The least that a batch takes, in nanoseconds: some thousand times what the clock resolves and some
/// hundred times what reading it takes.
const LEAST: u64 = 50_000;
/// The most batches of one call; with longer windows they get longer.
const MOST_BATCHES: usize = 4096;
/// No call is made more often than this, however long the window.
const MOST_CALLS: usize = 3_000_000;
/// Batches of no call, by which the clock is measured.
const EMPTY_BATCHES: usize = 255;

/// What came of one call.
struct Measured {
    picoseconds: u64,
    calls: usize,
    batches: usize,
}

/// `syscall WINDOW [CALL…]`: makes every call, or those named, for so many nanoseconds each. Reports
/// picoseconds, how many calls were made, and in how many batches.
pub fn work(words: Words, report: &mut Report<'_>) {
    let Some(window) = words.number(0).filter(|window| *window > 0) else {
        return report.refuse("`syscall` needs a window in nanoseconds");
    };
    match pinned() {
        Ok(cpu) => report.result("cpu", cpu as i64),
        Err(_) => return report.refuse("it cannot be bound to a CPU"),
    }
    let path = calls::own_path().unwrap_or(c"/proc/self/exe");
    let none = [Some(path), Some(c"probe"), Some(NOTHING)];
    let Ok(mut bench) = Bench::new(Program { path, arguments: none }) else {
        return report.refuse("it has no /dev/zero or no /dev/null");
    };
    conditions(report);
    let mut durations = [0u32; MOST_BATCHES];
    let asked = |call: Call| {
        let is_it = |word: &CStr| word.to_bytes() == call.name().as_bytes();
        words.get(1).is_none() || (1..=calls::ALL.len()).filter_map(|index| words.get(index)).any(is_it)
    };
    for call in calls::ALL.into_iter().filter(|call| asked(*call)) {
        match measure(&mut bench, call, window, &mut durations) {
            Ok(measured) => {
                report.result(call.name(), measured.picoseconds as i64);
                report.parted_result(call.name(), ".calls", measured.calls as i64);
                report.parted_result(call.name(), ".batches", measured.batches as i64);
            }
            Err(errno) => report.parted_result(call.name(), ".errno", i64::from(errno)),
        }
    }
}

/// Binds this process to the last CPU that it is allowed: the first ones serve most interrupts.
fn pinned() -> Result<usize, i32> {
    let cpu = affinity::allowed()?.iter().last().ok_or(libc::EINVAL)?;
    affinity::bind(&CpuSet::only(cpu))?;
    Ok(cpu)
}

/// What the kernel does about speculation in this process, in the words of `/proc/self/status`, how many
/// filters a call passes, and whether there is a vDSO.
fn conditions(report: &mut Report<'_>) {
    report.note("vdso", if calls::has_vdso() { b"present" } else { b"absent" });
    let lines: [(&str, &[u8]); 3] = [
        ("store_bypass", b"Speculation_Store_Bypass:"),
        ("indirect_branch", b"SpeculationIndirectBranch:"),
        ("seccomp_filters", b"Seccomp_filters:"),
    ];
    let mut status = [0u8; 8192];
    let Ok(file) = raw::open(c"/proc/self/status") else { return };
    let length = raw::read(file, &mut status).unwrap_or(0);
    raw::close(file);
    for (name, begin) in lines {
        let rest = status[..length].split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(begin));
        if let Some(rest) = rest {
            report.note(name, rest.trim_ascii());
        }
    }
}

fn measure(
    bench: &mut Bench<'_>,
    call: Call,
    window: u64,
    durations: &mut [u32; MOST_BATCHES],
) -> Result<Measured, i32> {
    let least = LEAST.max(window / MOST_BATCHES as u64);
    let mut size = 1;
    // Twice in a row, so that an interruption does not make it too small.
    while batch(bench, call, size)? < least || batch(bench, call, size)? < least {
        size *= 2;
    }
    for duration in &mut durations[..EMPTY_BATCHES] {
        *duration = short(batch(bench, call, 0)?);
    }
    let clock = u64::from(middle(&mut durations[..EMPTY_BATCHES]));
    let began = raw::monotonic();
    let most = (MOST_CALLS / size).clamp(1, MOST_BATCHES);
    let mut batches = 0;
    while batches < most && (batches == 0 || raw::monotonic() - began < window) {
        durations[batches] = short(batch(bench, call, size)?);
        batches += 1;
    }
    let median = u64::from(middle(&mut durations[..batches]));
    let picoseconds = median.saturating_sub(clock) * 1000 / size as u64;
    Ok(Measured { picoseconds, calls: size * batches, batches })
}

/// How long so many calls took, with the two readings of the clock.
#[inline(never)]
fn batch(bench: &mut Bench<'_>, call: Call, size: usize) -> Result<u64, i32> {
    let began = raw::monotonic();
    bench.repeat(call, size)?;
    Ok(raw::monotonic() - began)
}

fn short(nanoseconds: u64) -> u32 {
    u32::try_from(nanoseconds).unwrap_or(u32::MAX)
}

/// The lower one of the two in the middle where their number is even.
fn middle(durations: &mut [u32]) -> u32 {
    durations.sort_unstable();
    durations[(durations.len() - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(call: Call, window: u64) -> Measured {
        let program = Program { path: c"/nonexistent", arguments: [None; 3] };
        let mut bench = Bench::new(program).unwrap();
        measure(&mut bench, call, window, &mut [0; MOST_BATCHES]).unwrap()
    }

    #[test]
    fn the_middle_is_a_measured_value() {
        assert_eq!([middle(&mut [5]), middle(&mut [9, 5]), middle(&mut [9, 1, 5])], [5, 5, 5]);
    }

    #[test]
    fn every_call_takes_some_time_and_is_made_as_often_as_is_said() {
        for call in calls::ALL.into_iter().filter(|call| *call != Call::ForkExecWait) {
            let window = 2_000_000;
            let Measured { picoseconds, calls, batches } = measured(call, window);
            assert!(picoseconds > 0, "{}", call.name());
            assert!((1..=MOST_BATCHES).contains(&batches) && calls % batches == 0, "{}", call.name());
            assert!(calls <= MOST_CALLS, "{}", call.name());
        }
    }

    #[test]
    fn a_call_that_fails_has_no_measure() {
        let mut bench = Bench::new(Program { path: c"/nonexistent", arguments: [None; 3] }).unwrap();
        let failed = measure(&mut bench, Call::ForkExecWait, 1, &mut [0; MOST_BATCHES]);
        assert_eq!(failed.map(|measured| measured.calls), Err(libc::ENOEXEC));
    }

    #[test]
    fn no_call_is_made_more_often_than_is_said_however_long_the_window() {
        let measured = measured(Call::ClockVdso, 400_000_000);
        assert!(measured.calls <= MOST_CALLS && measured.batches >= 1);
    }
}
