//! Descriptors that no child of another thread inherits.
//!
//! A child has a copy of its parent's descriptors until its exec, also of those that close then. As long as one of them can write
//! to an executable, that executable cannot be started (`ETXTBSY`). So an executable that is started soon is written here, in a
//! thread with a table of its own: a child has the table of the thread that started it.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;

use super::raw;

/// Closes descriptors that dunnage was started with, other than its streams, in all its children: they are its caller's, and some
/// children are another user's.
pub fn keep_inherited() {
    let [first, last] = [3, u32::MAX as usize];
    // SAFETY: a system call without memory, which closes nothing here.
    let done = unsafe {
        raw::syscall(libc::SYS_close_range, [first, last, libc::CLOSE_RANGE_CLOEXEC as usize, 0, 0, 0])
    };
    if done.is_ok() {
        return;
    }
    // Linux before 5.11.
    let own = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<i32> = own.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // SAFETY: a system call without memory; it fails for a descriptor that has been closed.
        let _ = unsafe {
            let flag = [descriptor as usize, libc::F_SETFD as usize, libc::FD_CLOEXEC as usize, 0, 0, 0];
            raw::syscall(libc::SYS_fcntl, flag)
        };
    }
}

/// Does this in another thread, with a table of descriptors of its own. Descriptors opened before can be used, those that it opens
/// are closed at its end. Where the kernel or a filter allows no table of its own, it has that of the others.
pub fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // Nothing is in this range, so nothing is closed. Filters of engines deny `unshare`, and allow this.
            let nothing = [u32::MAX as usize, u32::MAX as usize, libc::CLOSE_RANGE_UNSHARE as usize, 0, 0, 0];
            // SAFETY: a system call without memory. The thread was started for this alone: descriptors that others have are in its
            // table too, and only what it opens itself from here on is missing in theirs.
            let _ = unsafe { raw::syscall(libc::SYS_close_range, nothing) };
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Links a file, or copies it where that is not possible, as across filesystems or to another user's file; never over another. It
/// can be started at once.
pub fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) => apart(|| fs::copy(from, to).map(drop)),
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    /// Whether the table of this thread, or of the first one, has the file.
    fn has(table: &str, descriptor: i32) -> bool {
        let path = fs::read_link(format!("{table}/fd/{descriptor}"));
        path.is_ok_and(|path| path.ends_with("written apart"))
    }

    #[test]
    fn what_is_opened_apart_is_in_no_other_table() {
        let place = tempfile::tempdir().unwrap();
        let before = File::open("/dev/null").unwrap();
        let (own, usable, shared) = apart(|| {
            let file = File::create(place.path().join("written apart")).unwrap();
            let descriptor = file.as_raw_fd();
            let [own, shared] = ["/proc/thread-self", "/proc/self"].map(|table| has(table, descriptor));
            (own, before.metadata().is_ok(), shared)
        });
        assert_eq!((own, usable, shared), (true, true, false));
        assert!(place.path().join("written apart").exists());
    }

    /// Children are started all the time while executables are written, closed and started.
    #[test]
    fn an_executable_that_was_just_written_can_be_started() {
        let place = tempfile::tempdir().unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        let started = thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        assert!(std::process::Command::new("/bin/true").status().unwrap().success());
                    }
                });
            }
            let start = |number: usize| {
                let path = place.path().join(number.to_string());
                apart(|| fs::copy("/bin/true", &path)).unwrap();
                std::process::Command::new(&path).status()
            };
            let started: Vec<_> = (0..200).map(start).collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            started
        });
        for status in started {
            assert!(status.unwrap().success());
        }
    }
}
