//! Puts a load on CPUs for a window of given length, and reads the cgroup's counters and the process's CPU
//! time at both ends of this window.
//!
//! A burst is an amount of CPU time as the scheduler counts it, and a quota counts the same: so the demand is
//! exact under any quota, without a calibration that a quota would distort. The work in that time is counted
//! in turns of a fixed loop; fewer turns per second of CPU time would be time lost. If a burst uses too much,
//! the next one uses less, so that errors do not accumulate.
//!
//! The window begins with a period, if the quota is small enough to show it: the load runs ahead until it has
//! been throttled and continues. It ends that many nanoseconds later, or as soon afterwards as it may run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use dunnage_analysis::experiment::throttle::MOST_BURSTS;
use dunnage_orders::work::{Done, Load, Throttle};

use super::limit::{counters, quota_of};
use super::{Report, unsupported};
use crate::outcome::Failure;
use crate::sys::cgroup::own::{CpuCounters, CpuReading, Quota};
use crate::sys::own_time::{self, Used};
use crate::sys::{affinity, raw};

/// Turns of the loop between two clock readings: about ten microseconds.
const TURNS: u64 = 10_000;
/// A pause of this many nanoseconds may be due to the quota; then the counters are read.
const PAUSE: u64 = 1_000_000;
/// How long the load runs ahead if nothing throttles it: more than two periods of the usual length.
const AHEAD: u64 = 250_000_000;
const MOST_PERIODS: usize = 4096;
const MOST_THREADS: u64 = 64;

/// The load of each thread. Times are in nanoseconds.
#[derive(Clone, Copy)]
struct Task {
    load: Load,
    busy: u64,
    every: u64,
    length: u64,
    /// Bursts of a thread that begin within the window.
    bursts: u64,
}

/// The work of one thread in the window.
struct Lane {
    turns: u64,
    /// Bursts that were done, and bursts that were due.
    done: u64,
    due: u64,
    /// From intended start to end, for each completed burst.
    latencies: Vec<u64>,
}

/// What was done and counted in the window.
struct Seen {
    aligned: bool,
    before: Reading,
    after: Reading,
    periods: Periods,
    lanes: Vec<Lane>,
}

/// Carries the load, and reports what was done and counted.
pub fn work(order: Throttle) -> Result<Done, Failure> {
    let [busy, every, length] = [order.busy, order.every, order.length].map(|nanos| nanos.0.unsigned_abs());
    if [busy, every, length, order.threads].contains(&0) {
        return Err(unsupported("a load needs four numbers above zero"));
    }
    let bursts = if order.load == Load::Continuous { 0 } else { length.div_ceil(every) };
    if order.threads > MOST_THREADS || bursts.saturating_mul(order.threads) > MOST_BURSTS as u64 {
        return Err(unsupported("a load has at most 64 threads and 8192 bursts"));
    }
    let task = Task { load: order.load, busy, every, length, bursts };
    let mut report = Report::default();
    let counters = counters(&mut report);
    let seen = in_the_window(task, order.threads, counters.as_ref())
        .map_err(|_| unsupported("it cannot start its threads"))?;
    report.result("threads", order.threads as i64);
    report.result("cpus", affinity::allowed().map_or(0, |cpus| cpus.len()) as i64);
    report.result("aligned", i64::from(seen.aligned));
    tell(&mut report, task, &seen, quota_of(counters.as_ref()));
    report.series("period_cpu", &seen.periods.used);
    report.done()
}

/// Makes this many threads, including the current one, carry the load in one window.
fn in_the_window(task: Task, count: u64, counters: Option<&CpuCounters>) -> std::io::Result<Seen> {
    // When the window began; zero while the load runs ahead.
    let origin = AtomicU64::new(0);
    let follow = || {
        while origin.load(Ordering::Acquire) == 0 {
            turn();
        }
        carry(task, origin.load(Ordering::Acquire), &mut |_| ())
    };
    thread::scope(|scope| {
        let spawned: std::io::Result<Vec<_>> =
            (1..count).map(|_| thread::Builder::new().spawn_scoped(scope, follow)).collect();
        // Threads that have started find that the window is over.
        let others = spawned.inspect_err(|_| origin.store(1, Ordering::Release))?;
        let aligned = run_ahead(counters);
        let before = Reading::take(counters);
        origin.store(before.at, Ordering::Release);
        let mut periods = Periods::new(&before, quota_of(counters).period);
        let mut lanes = vec![carry(task, before.at, &mut |now| periods.look(now))];
        lanes.extend(others.into_iter().filter_map(|other| other.join().ok()));
        let after = Reading::take(counters);
        periods.look(after.at);
        Ok(Seen { aligned, before, after, periods, lanes })
    })
}

