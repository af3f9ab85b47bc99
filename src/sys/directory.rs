//! Directories that another user may have prepared: entered by descriptor, so that no name in them leads elsewhere. A symbolic
//! link on the way is followed only if it belongs to root or to this process's user.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use super::acl;
pub use super::walk::Found;
use super::walk::{End, Part, SEEN, through, walk};

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
    path: PathBuf,
}

/// A path, resolved up to its last name.
#[derive(Debug)]
pub struct Place {
    /// The directory that has the name.
    pub above: Directory,
    /// The name, which is not a link.
    pub name: OsString,
    /// What the name is, if it exists.
    pub found: Option<Found>,
}

/// What a file is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Reading,
    /// Reading, and writing at its end.
    Appending,
}

/// Resolves a path whose last name may be missing.
pub fn find(path: &Path) -> io::Result<Place> {
    resolve(path, None)
}

fn resolve(path: &Path, missing: Option<Mode>) -> io::Result<Place> {
    let judge = |part: &Part<'_>| match part.found.kind() == FileType::Symlink && !part.found.is_trusted() {
        true => Err(foreign(path, part.found.about.st_uid)),
        false => Ok(()),
    };
    let End { above, name, found, .. } = walk(path, missing, judge)?;
    let parent = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(Place { above: Directory { descriptor: above, path: parent.to_owned() }, name, found })
}

