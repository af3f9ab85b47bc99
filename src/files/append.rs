//! Appending to a new file, each time until it is durable: a write and `fdatasync`, as a database's log does.
//!
//! One time is that of both calls. Marking the block and opening the file are outside.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use dunnage_orders::files::{Appends, Class, Limit};

use super::made::Made;
use super::transfer::content_for;
use super::watch::Watch;
use super::{Calls, failure};
use crate::outcome::{Distribution, Failure};

/// The name of the file.
const NAME: &str = "append";
/// The number in its marks.
const NUMBER: u64 = 0xa9_9e4d;

/// Appends so many bytes to the new file `append` until the limit.
///
/// # Errors
/// What ended it, after which the file is not left.
pub fn append(place: &Path, size: u64, limit: Limit) -> Result<Appends, Failure> {
    Class::Synced.check(size, size)?;
    let mut content = content_for(size, size.saturating_mul(limit.count.max(1)));
    let mut made = Made::at(place)?;
    let path = place.join(NAME);
    let open = Class::Synced.open(&path, OpenOptions::new().append(true).create_new(true));
    let mut file = open.map_err(|error| failure("cannot make", &path, &error))?;
    made.add(path.clone());
    let (mut watch, mut count, mut append) = (Watch::default(), 0, Distribution::of_durations());
    while !limit.is_reached(count, watch.took()) {
        let block = content.block(NUMBER, count * size, size as usize);
        let (done, nanos) = watch.time(|| file.write_all(block).and_then(|()| file.sync_data()));
        done.map_err(|error| {
            failure(format_args!("cannot append, after {} bytes, to", count * size), &path, &error)
        })?;
        append.record(nanos);
        count += 1;
    }
    made.keep();
    Ok(Appends { count, took: watch.took(), cpu: watch.cpu(), append })
}
