//! Making files before a measurement, and removing them after it. Nothing is timed.
//!
//! `clear` removes dunnage's own files only: regular files that begin with the word of its marks, and directories that this
//! process made or that are empty after that. It follows no link and enters no other filesystem.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use dunnage_orders::files::{Class, Cleared, How, Io};

use super::channel::Channel;
use super::content::OWN;
use super::made::{Made, directories};
use super::transfer::{Progress, Target, content_for, fill};
use super::{Calls, failure, unsupported};
use crate::outcome::Failure;

/// Bytes of each write.
const BLOCK: u64 = 1 << 20;
/// The numbers in the marks of files whose name is not a number begin here.
const NAMED: u64 = 1 << 20;

/// Makes files with random content, by their names below a place, and syncs their filesystem, since each file alone would
/// wait for the device.
///
/// # Errors
/// What ended it, after which none of them is left.
pub fn prepare(place: &Path, files: &[(impl AsRef<Path>, u64)]) -> Result<(), Failure> {
    let mut made = Made::at(place)?;
    let mut channel = Channel::new(Io::Plain, 1)?;
    let mut content = content_for(BLOCK, files.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0));
    for (index, (name, bytes)) in files.iter().enumerate() {
        let name = name.as_ref();
        let path = below(place, name)?;
        Class::Cached.check(BLOCK, *bytes)?;
        for directory in name.ancestors().skip(1).collect::<Vec<_>>().iter().rev().skip(1) {
            made.directory(&place.join(directory))?;
        }
        let file = Class::Cached.open(&path, OpenOptions::new().write(true).create_new(true));
        let file = file.map_err(|error| failure("cannot make", &path, &error))?;
        made.add(path.clone());
        let number = name.to_str().and_then(|name| name.parse().ok()).unwrap_or(NAMED + index as u64);
        let how = How { class: Class::Cached, io: Io::Plain, block: BLOCK };
        let target = Target { file: &file, path: &path, number, begin: 0 };
        fill(&target, *bytes, how, &mut channel, &mut content, &mut Progress::new())?;
    }
    let synced = File::open(place).and_then(|place| Ok(rustix::fs::syncfs(&place)?));
    synced.map_err(|error| failure("cannot sync the filesystem of", place, &error))?;
    made.keep();
    Ok(())
}

/// The path of a name below a place.
fn below(place: &Path, name: &Path) -> Result<PathBuf, Failure> {
    let is_plain = name.components().all(|part| matches!(part, Component::Normal(_)));
    if is_plain && name.file_name().is_some() {
        return Ok(place.join(name));
    }
    Err(unsupported(format!("`{}` is not a name below `{}`", name.display(), place.display())))
}

/// Removes what was made at a place, and the place if this process made it.
///
/// # Errors
/// If something cannot be read or removed.
pub fn clear(place: &Path) -> Result<Cleared, Failure> {
    let mut cleared = Cleared::default();
    let device = match fs::symlink_metadata(place) {
        Ok(found) if found.is_dir() => found.dev(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(cleared),
        Ok(_) => return Err(Failure::environment(format!("`{}` is not a directory", place.display()))),
        Err(error) => return Err(failure("cannot read", place, &error)),
    };
    clear_in(place, device, &mut cleared)?;
    if directories().remove(place) {
        remove_empty(place, &mut cleared)?;
    }
    Ok(cleared)
}

fn clear_in(directory: &Path, device: u64, cleared: &mut Cleared) -> Result<(), Failure> {
    let failed = |error: io::Error| failure("cannot read", directory, &error);
    // All of it first, since entries are removed meanwhile.
    let entries = fs::read_dir(directory).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    for path in entries.iter().map(fs::DirEntry::path) {
        let found = fs::symlink_metadata(&path).map_err(|error| failure("cannot read", &path, &error))?;
        if found.is_dir() && found.dev() == device {
            let before = cleared.removed;
            clear_in(&path, device, cleared)?;
            if directories().remove(&path) || cleared.removed > before {
                remove_empty(&path, cleared)?;
            }
        } else if found.is_file() && is_own(&path) {
            fs::remove_file(&path).map_err(|error| failure("cannot remove", &path, &error))?;
            cleared.removed += 1;
        } else {
            cleared.left += 1;
        }
    }
    Ok(())
}

/// Whether a file begins as those that are made here.
fn is_own(path: &Path) -> bool {
    let mut word = OWN.map(|byte| !byte);
    let file = Class::Cached.open(path, OpenOptions::new().read(true));
    file.and_then(|mut file| file.read_exact(&mut word)).is_ok() && word == OWN
}

/// Removes a directory, unless something that is not dunnage's is in it.
fn remove_empty(path: &Path, cleared: &mut Cleared) -> Result<(), Failure> {
    match fs::remove_dir(path) {
        Ok(()) => cleared.removed += 1,
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
        Err(error) => return Err(failure("cannot remove", path, &error)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_prepared_is_cleared_and_nothing_else() {
        let room = tempfile::tempdir().unwrap();
        let place = room.path().join("place");
        let files = [("a/b/c", 5000), ("a/d", 16), ("7", 3 << 20)];
        let files = files.map(|(name, bytes)| (Path::new(name), bytes));
        prepare(&place, &files).unwrap();
        for (name, bytes) in files {
            assert_eq!(place.join(name).metadata().unwrap().len(), bytes);
        }
        fs::write(place.join("a/users"), "a user's file, longer than a mark").unwrap();
        fs::write(place.join("short"), "x").unwrap();
        std::os::unix::fs::symlink("7", place.join("link")).unwrap();
        assert_eq!(clear(&place).unwrap(), Cleared { removed: 4, left: 3 });
        for stays in ["a/users", "short", "link"] {
            assert!(fs::symlink_metadata(place.join(stays)).is_ok(), "{stays}");
        }
        assert!(!place.join("a/b").exists() && !place.join("7").exists());
    }

    #[test]
    fn a_link_to_a_directory_is_not_followed() {
        let room = tempfile::tempdir().unwrap();
        let (place, others) = (room.path().join("place"), room.path().join("others"));
        fs::create_dir(&others).unwrap();
        fs::create_dir(&place).unwrap();
        std::os::unix::fs::symlink(&others, place.join("a")).unwrap();
        let failure = prepare(&place, &[(Path::new("one"), 100), (Path::new("a/two"), 100)]).unwrap_err();
        assert!(failure.reason.contains("place/a`"), "{failure}");
        prepare(&others, &[(Path::new("0"), 100)]).unwrap();
        assert_eq!(clear(&place).unwrap(), Cleared { removed: 0, left: 1 });
        assert!(others.join("0").exists() && !others.join("two").exists());
    }

    #[test]
    fn a_place_of_its_own_is_gone_and_one_of_others_stays() {
        let room = tempfile::tempdir().unwrap();
        let (own, others) = (room.path().join("own"), room.path().join("others"));
        fs::create_dir(&others).unwrap();
        for place in [&own, &others] {
            prepare(place, &[(Path::new("0"), 100)]).unwrap();
            clear(place).unwrap();
            assert_eq!(clear(place).unwrap(), Cleared::default());
        }
        assert!(!own.exists() && others.exists());
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused_and_nothing_is_left() {
        let room = tempfile::tempdir().unwrap();
        let place = room.path().join("place");
        for name in ["../x", "/x", "a/../../x", "", "."] {
            let failure = prepare(&place, &[(Path::new("a/b"), 100), (Path::new(name), 100)]).unwrap_err();
            assert!(failure.reason.contains("is not a name below"), "{failure}");
            assert!(!place.exists(), "{name}");
        }
    }
}
