//! Making files cold, without touching what others have in the page cache: each is synced, its pages are dropped, and
//! those that stay are counted. Nothing is timed.
//!
//! Deliberately absent: directory entries and inodes, which stay warm; and caches below the filesystem, such as that of a
//! virtual machine's host.

use std::fs::OpenOptions;
use std::path::Path;

use dunnage_orders::files::{Class, Forgotten};
use rustix::fs::{Advice, fadvise};

use super::transfer::numbered;
use super::{Calls, failure};
use crate::outcome::Failure;
use crate::sys::page_cache;

/// A page.
const PAGE: u64 = 4096;

/// How often pages of the same files are dropped.
const TRIES: usize = 3;

/// Drops the pages of files numbered from 0.
///
/// # Errors
/// If a file cannot be opened, synced or asked for its pages.
pub fn forget(place: &Path, count: u64) -> Result<Forgotten, Failure> {
    let mut found = forget_all(place, count)?;
    for _ in 1..TRIES {
        // Some pages may just be on their way from or to the device.
        if found.resident == 0 || found.resident == found.pages {
            break;
        }
        found = forget_all(place, count)?;
    }
    Ok(found)
}

fn forget_all(place: &Path, count: u64) -> Result<Forgotten, Failure> {
    let mut sum = Forgotten::default();
    for number in 0..count {
        let path = numbered(place, number);
        let file = Class::Cached.open(&path, OpenOptions::new().read(true));
        let file = file.map_err(|error| failure("cannot open", &path, &error))?;
        file.sync_all().map_err(|error| failure("cannot sync", &path, &error))?;
        let dropped = fadvise(&file, 0, None, Advice::DontNeed);
        dropped.map_err(|error| failure("cannot drop the cached pages of", &path, &error.into()))?;
        let resident = page_cache::resident(&path);
        sum.resident +=
            resident.map_err(|error| failure("cannot count the cached pages of", &path, &error))? as u64;
        let length =
            file.metadata().map_err(|error| failure("cannot read the size of", &path, &error))?.len();
        sum.pages += length.div_ceil(PAGE);
    }
    Ok(sum)
}
