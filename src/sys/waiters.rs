//! Who waits for a lock on a file, as `/proc/locks` shows it at a moment: locks of `flock` and `fcntl`. Locks in memory, such as a
//! mutex, are on no list.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

/// A file by its filesystem's device, as the kernel prints it, and its inode.
pub type File = (String, u64);

/// The files for whose locks some process waits, each with the first process that does.
///
/// # Errors
/// If the list cannot be read.
pub fn waited() -> io::Result<BTreeMap<File, i32>> {
    Ok(waited_in(&fs::read_to_string("/proc/locks")?))
}

/// `2: -> POSIX  ADVISORY  WRITE 1234 fd:00:131 0 EOF` is a process that waits.
fn waited_in(locks: &str) -> BTreeMap<File, i32> {
    let one = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "->").skip(4);
        let pid: i32 = words.next()?.parse().ok()?;
        let (device, inode) = words.next()?.rsplit_once(':')?;
        Some(((device.to_owned(), inode.parse().ok()?), pid))
    };
    let mut found = BTreeMap::new();
    for (file, pid) in locks.lines().filter_map(one) {
        found.entry(file).or_insert(pid);
    }
    found
}

/// The path of a file that this process has open, if it still has. Nothing of it is opened, or asked of its filesystem.
pub fn path((_, inode): &File, pid: i32) -> Option<PathBuf> {
    let mut open = fs::read_dir(format!("/proc/{pid}/fdinfo")).ok()?.flatten();
    let is_it = |entry: &fs::DirEntry| {
        let told = fs::read_to_string(entry.path()).unwrap_or_default();
        // From Linux 5.14 on.
        let own = told.lines().find_map(|line| line.strip_prefix("ino:"));
        own.is_some_and(|own| own.trim().parse() == Ok(*inode))
    };
    let of_it = open.find(is_it)?;
    let path = fs::read_link(format!("/proc/{pid}/fd/{}", of_it.file_name().to_str()?)).ok()?;
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn waiters_are_found_on_the_list() {
        let list = "1: FLOCK  ADVISORY  WRITE 11 08:01:77 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 12 08:01:77 0 EOF\n\
            1: -> FLOCK  ADVISORY  WRITE 13 08:01:77 0 EOF\n2: POSIX  ADVISORY  READ  14 00:1a:5 128 128\n";
        let found: Vec<_> = waited_in(list).into_iter().collect();
        assert_eq!(found, [(("08:01".to_owned(), 77), 12)]);
        assert!(waited_in("no such thing\n-> 1").is_empty());
    }

    #[test]
    fn a_process_that_waits_here_is_found_with_the_path() {
        let place = tempfile::tempdir().unwrap();
        let path_of = place.path().join("lock");
        let held = fs::File::create(&path_of).unwrap();
        // SAFETY: a system call on a descriptor of this test.
        assert_eq!(unsafe { libc::flock(held.as_raw_fd(), libc::LOCK_EX) }, 0);
        let mut other = Command::new("flock").arg(&path_of).arg("true").spawn().unwrap();
        let inode = held.metadata().unwrap().ino();
        let seen = (0..500).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let all = waited().unwrap();
            all.into_iter().find(|((_, own), _)| *own == inode)
        });
        let (file, pid) = seen.expect("a waiter within five seconds");
        assert_eq!(path(&file, pid), Some(path_of.canonicalize().unwrap()));
        drop(held);
        assert!(other.wait().unwrap().success());
    }
}
