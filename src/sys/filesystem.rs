//! What a filesystem has left, whether we may write to it, and the kinds of files that the standard library
//! does not make.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What is left of a filesystem for an ordinary user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Bytes that can be written.
    pub bytes: u64,
    /// Files that can be made; `None` where the filesystem sets no limit.
    pub files: Option<u64>,
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// What is left of the filesystem that holds `path`.
pub fn left(path: &Path) -> io::Result<Left> {
    let path = c_path(path)?;
    // SAFETY: an all-zero statvfs is valid storage for the kernel's answer.
    let mut answer: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a valid C string and a writable statvfs.
    if unsafe { libc::statvfs(path.as_ptr(), &mut answer) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let files = (answer.f_files > 0).then_some(answer.f_favail);
    Ok(Left { bytes: answer.f_bavail.saturating_mul(answer.f_frsize), files })
}

/// Whether files there are nowhere but in memory, as on a tmpfs: their pages are the files, and cannot be dropped.
pub fn is_in_memory(path: &Path) -> io::Result<bool> {
    /// The kernel's number, which libc does not name.
    const RAMFS_MAGIC: libc::__fsword_t = 0x8584_58f6;
    let path = c_path(path)?;
    // SAFETY: an all-zero statfs is valid storage for the kernel's answer.
    let mut answer: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: a valid C string and a writable statfs.
    if unsafe { libc::statfs(path.as_ptr(), &mut answer) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok([libc::TMPFS_MAGIC, RAMFS_MAGIC].contains(&answer.f_type))
}

/// Whether files can be made in a directory, by its permissions and its mount; makes none.
pub fn may_be_written(directory: &Path) -> io::Result<bool> {
    let path = c_path(directory)?;
    // SAFETY: a valid C string; the call only asks.
    let answer =
        unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK | libc::X_OK, libc::AT_EACCESS) };
    if answer == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => Ok(false),
        _ => Err(error),
    }
}

/// Makes a device node, a pipe or a socket: `mode` holds its kind and its permissions.
pub fn make_node(path: &Path, mode: u32, (major, minor): (u32, u32)) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: a valid C string; the other arguments are plain numbers.
    match unsafe { libc::mknod(path.as_ptr(), mode, libc::makedev(major, minor)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets an extended attribute of a file, not of what it links to.
pub fn set_attribute(path: &Path, name: &str, value: &[u8]) -> io::Result<()> {
    let (path, name) = (c_path(path)?, CString::new(name)?);
    // SAFETY: two valid C strings, and a value that is readable for its whole length.
    let set = unsafe { libc::lsetxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The value of an extended attribute of a file, not of what it links to.
pub fn attribute(path: &Path, name: &str) -> io::Result<Vec<u8>> {
    let (path, name) = (c_path(path)?, CString::new(name)?);
    let mut value = vec![0u8; 65536];
    // SAFETY: two valid C strings, and a buffer that is writable for its whole length.
    let length =
        unsafe { libc::lgetxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
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
