//! The CPU limit of the probe's cgroup: its value, and its counters over a fixed work.

use dunnage_orders::work::{Throttled, Whole};

use crate::sys::cgroup::own::{CpuCounters, Quota};
use crate::sys::raw;
use crate::units::Nanos;

/// The period without a quota, in which CPU time is then reported too.
const USUAL_PERIOD: u64 = 100_000_000;

/// The counters of a cgroup that contains only this process, or why there are none.
pub fn counters() -> Result<CpuCounters, String> {
    let counters = CpuCounters::open().map_err(str::to_owned)?;
    if counters.is_the_machine() || !counters.is_alone() {
        return Err("of the process only: other processes are in its cgroup too".to_owned());
    }
    Ok(counters)
}

pub fn quota_of(counters: Option<&CpuCounters>) -> Quota {
    let quota = counters.and_then(CpuCounters::quota);
    quota.unwrap_or(Quota { each: None, period: USUAL_PERIOD, burst: 0 })
}

/// Does a fixed work, which returns its CPU time, and reads the counters of a limit if there is one. They are read within the
/// wall time: throttling that begins during that reading also delays the clock reading.
pub fn fixed_work(counters: Option<&CpuCounters>, work: impl FnOnce() -> u64) -> Whole {
    let read = || counters?.read()?.throttling;
    let began = raw::monotonic();
    let before = read();
    let cpu = work();
    let after = read();
    let wall = raw::monotonic() - began;
    let [took, cpu] = [wall, cpu].map(|nanos| Nanos(nanos as i64));
    let limit = before.zip(after).zip(quota_of(counters).each);
    let limit = limit.map(|((before, after), _)| {
        let counted = after.since(before);
        Throttled { periods: counted.periods, throttled: counted.throttled, time: counted.waited }
    });
    Whole { took, cpu, limit }
}
