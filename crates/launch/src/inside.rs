//! An image's root for a process that otherwise belongs to the host: mounts that only this process and its
//! children see, and a change of root. So the files that it runs are the image's, and nothing else is like a
//! container. All of it is gone with the last of these processes.

use core::ffi::{c_char, c_ulong};
use core::ptr::null;

use crate::calls::{self, Result, syscall};
use crate::message::{digits_in, digits_of};
use crate::words::Words;

/// The task of the probe that first enters a root of its own on the host. It is followed by the root, the
/// directory to start in, the number of mounts, a source, a target and `ro` or `rw` for each, and then the
/// task to do there.
pub const INSIDE: &str = "inside";

/// Words before the mounts: the program's own name, `probe`, `inside`, root, directory, count.
const HEAD: usize = 6;

/// The index of the first word after the mounts.
fn end(words: Words<'_>) -> usize {
    (digits_in(words.bytes(HEAD - 1)) as usize).saturating_mul(3).saturating_add(HEAD)
}

/// The words of the remaining task, as if they followed `probe` directly.
pub(crate) fn rest(words: Words<'_>) -> Words<'_> {
    words.without(end(words) - 2)
}

/// Enters what the words after `inside` describe, and returns the words of the remaining task, as if they
/// followed `probe` directly. Ends the probe if a step is refused.
pub fn enter(words: Words<'_>) -> Words<'_> {
    let (root, directory, top) = (words.at(3), words.at(4), c"/".as_ptr());
    // SAFETY: a plain number; descriptors stay shared, and a process of one thread shares its mounts with no other.
    let own = unsafe { syscall(libc::SYS_unshare, [libc::CLONE_NEWNS as usize, 0, 0, 0, 0, 0]) };
    must("make mounts private", top, own);
    must("make mounts private", top, mount(null(), top, libc::MS_REC | libc::MS_PRIVATE));
    // A mount of its own, so that it is seen among the mounts from inside.
    must("bind the root", root, mount(root, root, libc::MS_BIND));
    for at in (HEAD..end(words)).step_by(3) {
        let (source, target) = (words.at(at), words.at(at + 1));
        must("bind", source, mount(source, target, libc::MS_BIND | libc::MS_REC));
        if words.is(at + 2, "ro") {
            let flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY;
            must("make read-only", target, mount(null(), target, flags));
        }
    }
    must("change to the root", root, by_path(libc::SYS_chroot, root));
    must("change to the root", root, by_path(libc::SYS_chdir, top));
    must("change to the directory", directory, by_path(libc::SYS_chdir, directory));
    rest(words)
}

fn mount(source: *const c_char, target: *const c_char, flags: c_ulong) -> Result {
    // SAFETY: null pointers, or words that end with a zero byte.
    unsafe { syscall(libc::SYS_mount, [source as usize, target as usize, 0, flags as usize, 0, 0]) }
}

fn by_path(number: libc::c_long, path: *const c_char) -> Result {
    // SAFETY: a word that ends with a zero byte.
    unsafe { syscall(number, [path as usize, 0, 0, 0, 0, 0]) }
}

/// Reports what could not be done and ends, like a program that failed.
fn must(what: &str, path: *const c_char, done: Result) {
    let Err(errno) = done else { return };
    let (mut digits, word) = ([0; 20], [path]);
    // SAFETY: one word that ends with a zero byte.
    let path = unsafe { Words::new(1, word.as_ptr()) }.bytes(0);
    let errno = digits_of(errno as u64, &mut digits);
    for part in &[b"dunnage probe: cannot ", what.as_bytes(), b" `", path, b"`: error ", errno, b"\n"] {
        let _ = calls::write_all(2, part);
    }
    calls::exit(4)
}
