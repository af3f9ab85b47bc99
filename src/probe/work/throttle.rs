//! Puts a load on CPUs for a window of given length, and reads at both ends of that very window what the
//! cgroup counted and what the process used.
//!
//! A burst is an amount of CPU time as the scheduler counts it, which is what a quota counts too: so the
//! demand is exact under any quota, without a calibration that a quota would spoil. What is done
//! in that time is counted in turns of a fixed loop; fewer turns in a second of CPU time would be time lost.
//! What one burst used too much, the next has less, so that nothing adds up.
//!
//! The window begins when a period does, where the quota is small enough to show it: the load runs ahead
//! until it was throttled and goes on. It ends as many nanoseconds later, or as soon after as it is let run.

use core::sync::atomic::{AtomicU64, Ordering, Ordering::Relaxed};

use super::{Report, Words};
use crate::sys::cgroup::own::{CpuCounters, CpuReading};
use crate::sys::own_time::{self, Used};
use crate::sys::{affinity, raw, threads};

/// Turns of the loop between two looks at the clock: some ten microseconds.
const TURNS: u64 = 10_000;
/// A pause of this many nanoseconds may have been the quota's; the counters are asked.
const PAUSE: u64 = 1_000_000;
/// How long the load runs ahead where nothing throttles it: more than two periods of the usual length.
const AHEAD: u64 = 250_000_000;
/// The period where there is no quota, by which CPU time is told then too.
const USUAL_PERIOD: u64 = 100_000_000;
use dunnage_analysis::experiment::throttle::MOST_BURSTS;
const MOST_PERIODS: usize = 4096;
const MOST_THREADS: usize = 64;

const CONTINUOUS: u64 = 0;
const BURSTS: u64 = 1;
const ALTERNATING: u64 = 2;

/// What all threads share. What was asked for is written before they are let go.
struct Shared {
    load: AtomicU64,
    busy: AtomicU64,
    every: AtomicU64,
    length: AtomicU64,
    /// Bursts of a thread that begin within the window.
    bursts: AtomicU64,
    /// When the window began; zero as long as the load runs ahead.
    origin: AtomicU64,
    lanes: [Lane; MOST_THREADS],
    /// From intended start to end of each burst that was done, a thread's after another's; zero of others.
    latencies: [AtomicU64; MOST_BURSTS],
}

/// What one thread did in the window.
struct Lane {
    turns: AtomicU64,
    /// Bursts that were done, and those that should have begun.
    done: AtomicU64,
    due: AtomicU64,
}

static SHARED: Shared = Shared {
    load: AtomicU64::new(0),
    busy: AtomicU64::new(0),
    every: AtomicU64::new(0),
    length: AtomicU64::new(0),
    bursts: AtomicU64::new(0),
    origin: AtomicU64::new(0),
    lanes: [const { Lane { turns: AtomicU64::new(0), done: AtomicU64::new(0), due: AtomicU64::new(0) } };
        MOST_THREADS],
    latencies: [const { AtomicU64::new(0) }; MOST_BURSTS],
};

