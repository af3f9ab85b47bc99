//! From events to who made whom, what each process spent on a CPU, and what ran in it. Pure.
//!
//! Deliberately absent: where events come from, and clocks. Events of another process that cannot matter
//! (it descends from no root) only go into [`Sums::elsewhere`].

use std::collections::{HashMap, HashSet};

use super::record::{Event, Kind, RELEASED};
use crate::units::{Nanos, Stamp};

/// A program that a process executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The kernel's name for it, at most 15 bytes.
    pub comm: String,
    /// Path as the process saw it; `None` when the file was not seen being mapped.
    pub path: Option<String>,
    /// `st_dev` of the file, 0 when not seen.
    pub device: u64,
    /// `st_ino` of the file, 0 when not seen.
    pub inode: u64,
}

/// One process of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessAccount {
    /// Its id.
    pub pid: i32,
    /// The process that forked it, however it was reparented later; `None` when older than the window.
    pub parent: Option<i32>,
    /// Time that its threads spent on CPUs within the window, until their very last switch away.
    pub cpu: Nanos,
    /// Threads seen, the first one included.
    pub threads: u32,
    /// What it executed within the window, in order.
    pub images: Vec<Image>,
    /// When it was forked; `None` when older than the window.
    pub born: Option<Stamp>,
    /// When its last thread left the CPU for good; `None` while it lives.
    pub ended: Option<Stamp>,
}

/// The sums of one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// The client and everything that descends from it, in the order of birth.
    pub client: Vec<ProcessAccount>,
    /// The daemons and everything that they forked within the window, in the order of birth.
    pub daemons: Vec<ProcessAccount>,
    /// CPU of everything else except `launcher`: kernel threads and processes that have nothing to do with it.
    pub elsewhere: Nanos,
    /// CPU of the launcher itself.
    pub launcher: Nanos,
    /// CPU of tasks that were switched in again after the kernel had released them, so that nobody can say whose.
    pub unattributed: Nanos,
}

/// Whom to account for.
#[derive(Clone, Copy, Debug)]
pub struct Roots<'a> {
    /// The process that starts the client: ours.
    pub launcher: i32,
    /// The client that it started within the window; none where the launcher is the client itself.
    pub client: Option<i32>,
    /// Processes that live since before the window.
    pub daemons: &'a [i32],
}

/// Why there are no sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// The kernel says that records are missing.
    #[error("{count} records were lost on CPU {cpu}")]
    Lost {
        /// How many.
        count: u64,
        /// Where.
        cpu: usize,
    },
    /// The client's birth is not among the events.
    #[error("process {0} was not seen being started")]
    NoClient(i32),
}

struct Process {
    account: ProcessAccount,
    parent: Option<usize>,
    live: HashSet<i32>,
    last_on_cpu: u64,
    map_wanted: bool,
}

#[derive(Clone, Copy)]
enum Running {
    /// Nothing is known: the window has just begun.
    Unknown,
    Idle,
    /// One has left and the next has not come yet.
    Switching,
    Process(usize),
    Released,
}

#[derive(Default)]
struct World {
    processes: Vec<Process>,
    by_pid: HashMap<i32, usize>,
}

impl World {
    /// The process of this thread; one that was never forked within the window is older than it.
    fn process(&mut self, pid: i32, tid: i32) -> usize {
        let known = self.by_pid.get(&pid).copied();
        let index = known.unwrap_or_else(|| self.insert(pid, None, None));
        if self.processes[index].account.born.is_none() && self.processes[index].live.insert(tid) {
            self.processes[index].account.threads += 1;
        }
        index
    }

    fn insert(&mut self, pid: i32, parent: Option<usize>, born: Option<Stamp>) -> usize {
        let index = self.processes.len();
        let account = ProcessAccount {
            pid,
            parent: parent.map(|parent| self.processes[parent].account.pid),
            cpu: Nanos(0),
            threads: 0,
            images: Vec::new(),
            born,
            ended: None,
        };
        let last_on_cpu = born.map_or(0, |born| born.0);
        self.processes.push(Process {
            account,
            parent,
            live: HashSet::new(),
            last_on_cpu,
            map_wanted: false,
        });
        self.by_pid.insert(pid, index);
        index
    }

    fn forked(&mut self, time: u64, pid: i32, tid: i32, by_pid: i32) {
        let index = if pid == tid {
            let parent = self.process(by_pid, by_pid);
            self.insert(pid, Some(parent), Some(Stamp(time)))
        } else {
            match self.by_pid.get(&pid) {
                Some(&index) => index,
                None => self.insert(pid, None, None),
            }
        };
        if self.processes[index].live.insert(tid) {
            self.processes[index].account.threads += 1;
        }
    }

    fn executed(&mut self, pid: i32, comm: &str) {
        let index = self.process(pid, pid);
        let process = &mut self.processes[index];
        // After exec there is one thread, and it bears the process's id.
        process.live = HashSet::from([pid]);
        process.map_wanted = true;
        process.account.images.push(Image { comm: comm.into(), path: None, device: 0, inode: 0 });
    }

    /// The first file that is mapped for executing after an exec is the program itself.
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
            (image.path, image.device, image.inode) = (Some(path.into()), device, inode);
        }
    }

    fn exited(&mut self, pid: i32, tid: i32) {
        let index = self.process(pid, tid);
        let process = &mut self.processes[index];
        process.live.remove(&tid);
        // Of a process older than the window not all threads are known: its first one speaks for them.
        if process.account.born.is_none() && pid == tid {
            process.live.clear();
        }
    }

    /// The root that a process descends from, as an index; the nearest one counts.
    fn root_of(&self, mut index: usize, roots: &HashSet<usize>) -> Option<usize> {
        loop {
            if roots.contains(&index) {
                return Some(index);
            }
            index = self.processes[index].parent?;
        }
    }
}

