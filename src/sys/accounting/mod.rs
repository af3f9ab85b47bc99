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

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, anyhow, bail};

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
    /// What the daemons started for the container itself, as far as processes of it were named.
    pub own: Tree,
    /// The daemons, and everything else that they forked in the window.
    pub daemons: Tree,
}

/// Records events on every CPU from [`Listener::open`] until dropped. One listener serves a whole run, so
/// that all launches have equal conditions: opening one allocates megabytes and changes the kernel's
/// scheduler hooks.
#[derive(Debug)]
pub struct Listener {
    cpus: Vec<usize>,
    heard: Mutex<Heard>,
}

/// What was recorded since the first of the open windows began.
#[derive(Debug)]
struct Heard {
    rings: Vec<Ring>,
    /// Events that have been read so far.
    events: Vec<Event>,
    /// When each open window began, by its number.
    open: BTreeMap<u64, Stamp>,
    /// Windows so far.
    begun: u64,
    /// The number of the last window that was not alone: one with a lower number that is still open was not either.
    overlapped: u64,
    /// What went wrong last, and when: a window that was open then has no sum.
    spoiled: Option<(String, Stamp)>,
}

/// What happens from its beginning on. Any number of windows may be open at a time, in any threads.
#[derive(Debug)]
pub struct Window<'a> {
    listener: &'a Listener,
    number: u64,
    begin: Stamp,
    daemons: Vec<i32>,
    /// Whether another one was open when it began.
    joined: bool,
    /// When it ended, and whether another one was open at any time until then.
    ended: Option<(Stamp, bool)>,
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
        let (open, events) = (BTreeMap::new(), Vec::new());
        let heard = Heard { rings, events, open, begun: 0, overlapped: 0, spoiled: None };
        Ok(Listener { cpus, heard: Mutex::new(heard) })
    }

    /// Empties the rings into memory, which a long window must do before they are full.
    pub fn drain(&self) {
        self.heard().take(&self.cpus);
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a window. What the daemons do for other clients in it cannot be told apart and is counted too. `daemons` are the
    /// processes that work for the client without descending from it (engine, containerd); each must exist now.
    pub fn begin(&self, daemons: &[i32]) -> Window<'_> {
        let mut heard = self.heard();
        let joined = !heard.open.is_empty();
        heard.begun += 1;
        let number = heard.begun;
        if joined {
            heard.overlapped = number;
        } else {
            heard.events.clear();
            heard.rings.iter().for_each(Ring::discard);
        }
        let begin = clock::now();
        heard.open.insert(number, begin);
        Window { listener: self, number, begin, daemons: daemons.to_vec(), joined, ended: None }
    }
}

impl Heard {
    /// Reads what the rings have.
    fn take(&mut self, cpus: &[usize]) {
        for (ring, &cpu) in self.rings.iter().zip(cpus) {
            let taken = ring.take().with_context(|| format!("the ring of CPU {cpu} was full"));
            if let Err(why) = taken.and_then(|bytes| record::parse(cpu, &bytes, &mut self.events)) {
                self.spoiled = Some((format!("{why:#}"), clock::now()));
            }
        }
        if online_cpus().is_ok_and(|own| own != cpus) {
            self.spoiled =
                Some(("the set of online CPUs changed during the launch".to_owned(), clock::now()));
        }
    }
}

impl Window<'_> {
    /// Ends the window: what happens from now on is not in it.
    pub fn end(&mut self) {
        self.ended = Some((clock::now(), self.overlaps()));
    }

    /// Adds up the window until its end, or until now. `own` are processes of the container itself. If this process is the
    /// client itself, the client's tree is empty, and the caller adds the CPU time of this thread.
    ///
    /// Costs about 1 µs per 5 switches, after the launch. Living processes are counted until now.
    ///
    /// # Errors
    /// If any record is missing: no number rather than a wrong one.
    pub fn so_far(&self, client: Client, own: &[i32]) -> Result<LaunchCpu> {
        let end = self.ended.map_or_else(clock::now, |(end, _)| end);
        let mut heard = self.listener.heard();
        heard.take(&self.listener.cpus);
        if let Some((why, at)) = &heard.spoiled
            && at.0 >= self.begin.0
        {
            bail!("{why}");
        }
        let mut events = heard.events.clone();
        drop(heard);
        let roots = tree::Roots { launcher: std::process::id() as i32, client, daemons: &self.daemons, own };
        tree::sum(&mut events, self.begin, end, roots)
    }

    /// CPU time so far of everything created in the window: the children of this thread, of the daemons, and of these processes
    /// of the container itself.
    ///
    /// # Errors
    /// As [`Window::so_far`].
    pub fn newborn(&self, own: &[i32]) -> Result<Nanos> {
        let all = self.so_far(Client::Children(thread()), own)?;
        let born = all.own.processes.iter().chain(&all.daemons.processes);
        let born = born.filter(|one| !self.daemons.contains(&one.pid) && !own.contains(&one.pid));
        Ok(Nanos(all.client.cpu().0 + born.map(|one| one.cpu.0).sum::<i64>()))
    }

    /// Whether another window was open at any time while this one was.
    pub fn overlaps(&self) -> bool {
        let joined = || self.joined || self.listener.heard().overlapped > self.number;
        self.ended.map_or_else(joined, |(_, overlaps)| overlaps)
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        let mut heard = self.listener.heard();
        heard.open.remove(&self.number);
        match heard.open.values().min().copied() {
            Some(first) => heard.events.retain(|event| event.time >= first.0),
            None => heard.events.clear(),
        }
    }
}

/// The number of the calling thread.
pub fn thread() -> i32 {
    rustix::thread::gettid().as_raw_pid()
}
