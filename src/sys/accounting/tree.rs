//! Turns events into a tree of processes with their CPU time and programs. Pure.
//!
//! Deliberately absent: the source of the events, clocks, and the CPU time of processes that descend from no
//! root.

use std::collections::{HashMap, HashSet};

use anyhow::{Result, bail};

use super::LaunchCpu;
use super::record::{Event, Kind, RELEASED};
use crate::units::{Nanos, Stamp};

/// A program that a process executed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Image {
    /// The path as the process saw it; `None` if no mapping of the file was recorded.
    pub path: Option<String>,
    /// `st_dev` of the file, 0 if not recorded.
    pub device: u64,
    /// `st_ino` of the file, 0 if not recorded.
    pub inode: u64,
}

/// One process of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessAccount {
    /// Its process id.
    pub pid: i32,
    /// Time of its threads on CPUs in the window, until their last switch out.
    pub cpu: Nanos,
    /// The programs that it executed in the window, in order.
    pub images: Vec<Image>,
}

/// Which processes are the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The launcher itself.
    Launcher,
    /// This child, started in the window.
    Child(i32),
    /// Every child that this thread of the launcher started in the window.
    Children(i32),
    /// Every child that any thread of the launcher started in the window.
    All,
}

/// The roots to account for.
#[derive(Clone, Copy, Debug)]
pub struct Roots<'a> {
    /// The process that starts the client: dunnage.
    pub launcher: i32,
    /// The client.
    pub client: Client,
    /// Processes older than the window.
    pub daemons: &'a [i32],
    /// Processes of the container itself. What the daemons started for one of them, such as a shim, is its own with everything
    /// that descends from it.
    pub own: &'a [i32],
}

struct Process {
    account: ProcessAccount,
    /// The process that forked it, also if it was reparented later; `None` if it is older than the window.
    parent: Option<usize>,
    map_wanted: bool,
}

#[derive(Clone, Copy)]
enum Running {
    /// Not known: the window has just begun.
    Unknown,
    /// The idle task, or a task that the kernel has already released, so that its process is not known.
    Nobody,
    /// One thread has left and the next has not been reported yet.
    Switching,
    Process(usize),
}

#[derive(Default)]
struct World {
    processes: Vec<Process>,
    by_pid: HashMap<i32, usize>,
}

impl World {
    /// This process; one without a fork in the window is older than the window.
    fn process(&mut self, pid: i32) -> usize {
        let known = self.by_pid.get(&pid).copied();
        known.unwrap_or_else(|| self.insert(pid, None))
    }

    fn insert(&mut self, pid: i32, parent: Option<usize>) -> usize {
        let account = ProcessAccount { pid, cpu: Nanos(0), images: Vec::new() };
        self.processes.push(Process { account, parent, map_wanted: false });
        self.by_pid.insert(pid, self.processes.len() - 1);
        self.processes.len() - 1
    }

    fn executed(&mut self, pid: i32) {
        let index = self.process(pid);
        let process = &mut self.processes[index];
        process.map_wanted = true;
        process.account.images.push(Image::default());
    }

    /// The first executable mapping after an exec is the program itself.
    fn mapped(&mut self, pid: i32, device: u64, inode: u64, path: &str) {
        let Some(&index) = self.by_pid.get(&pid) else {
            return;
        };
        let process = &mut self.processes[index];
        if !process.map_wanted || inode == 0 {
            return;
        }
        process.map_wanted = false;
        if let Some(image) = process.account.images.last_mut() {
            *image = Image { path: Some(path.into()), device, inode };
        }
    }

    fn running(&mut self, pid: i32, tid: i32) -> Running {
        match (pid, tid) {
            (RELEASED, _) | (_, RELEASED | 0) => Running::Nobody,
            _ => Running::Process(self.process(pid)),
        }
    }

    /// Ends the time on a CPU of what has run since a moment.
    fn leave(&mut self, (running, since): (Running, u64), time: u64) {
        if let Running::Process(index) = running {
            self.processes[index].account.cpu.0 += time.saturating_sub(since) as i64;
        }
    }

    /// The oldest ancestor of a process that neither a root nor the launcher has started, or itself; none if it descends from one
    /// of these clients.
    fn top_of(
        &self,
        mut index: usize,
        clients: &HashSet<usize>,
        (roots, launcher): (&HashSet<usize>, Option<usize>),
    ) -> Option<usize> {
        while let Some(parent) = self.processes[index].parent {
            if clients.contains(&index) {
                return None;
            }
            if roots.contains(&parent) || Some(parent) == launcher {
                return (!clients.contains(&parent)).then_some(index);
            }
            index = parent;
        }
        Some(index)
    }

