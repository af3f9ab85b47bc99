//! A window of the probe's load, as read from a sample: what its counters say, and what the model says about
//! the window that was asked for.

use super::names;
use crate::names::{Counter, Series};
use crate::outcome::Sample;
use crate::stats;
use crate::stats::quota::{self, Backlog, Demand, FEWEST_FOR_A_TAIL, Ideal, Load, Quota};

/// With fewer bursts, a line fits anything.
pub const FEWEST_FOR_A_SLOPE: usize = 3;

/// A limit for numbers from files of any origin: no time or count is larger (thirteen days of nanoseconds),
/// no machine has more CPUs, and the model does not simulate more bursts and periods.
pub const LARGEST: u64 = 1 << 50;
const MOST_THREADS: u64 = 1 << 16;
const MOST_EVENTS: u64 = 1_000_000;

/// A sample of the probe's work `throttle`, as read.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Length of the window in nanoseconds.
    pub window: u64,
    /// CPU time by the cgroup; none if its counters are not the process's own.
    pub usage: Option<u64>,
    /// CPU time by the process's own account, in user mode and in the kernel.
    pub own: [u64; 2],
    /// The quota in force, if any.
    pub quota: Option<Quota>,
    /// The demand on the CPUs.
    pub demand: Demand,
    /// Periods, throttled periods and throttled time in nanoseconds; none without a quota.
    pub throttling: Option<[u64; 3]>,
    /// Latencies of finished bursts in nanoseconds, window by window.
    pub latencies: Vec<Vec<u64>>,
    /// Bursts that were due but not finished.
    pub waiting: u64,
    /// Iterations of the loop: the work.
    pub turns: u64,
    /// What the model says about the window that was asked for.
    pub ideal: Ideal,
    /// The length of that window.
    pub length: u64,
}

impl Measured {
    /// None if the sample is from other work.
    pub fn of(sample: &Sample) -> Option<Measured> {
        let number = |name: Counter| {
            let known = sample.counter(name).and_then(|value| u64::try_from(value).ok());
            known.filter(|value| *value <= LARGEST)
        };
        let numbers = |name: Series| -> Vec<u64> {
            let all = sample.series(name).unwrap_or_default();
            all.iter().filter_map(|value| u64::try_from(*value).ok()).collect()
        };
        let (busy, every) = (number(names::BUSY)?, number(names::EVERY)?);
        let load = match number(names::LOAD)? {
            0 => Load::Continuous,
            1 => Load::Bursts { work: busy, every },
            _ => Load::Alternating { busy, idle: every.saturating_sub(busy) },
        };
        let few = |name: Counter| number(name).filter(|count| (1..=MOST_THREADS).contains(count));
        let demand = Demand { load, threads: few(names::THREADS)?, cpus: few(names::CPUS)? };
        let quota = number(names::QUOTA).filter(|each| *each > 0).and_then(|each| {
            let period = number(names::QUOTA_PERIOD).filter(|period| *period > 0)?;
            Some(Quota { each, period, burst: number(names::QUOTA_BURST).unwrap_or(0) })
        });
        let throttling =
            || Some([number(names::PERIODS)?, number(names::THROTTLED)?, number(names::THROTTLED_TIME)?]);
        let length = number(names::LENGTH)?;
        let periods = quota.map_or(0, |quota| length / quota.period);
        let step = match load {
            Load::Continuous => length,
            Load::Bursts { .. } => every,
            Load::Alternating { .. } => busy.max(every),
        };
        if length / step.max(1) + periods > MOST_EVENTS {
            return None;
        }
        Some(Measured {
            window: number(names::WINDOW).filter(|window| *window > 0)?,
            usage: number(names::USAGE),
            own: [number(names::USER)?, number(names::SYSTEM)?],
            quota,
            demand,
            throttling: quota.and_then(|_| throttling()),
            latencies: vec![numbers(names::LATENCY)],
            waiting: number(names::BURSTS_WAITING).unwrap_or(0),
            turns: number(names::TURNS).unwrap_or(0),
            ideal: quota::ideal(quota, demand, length),
            length,
        })
    }

    /// Several windows of one cell as one, with the times, periods and bursts of all.
    pub fn together(self, other: Measured) -> Measured {
        let sum = |(one, other): (u64, u64)| one.saturating_add(other);
        let both =
            |one: [u64; 3], other: [u64; 3]| std::array::from_fn(|index| sum((one[index], other[index])));
        Measured {
            window: sum((self.window, other.window)),
            usage: self.usage.zip(other.usage).map(sum),
            own: [0, 1].map(|index| sum((self.own[index], other.own[index]))),
            throttling: self.throttling.zip(other.throttling).map(|(one, other)| both(one, other)),
            latencies: [self.latencies, other.latencies].concat(),
            waiting: sum((self.waiting, other.waiting)),
            turns: sum((self.turns, other.turns)),
            ..self
        }
    }

