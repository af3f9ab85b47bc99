//! Images as directories on disk, for subjects that need no engine: a cache in the state directory,
//! `images/NAME/rootfs`.
//!
//! Each has a content-addressed name, is shared by all runs and never changes once it is in place: removing
//! one only costs the time to write it again.
//!
//! Deliberately absent: mount points (a writable root is part of a bundle, see `bundle.rs`, or of an overlay)
//! and `fsync`: a root that a power failure has damaged is detected and made again.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

use super::MODE;
use crate::sys::{descriptors, place};

/// How long a lock is waited for before looking again.
const LOOKS_AGAIN: Duration = Duration::from_millis(20);

/// Makes sure that a complete directory of this name is among the images of the directory `state`, and
/// returns its path.
///
/// Concurrent calls, also from several processes, are safe: one makes it under another name and renames it,
/// the others wait. A damaged one is replaced; after a failure, nothing is left.
pub(super) fn cached(
    state: &Path,
    name: &str,
    is_whole: &dyn Fn(&Path) -> bool,
    go_on: &dyn Fn() -> bool,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let images = absolute(state)?.join("images");
    let place = images.join(name);
    // An older version left them open to all users.
    let closed = |path: &Path| place::verified(path).map(drop);
    if is_whole(&place) {
        closed(&images).and_then(|()| closed(&place))?;
        return Ok(place);
    }
    closed(&images)?;
    let _lock = lock(&images, go_on)?;
    if is_whole(&place) {
        return Ok(place);
    }
    // Only the holder of the lock uses this name, so an existing one was left by a killed run.
    let fresh = images.join(format!("{name}.new"));
    remove(&fresh)?;
    remove(&place)?;
    make(&fresh).inspect_err(|_| {
        // Half an image on a full disk is of no use; the first error is the one to report.
        let _ = remove(&fresh);
    })?;
    fs::rename(&fresh, &place)
        .with_context(|| format!("cannot rename `{}` to `{}`", fresh.display(), place.display()))?;
    Ok(place)
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot make `{}` absolute", path.display()))
}

/// Writes a file that can be started at once, also while other threads start programs.
pub(super) fn write_executable(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)?;
        file.write_all(bytes)?;
        file.set_permissions(Permissions::from_mode(MODE))?;
        file.set_modified(SystemTime::UNIX_EPOCH)
    };
    let written = descriptors::apart(write);
    written.with_context(|| format!("cannot write {} bytes to `{}`", bytes.len(), path.display()))
}

/// The lock is on the directory itself and ends with its process. Another process that makes an image is waited for as long as
/// this one should go on.
fn lock(directory: &Path, go_on: &dyn Fn() -> bool) -> Result<File> {
    let lock = || -> io::Result<File> {
        let file = File::open(directory)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if go_on() => std::thread::sleep(LOOKS_AGAIN),
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::Interrupted.into()),
            }
        }
    };
    lock().with_context(|| format!("cannot lock `{}`", directory.display()))
}

fn remove(path: &Path) -> Result<()> {
    let outcome = match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    outcome.with_context(|| format!("cannot remove `{}`", path.display()))
}

/// Makes one directory with its full mode despite the umask. An existing one is an error.
pub(super) fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir(path)
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(MODE)))
        .with_context(|| format!("cannot make the directory `{}`", path.display()))
}

/// Makes the directory of an image, which no other user may enter: programs in the image may give their owner's rights to
/// all who can reach them.
pub(super) fn make_private(path: &Path) -> Result<()> {
    let made = DirBuilder::new().mode(place::PRIVATE).create(path);
    made.with_context(|| format!("cannot make the directory `{}`", path.display()))
}

