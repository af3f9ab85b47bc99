//! What would a CPU quota do to a load if nothing else took time?
//!
//! The model is the kernel's rule without the kernel's own work: at the beginning of each period the budget
//! is refilled; everything that runs takes from it, on all CPUs together; once it is used up, everything that
//! wants to run waits for the next period. Its numbers are computed exactly from event to event, in whole
//! nanoseconds, over a window that begins with a period, as the probe's does.
//!
//! Some have a closed form, which the tests compare with the replay. A load that never ends, on `k` CPUs
//! under a quota `Q` of each period `P`, uses `min(k, Q/P)` CPUs and waits `P − Q/k` in each period. Bursts
//! of work `w` every `T` are never late if `w ≤ Q` and `T = P`. If `w/T > Q/P`, each waits `w·P/Q − T` longer
//! than the one before: then there is no typical latency, only the speed at which it grows.
//!
//! The kernel adds up waiting time over the run queues, one per CPU, on which something waits; so does this.
//! Deliberately absent: slices (CPUs get the budget in pieces of 5 ms, so that a period can borrow from the
//! next), other load on the machine, and everything random.

/// How much CPU time a cgroup can use in each period; in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// CPU time in each period, of all CPUs together; above 0.
    pub each: u64,
    /// The period; above 0.
    pub period: u64,
    /// How much unused time of earlier periods can be used in addition; usually 0.
    pub burst: u64,
}

/// The demand of each thread; in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// As much as it can get.
    Continuous,
    /// A fixed amount of CPU time at a fixed interval, whether or not the last is done.
    Bursts {
        /// CPU time; above 0.
        work: u64,
        /// From one intended start to the next; above 0.
        every: u64,
    },
    /// As much as it can get until a fixed time has passed on the clock, then nothing, then again.
    Alternating {
        /// Time on the clock until it stops, from its real start; above 0.
        busy: u64,
        /// From the end to the next start.
        idle: u64,
    },
}

/// A load of equal threads, on CPUs that do nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The demand of each thread.
    pub load: Load,
    /// The number of threads; above 0.
    pub threads: u64,
    /// The number of CPUs that they can use; above 0.
    pub cpus: u64,
}

/// Whether work is done as fast as it arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Backlog {
    /// The backlog stays bounded.
    Bounded,
    /// Demand and quota are closer to each other than [`TOLERANCE`]: what is not in the model decides.
    AtTheEdge,
    /// Each burst waits this many seconds longer than the one before.
    Grows(f64),
}

/// The model is accurate to one percent; a demand closer than that to its quota is neither above nor below
/// it.
pub const TOLERANCE: f64 = 0.01;

/// With fewer bursts, fewer than ten are beyond the 90th percentile.
pub const FEWEST_FOR_A_TAIL: usize = 100;

/// The model's result for a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Ideal {
    /// CPU time used, in nanoseconds, by all threads.
    pub usage: u64,
    /// Periods that the kernel would count, which are those with something to do and one after; none
    /// without a quota.
    pub periods: Option<u64>,
    /// Those at whose end something waited.
    pub throttled: u64,
    /// Time spent waiting for the budget, added up over run queues, in nanoseconds.
    pub throttled_time: u64,
    /// For each burst finished in the window, from its intended start to its end, in nanoseconds.
    pub latencies: Vec<u64>,
    /// Bursts that were due but not finished at the end.
    pub waiting: u64,
    /// Whether the backlog grows.
    pub backlog: Backlog,
}

impl Ideal {
    /// Throttled periods as a share of all; none without a quota.
    pub fn throttled_share(&self) -> Option<f64> {
        self.periods.filter(|periods| *periods > 0).map(|periods| self.throttled as f64 / periods as f64)
    }

    /// Waiting in each throttled period, in seconds; none if no period was throttled.
    pub fn throttled_per_period(&self) -> Option<f64> {
        (self.throttled > 0).then(|| self.throttled_time as f64 / 1e9 / self.throttled as f64)
    }
}

impl Demand {
    /// The number of CPUs on which it can run at a time.
    pub fn queues(&self) -> u64 {
        self.threads.min(self.cpus).max(1)
    }

    /// CPUs that it would use without a quota.
    pub fn cpus_wanted(&self) -> f64 {
        let queues = self.queues() as f64;
        match self.load {
            Load::Continuous => queues,
            Load::Bursts { work, every } => {
                (self.threads as f64 * work as f64 / every.max(1) as f64).min(queues)
            }
            Load::Alternating { busy, idle } => queues * busy as f64 / (busy + idle).max(1) as f64,
        }
    }

    /// Whether its demand equals the quota, within [`TOLERANCE`].
    pub fn is_at(&self, quota: Option<Quota>) -> bool {
        let given = quota.map(|quota| quota.each as f64 / quota.period as f64);
        given.is_some_and(|given| (self.cpus_wanted() / given - 1.0).abs() <= TOLERANCE)
    }

    /// Whether the quota is enough for it, by the closed form. Only bursts can pile up.
    pub fn backlog(&self, quota: Option<Quota>) -> Backlog {
        let Load::Bursts { work, every } = self.load else { return Backlog::Bounded };
        let (queues, threads) = (self.queues() as f64, self.threads as f64);
        let given = quota.map_or(queues, |quota| (quota.each as f64 / quota.period as f64).min(queues));
        // As work of one burst of all threads: the demand and the supply from one to the next.
        let (asked, had) = (threads * work as f64, given * every as f64);
        match asked / had {
            ratio if (ratio - 1.0).abs() <= TOLERANCE => Backlog::AtTheEdge,
            ratio if ratio < 1.0 => Backlog::Bounded,
            ratio => Backlog::Grows((ratio - 1.0) * every as f64 / 1e9),
        }
    }
}