fn foreign(path: &Path, user: u32) -> io::Error {
    let text = format!(
        "a symbolic link in `{}` belongs to user {user}, who could direct it elsewhere",
        path.display()
    );
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

impl Directory {
    /// Opens a directory.
    pub fn open(path: &Path) -> io::Result<Directory> {
        Directory::of(resolve(path, None)?, path)
    }

    /// Opens a directory, and makes it if it is missing, with the directories above it.
    pub fn make(path: &Path) -> io::Result<Directory> {
        Directory::of(resolve(path, Some(Mode::from_raw_mode(0o755)))?, path)
    }

    /// Opens a directory that belongs to this process's user and that no other can write to; makes it if it is missing,
    /// with the directories above it.
    pub fn own(path: &Path) -> io::Result<Directory> {
        let made = Directory::make(path)?;
        made.check()?;
        Ok(made)
    }

    fn of(place: Place, path: &Path) -> io::Result<Directory> {
        match place.found {
            None => Err(Errno::NOENT.into()),
            Some(found) if found.kind() != FileType::Directory => Err(Errno::NOTDIR.into()),
            Some(found) => Ok(Directory { descriptor: found.descriptor, path: path.to_owned() }),
        }
    }

    /// Fails if another user could change what is in it.
    pub fn check(&self) -> io::Result<()> {
        belongs(&self.descriptor, &fstat(&self.descriptor)?, &self.path)
    }

    /// Where it was found, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path of this name that leads into this very directory for as long as it is open.
    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        through(&self.descriptor).join(name)
    }

    /// Makes a file with these permissions to write at its end; fails if the name exists, even as a link that leads nowhere.
    pub fn create(&self, name: impl AsRef<Path>, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(openat(&self.descriptor, name.as_ref(), flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Opens a file that belongs to this process's user and that no other can write to.
    pub fn open_own(&self, name: impl AsRef<Path>, access: Access) -> io::Result<File> {
        let access = match access {
            Access::Reading => OFlags::RDONLY,
            Access::Appending => OFlags::RDWR | OFlags::APPEND,
        };
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.descriptor, name.as_ref(), flags, Mode::empty())?;
        let about = fstat(&file)?;
        let shown = self.path.join(name);
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Err(io::Error::other(format!("`{}` is not a regular file", shown.display())));
        }
        belongs(&file, &about, &shown)?;
        Ok(file.into())
    }

    /// A directory in it, made if it is missing.
    pub fn own_inside(&self, name: &str) -> io::Result<Directory> {
        match mkdirat(&self.descriptor, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = SEEN | OFlags::NOFOLLOW | OFlags::DIRECTORY;
        let descriptor = openat(&self.descriptor, name, flags, Mode::empty())?;
        let inside = Directory { descriptor, path: self.path.join(name) };
        inside.check()?;
        Ok(inside)
    }

    /// Removes a file in it.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, Path::new(name.as_ref()), AtFlags::empty())?)
    }
}

/// Fails if another user could change the file at this path.
fn belongs(file: &OwnedFd, about: &Stat, path: &Path) -> io::Result<()> {
    let shown = path.display();
    let owner = about.st_uid;
    // Where each user has a group alone, which has the user's number, files are often writable by it. With an access control list
    // these bits are the most that anyone in the list has.
    let [user, group] = [rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()];
    let is_of_this_user_alone = about.st_gid == group && group == user && !acl::is_there(&through(file));
    let in_a_group = about.st_mode & 0o020 != 0 && !is_of_this_user_alone;
    let why = if owner != rustix::process::geteuid().as_raw() {
        format!("`{shown}` belongs to user {owner}")
    } else if about.st_mode & 0o002 != 0 || in_a_group {
        format!("other users can write to `{shown}`")
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use super::*;

    fn place() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn own_links_are_followed_and_missing_names_found() {
        let place = place();
        let real = place.path().join("real");
        fs::create_dir(&real).unwrap();
        symlink("real", place.path().join("link")).unwrap();
        symlink(&real, place.path().join("absolute")).unwrap();
        for name in ["real", "link", "absolute", "link/../real/.", "./link"] {
            let directory = Directory::open(&place.path().join(name)).unwrap();
            directory.create(name.replace('/', "-"), 0o644).unwrap();
        }
        assert_eq!(fs::read_dir(&real).unwrap().count(), 5);
        let missing = find(&place.path().join("link/new")).unwrap();
        assert!(missing.found.is_none() && missing.name == "new");
        symlink("dangling", place.path().join("lost")).unwrap();
        assert_eq!(find(&place.path().join("lost")).unwrap().name, "dangling");
        symlink("round", place.path().join("round")).unwrap();
        assert_eq!(find(&place.path().join("round")).unwrap_err().raw_os_error(), Some(libc::ELOOP));
        assert_eq!(Directory::open(&real.join("link/x")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert!(find(Path::new("/")).unwrap().found.is_some());
        assert!(find(Path::new("/dev/stdout")).unwrap().found.is_some());
        let made = Directory::own(&place.path().join("link/a/b")).unwrap();
        made.check().unwrap();
        assert!(real.join("a/b").is_dir());
    }

    #[test]
    fn a_file_is_never_made_through_a_planted_link() {
        let place = place();
        let directory = Directory::open(place.path()).unwrap();
        for (name, target) in [("dangling", "nowhere"), ("link", "/etc/hostname")] {
            symlink(target, place.path().join(name)).unwrap();
            assert_eq!(directory.create(name, 0o644).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert!(directory.open_own(name, Access::Reading).is_err());
            assert!(directory.own_inside(name).is_err());
        }
    }

    #[test]
    fn what_others_can_write_to_is_not_ones_own() {
        let place = place();
        let open = place.path().join("open");
        fs::create_dir(&open).unwrap();
        for mode in [0o777, 0o1777, 0o757] {
            fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
            assert!(Directory::own(&open).unwrap_err().to_string().contains("other users can write to"));
        }
        if rustix::process::geteuid().as_raw() != 0 {
            return;
        }
        std::os::unix::fs::chown(&open, None, Some(54321)).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o775)).unwrap();
        assert!(Directory::own(&open).unwrap_err().to_string().contains("other users can write to"));
        let theirs = place.path().join("theirs");
        symlink("open", &theirs).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Directory::own(&theirs).is_ok());
        lchown(&theirs, Some(54321), None).unwrap();
        assert!(Directory::open(&theirs).unwrap_err().to_string().contains("belongs to user 54321"));
        lchown(&open, Some(54321), None).unwrap();
        assert!(Directory::own(&open).unwrap_err().to_string().contains("belongs to user 54321"));
    }
}