/// Runs the loop this often. Its result is not used, which the compiler does not know.
fn turn() {
    let mut state = core::hint::black_box(1u64);
    for _ in 0..TURNS {
        state = core::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Runs until the quota has throttled this thread and let it continue, which is the beginning of a period.
/// Returns false if that does not happen for a while.
fn run_ahead(counters: Option<&CpuCounters>) -> bool {
    let throttled = || counters?.read()?.throttling.map(|throttling| throttling.throttled);
    let (began, first) = (raw::monotonic(), throttled());
    let mut last = began;
    while last - began < AHEAD {
        turn();
        let now = raw::monotonic();
        let paused = now - last >= PAUSE;
        last = now;
        if paused && first.is_some() && throttled() > first {
            return true;
        }
    }
    false
}

/// Carries the load of one thread to the end of the window; `look` is called often, with the current time.
fn carry(task: Task, origin: u64, look: &mut dyn FnMut(u64)) -> Lane {
    let Task { load, busy, every, length, bursts } = task;
    let end = origin + length;
    let mut latencies = Vec::with_capacity(bursts as usize);
    let _ = own_time::wake_exactly();
    let spent = raw::thread_cpu();
    let mut turns = 0;
    // Runs until the closure returns true or the window is over; returns the last time that was read.
    let mut run = |over: &mut dyn FnMut(u64) -> bool, look: &mut dyn FnMut(u64)| loop {
        turn();
        turns += TURNS;
        let now = raw::monotonic();
        look(now);
        if over(now) {
            return Some(now).filter(|now| *now <= end);
        }
        if now >= end {
            return None;
        }
    };
    let mut now = raw::monotonic();
    let (mut done, mut due) = (0, 0);
    match load {
        Load::Bursts => {
            for number in 0..bursts {
                let intended = origin + number * every;
                due = number + 1;
                if now < intended {
                    own_time::sleep_until(intended);
                    look(raw::monotonic());
                }
                let enough = spent + due * busy;
                let Some(ended) = run(&mut |_| raw::thread_cpu() >= enough, look) else {
                    // Other bursts that became due meanwhile wait too.
                    due = bursts;
                    break;
                };
                latencies.push(ended - intended);
                (now, done) = (ended, due);
            }
        }
        Load::Alternating => {
            for _ in 0..bursts {
                let began = now;
                due += 1;
                let Some(ended) = run(&mut |now| now - began >= busy, look) else { break };
                latencies.push(ended - began);
                done = due;
                own_time::sleep_until((ended + every.saturating_sub(busy)).min(end));
                now = raw::monotonic();
                look(now);
                if now >= end {
                    break;
                }
            }
        }
        Load::Continuous => while run(&mut |_| false, look).is_some() {},
    }
    own_time::sleep_until(end);
    Lane { turns, done, due, latencies }
}

/// What the process had used at a certain time.
struct Reading {
    at: u64,
    used: Used,
    cgroup: Option<CpuReading>,
}

impl Reading {
    fn take(counters: Option<&CpuCounters>) -> Reading {
        let cgroup = counters.and_then(CpuCounters::read);
        Reading { used: own_time::used(), at: raw::monotonic(), cgroup }
    }
}

/// CPU time of the process in each period since the window began.
struct Periods {
    used: Vec<u64>,
    next: u64,
    period: u64,
    spent: u64,
}

impl Periods {
    fn new(before: &Reading, period: u64) -> Periods {
        let spent = own_time::process_cpu();
        Periods { used: Vec::with_capacity(MOST_PERIODS), next: before.at + period, period, spent }
    }

    /// After a pause across the ends of periods, all CPU time was used before it.
    fn look(&mut self, now: u64) {
        while now >= self.next && self.used.len() < MOST_PERIODS {
            let spent = own_time::process_cpu();
            self.used.push(spent - self.spent);
            self.spent = spent;
            self.next += self.period;
        }
    }
}

fn tell(report: &mut Report, task: Task, seen: &Seen, quota: Quota) {
    let Seen { before, after, lanes, .. } = seen;
    let mut say = |name, before: u64, after: u64| report.result(name, after as i64 - before as i64);
    say("window", before.at, after.at);
    say("user", before.used.user, after.used.user);
    say("system", before.used.system, after.used.system);
    if let (Some(first), Some(last)) = (before.cgroup, after.cgroup) {
        say("usage", first.usage, last.usage);
        if let (Some(first), Some(last), Some(each)) = (first.throttling, last.throttling, quota.each) {
            say("quota", 0, each);
            say("quota_period", 0, quota.period);
            say("quota_burst", 0, quota.burst);
            say("periods", first.periods, last.periods);
            say("throttled", first.throttled, last.throttled);
            say("throttled_time", first.waited.0 as u64, last.waited.0 as u64);
        }
        if let (Some(first), Some(last), Some(_)) = (first.bursts, last.bursts, quota.each) {
            say("burst_periods", first.periods, last.periods);
            say("burst_time", first.time, last.time);
        }
    }
    let sum = |of: fn(&Lane) -> u64| lanes.iter().map(of).sum();
    say("load", 0, task.load as u64);
    say("busy", 0, task.busy);
    say("every", 0, task.every);
    say("length", 0, task.length);
    say("turns", 0, sum(|lane| lane.turns));
    if task.load == Load::Continuous {
        return;
    }
    let (done, due) = (sum(|lane| lane.done), sum(|lane| lane.due));
    say("bursts_done", 0, done);
    say("bursts_waiting", done, due);
    let latencies: Vec<u64> = lanes.iter().flat_map(|lane| &lane.latencies).copied().collect();
    report.series("latency", &latencies);
}