    /// The index of the nearest root that a process descends from.
    fn root_of(&self, mut index: usize, roots: &HashSet<usize>) -> Option<usize> {
        loop {
            if roots.contains(&index) {
                return Some(index);
            }
            index = self.processes[index].parent?;
        }
    }
}

/// Adds up the window from `begin` to `end`. `events` must be sorted within each CPU, but not across CPUs.
///
/// # Errors
/// If records are missing or the client was not seen: then no sum can be trusted.
pub fn sum(events: &mut Vec<Event>, begin: Stamp, end: Stamp, roots: Roots<'_>) -> Result<LaunchCpu> {
    lost(events, begin)?;
    events.retain(|event| event.time >= begin.0 && event.time <= end.0);
    // A stable sort: events of one CPU with the same time keep their order.
    events.sort_by_key(|event| event.time);
    let mut world = World::default();
    let daemons: HashSet<usize> = roots.daemons.iter().map(|&daemon| world.process(daemon)).collect();
    let cpus = events.iter().map(|event| event.cpu + 1).max().unwrap_or(0);
    let mut running = vec![(Running::Unknown, begin.0); cpus];
    let mut clients = HashSet::new();
    for event in events.iter() {
        match &event.kind {
            &Kind::Fork { pid, tid, by_pid, by_tid } if pid == tid => {
                let parent = world.process(by_pid);
                let index = world.insert(pid, Some(parent));
                let is_client = match roots.client {
                    Client::Launcher => false,
                    Client::Child(child) => pid == child && clients.is_empty(),
                    Client::Children(thread) => by_tid == thread,
                    Client::All => true,
                };
                if is_client && by_pid == roots.launcher {
                    clients.insert(index);
                }
            }
            Kind::Exec { pid } => world.executed(*pid),
            Kind::Map { pid, device, inode, path } => world.mapped(*pid, *device, *inode, path),
            &Kind::On { pid, tid } => {
                // The scheduler charges the switch to the next task, from the moment when the previous one
                // left.
                let left =
                    if let (Running::Switching, left) = running[event.cpu] { left } else { event.time };
                world.leave(running[event.cpu], event.time);
                running[event.cpu] = (world.running(pid, tid), left);
            }
            &Kind::Off { pid, tid, next } => {
                if let (Running::Unknown, since) = running[event.cpu] {
                    running[event.cpu] = (world.running(pid, tid), since);
                }
                world.leave(running[event.cpu], event.time);
                // Not every kernel reports when the idle task leaves, so the next task begins with its own
                // record.
                let now = if next == 0 { Running::Nobody } else { Running::Switching };
                running[event.cpu] = (now, event.time);
            }
            Kind::Fork { .. } | Kind::Lost { .. } => {}
        }
    }
    for state in running {
        world.leave(state, end.0);
    }
    if let (Client::Child(pid), true) = (roots.client, clients.is_empty()) {
        bail!("the start of process {pid} was not recorded");
    }
    // One that never ran in the window has no time in it.
    let own = roots.own.iter().filter_map(|pid| world.by_pid.get(pid).copied());
    let (roots, launcher) = (&daemons | &clients, world.by_pid.get(&roots.launcher).copied());
    let own = own.filter_map(|index| world.top_of(index, &clients, (&roots, launcher))).collect();
    Ok(gather(world, &clients, &own, &daemons))
}

/// A loss reported by the very first record of a ring happened before the window, when the ring was full of
/// what `begin` discarded: the kernel reports a loss with the next record that it can write. So did one that was reported before.
fn lost(events: &[Event], begin: Stamp) -> Result<()> {
    let mut seen = HashSet::new();
    for Event { cpu, kind, time } in events {
        let first = seen.insert(cpu);
        if let Kind::Lost { count } = kind
            && !first
            && *time >= begin.0
        {
            bail!("{count} records were lost on CPU {cpu}");
        }
    }
    Ok(())
}

fn gather(
    world: World,
    clients: &HashSet<usize>,
    own: &HashSet<usize>,
    daemons: &HashSet<usize>,
) -> LaunchCpu {
    let roots = &(daemons | clients) | own;
    let owners: Vec<Option<usize>> =
        (0..world.processes.len()).map(|index| world.root_of(index, &roots)).collect();
    let mut sums = LaunchCpu::default();
    for (process, owner) in world.processes.into_iter().zip(owners) {
        match owner {
            Some(root) if clients.contains(&root) => sums.client.processes.push(process.account),
            Some(root) if own.contains(&root) => sums.own.processes.push(process.account),
            Some(_) => sums.daemons.processes.push(process.account),
            None => {}
        }
    }
    sums
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
