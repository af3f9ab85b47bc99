//! Operations on files, timed: writing and reading whole files, appending, reading and writing at random places, and
//! single operations on one file. Each is one function of plain values, and says what lies inside its time.
//!
//! Files are numbered (`PLACE/0`, `PLACE/1` …). What is written is random, and marked so that no two blocks are equal and
//! a reader can tell whether a block is the one that belongs there (`content`). Only the last part of a path is
//! known not to be a symbolic link: none is followed there. What a failed operation made is removed again.
//!
//! Deliberately absent: subjects, the probe's orders, and the purpose of an operation; whether bytes have reached a
//! device, which only the device's own counters say; and emptying the page cache, which is everybody's: only the pages of
//! the own files are dropped ([`forget`]).

mod append;
mod channel;
mod content;
mod forget;
mod made;
mod random;
mod single;
mod transfer;
mod tree;
mod watch;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::outcome::{Failure, FailureClass};

pub use append::append;
pub use forget::forget;
pub use random::random;
pub use single::{append_to, chmod, chown, delete, each, modify, open, rename, stat, touch, truncate};
pub use transfer::{read, write};
pub use tree::{clear, prepare};

pub use dunnage_orders::files::{Class, Direction, How, Io, Limit};

/// Direct transfers are multiples of this.
const SECTOR: u64 = 512;
/// The largest block.
const LARGEST: u64 = 256 << 20;

/// What a class means for the calls.
trait Calls: Copy {
    /// Flags for opening.
    fn flags(self) -> i32;
    /// Refuses impossible sizes, before anything is made.
    fn check(self, block: u64, bytes: u64) -> Result<(), Failure>;
    /// Opens a file of this class.
    fn open(self, path: &Path, options: &mut OpenOptions) -> io::Result<File>;
    /// Whether this error says that the filesystem has no direct transfers.
    fn is_refused(self, error: &io::Error) -> bool;
    /// The failure of an operation on a file of this class.
    fn failure(self, doing: impl fmt::Display, path: &Path, error: &io::Error) -> Failure;
}

impl Calls for Class {
    fn flags(self) -> i32 {
        libc::O_NOFOLLOW | if self == Class::Direct { libc::O_DIRECT } else { 0 }
    }

    fn check(self, block: u64, bytes: u64) -> Result<(), Failure> {
        if !(content::MARK as u64..=LARGEST).contains(&block) || bytes < content::MARK as u64 {
            let reason = format!(
                "a file has at least 16 bytes, and a block 16 bytes to 256 MiB: not {bytes} and {block}"
            );
            return Err(unsupported(reason));
        }
        if self == Class::Direct && !(block.is_multiple_of(SECTOR) && bytes.is_multiple_of(SECTOR)) {
            let reason =
                format!("direct transfers are multiples of {SECTOR} bytes, not {bytes} in blocks of {block}");
            return Err(unsupported(reason));
        }
        Ok(())
    }

    fn open(self, path: &Path, options: &mut OpenOptions) -> io::Result<File> {
        options.custom_flags(self.flags()).open(path)
    }

    fn is_refused(self, error: &io::Error) -> bool {
        self == Class::Direct && error.raw_os_error() == Some(libc::EINVAL)
    }

    fn failure(self, doing: impl fmt::Display, path: &Path, error: &io::Error) -> Failure {
        if self.is_refused(error) {
            let reason =
                format!("{doing} `{}` past the page cache: its filesystem refuses O_DIRECT", path.display());
            return unsupported(reason);
        }
        failure(doing, path, error)
    }
}

fn unsupported(reason: String) -> Failure {
    Failure::new(FailureClass::Unsupported, reason)
}

/// The failure of an operation on a path: what could not be done to it, and the kernel's words.
fn failure(doing: impl fmt::Display, path: &Path, error: &io::Error) -> Failure {
    let class = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => FailureClass::Permission,
        Some(libc::ENOSYS | libc::EOPNOTSUPP | libc::EXDEV) => FailureClass::Unsupported,
        _ => FailureClass::Environment,
    };
    let more = match error.raw_os_error() {
        Some(libc::ELOOP) => " (it is a symbolic link, which is not followed)",
        _ => "",
    };
    Failure::new(class, format!("{doing} `{}`: {error}{more}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_the_class_of_their_cause() {
        let of = |errno| failure("cannot write", Path::new("/x"), &io::Error::from_raw_os_error(errno));
        for (errno, class) in [
            (libc::ENOSPC, FailureClass::Environment),
            (libc::EDQUOT, FailureClass::Environment),
            (libc::EROFS, FailureClass::Environment),
            (libc::EIO, FailureClass::Environment),
            (libc::ENOENT, FailureClass::Environment),
            (libc::EACCES, FailureClass::Permission),
            (libc::EXDEV, FailureClass::Unsupported),
        ] {
            assert_eq!(of(errno).class, class, "{errno}");
        }
        assert!(of(libc::ENOSPC).reason.starts_with("cannot write `/x`: No space left"));
    }

    #[test]
    fn sizes_that_cannot_be_are_refused_before_anything_is_made() {
        assert!(Class::Direct.check(512, 4096).is_ok() && Class::Cached.check(1000, 16).is_ok());
        for (class, block, bytes) in [
            (Class::Direct, 1000, 4096),
            (Class::Direct, 512, 1000),
            (Class::Cached, 15, 4096),
            (Class::Cached, 4096, 15),
            (Class::Synced, LARGEST + 1, 4096),
        ] {
            let failure = class.check(block, bytes).unwrap_err();
            assert_eq!(failure.class, FailureClass::Unsupported, "{block} {bytes}");
        }
    }
}
