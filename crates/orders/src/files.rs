//! Orders about files. Paths are absolute. What lies inside each time is said where it is carried out.

use std::path::PathBuf;

use dunnage_analysis::outcome::Distribution;
use dunnage_analysis::units::{Nanos, whole_nanos};
use serde::{Deserialize, Serialize};

/// When bytes count as written or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Through the page cache, and synced to the device within the time.
    Synced,
    /// Past the page cache (`O_DIRECT`); whole files are synced within the time too.
    Direct,
    /// To or from the page cache. A read may still come from the device.
    Cached,
}

/// The calls that move bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Io {
    /// `pread` and `pwrite`.
    Plain,
    /// io_uring.
    Uring,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Its bytes are read.
    Read,
    /// Bytes are written to it.
    Write,
}

/// When a load ends: after this many or after this time, whichever comes first. Zero is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limit {
    /// Operations, round trips or connections.
    pub count: u64,
    /// The time; the one that has begun is completed.
    #[serde(with = "whole_nanos")]
    pub time: Nanos,
}

impl Limit {
    /// A hundredth, for the warm-up.
    pub fn hundredth(self) -> Limit {
        // What is limited stays so.
        let time = (self.time.0 / 100).max(self.time.0.min(1));
        Limit { count: self.count.div_ceil(100), time: Nanos(time) }
    }

    /// Whether so many, or so much time, are enough.
    pub fn is_reached(self, count: u64, passed: Nanos) -> bool {
        (self.count > 0 && count >= self.count) || (self.time.0 > 0 && passed >= self.time)
    }

    /// Whether it ends anything.
    pub fn is_one(self) -> bool {
        self.count > 0 || self.time.0 > 0
    }
}

/// How whole files are written or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct How {
    /// What counts.
    pub class: Class,
    /// Through which calls.
    pub io: Io,
    /// Bytes of each call.
    pub block: u64,
}

/// A set of new files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Files {
    /// How many.
    pub count: u64,
    /// The size of each.
    pub bytes: u64,
}

/// Writes new files, numbered from 0, in a directory that is made if only it is missing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Write {
    /// The directory.
    pub path: PathBuf,
    /// The files.
    pub files: Files,
    /// How.
    pub how: How,
}

/// Reads files that [`Write`] wrote.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Read {
    /// Their directory.
    pub path: PathBuf,
    /// How many.
    pub count: u64,
    /// How.
    pub how: How,
}

/// The result of writing or reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// Bytes of all files.
    pub bytes: u64,
    /// The time of all system calls.
    #[serde(with = "whole_nanos")]
    pub took: Nanos,
    /// Their CPU time.
    #[serde(with = "whole_nanos")]
    pub cpu: Nanos,
    /// Blocks that were read and are not what was written there.
    pub wrong: u64,
    /// The time of each read or write, in nanoseconds.
    pub block: Distribution,
}

/// Drops the pages of numbered files from the page cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Forget {
    /// Their directory.
    pub path: PathBuf,
    /// How many.
    pub count: u64,
}

/// What stayed in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Forgotten {
    /// Pages that are still in the cache: all of them on a tmpfs, where they are the files.
    pub resident: u64,
    /// All pages of the files.
    pub pages: u64,
}

/// Appends to a new file, each time with a sync.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Append {
    /// Its directory, which is made if only it is missing.
    pub path: PathBuf,
    /// Bytes each time.
    pub size: u64,
    /// When it ends.
    pub limit: Limit,
}

/// The result of appending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Appends {
    /// How often.
    pub count: u64,
    /// The time of all writes and syncs.
    #[serde(with = "whole_nanos")]
    pub took: Nanos,
    /// Their CPU time.
    #[serde(with = "whole_nanos")]
    pub cpu: Nanos,
    /// The time of each write with its sync, in nanoseconds.
    pub append: Distribution,
}

/// Reads or writes at random places of the file numbered 0, which was written before.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scatter {
    /// Its directory.
    pub path: PathBuf,
    /// What is done.
    pub asked: Scattered,
}

