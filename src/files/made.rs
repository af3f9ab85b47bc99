//! What an operation makes, remembered until it succeeds, and removed again if it does not.
//!
//! Deliberately absent: removing what earlier operations made (`tree`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::failure;
use crate::outcome::Failure;

/// Directories that this process made and that are still there.
static DIRECTORIES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Directories that this process made, and has not removed.
pub fn directories() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an operation has made, which is removed again unless it is kept.
pub struct Made {
    /// Files, in their order.
    pub files: Vec<PathBuf>,
    /// Directories, from the outermost.
    pub directories: Vec<PathBuf>,
}

impl Made {
    /// At this place, which is made if only it is missing. It may be a link, since the caller names it.
    pub fn at(place: &Path) -> Result<Made, Failure> {
        let mut made = Made { files: Vec::new(), directories: Vec::new() };
        if !place.is_dir() {
            made.directory(place)?;
        }
        Ok(made)
    }

    /// Makes a directory unless it is there. A link to one is a failure, since it may lead anywhere.
    pub fn directory(&mut self, path: &Path) -> Result<(), Failure> {
        match fs::create_dir(path) {
            Ok(()) => {
                self.directories.push(path.to_owned());
                Ok(())
            }
            // What is on a read-only filesystem is there too.
            Err(_) if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) => Ok(()),
            Err(error) => Err(failure("cannot make", path, &error)),
        }
    }

    /// A file was made.
    pub fn add(&mut self, file: PathBuf) {
        self.files.push(file);
    }

    /// Keeps everything.
    pub fn keep(mut self) {
        self.files.clear();
        directories().extend(self.directories.drain(..));
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        self.files.iter().for_each(|file| drop(fs::remove_file(file)));
        self.directories.iter().rev().for_each(|directory| drop(fs::remove_dir(directory)));
    }
}
