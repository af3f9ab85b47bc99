//! The CPU limit of the probe's cgroup: its value, and its counters over a fixed work.

use super::Report;
use crate::advise::Throttling;
use crate::sys::cgroup::own::{CpuCounters, Quota};
use crate::sys::raw;

/// The period without a quota, in which CPU time is then reported too.
const USUAL_PERIOD: u64 = 100_000_000;

/// The counters of a cgroup that contains only this process.
pub fn counters(report: &mut Report) -> Option<CpuCounters> {
    match CpuCounters::open() {
        Ok(counters) if !counters.is_the_machine() && counters.is_alone() => Some(counters),
        Ok(_) => {
            report.note("counters", "of the process only: other processes are in its cgroup too");
            None
        }
        Err(missing) => {
            report.note("counters", missing);
            None
        }
    }
}

pub fn quota_of(counters: Option<&CpuCounters>) -> Quota {
    let quota = counters.and_then(CpuCounters::quota);
    quota.unwrap_or(Quota { each: None, period: USUAL_PERIOD, burst: 0 })
}

/// Does a fixed work, which returns its CPU time, and reports this and the wall time with this name, and the
/// counters of a limit if there is one. They are read within the wall time: throttling that begins during
/// that reading also delays the clock reading.
pub fn fixed_work(
    report: &mut Report,
    counters: Option<&CpuCounters>,
    name: &str,
    work: impl FnOnce() -> u64,
) {
    let read = || counters?.read()?.throttling;
    let began = raw::monotonic();
    let before = read();
    let cpu = work();
    let after = read();
    let wall = raw::monotonic() - began;
    let mut say = |what: &str, value: u64| report.result(&format!("{name}{what}"), value as i64);
    say("", wall);
    say("_cpu", cpu);
    let limit = before.zip(after).zip(quota_of(counters).each);
    if let Some(((before, after), _)) = limit {
        let Throttling { periods, throttled, waited } = after.since(before);
        say("_periods", periods);
        say("_throttled", throttled);
        say("_throttled_time", waited.0 as u64);
    }
}
