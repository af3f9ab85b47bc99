//! Waits for what a look has found to disappear, by events only: a pidfd per process, the mount table's own
//! notification, and inotify on the parent of a cgroup (where cgroupfs reports a removed directory).
//!
//! Deliberately absent: sleeps and polling intervals.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

use super::look::{self, Found, Place};
use super::{Item, Tokens};
use crate::sys::{clock, pidfd};
use crate::units::{Nanos, Stamp};

/// What is still there, with the source of its event.
pub struct Watch {
    processes: Vec<(Item, OwnedFd)>,
    mounts: Vec<Item>,
    cgroups: Vec<(Item, PathBuf)>,
    mount_table: File,
    inotify: File,
}

impl Watch {
    /// Opens the sources; must be called before the look, so that no event after it is missed.
    pub fn new() -> io::Result<Watch> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?.into();
        let mount_table = File::open("/proc/self/mountinfo")?;
        Ok(Watch { processes: Vec::new(), mounts: Vec::new(), cgroups: Vec::new(), mount_table, inotify })
    }

    /// Starts to watch what a look has found, unless it is already gone.
    pub fn add(&mut self, found: Vec<Found>, tokens: &Tokens) -> io::Result<()> {
        self.mounts.clear();
        let mut cgroups = Vec::new();
        for Found { item, place } in found {
            match place {
                Place::Process(pid) => {
                    if let Some(pidfd) = open_pidfd(pid)? {
                        self.processes.push((item, pidfd));
                    }
                }
                Place::Mount => self.mounts.push(item),
                Place::Cgroup(path) => {
                    if watch_parent(&self.inotify, &path)? {
                        cgroups.push((item, path));
                    }
                }
            }
        }
        self.cgroups = cgroups;
        // What disappeared between the look and now has left no event.
        self.refresh_mounts(tokens)?;
        self.refresh_cgroups();
        Ok(())
    }

    /// Whether nothing that was found is left.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.mounts.is_empty() && self.cgroups.is_empty()
    }

    /// What is left.
    pub fn items(&self) -> Vec<Item> {
        let processes = self.processes.iter().map(|(item, _)| item);
        let cgroups = self.cgroups.iter().map(|(item, _)| item);
        processes.chain(&self.mounts).chain(cgroups).cloned().collect()
    }

    /// Waits for the next event and removes from the list what has disappeared. The stamp is that of the
    /// wake-up; `None` if `until` passed first.
    pub fn next(&mut self, until: Stamp, tokens: &Tokens) -> io::Result<Option<Stamp>> {
        let mut polled =
            vec![PollFd::new(&self.mount_table, PollFlags::PRI), PollFd::new(&self.inotify, PollFlags::IN)];
        polled.extend(self.processes.iter().map(|(_, pidfd)| PollFd::new(pidfd, PollFlags::IN)));
        if !poll(&mut polled, until) {
            return Ok(None);
        }
        let woken = clock::now();
        let happened: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
        let mut ended = happened[2..].iter().copied();
        self.processes.retain(|_| !ended.next().unwrap_or(false));
        if happened[0] {
            self.refresh_mounts(tokens)?;
        }
        if happened[1] {
            drain(&mut self.inotify);
            self.refresh_cgroups();
        }
        Ok(Some(woken))
    }

    fn refresh_mounts(&mut self, tokens: &Tokens) -> io::Result<()> {
        self.mounts =
            look::mounts(tokens, &look::mount_table()?).into_iter().map(|found| found.item).collect();
        Ok(())
    }

    fn refresh_cgroups(&mut self) {
        self.cgroups.retain(|(_, path)| path.symlink_metadata().is_ok());
    }
}

/// `None`: the process is already gone.
fn open_pidfd(pid: i32) -> io::Result<Option<OwnedFd>> {
    match pidfd::open(pid) {
        // ESRCH: gone. EINVAL, ENOENT: the id is now that of a thread. Both mean that this process has ended.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EINVAL | libc::ENOENT)) => {
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

/// Whether there is something to wait for: without a parent directory the path is gone.
fn watch_parent(inotify: &File, path: &Path) -> io::Result<bool> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let gone = WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::DELETE_SELF | WatchFlags::ONLYDIR;
    match inotify::add_watch(inotify, parent, gone) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Discards the events: they only say that it is time to look again.
fn drain(inotify: &mut File) {
    let mut buffer = [0; 4096];
    while inotify.read(&mut buffer).is_ok_and(|length| length > 0) {}
}

/// Whether anything happened before `until`.
fn poll(fds: &mut [PollFd<'_>], until: Stamp) -> bool {
    loop {
        let left = Nanos(until.0.saturating_sub(clock::now().0).cast_signed());
        // A signal may end a wait early.
        if pidfd::poll(fds, left) {
            return true;
        }
        if clock::now() >= until {
            return false;
        }
    }
}
