//! Directories in which a process with more rights than others may work: only root and the user of this process can
//! change them, or replace one of them on the way there.
//!
//! The result is a path without links: since no other user can change it, it stays what it is.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use super::acl::{self, change};
use super::walk::{Found, Part, Stopped, walk};

/// The mode of a directory that only its owner may enter.
pub const PRIVATE: u32 = 0o700;

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unsafe {
    /// Another user could change it, or what it leads to.
    #[error("`{}` {why}", .path.display())]
    Others {
        /// The directory or link on the way.
        path: PathBuf,
        /// Who could change it.
        why: String,
    },
    /// It cannot be reached or made.
    #[error("cannot {verb} `{}`: {error}", .path.display())]
    Io {
        /// What failed.
        verb: &'static str,
        /// Where.
        path: PathBuf,
        /// The kernel's answer.
        error: io::Error,
    },
}

impl From<Stopped> for Unsafe {
    fn from(Stopped { verb, path, error }: Stopped) -> Unsafe {
        Unsafe::Io { verb, path, error: error.into() }
    }
}

/// The users whose directories are safe to work in.
#[derive(Debug, Clone, Copy)]
struct Trust {
    /// This process's own.
    own: u32,
    /// This process's group, which on many systems has the same number as its only user.
    group: u32,
    /// The user that stands for all those outside of this user namespace, if there are any.
    outside: Option<u32>,
}

impl Trust {
    fn of_this_process() -> Trust {
        let (own, group) = (geteuid().as_raw(), getegid().as_raw());
        let number = |path| std::fs::read_to_string(path).ok()?.trim().parse::<u32>().ok();
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        let covers = |line: &str, user: u32| {
            let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            matches!(numbers[..], [first, _, count] if (first..first + count).contains(&u64::from(user)))
        };
        let outside = number("/proc/sys/kernel/overflowuid");
        let outside = outside.filter(|user| !map.lines().any(|line| covers(line, *user)));
        Trust { own, group, outside }
    }

    /// Why others could change this directory or link, found below a directory with the mode `above`.
    fn objection(self, found: &Found, above: u32) -> Option<String> {
        let owner = found.about.st_uid;
        let is_shared = above & 0o1002 == 0o1002 || above & 0o1020 == 0o1020;
        let is_the_systems = self.outside == Some(owner) && !is_shared;
        if owner != 0 && owner != self.own && !is_the_systems {
            return Some(format!("belongs to user {owner}"));
        }
        let is_safe = found.kind() == FileType::Symlink || found.mode() & 0o1000 != 0;
        let writers = if is_safe { None } else { self.writers(found) };
        writers.map(|who| format!("can be changed by {who}"))
    }

    /// The other users who may write to a directory.
    fn writers(self, found: &Found) -> Option<String> {
        let group = found.about.st_gid;
        // With an access control list the group's bits are the most that anyone in the list has.
        let is_of_this_user_alone =
            || group == self.group && self.group == self.own && !acl::is_there(&found.path());
        match (found.mode() & 0o002 != 0, found.mode() & 0o020 != 0 && !is_of_this_user_alone()) {
            (true, _) => Some("all users".to_owned()),
            (_, true) => Some(format!("group {group}")),
            _ => None,
        }
    }
}

/// Makes sure that a directory exists whose content only this process's user (and root) can reach, and returns its path
/// without links. Missing directories on the way are made. One that others could enter is closed to them; if they could write
/// to it, as to the root of a new tmpfs, it must be empty.
pub fn verified(path: &Path) -> Result<PathBuf, Unsafe> {
    let (path, found) = walked(path, true)?;
    if found.about.st_uid != geteuid().as_raw() {
        return Err(Unsafe::Others { path, why: format!("belongs to user {}", found.about.st_uid) });
    }
    let is_written_by_others = Trust::of_this_process().writers(&found).is_some();
    let is_fine = || Ok::<_, io::Error>(!is_written_by_others || found.path().read_dir()?.next().is_none());
    let closed = || -> io::Result<bool> {
        if is_fine()? {
            if !acl::only_lets_pass(&found.path()) {
                acl::clear(&found.path())?;
            }
            close_to_others(&found)?;
        }
        // They could have written to it until it was closed.
        is_fine()
    };
    match closed() {
        Ok(true) => Ok(path),
        Ok(false) => {
            Err(Unsafe::Others { path, why: "can be changed by other users, and is not empty".to_owned() })
        }
        Err(error) => Err(Unsafe::Io { verb: "close to other users", path, error }),
    }
}

