//! Other processes, as `/proc` shows them.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::event::PollFd;
use rustix::process::geteuid;

use super::socket::{Patience, READABLE, Waited};
use super::{clock, pidfd};
use crate::units::Nanos;

/// A running process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its process id.
    pub pid: i32,
    /// Its parent's process id.
    pub parent: i32,
    /// The name of its first thread, at most 15 bytes.
    pub name: String,
    /// Its executable, if that can be read.
    pub executable: Option<PathBuf>,
    /// When it started, in clock ticks after boot.
    start_ticks: u64,
}

/// The processes with one of these names, in the order of their ids.
pub fn named(names: &[&str]) -> Vec<Process> {
    let mut found: Vec<_> = all().filter(|process| names.contains(&process.name.as_str())).collect();
    found.sort_by_key(|process| process.pid);
    found
}

/// The ids of all processes.
fn ids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// All processes.
pub(crate) fn all() -> impl Iterator<Item = Process> {
    ids().filter_map(read)
}

/// The processes that have a file with one of these paths open, as far as it can be read.
pub fn holding(is_wanted: &dyn Fn(&Path) -> bool) -> impl Iterator<Item = i32> {
    let holds = |pid: &i32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|path| is_wanted(&path))
    };
    ids().filter(holds)
}

/// Whether a process has the rights of this process's user or of root, and of no other user. Who owns its directory in `/proc`
/// does not say that: root owns those of all processes that do not let themselves be dumped.
pub fn is_ours_or_roots(pid: i32) -> bool {
    let own = rustix::process::geteuid().as_raw();
    users_of(pid).is_some_and(|users| users.iter().all(|user| *user == 0 || *user == own))
}

/// The real, effective, saved and filesystem user of a process.
fn users_of(pid: i32) -> Option<[u32; 4]> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace();
    users.filter_map(|user| user.parse().ok()).collect::<Vec<u32>>().try_into().ok()
}

/// The real user of a process.
pub fn user_of(pid: i32) -> Option<u32> {
    users_of(pid).map(|[real, ..]| real)
}

/// Whether a process that is called like a daemon is one: any user can give a process any name, and start a program that changes
/// its user by a link with any name. It has the rights of root or of this process's user. For root in addition, its executable has
/// its name, belongs to root, gives no rights, and is the file at this path here: in another mount namespace it may be another one.
pub fn is_genuine(process: &Process) -> bool {
    let is_roots = || {
        let running = fs::metadata(format!("/proc/{}/exe", process.pid));
        let Some((path, running)) = process.executable.as_ref().zip(running.ok()) else { return false };
        let is_there = |here: fs::Metadata| (here.dev(), here.ino()) == (running.dev(), running.ino());
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // The kernel cuts names.
        let is_its =
            name.starts_with(&process.name) && (name.len() == process.name.len() || process.name.len() == 15);
        is_its && running.uid() == 0 && running.mode() & 0o6022 == 0 && fs::metadata(path).is_ok_and(is_there)
    };
    is_ours_or_roots(process.pid) && (!geteuid().is_root() || is_roots())
}

/// The processes that began at this time or later, in clock ticks after boot.
pub(crate) fn since(ticks: u64) -> impl Iterator<Item = Process> {
    ids().filter_map(without_executable).filter(move |process| process.start_ticks >= ticks).map(complete)
}

/// One process, if it exists.
pub fn read(pid: i32) -> Option<Process> {
    without_executable(pid).map(complete)
}

/// Whether a process is gone, or dies: the first one of a namespace closes its files before it waits for the others' ends, and is no
/// zombie until then.
pub fn is_ending(pid: i32) -> bool {
    /// `PF_EXITING` of Linux's `sched.h`, in the ninth field of proc(5)'s `stat`.
    const EXITING: u64 = 0x4;
    let flags = |stat: String| stat.rsplit_once(')')?.1.split_whitespace().nth(6)?.parse::<u64>().ok();
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(flags)
        .is_none_or(|flags| flags & EXITING != 0)
}

/// The processes from which one descends, the nearest first, without the machine's first one.
pub fn parents(pid: i32) -> Vec<i32> {
    let above = |pid: &i32| without_executable(*pid).map(|own| own.parent).filter(|parent| *parent > 1);
    std::iter::successors(above(&pid), above).collect()
}

fn complete(process: Process) -> Process {
    let executable = fs::read_link(format!("/proc/{}/exe", process.pid)).ok();
    Process { executable, ..process }
}

fn without_executable(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let fields: Vec<_> = after.split_whitespace().collect();
    Some(Process {
        pid,
        name,
        parent: fields.get(1)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
        executable: None,
    })
}

/// A process that is held by a pidfd. Everything here was read while it was there, so its id cannot have belonged to another one.
#[derive(Debug)]
pub struct Held {
    /// What `/proc` says.
    pub process: Process,
    /// Its user.
    pub user: u32,
    /// Its command line.
    pub words: Vec<Vec<u8>>,
    /// Its pidfd.
    pub held: OwnedFd,
}

