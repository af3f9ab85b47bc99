//! An image's root for a process that is otherwise the host's: mounts that only this process and its
//! children see, and a change of root. So the bits that run are the image's, and nothing else is a
//! container's. All of it goes with the last of these processes.

use core::ffi::CStr;

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount_bind, mount_bind_recursive, mount_remount};
use rustix::process::{chdir, chroot};

use super::entry::Arguments;
use crate::sys::{command, raw};

/// Words before the mounts: the program's own name, `probe`, `inside`, root, directory, count.
const HEAD: i32 = 6;

/// Enters what the words after `inside` describe, and gives the arguments of the task that remains, as if
/// they followed `probe` directly. Ends the probe where something of it is refused.
pub fn enter(arguments: Arguments<'_>) -> Arguments<'_> {
    let word = |index: i32| arguments.get(index).unwrap_or_else(|| refused("read its arguments", c"", 0));
    let (root, directory) = (word(3), word(4));
    let count: i32 = match core::str::from_utf8(word(5).to_bytes()).map(str::parse) {
        Ok(Ok(count)) => count,
        _ => refused("read a count", word(5), 0),
    };
    let must = |what: &str, path: &CStr, done: Result<(), Errno>| {
        done.unwrap_or_else(|errno| refused(what, path, errno.raw_os_error()));
    };
    must("make mounts private", c"/", command::own_mounts());
    // A mount of its own, so that it is seen among the mounts from inside.
    must("bind the root", root, mount_bind(root, root));
    for index in 0..count {
        let [source, target, access] = [0, 1, 2].map(|part| word(HEAD + 3 * index + part));
        must("bind", source, mount_bind_recursive(source, target));
        if access == c"ro" {
            let flags = MountFlags::BIND | MountFlags::RDONLY;
            must("make read-only", target, mount_remount(target, flags, c""));
        }
    }
    must("change to the root", root, chroot(root).and_then(|()| chdir(c"/")));
    must("change to the directory", directory, chdir(directory));
    arguments.without(HEAD + 3 * count - 2)
}

/// Says what could not be done, as a message of a program that failed.
fn refused(what: &str, path: &CStr, errno: i32) -> ! {
    let path = path.to_string_lossy();
    let _ = raw::write_all(2, format!("dunnage probe: cannot {what} `{path}`: error {errno}\n").as_bytes());
    raw::exit(4)
}