/// Whether the path leads to a directory that only root and this process's user can change; a missing end is fine.
pub fn is_safe(path: &Path) -> Result<(), Unsafe> {
    match walked(path, false) {
        Err(Unsafe::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        walked => walked.map(drop),
    }
}

/// The path without links, and the directory that it leads to.
fn walked(path: &Path, makes: bool) -> Result<(PathBuf, Found), Unsafe> {
    let trust = Trust::of_this_process();
    let judge = |part: &Part<'_>| {
        let here = || part.path.to_owned();
        if part.is_magic {
            return Err(Unsafe::Others { path: here(), why: "leads to no place of its own".to_owned() });
        }
        if part.is_made {
            let cleared = acl::clear(&part.found.path());
            cleared.map_err(|error| Unsafe::Io { verb: "close", path: here(), error })?;
        }
        // The caller looks at a directory at the end that is this user's.
        let is_callers = makes && part.is_last && part.found.about.st_uid == trust.own;
        if is_callers && part.found.kind() == FileType::Directory {
            return Ok(());
        }
        let why = trust.objection(part.found, part.above);
        why.map_or(Ok(()), |why| Err(Unsafe::Others { path: here(), why }))
    };
    let absolute = Path::new("/").join(path);
    let end = walk(&absolute, makes.then_some(Mode::from_raw_mode(PRIVATE)), judge)?;
    let stopped = |error| Stopped { verb: "enter", path: end.path.clone(), error };
    let found = end.found.ok_or_else(|| stopped(Errno::NOENT))?;
    match found.kind() {
        FileType::Directory => Ok((end.path, found)),
        _ => Err(stopped(Errno::NOTDIR).into()),
    }
}

/// Takes the rights of all others, apart from those that an access control list gives to single users.
fn close_to_others(found: &Found) -> io::Result<()> {
    let path = found.path();
    let closed = if acl::is_there(&path) { found.mode() & 0o710 } else { PRIVATE };
    match closed == found.mode() {
        true => Ok(()),
        false => std::fs::set_permissions(path, Permissions::from_mode(closed)),
    }
}

/// Makes directories that only their owner may enter, where they are missing.
pub fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE).create(path)
}

/// Lets a user pass through a directory of this process, and through those above it up to `top`, but not list them.
pub fn let_through(user: u32, path: &Path, top: &Path) -> io::Result<()> {
    if user == geteuid().as_raw() {
        return Ok(());
    }
    for directory in path.ancestors().take_while(|directory| directory.starts_with(top)) {
        allow(user, directory)?;
    }
    Ok(())
}

/// The same for a group, which must have only this one user: it becomes the group of these directories.
pub fn let_group_through(group: u32, path: &Path, top: &Path) -> io::Result<()> {
    for directory in path.ancestors().take_while(|directory| directory.starts_with(top)) {
        std::os::unix::fs::chown(directory, None, Some(group))?;
        change(directory, |list| list.let_group_pass())?;
    }
    Ok(())
}

/// Gives a directory of this process to one user, and takes the rights of all others: it becomes the user's where this process may do
/// that, otherwise the user gets the owner's rights in its access control list.
pub fn give(directory: &Path, user: u32, group: u32) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = File::from(openat(CWD, directory, flags, Mode::empty())?);
    let owner = opened.metadata()?.uid();
    if owner != user {
        match std::os::unix::fs::fchown(&opened, Some(user), Some(group)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let path = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())).join(".");
                return change(&path, |list| list.give_all(user));
            }
            given => given?,
        }
    }
    opened.set_permissions(Permissions::from_mode(PRIVATE))
}

