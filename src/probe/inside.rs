//! An image's root for a process that is otherwise the host's: mounts that only this process and its
//! children see, and a change of root. So the bits that run are the image's, and nothing else is a
//! container's. All of it goes with the last of these processes.

use core::ffi::CStr;

use super::entry::Arguments;
use crate::sys::{command, raw};

/// Words before the mounts: the program's own name, `probe`, `inside`, root, directory, count.
const HEAD: i32 = 6;

/// Enters what the words after `inside` describe, and gives the arguments of the task that remains, as if
/// they followed `probe` directly. Ends the probe where something of it is refused.
pub fn enter(arguments: Arguments<'_>) -> Arguments<'_> {
    let word = |index: i32| arguments.get(index).unwrap_or_else(|| refused(b"read its arguments", c"", 0));
    let (root, directory) = (word(3), word(4));
    let count: i32 = match core::str::from_utf8(word(5).to_bytes()).map(str::parse) {
        Ok(Ok(count)) => count,
        _ => refused(b"read a count", word(5), 0),
    };
    let must = |what: &[u8], path: &CStr, done: Result<(), i32>| {
        done.unwrap_or_else(|errno| refused(what, path, errno));
    };
    must(b"make mounts private", c"/", command::own_mounts());
    // A mount of its own, so that it is seen among the mounts from inside.
    must(b"bind the root", root, command::mount(root, root, libc::MS_BIND));
    for index in 0..count {
        let [source, target, access] = [0, 1, 2].map(|part| word(HEAD + 3 * index + part));
        must(b"bind", source, command::mount(source, target, libc::MS_BIND | libc::MS_REC));
        if access == c"ro" {
            let flags = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY;
            must(b"make read-only", target, command::mount(c"none", target, flags));
        }
    }
    must(b"change to the root", root, command::change_root(root));
    must(b"change to the directory", directory, command::change_directory(directory));
    arguments.without(HEAD + 3 * count - 2)
}

/// Says what could not be done, as a message of a program that failed.
fn refused(what: &[u8], path: &CStr, errno: i32) -> ! {
    let mut digits = [b'0'; 3];
    for (place, digit) in digits.iter_mut().rev().zip([errno % 10, errno / 10 % 10, errno / 100 % 10]) {
        *place = b'0' + digit as u8;
    }
    let zeroes = digits.iter().take(2).take_while(|digit| **digit == b'0').count();
    let digits = &digits[zeroes..];
    let parts: [&[u8]; 6] = [b"dunnage probe: cannot ", what, b" `", path.to_bytes(), b"`: error ", digits];
    for part in parts {
        let _ = raw::write_all(2, part);
    }
    let _ = raw::write_all(2, b"\n");
    raw::exit(4)
}
