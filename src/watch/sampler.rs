//! Reads a cgroup's counter at the ticks of a clock, each at a moment fixed in advance, and sleeps in between.
//!
//! A moment that has already passed is counted as missed and not made up for.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::group::Group;
use super::queue::Queue;
use crate::advise::replay::Kernel;
use crate::advise::usage::{Reading, Usage};
use crate::advise::{Quota, Throttling};
use crate::host::context;
use crate::sys::clock;
use crate::sys::signals::{Awaited, Interrupts};
use crate::units::{Nanos, Stamp};

/// How long and how often to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// From the first to the last reading.
    pub duration: Nanos,
    /// From one reading to the next.
    pub every: Nanos,
}

/// Why the watch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The time was up.
    Complete,
    /// The user stopped it.
    Asked,
}

/// The result of a watch.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The readings.
    pub usage: Usage,
    /// Moments that passed without a reading.
    pub missed: u64,
    /// The kernel's counts for the limit during the watch.
    pub throttling: Throttling,
    /// The limit at the start.
    pub limit: Option<Quota>,
    /// The limit at the end.
    pub limit_at_the_end: Option<Quota>,
    /// The share of the time in which any task of the machine waited for a CPU, if the kernel reports it.
    pub pressure: Option<f64>,
    /// How long the cgroup's own tasks were ready to run but had no CPU, if the kernel reports it.
    pub queued: Option<Nanos>,
    /// Why the watch ended.
    pub end: End,
}

impl Seen {
    /// The limit in force; if it changed, the tighter one, because that throttled during a part of the watch.
    pub fn in_force(&self) -> Option<Quota> {
        let limits = [self.limit, self.limit_at_the_end].into_iter().flatten();
        limits.min_by(|a, b| a.cpus().0.total_cmp(&b.cpus().0))
    }

    /// Whether the limit changed during the watch.
    pub fn was_limited_anew(&self) -> bool {
        self.limit != self.limit_at_the_end
    }
}

/// Why there is no usable result.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The container ended during the watch.
    #[error("it ended after {0} of watching")]
    Ended(Nanos),
    /// The counter became unreadable.
    #[error("its usage could no longer be read after {0}: {1}")]
    Unreadable(Nanos, std::io::Error),
    /// A limit, or how often it throttled, is unreadable.
    #[error("`{}` cannot be read, so a limit may have held it back", .0.display())]
    Uncounted(PathBuf),
    /// The user stopped it before a second reading.
    #[error("stopped before there was a result")]
    Nothing,
}

/// Watches. `process` is the container's first process, whose end ends the watch; a cgroup alone ends when it is removed.
///
/// # Errors
/// [`Lost`] if the container ended or the watch was stopped at once.
pub fn watch(
    group: &Group,
    process: Option<&OwnedFd>,
    pace: Pace,
    interrupts: &Interrupts,
) -> Result<Seen, Lost> {
    let counted = || group.throttling().map_err(Lost::Uncounted);
    let (mut machine, before, limit) = (context::Watch::default(), counted()?, group.limit());
    let queue = Queue::of(&group.directory);
    let began = clock::now();
    let mut readings = vec![read(group, began)?];
    let ended = || Lost::Ended(clock::now().since(began));
    let (mut missed, mut end) = (0, End::Complete);
    let moments = (pace.duration.0 / pace.every.0.max(1)).max(1);
    for moment in 1..=moments {
        let due = Stamp(began.0 + (moment * pace.every.0) as u64);
        // The last reading is taken even if it is late, because it ends the window.
        if moment < moments && clock::now().since(due) > pace.every {
            missed += 1;
            continue;
        }
        match sleep_until(due, process, interrupts) {
            Awaited::TimedOut => {}
            Awaited::Interrupted => {
                end = End::Asked;
                break;
            }
            Awaited::Ended => return Err(ended()),
        }
        readings.push(read(group, began)?);
    }
    let throttling = counted()?.since(&before).ok_or_else(ended)?;
    let queued = Queue::of(&group.directory).zip(queue).map(|(after, before)| after.since(&before));
    Ok(Seen {
        usage: Usage::new(readings).ok_or(Lost::Nothing)?,
        missed,
        throttling,
        limit,
        limit_at_the_end: group.limit(),
        pressure: machine.read().cpu_pressure,
        queued,
        end,
    })
}

fn sleep_until(due: Stamp, process: Option<&OwnedFd>, interrupts: &Interrupts) -> Awaited {
    loop {
        let left = due.since(clock::now());
        let left = Nanos(left.0.max(0));
        let awaited = interrupts.await_end(process, left);
        // A signal may end a sleep early.
        if awaited != Awaited::TimedOut || clock::now() >= due {
            return awaited;
        }
    }
}

/// The counter, timed halfway between the clock readings before and after.
fn read(group: &Group, began: Stamp) -> Result<Reading, Lost> {
    let before = clock::now();
    let used = group.used();
    let after = clock::now();
    match used {
        Ok(used) => Ok(Reading { at: Stamp(before.0 + (after.0 - before.0) / 2), used }),
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Err(Lost::Ended(before.since(began))),
        Err(error) => Err(Lost::Unreadable(before.since(began), error)),
    }
}

/// How this machine's kernel enforces quotas.
pub fn kernel() -> Kernel {
    let slice = fs::read_to_string(Path::new("/proc/sys/kernel/sched_cfs_bandwidth_slice_us")).ok();
    let slice = slice.and_then(|text| text.trim().parse::<i64>().ok()).filter(|&micros| micros > 0);
    Kernel { slice: slice.map_or(Kernel::USUAL_SLICE, |micros| Nanos(micros * 1000)), tick: clock::tick() }
}
