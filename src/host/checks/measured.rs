//! What can only be known by asking the kernel or by trying: limits and audit, the clock's floor, and what a move between
//! control groups costs after a quiet moment.
//!
//! All leave the machine as it was. Deliberately absent: anything that takes longer than a few
//! milliseconds, which is for experiments.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use crate::sys::clock::{self, TimerFloor};
use crate::sys::{audit, cgroup, limits};
use crate::units::Nanos;

/// Found just now; `None` where it could not be.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measured {
    /// Step and cost of the clock.
    pub timer: Option<TimerFloor>,
    /// Moves between control groups.
    pub moves: Option<Moves>,
    /// Whether the kernel's audit is on.
    pub audit: Option<bool>,
    /// The hard limit of open files that children inherit.
    pub open_files: Option<u64>,
    /// The hard limit of processes that children inherit, but no more than there are process ids.
    pub processes: Option<u64>,
}

/// What a write to `cgroup.procs` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moves {
    /// After the quiet in which the machine was watched.
    pub quiet: Nanos,
    /// Right after another one.
    pub soon: Nanos,
}

impl Measured {
    /// Measures, the move first: it is to find the kernel as quiet as it was.
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

/// Moves this process to the control group that it is in: nothing changes, but the kernel takes the
/// same lock as for any other move, and that lock is what waits.
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