/// The path on the host of a path that is absolute inside the root.
pub(super) fn inside(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::super::Image;
    use super::*;

    fn unpack(image: &Image<'_>, state: &Path) -> Result<PathBuf> {
        image.unpack(state, &|| (), &|| true)
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn lies_under_its_name_with_mode_and_time_set() {
        let state = tempfile::tempdir().unwrap();
        let image = Image::small(b"the executable");
        let root = unpack(&image, &state.path().join("not/yet/there")).unwrap();
        assert!(root.starts_with(state.path().join("not/yet/there/images")) && root.ends_with("rootfs"));
        let facts = fs::metadata(root.join("dunnage")).unwrap();
        assert_eq!((facts.mode() & 0o7777, facts.mtime()), (0o755, 0));
        assert_eq!(fs::read(root.join("dunnage")).unwrap(), b"the executable");
        assert_eq!(names(&root), ["dunnage"]);
    }

    #[test]
    fn is_used_again_as_it_is() {
        let state = tempfile::tempdir().unwrap();
        let image = Image::small(b"x");
        let first = unpack(&image, state.path()).unwrap();
        let inode = || fs::metadata(first.join("dunnage")).unwrap().ino();
        let before = inode();
        assert_eq!(unpack(&image, state.path()).unwrap(), first);
        assert_eq!(inode(), before);
    }

    #[test]
    fn is_made_again_when_damaged() {
        let state = tempfile::tempdir().unwrap();
        let image = Image::small(b"x");
        let root = unpack(&image, state.path()).unwrap();
        let executable = root.join("dunnage");
        let damages: [&dyn Fn() -> io::Result<()>; 7] = [
            &|| fs::write(&executable, b"y"),
            &|| fs::write(&executable, b""),
            &|| fs::write(&executable, b"xy"),
            &|| fs::remove_file(&executable),
            &|| fs::set_permissions(&executable, Permissions::from_mode(0o644)),
            &|| fs::create_dir(root.join("proc")),
            &|| fs::remove_dir_all(&root).and_then(|()| fs::write(&root, b"")),
        ];
        let place = names(&state.path().join("images"));
        for (number, damage) in damages.iter().enumerate() {
            damage().unwrap();
            assert_eq!(unpack(&image, state.path()).unwrap(), root);
            assert_eq!(fs::read(&executable).unwrap(), b"x", "damage {number}");
            let mode = fs::metadata(&executable).unwrap().mode() & 0o7777;
            assert_eq!((mode, names(&root)), (0o755, vec!["dunnage".to_owned()]), "damage {number}");
        }
        assert_eq!(names(&state.path().join("images")), place);
    }

    #[test]
    fn what_a_killed_run_left_is_cleared() {
        let state = tempfile::tempdir().unwrap();
        let image = Image::small(b"x");
        let root = unpack(&image, state.path()).unwrap();
        let place = root.parent().unwrap();
        fs::remove_dir_all(&root).unwrap();
        fs::create_dir_all(place.with_extension("new").join("rootfs")).unwrap();
        unpack(&image, state.path()).unwrap();
        assert_eq!(fs::read_dir(state.path().join("images")).unwrap().count(), 1);
    }

    #[test]
    fn many_at_once_get_the_same_root() {
        let state = tempfile::tempdir().unwrap();
        let bytes = vec![1; 100_000];
        let image = Image::small(&bytes);
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..16).map(|_| scope.spawn(|| unpack(&image, state.path()).unwrap())).collect();
            for thread in threads {
                assert_eq!(fs::read(thread.join().unwrap().join("dunnage")).unwrap(), bytes);
            }
        });
        assert_eq!(fs::read_dir(state.path().join("images")).unwrap().count(), 1);
    }

    #[test]
    fn an_error_names_the_path() {
        let state = tempfile::tempdir().unwrap();
        fs::write(state.path().join("images"), b"in the way").unwrap();
        let error = unpack(&Image::small(b"x"), state.path()).unwrap_err();
        let images = state.path().join("images");
        assert!(format!("{error:#}").contains(images.to_str().unwrap()), "{error:#}");
    }
}
