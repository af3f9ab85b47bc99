//! What a launch costs in CPU time, in nanoseconds, with every helper that it called into being: the tree
//! of the client (also what was double-forked and reparented), and the daemons with what they forked.
//!
//! The source is the scheduler's own record of switches, through one perf event per CPU: a task's CPU time
//! is the sum of its stays on a CPU, from its first switch in to its last switch away, the taking apart of
//! its address space and its end included. It is what `perf stat` calls task-clock. Interrupts that strike a task are in it,
//! and so is time that a hypervisor takes away meanwhile.
//!
//! The kernel's `sum_exec_runtime` (schedstat, cpuacct, `wait4`) is larger for tasks that often sleep: it charges
//! a task from its wake-up on, that is for the rest of the interrupt and the way out of idle, 7 to 16 µs each in a virtual
//! machine. So the two are never compared with each other in one table.
//!
//! Exit records (taskstats) are deliberately not used. The kernel writes them before a task is taken apart and without
//! bringing its run time up to date: of a process of 1 ms they have shown 0.06 to 0.35 ms. A process CPU
//! clock knows neither children nor, once reaped, the process.
//!
//! Also deliberately absent: threads and reading during a launch (they would disturb it), and the fallback when this is
//! not permitted (`wait4`'s rusage, which misses the daemons).

mod record;
mod ring;
mod tree;

use anyhow::{Context, Result, anyhow, ensure};

use self::record::Event;
use self::ring::{Ring, online_cpus};
pub use self::tree::{Client, Image, ProcessAccount};
use super::clock;
use crate::units::{Nanos, Stamp};

/// All rings together may take this much memory (locked, in the kernel).
const BUDGET: usize = 128 << 20;

/// The processes that one root accounts for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tree {
    /// In the order of birth; daemons, being older, first.
    pub processes: Vec<ProcessAccount>,
}

impl Tree {
    /// CPU time of all processes together.
    pub fn cpu(&self) -> Nanos {
        Nanos(self.processes.iter().map(|process| process.cpu.0).sum())
    }

    /// Everything that was executed.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.processes.iter().flat_map(|process| &process.images)
    }

    /// Whether the very file `device`, `inode` (as in `stat`) was executed. On btrfs and the like, where a
    /// file's device is not its filesystem's, compare [`Image::path`].
    pub fn ran(&self, device: u64, inode: u64) -> bool {
        self.images().any(|image| image.device == device && image.inode == inode)
    }
}

/// The CPU of one launch.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LaunchCpu {
    /// The client and all its descendants.
    pub client: Tree,
    /// The daemons, and what they forked within the window.
    pub daemons: Tree,
}

/// Listens on every CPU, from [`Listener::open`] until dropped. One listener serves a whole run, so that all launches
/// run under equal conditions: to open one allocates megabytes and changes the kernel's scheduler hooks.
#[derive(Debug)]
pub struct Listener {
    cpus: Vec<usize>,
    rings: Vec<Ring>,
    daemons: Vec<i32>,
    begin: Option<Stamp>,
    /// Of the window, as far as they were read.
    events: Vec<Event>,
}

impl Listener {
    /// Begins to listen.
    ///
    /// # Errors
    /// With the kernel's answer; the caller has no CPU time then, and says so.
    pub fn open() -> Result<Listener> {
        let cpus = online_cpus().map_err(|error| anyhow!("cannot tell which CPUs are online: {error}"))?;
        let size = (BUDGET / cpus.len().max(1)).clamp(256 << 10, 4 << 20);
        // Rounded down to a power of two.
        let size = 1 << size.ilog2();
        let ring = |&cpu: &usize| {
            Ring::open(cpu, size).map_err(|source| match source.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => anyhow!(
                    "perf events on CPU {cpu} are refused: {source} (needs CAP_PERFMON, and CAP_IPC_LOCK for the rings)"
                ),
                _ => anyhow!("perf events on CPU {cpu} do not work: {source}"),
            })
        };
        let rings = cpus.iter().map(ring).collect::<Result<_>>()?;
        Ok(Listener { cpus, rings, daemons: Vec::new(), begin: None, events: Vec::new() })
    }

    /// Begins a window: forgets what was before. What the daemons do for anybody else in the window cannot be told
    /// apart and is on their account. `daemons` are the processes that work for the client without
    /// descending from it, each of which must exist now (engine, containerd; a shim too, when it is older than the
    /// launch).
    pub fn begin(&mut self, daemons: &[i32]) {
        self.daemons = daemons.to_vec();
        self.events.clear();
        for ring in &self.rings {
            ring.discard();
        }
        self.begin = Some(clock::now());
    }

    /// Adds up the window that the last [`Listener::begin`] opened, until now; it stays open. Where this process is the client
    /// itself, the client's tree is empty, and what this thread used is the caller's to add.
    ///
    /// Costs about 1 µs per 5 switches, after the launch. What is alive is accounted for until now.
    ///
    /// # Errors
    /// When anything is missing: no number rather than a wrong one.
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

    /// What everything that was born in the window used of it so far, the children of this process and those of the daemons.
    ///
    /// # Errors
    /// As [`Listener::so_far`].
    pub fn newborn(&mut self) -> Result<Nanos> {
        let LaunchCpu { client, daemons } = self.so_far(Client::Children)?;
        let born = daemons.processes.iter().filter(|one| !self.daemons.contains(&one.pid));
        Ok(Nanos(client.cpu().0 + born.map(|one| one.cpu.0).sum::<i64>()))
    }
}