/// Simulates a window of this many nanoseconds, which begins with a period and the first burst.
pub fn ideal(quota: Option<Quota>, demand: Demand, window: u64) -> Ideal {
    let queues = demand.queues();
    // All threads are equal, so all queues are: one is simulated, with its share of budget and work.
    let stretched = |work: u64| (work as u128 * demand.threads as u128 / queues as u128) as u64;
    let mut queue = Queue::new(quota, queues, window);
    let (mut latencies, mut waiting) = (Vec::new(), 0);
    match demand.load {
        Load::Continuous => {
            queue.run(Until::Done(u64::MAX));
        }
        Load::Bursts { work, every } => {
            let mut intended = 0;
            while intended < window {
                queue.idle_until(intended);
                match queue.now < window && queue.run(Until::Done(stretched(work))) {
                    true => latencies.push(queue.now - intended),
                    false => waiting += 1,
                }
                intended += every.max(1);
            }
        }
        Load::Alternating { busy, idle } => {
            while queue.now < window {
                let began = queue.now;
                if queue.run(Until::Clock(began.saturating_add(busy.max(1)))) {
                    latencies.push(queue.now - began);
                }
                queue.idle_until(queue.now.saturating_add(idle));
            }
        }
    }
    queue.idle_until(window);
    Ideal {
        usage: queue.busy * queues,
        periods: quota.map(|_| queue.periods),
        throttled: queue.throttled,
        throttled_time: queue.waited * queues,
        latencies,
        waiting,
        backlog: demand.backlog(quota),
    }
}

/// When a run ends.
#[derive(Clone, Copy)]
enum Until {
    /// After this much work.
    Done(u64),
    /// When the clock shows this time, once it runs.
    Clock(u64),
}

/// One run queue with its share of the budget, from the beginning of the window to `now`.
struct Queue {
    now: u64,
    end: u64,
    /// None without a quota.
    rule: Option<Share>,
    budget: u64,
    boundary: u64,
    busy: u64,
    waited: u64,
    periods: u64,
    throttled: u64,
    /// Whether the kernel's timer of periods runs, and whether nothing was used since it last fired.
    timer: Timer,
}

#[derive(Clone, Copy)]
struct Share {
    each: u64,
    period: u64,
    most: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Timer {
    Off,
    Used,
    Unused,
}

impl Queue {
    fn new(quota: Option<Quota>, queues: u64, end: u64) -> Queue {
        let share = |quota: Quota| {
            let each = (quota.each / queues).max(1);
            Share { each, period: quota.period.max(1), most: each + quota.burst / queues }
        };
        let rule = quota.map(share);
        let boundary = rule.map_or(u64::MAX, |rule| rule.period);
        let budget = rule.map_or(u64::MAX, |rule| rule.each);
        let timer = Timer::Off;
        Queue { now: 0, end, rule, budget, boundary, busy: 0, waited: 0, periods: 0, throttled: 0, timer }
    }

    /// Ends a period at this moment, while something waits or not.
    fn refill(&mut self, waits: Waits) {
        let Some(rule) = self.rule else { return };
        if self.timer != Timer::Off {
            self.periods += 1;
            self.throttled += u64::from(waits == Waits::Yes);
            self.timer = match (waits, self.timer) {
                (Waits::Yes, _) => Timer::Used,
                (Waits::No, Timer::Used) => Timer::Unused,
                (Waits::No, _) => Timer::Off,
            };
        }
        self.budget = (self.budget + rule.each).min(rule.most);
        self.boundary += rule.period;
    }

    /// Idles until then.
    fn idle_until(&mut self, then: u64) {
        while self.boundary <= then.min(self.end) {
            self.now = self.boundary;
            self.refill(Waits::No);
        }
        self.now = self.now.max(then.min(self.end));
    }

    /// Runs, and waits if the budget is used up; returns whether it finished before the end.
    fn run(&mut self, until: Until) -> bool {
        let mut done = 0;
        loop {
            let left = match until {
                Until::Done(work) => work - done,
                Until::Clock(then) => then.saturating_sub(self.now),
            };
            if left == 0 {
                return true;
            }
            if self.budget == 0 {
                let then = self.boundary.min(self.end);
                self.waited += then - self.now;
                self.now = then;
                if self.boundary <= self.end {
                    self.refill(Waits::Yes);
                }
            } else {
                let step = left.min(self.budget).min(self.boundary - self.now).min(self.end - self.now);
                (self.now, self.busy, done) = (self.now + step, self.busy + step, done + step);
                if self.rule.is_some() {
                    self.budget -= step;
                    self.timer = Timer::Used;
                }
                let over = matches!(until, Until::Done(work) if work == done);
                if self.now == self.boundary && !over {
                    // It continues into the next period; with an empty budget it is throttled for no time.
                    self.refill(Waits::No);
                }
            }
            let ended = match until {
                Until::Done(work) => work == done,
                Until::Clock(then) => then <= self.now,
            };
            if self.now >= self.end && !ended {
                return false;
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    Yes,
    No,
}

/// What the share of throttled periods means for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Too few to affect latency: below 1 %.
    Clear,
    /// The slowest requests wait: 1 to 50 %.
    TailWaits,
    /// The typical request waits: above 50 %.
    TypicalWaits,
}

impl Health {
    /// From a share of throttled periods. The bounds are those at which the 99th percentile and the median
    /// of requests that arrive at any time meet a throttled period.
    pub fn of_share(share: f64) -> Health {
        match share {
            share if share < 0.01 => Health::Clear,
            share if share <= 0.5 => Health::TailWaits,
            _ => Health::TypicalWaits,
        }
    }
}

#[cfg(test)]
mod tests;
