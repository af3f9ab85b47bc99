//! The free space of a filesystem, whether it is writable, and the kinds of files that the standard library
//! cannot make.

use std::io;
use std::path::Path;

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, Timespec, Timestamps, UTIME_OMIT, XattrFlags, accessat, makedev,
};
use rustix::io::Errno;

/// The free space of a filesystem for an ordinary user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Bytes that can be written.
    pub bytes: u64,
    /// Files that can be made; `None` if the filesystem has no limit.
    pub files: Option<u64>,
}

/// The free space of the filesystem that holds `path`.
pub fn left(path: &Path) -> io::Result<Left> {
    let answer = rustix::fs::statvfs(path)?;
    let files = (answer.f_files > 0).then_some(answer.f_favail);
    Ok(Left { bytes: answer.f_bavail.saturating_mul(answer.f_frsize), files })
}

/// Whether files there exist only in memory, as on a tmpfs: their pages are the files, and cannot be dropped.
pub fn is_in_memory(path: &Path) -> io::Result<bool> {
    /// The kernel's constant, which libc does not have.
    const RAMFS_MAGIC: i64 = 0x8584_58f6;
    Ok([libc::TMPFS_MAGIC, RAMFS_MAGIC].contains(&rustix::fs::statfs(path)?.f_type))
}

/// Whether files can be made in a directory, by its permissions and its mount; makes none.
pub fn may_be_written(directory: &Path) -> io::Result<bool> {
    match accessat(CWD, directory, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        Ok(()) => Ok(true),
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Makes a device node, a pipe or a socket: `mode` has its type and its permissions.
pub fn make_node(path: &Path, mode: u32, (major, minor): (u32, u32)) -> io::Result<()> {
    let (kind, mode) = (FileType::from_raw_mode(mode), Mode::from_raw_mode(mode));
    Ok(rustix::fs::mknodat(CWD, path, kind, mode, makedev(major, minor))?)
}

/// Sets the modification time of a file in seconds since 1970, without opening it.
pub fn set_modified(path: &Path, seconds: u64) -> io::Result<()> {
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let last_modification = Timespec { tv_sec: seconds as i64, tv_nsec: 0 };
    let times = Timestamps { last_access, last_modification };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::empty())?)
}

/// Sets an extended attribute of a file, without following links.
pub fn set_attribute(path: &Path, name: &str, value: &[u8]) -> io::Result<()> {
    Ok(rustix::fs::lsetxattr(path, name, value, XattrFlags::empty())?)
}

/// The value of an extended attribute of a file, without following links.
pub fn attribute(path: &Path, name: &str) -> io::Result<Vec<u8>> {
    let mut value = vec![0u8; 65536];
    let length = rustix::fs::lgetxattr(path, name, &mut value[..])?;
    value.truncate(length);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_for_temporary_files_has_room_and_proc_takes_none() {
        let directory = tempfile::tempdir().unwrap();
        assert!(left(directory.path()).unwrap().bytes > 0);
        assert!(may_be_written(directory.path()).unwrap());
        assert!(left(Path::new("/no/such/place")).is_err());
        assert!(may_be_written(Path::new("/no/such/place")).is_err());
    }
}
