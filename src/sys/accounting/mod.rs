//! CPU time of a launch in nanoseconds, including every helper: the tree of the client (with double-forked
//! and reparented processes), and the daemons with their descendants.
//!
//! The source is the scheduler's own record of context switches, through one perf event per CPU: a task's CPU
//! time is the sum of its time on CPUs, from its first switch in to its last switch out, including the
//! teardown of its address space and its exit. `perf stat` calls this task-clock. Interrupts during a task
//! are included, and so is time that a hypervisor takes away meanwhile.
//!
//! The kernel's `sum_exec_runtime` (schedstat, cpuacct, `wait4`) is larger for tasks that often sleep: it
//! charges a task from its wake-up, which includes the rest of the interrupt and the exit from idle, 7 to 16
//! µs each in a virtual machine. So the two are never compared in one table.
//!
//! Exit records (taskstats) are deliberately not used. The kernel writes them before a task is torn down and
//! without updating its run time: for a process of 1 ms they have shown 0.06 to 0.35 ms. A process CPU clock
//! includes no children, and cannot be read once the process is reaped.
//!
//! Also deliberately absent: threads and reading during a launch (they would disturb it), and the fallback
//! where perf events are not permitted (`wait4`'s rusage, which misses the daemons).

mod record;
mod ring;
mod tree;

use anyhow::{Context, Result, anyhow, ensure};

use self::record::Event;
use self::ring::{Ring, online_cpus};
pub use self::tree::{Client, Image, ProcessAccount};
use super::clock;
use crate::units::{Nanos, Stamp};

/// The memory of all rings together (locked, in the kernel).
const BUDGET: usize = 128 << 20;

/// The processes that belong to one root.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tree {
    /// In the order of creation; daemons, which are older, come first.
    pub processes: Vec<ProcessAccount>,
}

impl Tree {
    /// CPU time of all processes together.
    pub fn cpu(&self) -> Nanos {
        Nanos(self.processes.iter().map(|process| process.cpu.0).sum())
    }

    /// All programs that were executed.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.processes.iter().flat_map(|process| &process.images)
    }

    /// Whether the file `device`, `inode` (as in `stat`) was executed. On btrfs and similar filesystems,
    /// where a file's device differs from its filesystem's, compare [`Image::path`].
    pub fn ran(&self, device: u64, inode: u64) -> bool {
        self.images().any(|image| image.device == device && image.inode == inode)
    }
}

/// The CPU time of one launch.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LaunchCpu {
    /// The client and all its descendants.
    pub client: Tree,
    /// The daemons, and what they forked in the window.
    pub daemons: Tree,
}

/// Records events on every CPU from [`Listener::open`] until dropped. One listener serves a whole run, so
/// that all launches have equal conditions: opening one allocates megabytes and changes the kernel's
/// scheduler hooks.
#[derive(Debug)]
pub struct Listener {
    cpus: Vec<usize>,
    rings: Vec<Ring>,
    daemons: Vec<i32>,
    begin: Option<Stamp>,
    /// Events of the window that have been read so far.
    events: Vec<Event>,
}

impl Listener {
    /// Starts recording.
    ///
    /// # Errors
    /// The kernel's error; then the caller has no CPU time, and reports why.
    pub fn open() -> Result<Listener> {
        let cpus =
            online_cpus().map_err(|error| anyhow!("cannot find out which CPUs are online: {error}"))?;
        let size = (BUDGET / cpus.len().max(1)).clamp(256 << 10, 4 << 20);
        // Rounded down to a power of two.
        let size = 1 << size.ilog2();
        let ring = |&cpu: &usize| {
            Ring::open(cpu, size).map_err(|source| match source.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => anyhow!(
                    "perf events on CPU {cpu} are not permitted: {source} (they need CAP_PERFMON, and CAP_IPC_LOCK for the rings)"
                ),
                _ => anyhow!("perf events on CPU {cpu} do not work: {source}"),
            })
        };
        let rings = cpus.iter().map(ring).collect::<Result<_>>()?;
        Ok(Listener { cpus, rings, daemons: Vec::new(), begin: None, events: Vec::new() })
    }

    /// Begins a window and forgets everything before. What the daemons do for other clients in the window
    /// cannot be told apart and is counted too. `daemons` are the processes that work for the client without
    /// descending from it (engine, containerd, also a shim older than the launch); each must exist now.
    pub fn begin(&mut self, daemons: &[i32]) {
        self.daemons = daemons.to_vec();
        self.events.clear();
        for ring in &self.rings {
            ring.discard();
        }
        self.begin = Some(clock::now());
    }

    /// Adds up the window since the last [`Listener::begin`]; the window stays open. If this process is the
    /// client itself, the client's tree is empty, and the caller adds the CPU time of this thread.
    ///
    /// Costs about 1 µs per 5 switches, after the launch. Living processes are counted until now.
    ///
    /// # Errors
    /// If any record is missing: no number rather than a wrong one.
    ///
    /// # Panics
    /// Without a `begin` before it.
    pub fn so_far(&mut self, client: Client) -> Result<LaunchCpu> {
        let end = clock::now();
        let begin = self.begin.expect("`begin` opens the window that is added up");
        for (ring, &cpu) in self.rings.iter().zip(&self.cpus) {
            let bytes = ring.take().with_context(|| format!("the ring of CPU {cpu} was full"))?;
            record::parse(cpu, &bytes, &mut self.events)?;
        }
        let unchanged = online_cpus().is_ok_and(|cpus| cpus == self.cpus);
        ensure!(unchanged, "the set of online CPUs changed during the launch");
        let roots = tree::Roots { launcher: std::process::id() as i32, client, daemons: &self.daemons };
        tree::sum(&mut self.events.clone(), begin, end, roots)
    }

    /// CPU time so far of everything created in the window: the children of this process and of the daemons.
    ///
    /// # Errors
    /// As [`Listener::so_far`].
    pub fn newborn(&mut self) -> Result<Nanos> {
        let LaunchCpu { client, daemons } = self.so_far(Client::Children)?;
        let born = daemons.processes.iter().filter(|one| !self.daemons.contains(&one.pid));
        Ok(Nanos(client.cpu().0 + born.map(|one| one.cpu.0).sum::<i64>()))
    }
}
