//! The image `small` as a directory on disk, for subjects that need no engine.
//!
//! The directory is content-addressed, `<state>/images/<digest of the executable>/rootfs/dunnage`,
//! shared by all runs and never altered once it is in place. It is a cache: whoever removes it
//! loses nothing but the time to write it again.
//!
//! Deliberately absent: mount points (a root that is written to is a bundle's own, see
//! `bundle.rs`, or an overlay's) and `fsync`: a root that a power cut has damaged is found by its
//! digest and made again.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};

use super::{Digest, EXECUTABLE, MODE, SmallImage};

/// An image root on disk that was found or made whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpacked {
    root: PathBuf,
}

impl Unpacked {
    pub(super) fn at(root: PathBuf) -> Unpacked {
        Unpacked { root }
    }

    /// The absolute path of the root directory, that of `small` with the executable and nothing else. Mount
    /// something over it, but leave it as it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The absolute path of the executable.
    pub fn executable(&self) -> PathBuf {
        inside(&self.root, EXECUTABLE)
    }
}

/// Makes sure that the image lies unpacked under the directory `state`, and says where.
///
/// Concurrent calls, also of several processes, are safe: one makes the root in a temporary
/// directory and renames it, the others wait for it. A root that is there already is read once
/// to compare its digest; a damaged one is replaced.
pub fn unpack(image: &SmallImage<'_>, state: &Path) -> Result<Unpacked> {
    let state =
        std::path::absolute(state).with_context(|| format!("cannot make `{}` absolute", state.display()))?;
    let images = state.join("images");
    let name = image.executable_digest().hex();
    let place = images.join(&name);
    let unpacked = Unpacked { root: place.join("rootfs") };
    if is_whole(&unpacked, image.executable_digest()) {
        return Ok(unpacked);
    }

    make_directories(&images)?;
    let _lock = lock(&images)?;
    if is_whole(&unpacked, image.executable_digest()) {
        return Ok(unpacked);
    }
    // Only the holder of the lock uses these names, so what lies there was left by a killed run.
    let fresh = images.join(format!("{name}.new"));
    let damaged = images.join(format!("{name}.damaged"));
    remove(&fresh)?;
    remove(&damaged)?;
    write_root(&fresh, image.executable()).inspect_err(|_| {
        // Half an image on a full disk is of no use to anybody; the first error is the one to tell.
        let _ = remove(&fresh);
    })?;
    match fs::rename(&place, &damaged) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => done.with_context(|| format!("cannot move `{}` away", place.display()))?,
    }
    fs::rename(&fresh, &place)
        .with_context(|| format!("cannot rename `{}` to `{}`", fresh.display(), place.display()))?;
    remove(&damaged)?;
    Ok(unpacked)
}

/// Holds the executable with the right content and mode, and nothing else. Whatever stands in the
/// way of finding out is a reason to make the root again, and comes up there if it persists.
fn is_whole(unpacked: &Unpacked, digest: Digest) -> bool {
    let check = || -> io::Result<bool> {
        let path = unpacked.executable();
        let facts = fs::symlink_metadata(&path)?;
        let root_mode = fs::symlink_metadata(&unpacked.root)?.permissions().mode() & 0o7777;
        Ok(facts.is_file()
            && facts.permissions().mode() & 0o7777 == MODE
            && root_mode == MODE
            && fs::read_dir(&unpacked.root)?.count() == 1
            && Digest::of_reader(&mut File::open(&path)?)? == digest)
    };
    check().unwrap_or(false)
}

fn write_root(place: &Path, executable: &[u8]) -> Result<()> {
    make_directory(place)?;
    let root = place.join("rootfs");
    make_directory(&root)?;
    write_executable(&inside(&root, EXECUTABLE), executable)
}

pub(super) fn write_executable(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)?;
        file.write_all(bytes)?;
        file.set_permissions(Permissions::from_mode(MODE))?;
        file.set_modified(SystemTime::UNIX_EPOCH)
    };
    write().with_context(|| format!("cannot write {} bytes to `{}`", bytes.len(), path.display()))
}

/// The lock is on the directory itself and ends with the process that holds it, however it ends.
pub(super) fn lock(directory: &Path) -> Result<File> {
    let lock = || -> io::Result<File> {
        let file = File::open(directory)?;
        file.lock()?;
        Ok(file)
    };
    lock().with_context(|| format!("cannot lock `{}`", directory.display()))
}