/// Adds up a window that reaches from `begin` to `end`. `events` need not be sorted across CPUs, only within each.
///
/// # Errors
/// When records are missing or the client was never seen: then no sum can be trusted.
pub fn sum(events: &mut Vec<Event>, begin: Stamp, end: Stamp, roots: Roots<'_>) -> Result<Sums, Defect> {
    lost(events)?;
    events.retain(|event| {
        event.time >= begin.0 && event.time <= end.0 && !matches!(event.kind, Kind::Lost { .. })
    });
    // Stable, so that events of one CPU with one time keep their order.
    events.sort_by_key(|event| event.time);

    let mut world = World::default();
    for &daemon in roots.daemons {
        world.process(daemon, daemon);
    }
    let launcher = world.process(roots.launcher, roots.launcher);
    let daemons: HashSet<usize> = roots.daemons.iter().map(|pid| world.by_pid[pid]).collect();
    let cpus = events.iter().map(|event| event.cpu + 1).max().unwrap_or(0);
    let mut running = vec![(Running::Unknown, begin.0); cpus];
    let mut unattributed = 0;
    let mut client = None;

    for event in events.iter() {
        match &event.kind {
            &Kind::Fork { pid, tid, by_pid } => {
                world.forked(event.time, pid, tid, by_pid);
                if pid == tid && Some(pid) == roots.client && by_pid == roots.launcher && client.is_none() {
                    client = Some(world.by_pid[&pid]);
                }
            }
            Kind::Exec { pid, comm } => world.executed(*pid, comm),
            Kind::Map { pid, device, inode, path } => world.mapped(*pid, *device, *inode, path),
            &Kind::Exit { pid, tid } => world.exited(pid, tid),
            &Kind::On { pid, tid } => {
                // The scheduler charges the switch to whoever comes: from when the one before left.
                let left =
                    if let (Running::Switching, left) = running[event.cpu] { left } else { event.time };
                leave(&mut world, running[event.cpu], event.time, &mut unattributed);
                running[event.cpu] = (identify(&mut world, pid, tid), left);
            }
            &Kind::Off { pid, tid, next } => {
                if let (Running::Unknown, since) = running[event.cpu] {
                    running[event.cpu] = (identify(&mut world, pid, tid), since);
                }
                leave(&mut world, running[event.cpu], event.time, &mut unattributed);
                // Not every kernel tells when the idle task leaves, so what comes after it begins with itself.
                running[event.cpu] = (if next == 0 { Running::Idle } else { Running::Switching }, event.time);
            }
            Kind::Lost { .. } => {}
        }
    }
    for state in running {
        leave(&mut world, state, end.0, &mut unattributed);
    }
    if let (Some(pid), None) = (roots.client, client) {
        return Err(Defect::NoClient(pid));
    }
    Ok(gather(world, client, launcher, &daemons, Nanos(unattributed as i64)))
}

/// A loss that is reported by the very first record of a ring happened before the window, when the ring
/// was full of what `begin` threw away: the kernel reports a loss with the next record that it can write.
fn lost(events: &[Event]) -> Result<(), Defect> {
    let mut seen = HashSet::new();
    for event in events {
        let first = seen.insert(event.cpu);
        if let Kind::Lost { count } = event.kind
            && !first
        {
            return Err(Defect::Lost { count, cpu: event.cpu });
        }
    }
    Ok(())
}

fn identify(world: &mut World, pid: i32, tid: i32) -> Running {
    match (pid, tid) {
        (RELEASED, _) | (_, RELEASED) => Running::Released,
        (_, 0) => Running::Idle,
        _ => Running::Process(world.process(pid, tid)),
    }
}

fn leave(world: &mut World, (running, since): (Running, u64), time: u64, unattributed: &mut u64) {
    let spent = time.saturating_sub(since);
    match running {
        Running::Process(index) => {
            let process = &mut world.processes[index];
            process.account.cpu.0 += spent as i64;
            process.last_on_cpu = process.last_on_cpu.max(time);
        }
        Running::Released => *unattributed += spent,
        Running::Unknown | Running::Idle | Running::Switching => {}
    }
}

fn gather(
    world: World,
    client: Option<usize>,
    launcher: usize,
    daemons: &HashSet<usize>,
    unattributed: Nanos,
) -> Sums {
    let mut roots = daemons.clone();
    roots.extend(client);
    let owners: Vec<Option<usize>> =
        (0..world.processes.len()).map(|index| world.root_of(index, &roots)).collect();
    let mut sums = Sums {
        client: Vec::new(),
        daemons: Vec::new(),
        elsewhere: Nanos(0),
        launcher: Nanos(0),
        unattributed,
    };
    for (index, (process, owner)) in world.processes.into_iter().zip(owners).enumerate() {
        let mut account = process.account;
        if process.live.is_empty() {
            account.ended = Some(Stamp(process.last_on_cpu));
        }
        match owner {
            Some(root) if Some(root) == client => sums.client.push(account),
            Some(_) => sums.daemons.push(account),
            None if index == launcher => sums.launcher = account.cpu,
            None => sums.elsewhere.0 += account.cpu.0,
        }
    }
    sums
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
