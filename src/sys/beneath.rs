//! Works below a directory that is held open, where another user may have put links or moved directories. No
//! call leaves the directory: the kernel follows no link, and refuses a path that climbs out (`openat2`). So root can read, write
//! and remove in a directory that others write to, and the path to it is looked up only once.
//!
//! A mount below the directory can be entered only if the caller says so, and is never removed. Deliberately absent: who may write to
//! the directory itself, and what a file contains. Both are the caller's questions.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::fs::{fcntl_getfl, fcntl_setfl, fstat, mkdirat, openat, openat2, unlinkat};
use rustix::io::Errno;

/// What is mounted below the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mounts {
    /// A path may lead into it.
    Entered,
    /// A path that leads into it is an error (`EXDEV`), also where the mount shows the same filesystem.
    Refused,
}

impl Mounts {
    fn resolve(self) -> ResolveFlags {
        let always = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match self {
            Mounts::Entered => always,
            Mounts::Refused => always | ResolveFlags::NO_XDEV,
        }
    }
}

/// Flags for a directory. One that cannot be read is an error.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a directory by its absolute path, none of whose parts may be a link: the one to work below.
///
/// # Errors
/// `ELOOP` for a link, and those of `openat2`.
pub fn at(path: &Path) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(rustix::fs::CWD, path, DIRECTORY, Mode::empty(), resolve)?)
}

/// Opens a directory below another one. An empty path is that directory.
///
/// # Errors
/// `ELOOP` for a link, `EXDEV` for a path that leaves the directory, and those of `openat2`.
pub fn directory(below: impl AsFd, path: &Path, mounts: Mounts) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    Ok(openat2(below, path, DIRECTORY, Mode::empty(), mounts.resolve())?)
}

