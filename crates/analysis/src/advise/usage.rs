//! Watched usage, as readings of a counter, and its quantiles over windows of equal length.
//!
//! Deliberately absent: averages over the whole time in place of quantiles. A limit acts within periods of
//! 100 ms, and an average over seconds hides them.

use serde::Serialize;

use super::Cpus;
use crate::stats::tail::has_tail;
use crate::units::{Nanos, Stamp};

/// A reading of the counter of a group's CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// When it was read.
    pub at: Stamp,
    /// CPU time since the group was created.
    pub used: Nanos,
}

/// At least two readings, in time order, whose counter never falls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    readings: Vec<Reading>,
}

/// The usage that a share of the windows does not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    /// Half of them.
    pub p50: Cpus,
    /// 95 %.
    pub p95: Cpus,
    /// 99 %; none with fewer than ten windows beyond it.
    pub p99: Option<Cpus>,
    /// All of them.
    pub max: Cpus,
}

impl Usage {
    /// Readings in the order they were taken, without those that go back in time. `None` if fewer than two
    /// remain.
    pub fn new(all: impl IntoIterator<Item = Reading>) -> Option<Usage> {
        let mut readings: Vec<Reading> = Vec::new();
        for mut one in all {
            if let Some(last) = readings.last() {
                if one.at <= last.at {
                    continue;
                }
                one.used = one.used.max(last.used);
            }
            readings.push(one);
        }
        (readings.len() >= 2).then_some(Usage { readings })
    }

    /// The readings.
    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// From the first reading to the last.
    pub fn duration(&self) -> Nanos {
        let (first, last) = self.ends();
        last.at.since(first.at)
    }

    /// CPU time over the whole duration.
    pub fn total(&self) -> Nanos {
        let (first, last) = self.ends();
        Nanos(last.used.0 - first.used.0)
    }

    /// CPU time divided by the whole duration.
    pub fn mean(&self) -> Cpus {
        Cpus(self.total().0 as f64 / self.duration().0 as f64)
    }

    fn ends(&self) -> (Reading, Reading) {
        (self.readings[0], self.readings[self.readings.len() - 1])
    }

    /// The usage in consecutive windows of this length from the first reading; the counter is interpolated
    /// linearly between readings. An incomplete window is left out.
    pub fn windows(&self, length: Nanos) -> Vec<Cpus> {
        let count = self.duration().0 / length.0.max(1);
        let edges = (0..=count).map(|index| (index * length.0) as u64);
        let used = self.at_each(edges);
        used.windows(2).map(|pair| Cpus((pair[1] - pair[0]) / length.0 as f64)).collect()
    }

    /// How far the counter advanced from the first reading, at these times after it, which increase.
    pub(super) fn at_each(&self, times: impl IntoIterator<Item = u64>) -> Vec<f64> {
        let first = self.readings[0];
        let mut next = 1;
        let at = |time: u64| {
            let moment = first.at.0 + time;
            while next + 1 < self.readings.len() && self.readings[next].at.0 < moment {
                next += 1;
            }
            let (before, after) = (self.readings[next - 1], self.readings[next]);
            let part = (moment as f64 - before.at.0 as f64) / after.at.since(before.at).0 as f64;
            (before.used.0 - first.used.0) as f64
                + part.clamp(0.0, 1.0) * (after.used.0 - before.used.0) as f64
        };
        times.into_iter().map(at).collect()
    }

    /// The quantiles of the windows of this length. `None` if no window is complete.
    pub fn quantiles(&self, length: Nanos) -> Option<Quantiles> {
        let mut windows = self.windows(length);
        windows.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The smallest value that at least this share of the windows does not exceed: always a value that was
        // seen.
        let rank = |share: f64| ((windows.len() as f64 * share).ceil() as usize).clamp(1, windows.len()) - 1;
        let max = *windows.last()?;
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| windows[rank(share)]);
        let p99 = has_tail(windows.len() as u64, 0.99).then_some(p99);
        Some(Quantiles { p50, p95, p99, max })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Readings every 10 ms of a group that used so many milliseconds between each two.
    pub fn every_10_ms(used: impl IntoIterator<Item = f64>) -> Usage {
        let mut sum = 0.0;
        let sums = used.into_iter().map(|millis| {
            sum += millis;
            sum
        });
        let sums: Vec<f64> = std::iter::once(0.0).chain(sums).collect();
        let reading = |(index, sum): (usize, &f64)| Reading {
            at: Stamp(1_000_000_000 + index as u64 * 10_000_000),
            used: Nanos((sum * 1e6).round() as i64),
        };
        Usage::new(sums.iter().enumerate().map(reading)).unwrap()
    }

    #[test]
    fn quantiles_are_windows_that_were_seen() {
        // 100 windows of 100 ms: the n-th used n ms.
        let usage = every_10_ms((1..=100).flat_map(|millis| [f64::from(millis) / 10.0; 10]));
        let quantiles = usage.quantiles(Nanos::from_millis(100)).unwrap();
        let close =
            |cpus: Cpus, expected: f64| assert!((cpus.0 - expected).abs() < 1e-9, "{cpus} {expected}");
        close(quantiles.p50, 0.5);
        close(quantiles.p95, 0.95);
        assert_eq!(quantiles.p99, None);
        close(quantiles.max, 1.0);
        close(usage.mean(), 0.505);
        // Ten windows of the largest are one in a hundred of a thousand.
        let usage = every_10_ms((1..=1000).flat_map(|millis| [f64::from(millis) / 100.0; 10]));
        let quantiles = usage.quantiles(Nanos::from_millis(100)).unwrap();
        close(quantiles.p99.unwrap(), 0.99);
    }

    #[test]
    fn a_window_across_a_gap_is_filled_evenly_and_an_incomplete_one_is_left_out() {
        let reading = |millis: u64, used: i64| Reading {
            at: Stamp(millis * 1_000_000),
            used: Nanos::from_millis(used),
        };
        let usage = Usage::new([reading(5, 7), reading(205, 107), reading(250, 107)]).unwrap();
        assert_eq!(usage.windows(Nanos::from_millis(100)), [Cpus(0.5), Cpus(0.5)]);
        assert_eq!(usage.quantiles(Nanos::from_millis(300)), None);
    }

    #[test]
    fn readings_that_do_not_go_on_are_left_out_and_a_counter_never_falls() {
        let reading = |at: u64, used: i64| Reading { at: Stamp(at), used: Nanos(used) };
        let usage = Usage::new([reading(1, 5), reading(1, 6), reading(3, 4)]).unwrap();
        assert_eq!(usage.readings(), [reading(1, 5), reading(3, 5)]);
        assert_eq!(Usage::new([reading(1, 5)]), None);
    }
}
