//! Reads a group's counter at the ticks of a clock: each at a moment fixed at the beginning, asleep in between.
//!
//! A moment that has passed before its turn is missed and counted; none is made up for.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::group::Group;
use super::queue::Queue;
use crate::advise::replay::Kernel;
use crate::advise::usage::{Reading, Usage};
use crate::advise::{Quota, Throttling};
use crate::host::context;
use crate::sys::clock;
use crate::sys::signals::{Awaited, Interrupts};
use crate::units::{Nanos, Stamp};

/// For how long, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// From the first reading to the last.
    pub duration: Nanos,
    /// From one reading to the next.
    pub every: Nanos,
}

/// Why watching ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The time was over.
    Complete,
    /// The person asked.
    Asked,
}

/// What was seen.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The readings.
    pub usage: Usage,
    /// Moments that passed before their turn.
    pub missed: u64,
    /// What the kernel counted of the limit meanwhile.
    pub throttling: Throttling,
    /// The limit at the beginning.
    pub limit: Option<Quota>,
    /// The limit at the end.
    pub limit_at_the_end: Option<Quota>,
    /// The share of the time in which some task of the machine waited for a CPU, where the kernel tells it.
    pub pressure: Option<f64>,
    /// How long its own tasks were ready to run and had no CPU, where the kernel tells it.
    pub queued: Option<Nanos>,
    /// Why it ended.
    pub end: End,
}

impl Seen {
    /// The limit in force; the tighter one where it was changed, since one that came or went meanwhile held work back
    /// all the same.
    pub fn in_force(&self) -> Option<Quota> {
        let limits = [self.limit, self.limit_at_the_end].into_iter().flatten();
        limits.min_by(|a, b| a.cpus().0.total_cmp(&b.cpus().0))
    }

    /// Whether it was another one at the end.
    pub fn was_limited_anew(&self) -> bool {
        self.limit != self.limit_at_the_end
    }
}

/// Why nothing was seen that means anything.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// It ended meanwhile.
    #[error("it ended after {0} of watching")]
    Ended(Nanos),
    /// The counter cannot be read any more.
    #[error("its usage cannot be read any more after {0}: {1}")]
    Unreadable(Nanos, std::io::Error),
    /// The person stopped before a second reading.
    #[error("stopped before anything was seen")]
    Nothing,
}

/// Watches. `process` is the container's first process, with which it ends; a group alone ends when it is removed.
///
/// # Errors
/// [`Lost`] when it ended, or was stopped at once.
pub fn watch(
    group: &Group,
    process: Option<&OwnedFd>,
    pace: Pace,
    interrupts: &Interrupts,
) -> Result<Seen, Lost> {
    let (mut machine, before, limit) = (context::Watch::default(), group.throttling(), group.limit());
    let queue = Queue::of(&group.directory);
    let began = clock::now();
    let mut readings = vec![read(group, began)?];
    let (mut missed, mut end) = (0, End::Complete);
    let moments = (pace.duration.0 / pace.every.0.max(1)).max(1);
    for moment in 1..=moments {
        let due = Stamp(began.0 + (moment * pace.every.0) as u64);
        // The last one is taken however late it is: the window ends with it.
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
            Awaited::Ended => return Err(Lost::Ended(clock::now().since(began))),
        }
        readings.push(read(group, began)?);
    }
    let throttling = group.throttling().since(&before);
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

/// The counter, with a moment that is as near before reading as after.
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

/// How this machine's kernel deals out quota.
pub fn kernel() -> Kernel {
    let slice = fs::read_to_string(Path::new("/proc/sys/kernel/sched_cfs_bandwidth_slice_us")).ok();
    let slice = slice.and_then(|text| text.trim().parse::<i64>().ok()).filter(|&micros| micros > 0);
    Kernel { slice: slice.map_or(Kernel::USUAL_SLICE, |micros| Nanos(micros * 1000)), tick: clock::tick() }
}