/// `throttle LOAD BUSY EVERY THREADS LENGTH`, all times in nanoseconds.
pub fn work(words: Words, report: &mut Report<'_>) {
    let load = match words.get(0).map(|word| word.to_bytes()) {
        Some(b"continuous") => CONTINUOUS,
        Some(b"bursts") => BURSTS,
        Some(b"alternating") => ALTERNATING,
        _ => return report.refuse("`throttle` needs a load: continuous, bursts or alternating"),
    };
    let number = |index| words.number(index).filter(|number| *number > 0);
    let (Some(busy), Some(every), Some(count), Some(length)) = (number(1), number(2), number(3), number(4))
    else {
        return report.refuse("`throttle` needs four numbers above zero after its load");
    };
    let bursts = if load == CONTINUOUS { 0 } else { length.div_ceil(every) };
    if count > MOST_THREADS as u64 || bursts.saturating_mul(count) > MOST_BURSTS as u64 {
        return report.refuse("there is room for 64 threads and 8192 bursts");
    }
    for (place, value) in [
        (&SHARED.load, load),
        (&SHARED.busy, busy),
        (&SHARED.every, every),
        (&SHARED.length, length),
        (&SHARED.bursts, bursts),
    ] {
        place.store(value, Relaxed);
    }
    let counters = counters(report);
    let mut others: [Option<threads::Thread>; MOST_THREADS] = [const { None }; MOST_THREADS];
    for index in 1..count as usize {
        match threads::start(follow, &SHARED, index) {
            Ok(thread) => others[index] = Some(thread),
            Err(_) => {
                // Those that were started find a window that is over.
                SHARED.origin.store(1, Ordering::Release);
                others.into_iter().flatten().for_each(threads::Thread::join);
                return report.refuse("its threads cannot be started");
            }
        }
    }
    let aligned = run_ahead(counters.as_ref());
    let before = Reading::take(counters.as_ref());
    SHARED.origin.store(before.at, Ordering::Release);
    let mut periods = Periods::new(&before, quota_of(counters.as_ref()).period);
    carry(&SHARED, 0, &mut |now| periods.look(now));
    others.into_iter().flatten().for_each(threads::Thread::join);
    let after = Reading::take(counters.as_ref());
    periods.look(after.at);
    report.result("threads", count as i64);
    report.result("cpus", affinity::allowed().map_or(0, |set| set.count()) as i64);
    report.result("aligned", i64::from(aligned));
    tell(report, &before, &after, quota_of(counters.as_ref()));
    report.series("period_cpu", &periods.used[..periods.count]);
}

/// The counters of a cgroup that holds nothing but this process.
fn counters(report: &mut Report<'_>) -> Option<CpuCounters> {
    match CpuCounters::open() {
        Ok(counters) if !counters.is_the_machine() && counters.is_alone() => Some(counters),
        Ok(_) => {
            report.note("counters", b"of the process only: others are in its cgroup too");
            None
        }
        Err(missing) => {
            report.note("counters", missing.what.as_bytes());
            None
        }
    }
}

/// The quota in nanoseconds, `each` being none where there is none.
struct Quota {
    each: Option<u64>,
    period: u64,
    burst: u64,
}

fn quota_of(counters: Option<&CpuCounters>) -> Quota {
    let micros = |micros: u64| micros.saturating_mul(1000);
    match counters.map(CpuCounters::quota) {
        Some(Ok(quota)) => Quota {
            each: quota.quota.map(micros),
            period: micros(quota.period.max(1)),
            burst: micros(quota.burst.unwrap_or(0)),
        },
        _ => Quota { each: None, period: USUAL_PERIOD, burst: 0 },
    }
}

