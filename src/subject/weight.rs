//! What containers weigh, as numbers: how they are found is in `weighing`.

use super::instruments::{Figures, Formula};
use crate::sys::memory::charged::{Charged, Parts};
use crate::sys::memory::resident::Resident;

/// What was weighed at one step, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Weight {
    /// How many containers ran.
    pub containers: i64,
    /// Charged to the containers' cgroups.
    pub own: Charged,
    /// Parts of it, if the kernel says them.
    pub parts: Option<Parts>,
    /// How many helpers there were.
    pub helpers: i64,
    /// What they had.
    pub of_helpers: Resident,
    /// Kernel memory charged to their cgroups.
    pub helpers_kernel: i64,
    /// Kernel memory and files in memory charged to the cgroup of dunnage and its clients; none where there is no such cgroup.
    pub caller: Option<i64>,
    /// Kernel memory that is charged to no cgroup.
    pub uncharged: i64,
    /// What the machine uses altogether, without page cache.
    pub machine: i64,
    /// What programs could still have, as the kernel estimates it.
    pub available: i64,
    /// What all other processes and their cgroups have.
    pub others: i64,
    /// What dunnage has.
    pub dunnage: i64,
    /// Charged to the cgroups above the containers' with nothing that runs, page cache too.
    pub left: i64,
    /// Removed memory cgroups that are still charged.
    pub dying: Option<i64>,
}

/// What an engine's own tool said of one container, and its cgroup at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instrument {
    /// What the tool said, in bytes.
    pub said: i64,
    /// What the container weighed.
    pub weight: Charged,
    /// Figures of which tools make theirs.
    pub figures: Figures,
    /// The tool's formula, if its version is known.
    pub formula: Option<Formula>,
}

/// What all steps of a ramp weighed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Weighed {
    /// Step by step.
    pub steps: Vec<Weight>,
    /// The helpers at the step with most of them, as `shim 20, dockerd 1`.
    pub helpers: String,
    /// Processes of others that have grown from the first step to the one with most containers, by name, with bytes.
    pub grown: Vec<(String, i64)>,
    /// What the engine's own tool said of the last container, if it has one.
    pub instrument: Option<Instrument>,
    /// How many processes could not be read.
    pub unread: i64,
    /// How many steps had not settled in time.
    pub unsettled: i64,
    /// Why nothing is known of the caller.
    pub no_caller: Option<String>,
}
