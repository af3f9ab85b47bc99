//! Facts that only a system call or a trial shows: limits, audit, the clock's resolution, and the cost of a move between
//! cgroups after a quiet moment.
//!
//! Nothing changes the machine. Deliberately absent: anything longer than a few milliseconds, which is for experiments.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use crate::sys::clock::{self, TimerFloor};
use crate::sys::{audit, cgroup, limits};
use crate::units::Nanos;

/// The results; `None` if one is not available.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measured {
    /// The clock's step and cost.
    pub timer: Option<TimerFloor>,
    /// Moves between cgroups.
    pub moves: Option<Moves>,
    /// Whether the kernel's audit is on.
    pub audit: Option<bool>,
    /// The hard limit on open files that children inherit.
    pub open_files: Option<u64>,
    /// The hard limit on processes that children inherit, at most the number of process ids.
    pub processes: Option<u64>,
}

/// How long a write to `cgroup.procs` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moves {
    /// After the quiet time in which the machine was watched.
    pub quiet: Nanos,
    /// Right after another move.
    pub soon: Nanos,
}

impl Measured {
    /// Measures all; the move first, while the kernel is still quiet.
    pub(super) fn now() -> Measured {
        Measured {
            moves: moves(),
            timer: Some(clock::timer_floor()),
            audit: audit::is_on(),
            open_files: Some(limits::open_files()),
            processes: Some(limits::processes_within_ids()),
        }
    }
}

/// Moves this process to the cgroup that it is already in. Nothing changes, but the kernel takes the lock that a real move
/// waits for.
fn moves() -> Option<Moves> {
    let hierarchies = cgroup::mounted().ok()?;
    let own = hierarchies.into_iter().filter_map(|hierarchy| hierarchy.own);
    let files = own.map(|directory: PathBuf| directory.join("cgroup.procs"));
    let mut file = files.filter_map(|path| OpenOptions::new().write(true).open(path).ok()).next()?;
    let mut once = || {
        let before = clock::now();
        // Zero stands for the process that writes.
        file.write_all(b"0").ok()?;
        Some(clock::now().since(before))
    };
    Some(Moves { quiet: once()?, soon: once()? })
}