impl Held {
    /// Holds a process, if it is there and not a zombie.
    pub fn of(pid: i32) -> Option<Held> {
        let held = pidfd::open(pid).ok()?;
        let [_, user, ..] = users_of(pid)?;
        let found = Held { process: read(pid)?, user, words: words(pid), held };
        (!has_ended(&found.held)).then_some(found)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        let _ = pidfd::signal(&self.held, signal);
    }
}

/// The command line of a process; zombies have none.
fn words(pid: i32) -> Vec<Vec<u8>> {
    let mut line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.pop_if(|last| *last == 0);
    line.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

/// The processes with command lines like this, except this one. They are looked at before
/// they are held, since there may be more of them than descriptors, and again afterwards.
pub fn held(is_wanted: &dyn Fn(&[Vec<u8>]) -> bool) -> Vec<Held> {
    let own = std::process::id() as i32;
    let likely = ids().filter(|pid| *pid != own && is_wanted(&words(*pid)));
    likely.filter_map(Held::of).filter(|one| is_wanted(&one.words)).collect()
}

/// Kills every process of this process's user, or of the one as whom dunnage starts the client, with its whole thread group, that
/// executes `client` (itself, or as a script) with `argument` among its arguments. The argument must be unique to dunnage.
pub fn kill_clients(client: &Path, argument: &str, user: Option<u32>) {
    let executes = |words: &[Vec<u8>]| {
        let is_client = words.iter().take(2).any(|word| *word == client.as_os_str().as_bytes());
        is_client && words.iter().any(|word| *word == argument.as_bytes())
    };
    let all = held(&executes);
    let is_ours = |one: &&Held| one.user == geteuid().as_raw() || Some(one.user) == user;
    all.iter().filter(is_ours).for_each(|one| one.signal(libc::SIGKILL));
}

/// Kills all processes that are found, and their descendants, until none is left; this process is spared.
pub fn kill_families(find: &dyn Fn() -> Vec<Held>) {
    let own = std::process::id() as i32;
    // Each may start another one before it is killed, but not for this many generations.
    for _ in 0..100 {
        let before: Vec<Process> = all().collect();
        let mut family = find();
        if family.is_empty() {
            return;
        }
        let mut at = 0;
        while let Some(parent) = family.get(at).map(|one| one.process.clone()) {
            // It had this id when its children were read only if it was among those that were read.
            let was_there = before.iter().any(|one| one.is_same(&parent));
            let children =
                before.iter().filter(|one| was_there && one.parent == parent.pid && one.pid != own);
            let new: Vec<_> = children
                .filter(|child| !family.iter().any(|one| one.process.pid == child.pid))
                .filter_map(|child| Held::of(child.pid).filter(|one| one.process.is_same(child)))
                .collect();
            family.extend(new);
            at += 1;
        }
        family.iter().for_each(|one| one.signal(libc::SIGKILL));
        for one in &family {
            await_end(&one.held, KILLED);
        }
    }
}

/// How long a killed process may take to end.
const KILLED: Nanos = Nanos::from_millis(10_000);

/// Waits until the process of the pidfd has ended; returns whether it has.
pub fn await_end(process: &OwnedFd, allowed: Nanos) -> bool {
    Patience::new(allowed, None).wait(process, READABLE, allowed).is_ok_and(|waited| waited == Waited::Ready)
}

/// Whether the process of the pidfd has ended.
pub fn has_ended(process: &OwnedFd) -> bool {
    pidfd::poll(&mut [PollFd::new(process, READABLE)], Nanos(0))
}

/// The first executable file with this name on the search path.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The current time in clock ticks after boot, as of [`Process::started`].
pub(crate) fn now() -> u64 {
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    (clock::with_suspensions().0 as f64 / 1e9 * ticks) as u64
}

impl Process {
    /// Whether this is the same process, since an id may have been reused.
    pub fn is_same(&self, other: &Process) -> bool {
        (self.pid, self.start_ticks) == (other.pid, other.start_ticks)
    }

    /// One for tests.
    #[cfg(test)]
    pub fn planted(pid: i32, parent: i32, name: &str, start_ticks: u64) -> Process {
        Process { pid, parent, name: name.to_owned(), executable: None, start_ticks }
    }

    /// When it started, in clock ticks after boot; together with the id it is unique.
    pub fn started(&self) -> u64 {
        self.start_ticks
    }

    /// How long it has been running.
    pub fn uptime(&self) -> Nanos {
        let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
        let since_boot: f64 = uptime.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        Nanos::from_seconds(since_boot - self.start_ticks as f64 / ticks)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_process_is_found_with_its_parent_and_executable() {
        let own = super::read(std::process::id() as i32).unwrap();
        assert_eq!(own.executable, std::env::current_exe().ok());
        assert!(own.parent > 0);
        assert!(own.uptime().0 < 3_600_000_000_000);
    }

    #[test]
    fn one_that_was_killed_is_ending_before_it_is_reaped() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id() as i32;
        assert!(!super::is_ending(pid));
        child.kill().unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !super::is_ending(pid) && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(super::is_ending(pid));
        child.wait().unwrap();
        assert!(super::is_ending(pid));
    }
}