/// What is done where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scattered {
    /// Reads or writes.
    pub direction: Direction,
    /// Bytes of each; their places are multiples of it.
    pub size: u64,
    /// What counts; synced writes are synced once, after the last.
    pub class: Class,
    /// Through which calls.
    pub io: Io,
    /// Operations in flight.
    pub depth: u32,
    /// When it ends.
    pub limit: Limit,
    /// Chooses the places.
    pub seed: u64,
}

/// The result of reads or writes at random places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Random {
    /// Operations.
    pub operations: u64,
    /// From before the first to after the last and the sync.
    #[serde(with = "whole_nanos")]
    pub took: Nanos,
    /// CPU time of that.
    #[serde(with = "whole_nanos")]
    pub cpu: Nanos,
    /// The time of each, in nanoseconds.
    pub random: Distribution,
}

/// Does the same to each file numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Each {
    /// What.
    pub operation: Operation,
    /// Their directory.
    pub path: PathBuf,
    /// How many.
    pub count: u64,
}

/// An operation on each of several files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// As [`Action::Open`].
    Open,
    /// As [`Modify`].
    Modify,
    /// As [`Action::Chmod`].
    Chmod,
}

/// The time of the same operation on many files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EachTime {
    /// All of them.
    pub all: Single,
    /// Each, in nanoseconds.
    pub each: Distribution,
}

/// Does one thing to one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Change {
    /// The file.
    pub file: PathBuf,
    /// What.
    pub action: Action,
}

/// What is done to one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is opened and closed.
    Open,
    /// So many bytes are appended.
    Append(u64),
    /// It is cut to so many bytes.
    Truncate(u64),
    /// It is deleted.
    Delete,
    /// It gets this name.
    Rename(PathBuf),
    /// Its mode changes.
    Chmod,
    /// Its owner changes.
    Chown,
    /// Its facts are read.
    Stat,
}

/// The time of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Single {
    /// Of its system calls.
    #[serde(with = "whole_nanos")]
    pub took: Nanos,
    /// CPU time of them.
    #[serde(with = "whole_nanos")]
    pub cpu: Nanos,
}

/// Changes the byte in the middle of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Modify {
    /// The file.
    pub file: PathBuf,
}

/// The time of a modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modified {
    /// All of it.
    pub all: Single,
    /// Only opening, which is where overlayfs copies the file up.
    #[serde(with = "whole_nanos")]
    pub opened: Nanos,
}

/// Reads facts about a file, if it is there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Touch {
    /// The file.
    pub file: PathBuf,
}

/// Facts about a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touched {
    /// Its size in bytes.
    pub size: u64,
    /// Its extents, or why they are not known.
    pub extents: Result<Extents, String>,
}

/// The extents of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Extents {
    /// All of them.
    pub all: u64,
    /// Those that wait in memory for their place.
    pub delayed: u64,
}

/// Makes files that are not measured.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Prepare {
    /// Their directory, which is made if only it is missing.
    pub path: PathBuf,
    /// Their names below it, and their bytes.
    pub files: Vec<(PathBuf, u64)>,
}

/// Removes what was made at a place, and the place if this probe made it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Clear {
    /// The place.
    pub path: PathBuf,
}

/// What [`Clear`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cleared {
    /// Files and directories that are gone.
    pub removed: u64,
    /// Files, links and other filesystems that are not dunnage's, and stay.
    pub left: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reached_by_count_or_by_time() {
        let limit = Limit { count: 1000, time: Nanos(500) };
        assert!(!limit.is_reached(999, Nanos(499)));
        assert!(limit.is_reached(1000, Nanos(0)) && limit.is_reached(0, Nanos(500)));
        assert!(!Limit { count: 0, time: Nanos(5) }.is_reached(u64::MAX, Nanos(4)));
        assert!(!Limit { count: 7, time: Nanos(0) }.is_reached(6, Nanos(i64::MAX)));
        assert_eq!(limit.hundredth(), Limit { count: 10, time: Nanos(5) });
        // What is not limited does not become limited, and what is stays so.
        assert_eq!(Limit { count: 1, time: Nanos(0) }.hundredth(), Limit { count: 1, time: Nanos(0) });
    }
}