/// Opens a regular file below a directory with these flags, or makes it with this mode if the flags say so. Opening never blocks, as
/// that of a pipe would.
///
/// # Errors
/// `ELOOP` for a link, `EXDEV` for a path that leaves the directory, `InvalidInput` for what is not a regular file, and those of
/// `openat2`.
pub fn file(below: impl AsFd, path: &Path, flags: OFlags, mode: Mode, mounts: Mounts) -> io::Result<File> {
    let safe = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::NONBLOCK;
    // A file that is cut before it is known to be a regular one could only be a device's, which has nothing to cut.
    let mode = if flags.contains(OFlags::CREATE) { mode } else { Mode::empty() };
    let opened = openat2(below, path, flags | safe, mode, mounts.resolve())?;
    if FileType::from_raw_mode(fstat(&opened)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    if !flags.contains(OFlags::NONBLOCK) {
        let own = fcntl_getfl(&opened)?;
        fcntl_setfl(&opened, own - OFlags::NONBLOCK)?;
    }
    Ok(opened.into())
}

/// Makes a directory below another one, whose parent must be there, and opens it.
///
/// # Errors
/// `EEXIST` if something is there, those of [`directory`], and those of `mkdirat`.
pub fn make_directory(below: impl AsFd, path: &Path, mode: Mode) -> io::Result<OwnedFd> {
    let (parent, name) = parent(below, path)?;
    mkdirat(&parent, name, mode)?;
    directory(&parent, name, Mounts::Refused)
}

/// Removes what is at a path below a directory: a directory with everything in it, or a file of any kind. A link is removed, and
/// never what it leads to. At a mount the removal ends; what was found before it is gone by then.
///
/// Depth costs memory and no descriptors, so a tree that a container made deeper than any path can say is removed too.
///
/// # Errors
/// `NotFound` if nothing is there, `EXDEV` at a mounted directory and `EBUSY` at a mounted file, those of [`directory`], and those of removing.
pub fn remove(below: impl AsFd, path: &Path) -> io::Result<()> {
    let (parent, name) = parent(below, path)?;
    match unlinkat(&parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        done => return Ok(done?),
    }
    let top = directory(&parent, name, Mounts::Refused)?;
    empty(&top)?;
    Ok(unlinkat(&parent, name, AtFlags::REMOVEDIR)?)
}

/// Removes everything in a directory, and not the directory.
///
/// # Errors
/// As those of [`remove`].
pub fn empty(directory_to_empty: impl AsFd) -> io::Result<()> {
    let mut at = directory(directory_to_empty, Path::new(""), Mounts::Refused)?;
    let mut above: Vec<(Inode, CString)> = Vec::new();
    loop {
        if let Some(name) = first_directory(&at)? {
            let inner = openat2(&at, &name, DIRECTORY, Mode::empty(), Mounts::Refused.resolve())?;
            above.push((inode(&at)?, name));
            at = inner;
            continue;
        }
        let Some((expected, name)) = above.pop() else { return Ok(()) };
        // A directory that was moved meanwhile has another parent, which may be anywhere.
        let parent = openat(&at, c"..", DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        if inode(&parent)? != expected {
            return Err(io::Error::other("a directory was moved while its tree was removed"));
        }
        at = parent;
        unlinkat(&at, &name, AtFlags::REMOVEDIR)?;
    }
}

/// Removes what is not a directory from a directory, up to the first directory, whose name is returned.
fn first_directory(directory: &OwnedFd) -> io::Result<Option<CString>> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if entry.file_type() == FileType::Directory {
            return Ok(Some(name.to_owned()));
        }
        match unlinkat(directory, name, AtFlags::empty()) {
            // Not every filesystem says in its list what a directory is.
            Err(Errno::ISDIR) => return Ok(Some(name.to_owned())),
            // Something else removed it.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Identifies a directory as long as it exists.
type Inode = (u64, u64);

fn inode(file: &OwnedFd) -> io::Result<Inode> {
    let facts = fstat(file)?;
    Ok((facts.st_dev, facts.st_ino))
}

/// The directory that holds a path's last part, and that part.
fn parent(below: impl AsFd, path: &Path) -> io::Result<(OwnedFd, &Path)> {
    let name = Path::new(path.file_name().ok_or(Errno::INVAL)?);
    let above = path.parent().unwrap_or(Path::new(""));
    Ok((directory(below, above, Mounts::Entered)?, name))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use rustix::mount::{UnmountFlags, mount_bind, unmount};

    use super::*;

    /// A directory `in` to work below, and a directory `out` with a file that must stay.
    fn places() -> (tempfile::TempDir, OwnedFd) {
        let place = tempfile::tempdir().unwrap();
        for part in ["in/a/b", "out"] {
            fs::create_dir_all(place.path().join(part)).unwrap();
        }
        fs::write(place.path().join("out/kept"), "kept").unwrap();
        fs::write(place.path().join("in/a/file"), "inside").unwrap();
        let below = at(&place.path().canonicalize().unwrap().join("in")).unwrap();
        (place, below)
    }

    fn opened(below: &OwnedFd, path: &str, flags: OFlags) -> io::Result<String> {
        let mut text = String::new();
        let path = Path::new(path);
        file(below, path, flags, Mode::from(0o600), Mounts::Entered)?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn code<T: std::fmt::Debug>(result: io::Result<T>) -> Option<i32> {
        result.unwrap_err().raw_os_error()
    }

    #[test]
    fn a_file_below_is_opened_and_nothing_outside() {
        let (place, below) = places();
        let out = place.path().join("out");
        assert_eq!(opened(&below, "a/file", OFlags::RDONLY).unwrap(), "inside");
        assert_eq!(opened(&below, "a/../a/file", OFlags::RDONLY).unwrap(), "inside");
        for (link, to) in [("link", &out), ("a/b/leaf", &out.join("kept"))] {
            symlink(to, place.path().join("in").join(link)).unwrap();
        }
        for path in ["link/kept", "a/b/leaf", "a/../link/kept"] {
            assert_eq!(code(opened(&below, path, OFlags::RDONLY)), Some(libc::ELOOP), "{path}");
            let cut = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
            assert_eq!(code(opened(&below, path, cut)), Some(libc::ELOOP), "{path}");
        }
        let absolute = out.join("kept");
        for path in ["../out/kept", absolute.to_str().unwrap()] {
            assert_eq!(code(opened(&below, path, OFlags::RDONLY)), Some(libc::EXDEV), "{path}");
        }
        assert_eq!(code(directory(&below, Path::new("link"), Mounts::Entered)), Some(libc::ELOOP));
        assert_eq!(code(make_directory(&below, Path::new("link/new"), Mode::RWXU)), Some(libc::ELOOP));
        assert_eq!(code(make_directory(&below, Path::new("a"), Mode::RWXU)), Some(libc::EEXIST));
        assert_eq!(code(at(&place.path().join("in/link"))), Some(libc::ELOOP));
        make_directory(&below, Path::new("a/new"), Mode::RWXU).unwrap();
        assert!(place.path().join("in/a/new").is_dir());
        assert_eq!(fs::read_to_string(absolute).unwrap(), "kept");
    }

    #[test]
    fn a_pipe_does_not_hold_up_and_is_not_a_file() {
        let (place, below) = places();
        let pipe = place.path().join("in/pipe");
        crate::sys::filesystem::make_node(&pipe, libc::S_IFIFO | 0o600, (0, 0)).unwrap();
        let refused = opened(&below, "pipe", OFlags::RDONLY).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(code(opened(&below, "pipe", OFlags::WRONLY)), Some(libc::ENXIO));
        let plain =
            file(&below, Path::new("a/file"), OFlags::RDONLY, Mode::empty(), Mounts::Refused).unwrap();
        assert!(!fcntl_getfl(&plain).unwrap().contains(OFlags::NONBLOCK));
    }

    #[test]
    fn a_tree_goes_and_what_its_links_lead_to_stays() {
        let (place, below) = places();
        for link in ["in/a/link", "in/a/b/link"] {
            symlink(place.path().join("out"), place.path().join(link)).unwrap();
        }
        for number in 0..300 {
            fs::create_dir(place.path().join(format!("in/a/b/{number}"))).unwrap();
        }
        remove(&below, Path::new("a")).unwrap();
        assert!(!place.path().join("in/a").exists());
        symlink(place.path().join("out"), place.path().join("in/link")).unwrap();
        assert_eq!(code(remove(&below, Path::new("link/kept"))), Some(libc::ELOOP));
        remove(&below, Path::new("link")).unwrap();
        assert_eq!(fs::read_dir(place.path().join("in")).unwrap().count(), 0);
        assert_eq!(remove(&below, Path::new("a")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(remove(&below, Path::new("")).is_err());
        assert!(place.path().join("out/kept").exists());
    }

    #[test]
    fn a_tree_deeper_than_any_path_goes() {
        let (_place, below) = places();
        let mut deepest = directory(&below, Path::new("a"), Mounts::Refused).unwrap();
        for _ in 0..3000 {
            deepest = make_directory(&deepest, Path::new("deeper"), Mode::RWXU).unwrap();
        }
        remove(&below, Path::new("a")).unwrap();
        assert_eq!(code(directory(&below, Path::new("a"), Mounts::Refused)), Some(libc::ENOENT));
    }

    /// A directory of the same filesystem is mounted, so the device number does not show it.
    #[test]
    fn a_mount_is_not_crossed() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (place, below) = places();
        let point = place.path().join("in/a/b");
        if mount_bind(place.path().join("out"), &point).is_err() {
            return;
        }
        let entered = directory(&below, Path::new("a/b"), Mounts::Entered).is_ok();
        let refused = directory(&below, Path::new("a/b"), Mounts::Refused);
        let removed = [Path::new("a"), Path::new("a/b")].map(|path| remove(&below, path));
        unmount(&point, UnmountFlags::empty()).unwrap();
        assert!(entered);
        assert_eq!(code(refused), Some(libc::EXDEV));
        assert_eq!(removed.map(code), [Some(libc::EXDEV); 2]);
        assert!(place.path().join("out/kept").exists());
        remove(&below, Path::new("a")).unwrap();
    }
}
