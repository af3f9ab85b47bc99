//! Waiting for what a look has found to go away, by events only: a pidfd per process, the mount table's own
//! notification, and inotify on the parent of a cgroup or path (cgroupfs tells of a removed directory there).
//!
//! Deliberately absent: any sleep, any interval.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::look::{self, Found, Place};
use super::{Item, Tokens};
use crate::sys::{clock, pidfd};
use crate::units::{Nanos, Stamp};

/// What is still there, each with the source of its event.
pub struct Watch {
    processes: Vec<(Item, OwnedFd)>,
    mounts: Vec<Item>,
    paths: Vec<(Item, PathBuf)>,
    mount_table: File,
    inotify: File,
}

impl Watch {
    /// Opens the sources; to be called before the look, so that nothing that goes after it is missed.
    pub fn new() -> io::Result<Watch> {
        // SAFETY: no pointers involved.
        let fd = unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor and nobody else knows it.
        let inotify = unsafe { File::from_raw_fd(fd) };
        let mount_table = File::open("/proc/self/mountinfo")?;
        Ok(Watch { processes: Vec::new(), mounts: Vec::new(), paths: Vec::new(), mount_table, inotify })
    }

    /// Begins to watch what a look has found, unless it is already gone.
    pub fn add(&mut self, found: Vec<Found>, tokens: &Tokens) -> io::Result<()> {
        self.mounts.clear();
        let mut paths = Vec::new();
        for Found { item, place } in found {
            match place {
                Place::Process(pid) => {
                    if let Some(pidfd) = open_pidfd(pid)? {
                        self.processes.push((item, pidfd));
                    }
                }
                Place::Mount => self.mounts.push(item),
                Place::Path(path) => {
                    if watch_parent(&self.inotify, &path)? {
                        paths.push((item, path));
                    }
                }
            }
        }
        self.paths = paths;
        // Whatever went between the look and now has left no event behind.
        self.refresh_mounts(tokens)?;
        self.refresh_paths();
        Ok(())
    }

    /// Nothing is left of what was found.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.mounts.is_empty() && self.paths.is_empty()
    }

    /// What is left.
    pub fn items(&self) -> Vec<Item> {
        let processes = self.processes.iter().map(|(item, _)| item);
        let paths = self.paths.iter().map(|(item, _)| item);
        processes.chain(&self.mounts).chain(paths).cloned().collect()
    }

    /// Waits for the next event and strikes out what it took away. The stamp is that of the waking; `None` when `until`
    /// passed first.
    pub fn next(&mut self, until: Stamp, tokens: &Tokens) -> io::Result<Option<Stamp>> {
        let mut polled = vec![
            libc::pollfd { fd: self.mount_table.as_raw_fd(), events: libc::POLLPRI, revents: 0 },
            libc::pollfd { fd: self.inotify.as_raw_fd(), events: libc::POLLIN, revents: 0 },
        ];
        let pidfds = self.processes.iter().map(|(_, pidfd)| pidfd.as_raw_fd());
        polled.extend(pidfds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }));
        if !poll(&mut polled, until)? {
            return Ok(None);
        }
        let woken = clock::now();
        let mut ended = polled[2..].iter().map(|fd| fd.revents != 0);
        self.processes.retain(|_| !ended.next().unwrap_or(false));
        if polled[0].revents != 0 {
            self.refresh_mounts(tokens)?;
        }
        if polled[1].revents != 0 {
            drain(&mut self.inotify);
            self.refresh_paths();
        }
        Ok(Some(woken))
    }

    fn refresh_mounts(&mut self, tokens: &Tokens) -> io::Result<()> {
        self.mounts =
            look::mounts(tokens, &look::mount_table()?).into_iter().map(|found| found.item).collect();
        Ok(())
    }

    fn refresh_paths(&mut self) {
        self.paths.retain(|(_, path)| path.symlink_metadata().is_ok());
    }
}

/// `None`: the process is already gone.
fn open_pidfd(pid: i32) -> io::Result<Option<OwnedFd>> {
    match pidfd::open(pid) {
        // ESRCH: gone. EINVAL, ENOENT: the number is now that of a thread. Both mean that this process has ended.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EINVAL | libc::ENOENT)) => {
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

/// Whether there is something to wait for: without a parent directory the path is gone.
fn watch_parent(inotify: &File, path: &Path) -> io::Result<bool> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let name = std::ffi::CString::new(parent.as_os_str().as_bytes())?;
    let mask = libc::IN_DELETE | libc::IN_MOVED_FROM | libc::IN_DELETE_SELF | libc::IN_ONLYDIR;
    // SAFETY: `name` is a C string that lives through the call.
    if unsafe { libc::inotify_add_watch(inotify.as_raw_fd(), name.as_ptr(), mask) } >= 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::NotFound { Ok(false) } else { Err(error) }
}

/// Throws the events away: they only say that it is time to look again.
fn drain(inotify: &mut File) {
    let mut buffer = [0; 4096];
    while inotify.read(&mut buffer).is_ok_and(|length| length > 0) {}
}

/// Whether anything happened before `until`.
fn poll(fds: &mut [libc::pollfd], until: Stamp) -> io::Result<bool> {
    loop {
        let left = Nanos(until.0.saturating_sub(clock::now().0).cast_signed());
        match pidfd::poll(fds, left) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            ready => return ready,
        }
    }
}