/// Does the loop so many times. Its result is used by nobody, and the compiler does not know that.
fn turn() {
    let mut state = core::hint::black_box(1u64);
    for _ in 0..TURNS {
        state = core::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Runs until the quota has throttled this thread and let it go on, which is when a period begins. False
/// where that did not happen for a while.
fn run_ahead(counters: Option<&CpuCounters>) -> bool {
    let throttled = || counters?.read().ok()?.throttling.map(|throttling| throttling.throttled);
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

/// Another thread's whole life: it runs ahead too, then carries its part of the load.
fn follow(shared: &'static Shared, index: usize) {
    while shared.origin.load(Ordering::Acquire) == 0 {
        turn();
    }
    carry(shared, index, &mut |_| ());
}

/// Carries the load of one thread to the end of the window; `look` is called often, with the moment.
fn carry(shared: &Shared, index: usize, look: &mut dyn FnMut(u64)) {
    let [load, busy, every, length, bursts, origin] =
        [&shared.load, &shared.busy, &shared.every, &shared.length, &shared.bursts, &shared.origin]
            .map(|place| place.load(Relaxed));
    let (end, lane) = (origin + length, &shared.lanes[index]);
    let first = index * bursts as usize;
    let latencies = &shared.latencies[first..first + bursts as usize];
    let _ = own_time::wake_exactly();
    let spent = threads::cpu_time();
    let mut turns = 0;
    // Until this returns true, or the window is over; the last moment that was seen.
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
        BURSTS => {
            for (number, latency) in (0..bursts).zip(latencies) {
                let intended = origin + number * every;
                due = number + 1;
                if now < intended {
                    own_time::sleep_until(intended);
                    look(raw::monotonic());
                }
                let enough = spent + due * busy;
                let Some(ended) = run(&mut |_| threads::cpu_time() >= enough, look) else {
                    // Others that should have begun meanwhile wait too.
                    due = bursts;
                    break;
                };
                latency.store(ended - intended, Relaxed);
                (now, done) = (ended, due);
            }
        }
        ALTERNATING => {
            for latency in latencies {
                let began = now;
                due += 1;
                let Some(ended) = run(&mut |now| now - began >= busy, look) else { break };
                latency.store(ended - began, Relaxed);
                done = due;
                own_time::sleep_until((ended + every.saturating_sub(busy)).min(end));
                now = raw::monotonic();
                look(now);
                if now >= end {
                    break;
                }
            }
        }
        _ => while run(&mut |_| false, look).is_some() {},
    }
    own_time::sleep_until(end);
    for (place, value) in [(&lane.turns, turns), (&lane.done, done), (&lane.due, due)] {
        place.store(value, Relaxed);
    }
}

/// What the process had used by a moment.
struct Reading {
    at: u64,
    used: Used,
    cgroup: Option<CpuReading>,
}

impl Reading {
    fn take(counters: Option<&CpuCounters>) -> Reading {
        let cgroup = counters.and_then(|counters| counters.read().ok());
        Reading { used: own_time::used(), at: raw::monotonic(), cgroup }
    }
}

/// CPU time of the process in each period since the window began.
struct Periods {
    used: [u64; MOST_PERIODS],
    count: usize,
    next: u64,
    period: u64,
    spent: u64,
}

impl Periods {
    fn new(before: &Reading, period: u64) -> Periods {
        let spent = own_time::process_cpu();
        Periods { used: [0; MOST_PERIODS], count: 0, next: before.at + period, period, spent }
    }

    /// After a pause over the end of periods, what was used was used before it.
    fn look(&mut self, now: u64) {
        while now >= self.next && self.count < MOST_PERIODS {
            let spent = own_time::process_cpu();
            self.used[self.count] = spent - self.spent;
            self.spent = spent;
            self.count += 1;
            self.next += self.period;
        }
    }
}

fn tell(report: &mut Report<'_>, before: &Reading, after: &Reading, quota: Quota) {
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
            say("throttled_time", first.time, last.time);
        }
        if let (Some(first), Some(last), Some(_)) = (first.bursts, last.bursts, quota.each) {
            say("burst_periods", first.periods, last.periods);
            say("burst_time", first.time, last.time);
        }
    }
    let sum = |of: fn(&Lane) -> &AtomicU64| SHARED.lanes.iter().map(|lane| of(lane).load(Relaxed)).sum();
    for (name, place) in [("load", &SHARED.load), ("busy", &SHARED.busy), ("every", &SHARED.every)] {
        say(name, 0, place.load(Relaxed));
    }
    say("length", 0, SHARED.length.load(Relaxed));
    say("turns", 0, sum(|lane| &lane.turns));
    if SHARED.load.load(Relaxed) == CONTINUOUS {
        return;
    }
    let (done, due) = (sum(|lane| &lane.done), sum(|lane| &lane.due));
    say("bursts_done", 0, done);
    say("bursts_waiting", done, due);
    let mut latencies = [0; MOST_BURSTS];
    let mut count = 0;
    for latency in SHARED.latencies.iter().map(|one| one.load(Relaxed)).filter(|latency| *latency > 0) {
        latencies[count] = latency;
        count += 1;
    }
    report.series("latency", &latencies[..count]);
}