    /// The number of windows.
    pub fn windows(&self) -> u64 {
        self.latencies.len() as u64
    }

    /// CPUs used on average in the window, by the cgroup.
    pub fn usage_share(&self) -> Option<f64> {
        Some(self.usage? as f64 / self.window as f64)
    }

    /// Iterations of the loop per second.
    pub fn work_rate(&self) -> f64 {
        self.turns as f64 / (self.window as f64 / 1e9)
    }

    /// The work per second as a share of another cell's.
    pub fn work_share(&self, control: &Measured) -> Option<f64> {
        (self.turns > 0 && control.turns > 0).then(|| self.work_rate() / control.work_rate())
    }

    /// CPUs used on average by the process's own account.
    pub fn own_share(&self) -> f64 {
        (self.own[0] + self.own[1]) as f64 / self.window as f64
    }

    /// The model's value.
    pub fn ideal_share(&self) -> f64 {
        self.ideal.usage as f64 / self.length as f64
    }

    /// Throttled periods as a share of all; none without a quota, or if no period was counted.
    pub fn throttled_share(&self) -> Option<f64> {
        let [periods, throttled, _] = self.throttling?;
        (periods > 0).then(|| throttled as f64 / periods as f64)
    }

    /// Waiting in each throttled period, in seconds.
    pub fn throttled_per_period(&self) -> Option<f64> {
        let [_, throttled, time] = self.throttling?;
        (throttled > 0).then(|| time as f64 / 1e9 / throttled as f64)
    }

    /// The latencies of all finished bursts.
    pub fn bursts(&self) -> Vec<u64> {
        self.latencies.concat()
    }

    /// A quantile of the latency of bursts, in seconds.
    pub fn latency(&self, p: f64) -> Option<f64> {
        Some(seconds(&self.bursts())?.quantile(p))
    }

    /// The 90th percentile of the latency of bursts; none with fewer than ten beyond it.
    pub fn tail(&self) -> Option<f64> {
        self.latency(0.9).filter(|_| self.bursts().len() >= FEWEST_FOR_A_TAIL)
    }

    /// How many seconds longer each burst waited than the one before, if they must pile up: the slope of the
    /// line through the finished ones, and the median over several windows. None for several threads, whose
    /// bursts are not distinguished.
    pub fn growth(&self) -> Option<f64> {
        let piles_up = matches!(self.ideal.backlog, Backlog::Grows(_)) && self.demand.threads == 1;
        let of_window = |latencies: &Vec<u64>| {
            let points = latencies.iter().enumerate();
            let points = points.map(|(number, nanos)| (number as f64, *nanos as f64 / 1e9));
            stats::slope(points).filter(|_| piles_up && latencies.len() >= FEWEST_FOR_A_SLOPE)
        };
        Some(stats::Sample::new(self.latencies.iter().filter_map(of_window))?.median())
    }

    /// The model's value.
    pub fn ideal_growth(&self) -> Option<f64> {
        match self.ideal.backlog {
            Backlog::Grows(more) => Some(more),
            _ => None,
        }
    }

    /// Whether less CPU time was used than the model says, without more throttling: others had the CPUs, so
    /// what the quota would have done is unknown.
    pub fn is_starved(&self) -> bool {
        let lacks = self.own_share() < self.ideal_share() * (1.0 - quota::TOLERANCE);
        let share = self.throttled_share().unwrap_or(0.0);
        lacks && share < self.ideal_throttled_share().unwrap_or(0.0) + quota::TOLERANCE
    }

    /// The model's share of throttled periods; none if the demand is at the quota.
    pub fn ideal_throttled_share(&self) -> Option<f64> {
        self.ideal.throttled_share().filter(|_| !self.demand.is_at(self.quota))
    }

    /// The model's waiting time per throttled period.
    pub fn ideal_per_period(&self) -> Option<f64> {
        self.ideal.throttled_per_period().filter(|_| !self.demand.is_at(self.quota))
    }

    /// The model's latency of bursts.
    pub fn ideal_latency(&self, p: f64) -> Option<f64> {
        Some(seconds(&self.ideal.latencies)?.quantile(p)).filter(|_| !self.demand.is_at(self.quota))
    }

    /// Whether there is a quota that the load cannot reach, so that any throttling here has another cause.
    pub fn is_control(&self) -> bool {
        let Some(quota) = self.quota else { return false };
        let given = quota.each as f64 / quota.period as f64;
        self.ideal.throttled == 0 && self.demand.cpus_wanted() < given * (1.0 - quota::TOLERANCE)
    }
}

pub fn seconds(nanos: &[u64]) -> Option<stats::Sample> {
    stats::Sample::new(nanos.iter().map(|nanos| *nanos as f64 / 1e9))
}