pub(super) fn remove(path: &Path) -> Result<()> {
    let outcome = match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    outcome.with_context(|| format!("cannot remove `{}`", path.display()))
}

pub(super) fn make_directories(path: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(MODE)
        .create(path)
        .with_context(|| format!("cannot make the directory `{}`", path.display()))
}

/// Makes one directory whose mode no umask narrows. It is an error if something is there.
pub(super) fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir(path)
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(MODE)))
        .with_context(|| format!("cannot make the directory `{}`", path.display()))
}

/// The place on the host of a path that is absolute inside the root.
pub(super) fn inside(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn lies_under_its_digest_with_mode_and_time_set() {
        let state = tempfile::tempdir().unwrap();
        let image = SmallImage::new(b"the executable");
        let unpacked = unpack(&image, &state.path().join("not/yet/there")).unwrap();
        let digest = image.executable_digest().hex();
        let expected = state.path().join(format!("not/yet/there/images/{digest}/rootfs"));
        assert_eq!(unpacked.root(), expected);
        let facts = fs::metadata(unpacked.executable()).unwrap();
        assert_eq!((facts.mode() & 0o7777, facts.mtime()), (0o755, 0));
        assert_eq!(fs::read(unpacked.executable()).unwrap(), b"the executable");
        assert_eq!(names(unpacked.root()), ["dunnage"]);
    }

    #[test]
    fn is_used_again_as_it_is() {
        let state = tempfile::tempdir().unwrap();
        let image = SmallImage::new(b"x");
        let first = unpack(&image, state.path()).unwrap();
        let inode = fs::metadata(first.executable()).unwrap().ino();
        assert_eq!(unpack(&image, state.path()).unwrap(), first);
        assert_eq!(fs::metadata(first.executable()).unwrap().ino(), inode);
    }

    #[test]
    fn is_made_again_when_damaged() {
        let state = tempfile::tempdir().unwrap();
        let image = SmallImage::new(b"x");
        let unpacked = unpack(&image, state.path()).unwrap();
        let executable = unpacked.executable();
        let damages: [&dyn Fn() -> io::Result<()>; 6] = [
            &|| fs::write(&executable, b"y"),
            &|| fs::write(&executable, b""),
            &|| fs::remove_file(&executable),
            &|| fs::set_permissions(&executable, Permissions::from_mode(0o644)),
            &|| fs::create_dir(unpacked.root().join("proc")),
            &|| fs::remove_dir_all(unpacked.root()).and_then(|()| fs::write(unpacked.root(), b"")),
        ];
        for (number, damage) in damages.iter().enumerate() {
            damage().unwrap();
            assert!(!is_whole(&unpacked, image.executable_digest()), "damage {number}");
            unpack(&image, state.path()).unwrap();
            assert!(is_whole(&unpacked, image.executable_digest()), "damage {number}");
        }
        assert_eq!(names(&state.path().join("images")), [image.executable_digest().hex()]);
    }

    #[test]
    fn what_a_killed_run_left_is_cleared() {
        let state = tempfile::tempdir().unwrap();
        let image = SmallImage::new(b"x");
        let images = state.path().join("images");
        let digest = image.executable_digest().hex();
        fs::create_dir_all(images.join(format!("{digest}.new/rootfs"))).unwrap();
        fs::create_dir_all(images.join(format!("{digest}.damaged/rootfs"))).unwrap();
        unpack(&image, state.path()).unwrap();
        assert_eq!(names(&images), [digest]);
    }

    #[test]
    fn many_at_once_get_the_same_root() {
        let state = tempfile::tempdir().unwrap();
        let bytes = vec![1; 100_000];
        let image = SmallImage::new(&bytes);
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..16).map(|_| scope.spawn(|| unpack(&image, state.path()).unwrap())).collect();
            for thread in threads {
                let unpacked = thread.join().unwrap();
                assert!(is_whole(&unpacked, image.executable_digest()));
            }
        });
        assert_eq!(names(&state.path().join("images")), [image.executable_digest().hex()]);
    }

    #[test]
    fn an_error_names_the_path() {
        let state = tempfile::tempdir().unwrap();
        fs::write(state.path().join("images"), b"in the way").unwrap();
        let error = unpack(&SmallImage::new(b"x"), state.path()).unwrap_err();
        let images = state.path().join("images");
        assert!(format!("{error:#}").contains(images.to_str().unwrap()), "{error:#}");
    }
}
