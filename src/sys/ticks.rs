//! Time of all CPUs together, by what they spent it on, in clock ticks.

use std::fs;

use crate::units::Nanos;

/// The kernel's `USER_HZ` is 100 on all platforms of dunnage.
const TICK: Nanos = Nanos::from_millis(10);

/// Ticks since boot, or since another reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks {
    /// Programs and the kernel.
    pub busy: u64,
    /// A hypervisor ran something else.
    pub steal: u64,
    /// With the time in which nothing was to be done.
    pub total: u64,
    /// How many CPUs there are.
    pub cpus: u32,
}

impl Ticks {
    /// Those of now, if the kernel says them.
    pub fn now() -> Option<Ticks> {
        Ticks::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// From the first row of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
    /// Guest time is already included in user and nice.
    fn parse(stat: &str) -> Option<Ticks> {
        let row = stat.lines().next()?.strip_prefix("cpu ")?;
        let columns: Vec<u64> = row.split_whitespace().map_while(|word| word.parse().ok()).take(8).collect();
        let [user, nice, system, idle, iowait, irq, softirq, steal] = columns[..] else { return None };
        let busy = user + nice + system + irq + softirq;
        let cpus = stat.lines().skip(1).take_while(|line| line.starts_with("cpu")).count() as u32;
        Some(Ticks { busy, steal, total: busy + steal + idle + iowait, cpus })
    }

    /// The ticks since then; none if time went back.
    pub fn since(self, before: Ticks) -> Option<Ticks> {
        let total = self.total.checked_sub(before.total)?;
        // The kernel's counters may go back by a tick.
        let busy = self.busy.saturating_sub(before.busy);
        let steal = self.steal.saturating_sub(before.steal);
        Some(Ticks { busy, steal, total, cpus: self.cpus })
    }

    /// So many ticks as time.
    pub fn time(ticks: u64) -> Nanos {
        Nanos(TICK.0 * ticks as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_taken_apart() {
        let stat = "cpu  100 10 50 800 30 1 9 40 77 5\ncpu0 1 2\ncpu1 1 2\nintr 5\n";
        let first = Ticks::parse(stat).unwrap();
        assert_eq!(first, Ticks { busy: 170, steal: 40, total: 1040, cpus: 2 });
        let later = Ticks { busy: 220, steal: 39, total: 1140, cpus: 2 };
        assert_eq!(later.since(first), Some(Ticks { busy: 50, steal: 0, total: 100, cpus: 2 }));
        assert_eq!(Ticks { total: 1039, ..later }.since(first), None);
        assert_eq!(Ticks::parse("cpu  1 2 3\n"), None);
        assert_eq!(Ticks::time(3), Nanos::from_millis(30));
    }
}
