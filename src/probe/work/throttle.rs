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
use dunnage_orders::work::{self, Bursts, Carried, Counted, Load, Throttle, Throttled};

use super::limit::{counters, quota_of};
use super::unsupported;
use crate::outcome::Failure;
use crate::sys::cgroup::own::{CpuCounters, CpuReading};
use crate::sys::own_time::{self, Used};
use crate::sys::{affinity, raw};
use crate::units::Nanos;

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
pub fn work(order: Throttle) -> Result<Carried, Failure> {
    let [busy, every, length] = [order.busy, order.every, order.length].map(|nanos| nanos.0.unsigned_abs());
    if [busy, every, length, order.threads].contains(&0) {
        return Err(unsupported("a load needs four numbers above zero"));
    }
    let bursts = if order.load == Load::Continuous { 0 } else { length.div_ceil(every) };
    if order.threads > MOST_THREADS || bursts.saturating_mul(order.threads) > MOST_BURSTS as u64 {
        return Err(unsupported("a load has at most 64 threads and 8192 bursts"));
    }
    let task = Task { load: order.load, busy, every, length, bursts };
    let counters = counters();
    let seen = in_the_window(task, order.threads, counters.as_ref().ok())
        .map_err(|_| unsupported("it cannot start its threads"))?;
    Ok(told(task, &seen, counters))
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

fn told(task: Task, seen: &Seen, counters: Result<CpuCounters, String>) -> Carried {
    let Seen { before, after, lanes, .. } = seen;
    let between = |before: u64, after: u64| Nanos(after as i64 - before as i64);
    let unread = || "its cgroup's counters could not be read".to_owned();
    let cgroup = counters.and_then(|own| {
        let (first, last) = before.cgroup.zip(after.cgroup).ok_or_else(unread)?;
        let quota = quota_of(Some(&own));
        let throttling = first.throttling.zip(last.throttling).zip(quota.each);
        let bursts = first.bursts.zip(last.bursts).zip(quota.each);
        Ok(Counted {
            usage: between(first.usage, last.usage),
            quota: throttling.map(|((first, last), each)| {
                let counted = last.since(first);
                let [each, period, burst] = [each, quota.period, quota.burst].map(|nanos| nanos as i64);
                let (periods, throttled, time) = (counted.periods, counted.throttled, counted.waited);
                (work::Quota { each, period, burst }, Throttled { periods, throttled, time })
            }),
            saved: bursts
                .map(|((first, last), _)| (last.periods - first.periods, between(first.time, last.time).0)),
        })
    });
    let sum = |of: fn(&Lane) -> u64| lanes.iter().map(of).sum::<u64>();
    let (done, due) = (sum(|lane| lane.done), sum(|lane| lane.due));
    let latencies = || lanes.iter().flat_map(|lane| &lane.latencies).map(|nanos| *nanos as i64).collect();
    Carried {
        cpus: affinity::allowed().map_or(0, |cpus| cpus.len()),
        aligned: seen.aligned,
        window: between(before.at, after.at),
        user: between(before.used.user, after.used.user),
        system: between(before.used.system, after.used.system),
        cgroup,
        turns: sum(|lane| lane.turns),
        bursts: (task.load != Load::Continuous).then(|| Bursts {
            done,
            waiting: due - done,
            latency: latencies(),
        }),
        period_cpu: seen.periods.used.iter().map(|nanos| *nanos as i64).collect(),
    }
}