/// Adds `x` for a user to the directory's access control list.
fn allow(user: u32, directory: &Path) -> io::Result<()> {
    change(directory, |list| list.let_pass(user))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    const STRANGER: u32 = 54_321;

    #[test]
    fn a_directory_that_is_given_to_a_user_has_no_other() {
        let place = tempfile::tempdir().unwrap();
        let own = with_mode(&place.path().join("own"), 0o777);
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        give(&own, user, group).unwrap();
        assert_eq!(mode(&own), 0o700);
        let link = place.path().join("link");
        symlink(&own, &link).unwrap();
        assert!(give(&link, STRANGER, STRANGER).is_err());
        if give(&own, STRANGER, STRANGER).is_err() {
            // A filesystem without access control lists, for a user who may give nothing away.
            return;
        }
        let facts = own.metadata().unwrap();
        match facts.uid() == STRANGER {
            true => assert_eq!(mode(&own), 0o700),
            false => assert_eq!(mode(&own) & 0o007, 0),
        }
        give(&own, STRANGER, STRANGER).unwrap();
    }

    fn with_mode(path: &Path, mode: u32) -> PathBuf {
        std::fs::create_dir(path).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        path.to_owned()
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o7777
    }

    #[test]
    fn missing_directories_are_made_for_their_owner_alone_and_old_ones_are_closed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap().join("a/b");
        assert_eq!(verified(&path).unwrap(), path);
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o700, 0o700));
        let old = with_mode(&place.path().join("old"), 0o755);
        verified(&old).unwrap();
        assert_eq!(mode(&old), 0o700);
        assert!(is_safe(&path.join("c/d")).is_ok());
        assert!(!path.join("c").exists());
    }

    #[test]
    fn what_others_can_change_is_refused_on_the_way_and_at_the_end() {
        let place = tempfile::tempdir().unwrap();
        let refused = |path: &Path| matches!(verified(path), Err(Unsafe::Others { .. }));
        let all = with_mode(&place.path().join("all"), 0o777);
        let sticky = with_mode(&place.path().join("sticky"), 0o1777);
        let group = with_mode(&place.path().join("group"), 0o770);
        std::fs::write(group.join("theirs"), "").unwrap();
        if geteuid().is_root() {
            chown(&group, None, Some(STRANGER)).unwrap();
            assert!(refused(&group));
        }
        for path in [&all, &sticky] {
            std::fs::write(path.join("theirs"), "").unwrap();
            assert!(refused(path));
        }
        assert!(refused(&all.join("mine")));
        let new = with_mode(&place.path().join("new"), 0o1777);
        assert!(verified(&new).is_ok() && mode(&new) == 0o700);
        // No other user can replace what is below a sticky directory.
        assert!(verified(&sticky.join("mine")).is_ok());
    }

    #[test]
    fn what_belongs_to_another_user_is_refused_at_any_place() {
        if !geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let refused = |path: &Path| matches!(verified(path), Err(Unsafe::Others { .. }));
        let sticky = with_mode(&at("sticky"), 0o1777);
        let theirs = with_mode(&sticky.join("theirs"), 0o755);
        chown(&theirs, Some(STRANGER), None).unwrap();
        let own = with_mode(&theirs.join("own"), 0o700);
        let target = with_mode(&at("target"), 0o700);
        let link = sticky.join("link");
        symlink(&target, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(STRANGER), None).unwrap();
        for path in [&theirs, &own, &link, &link.join("new"), &sticky.join("../sticky/theirs/own")] {
            assert!(refused(path), "{}", path.display());
            assert!(is_safe(path).is_err());
        }
    }

    #[test]
    fn a_link_of_ones_own_is_followed_to_the_path_without_links() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        with_mode(&at("real"), 0o700);
        symlink("real", at("link")).unwrap();
        symlink(at("link/../link"), at("second")).unwrap();
        assert_eq!(verified(&at("second/deep")).unwrap(), at("real/deep"));
        symlink("loop", at("loop")).unwrap();
        assert!(matches!(verified(&at("loop")), Err(Unsafe::Io { .. })));
        std::fs::write(at("file"), "").unwrap();
        assert!(matches!(verified(&at("file/below")), Err(Unsafe::Io { .. })));
    }

    #[test]
    fn one_user_is_let_through_and_no_other() {
        if !geteuid().is_root() {
            return;
        }
        let place = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
        let top = with_mode(&place.path().join("top"), 0o700);
        let deep = top.join("deep");
        make(&deep).unwrap();
        std::fs::write(deep.join("file"), "content").unwrap();
        std::fs::set_permissions(deep.join("file"), Permissions::from_mode(0o644)).unwrap();
        let can = |user: u32, command: &str, path: &Path| {
            let mut command = std::process::Command::new(command);
            use std::os::unix::process::CommandExt;
            command.arg(path).uid(user).gid(user).output().unwrap().status.success()
        };
        assert!(!can(STRANGER, "cat", &deep.join("file")));
        for user in [STRANGER + 1, STRANGER, STRANGER] {
            let_through(user, &deep, &top).unwrap();
        }
        assert!(can(STRANGER, "cat", &deep.join("file")) && can(STRANGER + 1, "cat", &deep.join("file")));
        assert!(!can(STRANGER, "ls", &deep) && !can(STRANGER + 2, "cat", &deep.join("file")));
        // What was given to one user stays when the directory is used again.
        assert_eq!(verified(&top).unwrap(), top.canonicalize().unwrap());
        assert!(can(STRANGER, "cat", &deep.join("file")) && mode(&top) == 0o710);
    }
}
