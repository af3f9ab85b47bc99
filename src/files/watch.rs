//! Time and CPU time of system calls, added up; what happens between them is left out.

use crate::sys::{clock, own_time};
use crate::units::Nanos;

/// The sum so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watch {
    took: u64,
    cpu: u64,
}

impl Watch {
    /// Adds the time of a call, and returns its result and its time in nanoseconds. The CPU time is that of all threads
    /// of the process, including those that io_uring starts; it is read outside the interval and includes about one
    /// reading of its clock.
    pub fn time<T>(&mut self, call: impl FnOnce() -> T) -> (T, u64) {
        let cpu = own_time::process_cpu();
        let before = clock::now();
        let done = call();
        let took = clock::now().since(before).0 as u64;
        self.cpu += own_time::process_cpu() - cpu;
        self.took += took;
        (done, took)
    }

    /// The time of all calls.
    pub fn took(self) -> Nanos {
        Nanos(self.took as i64)
    }

    /// Their CPU time.
    pub fn cpu(self) -> Nanos {
        Nanos(self.cpu as i64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_what_is_timed_counts() {
        let mut watch = Watch::default();
        let (done, took) = watch.time(|| std::thread::sleep(Duration::from_millis(2)));
        let () = done;
        assert!(took >= 2_000_000);
        let before = watch.took();
        std::thread::sleep(Duration::from_millis(20));
        watch.time(|| ());
        assert!(watch.took().0 - before.0 < 15_000_000, "{:?}", watch.took());
    }
}
