//! Walks a path part by part with open directories, and follows links by hand, so that what was looked at is what is entered.
//! Who may have made a part is the caller's question.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, fstatfs, mkdirat, openat, readlinkat};
use rustix::io::Errno;

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;
/// An open file without the right to read it: opening a pipe or a device so has no effect.
pub(super) const SEEN: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Why a path cannot be walked.
#[derive(Debug)]
pub(super) struct Stopped {
    /// What failed.
    pub verb: &'static str,
    /// Where.
    pub path: PathBuf,
    /// The kernel's answer.
    pub error: Errno,
}

impl From<Stopped> for io::Error {
    fn from(stopped: Stopped) -> io::Error {
        stopped.error.into()
    }
}

/// A file of any kind.
#[derive(Debug)]
pub struct Found {
    pub(super) descriptor: OwnedFd,
    pub(super) about: Stat,
}

impl Found {
    /// Its type.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.about.st_mode)
    }

    /// Its permissions.
    pub fn mode(&self) -> u32 {
        self.about.st_mode & 0o7777
    }

    /// Whether it belongs to root or to this process's user.
    pub fn is_trusted(&self) -> bool {
        [0, rustix::process::geteuid().as_raw()].contains(&self.about.st_uid)
    }

    /// A path that leads to this very file for as long as it is open here.
    pub fn path(&self) -> PathBuf {
        through(&self.descriptor)
    }
}

/// A path that leads to this very file for as long as it is open here.
pub(super) fn through(descriptor: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
}

/// A part of a path on the way: a directory or link, or the root directory.
pub(super) struct Part<'a> {
    /// What it is.
    pub found: &'a Found,
    /// Its path without links.
    pub path: &'a Path,
    /// The permissions of the directory that it is in; 0 for the root directory.
    pub above: u32,
    /// Whether nothing follows.
    pub is_last: bool,
    /// Whether it was made on the way.
    pub is_made: bool,
    /// Whether it is a link of the kernel's to an open file, which no name leads to.
    pub is_magic: bool,
}

/// The end of a path.
pub(super) struct End {
    /// The directory that has its name.
    pub above: OwnedFd,
    /// The name, which is not a link.
    pub name: OsString,
    /// What the name is, if it exists.
    pub found: Option<Found>,
    /// The path without links.
    pub path: PathBuf,
}

/// Walks a path. Missing directories are made with this mode, or only the last name may be missing. Each part is judged
/// before it is entered or followed.
pub(super) fn walk<E: From<Stopped>>(
    path: &Path,
    missing: Option<Mode>,
    mut judge: impl FnMut(&Part<'_>) -> Result<(), E>,
) -> Result<End, E> {
    let mut rest = names(path);
    let mut links = 0;
    let mut walked = PathBuf::from(".");
    let mut at = open(&CWD, OsStr::new("."), &walked)?;
    loop {
        let name = rest.pop_front().unwrap_or_else(|| ".".into());
        let is_last = rest.is_empty();
        if name == "/" {
            walked = PathBuf::from("/");
            at = open(&CWD, &name, &walked)?;
            let (is_made, is_magic) = (false, false);
            judge(&Part { found: &at, path: &walked, above: 0, is_last: false, is_made, is_magic })?;
            continue;
        }
        let next = match name.as_encoded_bytes() {
            b"." => walked.clone(),
            b".." => walked.parent().unwrap_or(&walked).to_owned(),
            _ => walked.join(&name),
        };
        let stopped = |verb, error| Stopped { verb, path: next.clone(), error };
        let (found, is_made) = match (open(&at.descriptor, &name, &next), missing) {
            (Err(Stopped { error: Errno::NOENT, .. }), Some(mode)) => {
                let is_made = match mkdirat(&at.descriptor, &name, mode) {
                    Ok(()) => true,
                    Err(Errno::EXIST) => false,
                    Err(error) => return Err(stopped("make", error).into()),
                };
                (open(&at.descriptor, &name, &next)?, is_made)
            }
            (Err(Stopped { error: Errno::NOENT, .. }), None) if is_last => {
                return Ok(End { above: at.descriptor, name, found: None, path: next });
            }
            (found, _) => (found?, false),
        };
        let is_link = found.kind() == FileType::Symlink;
        let is_magic = is_link
            && fstatfs(&found.descriptor).map_err(|error| stopped("look at", error))?.f_type
                == rustix::fs::PROC_SUPER_MAGIC;
        if name != "." && name != ".." {
            judge(&Part { found: &found, path: &next, above: at.mode(), is_last, is_made, is_magic })?;
        }
        if is_link {
            links += 1;
            if links > MOST_LINKS {
                return Err(stopped("enter", Errno::LOOP).into());
            }
        }
        if is_link && !is_magic {
            let target =
                readlinkat(&found.descriptor, "", Vec::new()).map_err(|error| stopped("read", error))?;
            let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
            names(&target).into_iter().rev().for_each(|name| rest.push_front(name));
            continue;
        }
        // What `/dev/stdout` leads to has no path.
        let found = if is_magic { open_at(&at.descriptor, &name, SEEN, &next)? } else { found };
        if is_last {
            return Ok(End { above: at.descriptor, name, found: Some(found), path: next });
        }
        (at, walked) = (found, next);
    }
}

/// Opens a part of a path; a link itself.
fn open(above: &impl AsFd, name: &OsStr, path: &Path) -> Result<Found, Stopped> {
    open_at(above, name, SEEN | OFlags::NOFOLLOW, path)
}

fn open_at(above: &impl AsFd, name: &OsStr, flags: OFlags, path: &Path) -> Result<Found, Stopped> {
    let opened = openat(above, name, flags, Mode::empty());
    let found = opened.and_then(|descriptor| Ok(Found { about: fstat(&descriptor)?, descriptor }));
    found.map_err(|error| Stopped { verb: "enter", path: path.to_owned(), error })
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components().map(|one| one.as_os_str().to_owned()).collect()
}
