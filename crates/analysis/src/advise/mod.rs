//! Which CPU limit? From watched usage: its quantiles, what the kernel would have done with it under other
//! limits ([`replay`]), and a limit to recommend ([`recommend`]). Also the cost of health checks
//! ([`probes`]). Pure functions of readings and of recorded runs.
//!
//! Deliberately absent: finding containers and reading their counters (`watch`), and applying a limit.

pub mod demand;
pub mod probes;
pub mod recommend;
pub mod replay;
pub mod usage;

use std::fmt;

use serde::Serialize;

use crate::units::Nanos;

/// A number of CPUs: CPU time divided by time.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
pub struct Cpus(pub f64);

impl Cpus {
    /// As Kubernetes counts them, in thousandths, rounded up.
    pub fn milli(self) -> u64 {
        // A value above a whole number only by rounding is that number.
        (self.0 * 1000.0 - 1e-6).ceil().max(0.0) as u64
    }
}

/// With at most three decimals, without trailing zeros.
impl fmt::Display for Cpus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.3}", self.0);
        out.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A limit as the kernel stores it: CPU time per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quota {
    /// CPU time, of all threads together.
    pub quota: Nanos,
    /// The period.
    pub period: Nanos,
}

impl Quota {
    /// The default period of engines.
    pub const USUAL_PERIOD: Nanos = Nanos::from_millis(100);

    /// The limit that engines set for a number of CPUs.
    pub fn of(cpus: Cpus) -> Quota {
        Quota {
            quota: Nanos((cpus.0 * Quota::USUAL_PERIOD.0 as f64).round() as i64),
            period: Quota::USUAL_PERIOD,
        }
    }

    /// As a number of CPUs.
    pub fn cpus(self) -> Cpus {
        Cpus(self.quota.0 as f64 / self.period.0 as f64)
    }
}

/// What the kernel counts for a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Throttling {
    /// Periods in which the group was active.
    pub periods: u64,
    /// Periods at whose end something in the group waited for quota.
    #[serde(rename = "throttled_periods")]
    pub throttled: u64,
    /// How long it waited, summed over CPUs.
    #[serde(rename = "throttled_time")]
    pub waited: Nanos,
}

impl Throttling {
    /// The counts between an earlier reading and this one.
    pub fn since(self, earlier: Throttling) -> Throttling {
        Throttling {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            waited: Nanos((self.waited.0 - earlier.waited.0).max(0)),
        }
    }

    /// The share of periods that were throttled; none if no period was counted.
    pub fn share(self) -> Option<f64> {
        (self.periods > 0).then(|| self.throttled as f64 / self.periods as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_cpus_reads_short_and_a_limit_is_what_engines_make_of_it() {
        assert_eq!([0.5, 1.0, 0.125, 2.0].map(|cpus| Cpus(cpus).to_string()), ["0.5", "1", "0.125", "2"]);
        assert_eq!([0.5, 0.0301, 0.3].map(|cpus| Cpus(cpus).milli()), [500, 31, 300]);
        assert_eq!(Quota::of(Cpus(0.35)).quota, Nanos::from_millis(35));
        assert_eq!(Quota::of(Cpus(1.5)).cpus(), Cpus(1.5));
    }

    #[test]
    fn a_share_needs_periods() {
        let counted = |periods, throttled| Throttling { periods, throttled, waited: Nanos(0) };
        assert_eq!(counted(30, 8).since(counted(10, 3)).share(), Some(0.25));
        assert_eq!(counted(10, 3).since(counted(10, 3)).share(), None);
    }
}
