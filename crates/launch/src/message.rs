//! The probe's message as it is written: text, a first line with a version, then one fact per line, and a
//! last line `end`. Also what every probe reads back about its own treatment.
//!
//! Deliberately absent: the results of work, and how a message is read.

use core::ffi::CStr;

use crate::calls;

/// The first line of every message.
pub const MAGIC: &str = "dunnage-probe 2";

/// Where a container sees its cgroup, by controller; the first that exists is used.
pub const CGROUP_DIRECTORIES: [(&str, &CStr, u64); 4] = [
    ("pids", c"/sys/fs/cgroup/pids", calls::CGROUP_FILESYSTEM),
    ("memory", c"/sys/fs/cgroup/memory", calls::CGROUP_FILESYSTEM),
    ("cpu", c"/sys/fs/cgroup/cpu", calls::CGROUP_FILESYSTEM),
    ("", c"/sys/fs/cgroup", calls::CGROUP2_FILESYSTEM),
];

/// Names of namespaces, and of their links in `/proc/self/ns`.
pub const NAMESPACES: [(&str, &CStr); 8] = [
    ("cgroup", c"cgroup"),
    ("ipc", c"ipc"),
    ("mnt", c"mnt"),
    ("net", c"net"),
    ("pid", c"pid"),
    ("time", c"time"),
    ("user", c"user"),
    ("uts", c"uts"),
];

/// Files with limits in both versions of cgroups, with their controllers.
pub const LIMIT_FILES: [(&str, &CStr, &str); 8] = [
    ("cpu.max", c"cpu.max", "cpu"),
    ("cpu.max.burst", c"cpu.max.burst", "cpu"),
    ("cpu.cfs_quota_us", c"cpu.cfs_quota_us", "cpu"),
    ("cpu.cfs_period_us", c"cpu.cfs_period_us", "cpu"),
    ("cpu.cfs_burst_us", c"cpu.cfs_burst_us", "cpu"),
    ("memory.max", c"memory.max", "memory"),
    ("memory.limit_in_bytes", c"memory.limit_in_bytes", "memory"),
    ("pids.max", c"pids.max", "pids"),
];

/// The maximum number of network interfaces that the message names: a host has at least as many as
/// containers, and the message must always fit its capacity. Two are enough to show that a network is more
/// than loopback.
const MOST_INTERFACES: usize = 16;

/// The maximum length of a line; lines are read at the end of the message's own buffer.
const PIECE: usize = 4096;
/// How many bytes of a file are read at a time if one line is needed. The kernel formats the lines of
/// `mountinfo` only as far as they are read, and each takes microseconds.
const FOR_ONE_LINE: usize = 512;

/// The numbers of the initial user and cgroup namespaces (`PROC_USER_INIT_INO`, `PROC_CGROUP_INIT_INO`).
const INITIAL_USER: u64 = 0xEFFF_FFFD;
const INITIAL_CGROUP: u64 = 0xEFFF_FFFB;

/// Engines use this many hexadecimal digits of a container's id as its host name.
const ID_DIGITS: usize = 12;

/// What the probe reads back in addition to the usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Detail {
    /// What it inherits, and the limits of its process.
    pub inherited: bool,
    /// The limits of its cgroup.
    pub limits: bool,
    /// The mounts over files in `/etc`, which identify the container if its host name does not.
    pub mounts: bool,
}

impl Detail {
    /// The word that asks for it, if anything is asked for.
    pub const fn word(self) -> Option<&'static str> {
        match (self.limits, self.mounts, self.inherited) {
            (false, false, false) => None,
            (true, false, false) => Some("limits"),
            (false, true, false) => Some("mounts"),
            (true, true, false) => Some("limits,mounts"),
            (false, false, true) => Some("inherited"),
            (true, false, true) => Some("limits,inherited"),
            (false, true, true) => Some("mounts,inherited"),
            (true, true, true) => Some("limits,mounts,inherited"),
        }
    }

    /// What a word asks for, if it is such a word.
    pub fn of(word: &[u8]) -> Option<Detail> {
        let mut detail = Detail::default();
        let mut rest = word;
        while !rest.is_empty() {
            let end = rest.iter().position(|&byte| byte == b',').unwrap_or(rest.len());
            let part = rest.get(..end).unwrap_or_default();
            // One by one, since for a list the compiler makes a table to jump by.
            let limits = is_same(part, b"limits");
            let mounts = is_same(part, b"mounts");
            let inherited = is_same(part, b"inherited");
            if !(limits | mounts | inherited) {
                return None;
            }
            detail.limits |= limits;
            detail.mounts |= mounts;
            detail.inherited |= inherited;
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        Some(detail)
    }
}

/// A message being written.
#[derive(Debug)]
pub struct Message<'a> {
    buffer: &'a mut [u8],
    length: usize,
    pub(crate) piece: &'a mut [u8],
}

impl<'a> Message<'a> {
    /// A new message with its first line, with room for the size of the buffer less one piece.
    pub fn new(buffer: &'a mut [u8]) -> Message<'a> {
        let room = buffer.len().saturating_sub(PIECE);
        let (buffer, piece) = buffer.split_at_mut_checked(room).unwrap_or_default();
        let mut message = Message { buffer, length: 0, piece };
        message.line(MAGIC);
        message
    }

    /// A new message with every probe's stamps: at the ELF entry, and in `main` if libc was started.
    pub fn begin(buffer: &'a mut [u8], entry: u64, main: Option<u64>) -> Message<'a> {
        let mut message = Message::new(buffer);
        message.number("entry", entry);
        if let Some(main) = main {
            message.number("main", main);
        }
        message
    }

    /// Ends it, and returns all of it.
    pub fn finish(&mut self) -> &[u8] {
        self.number("ready", calls::monotonic());
        self.line("end");
        self.buffer.get(..self.length).unwrap_or_default()
    }

    /// Ends it, writes it to standard output and ends the process.
    pub fn write_out(&mut self) -> ! {
        match calls::write_all(1, self.finish()) {
            Ok(()) => calls::exit(0),
            Err(_) => calls::exit(3),
        }
    }

    /// The first process of a container is the one with id 1 if the container has its own process ids. Its
    /// mask shows whether it waits for SIGTERM, which would be lost if sent earlier.
    pub fn init(&mut self) {
        self.file("init", libc::AT_FDCWD, c"/proc/1/status", 1, |line| {
            begins(line, b"SigBlk:").then_some(line)
        });
    }

    /// Reads back from inside what the subject was asked to apply. It reads only what is checked or recorded,
    /// since it is part of what is measured.
    pub fn treatment(&mut self, detail: Detail) {
        let (user, group) = calls::user_and_group();
        self.number("uid", user as u64);
        self.number("gid", group as u64);
        self.number("seccomp", calls::prctl(libc::PR_GET_SECCOMP, 0).unwrap_or(usize::MAX) as u64);
        self.number("no_new_privs", calls::prctl(libc::PR_GET_NO_NEW_PRIVS, 0).unwrap_or(usize::MAX) as u64);
        if let Some(effective) = calls::effective_capabilities() {
            self.number("capabilities", effective);
        }
        self.host_name();
        // For every absolute path, the kernel would look up this process again.
        let directory = libc::O_PATH | libc::O_DIRECTORY;
        let own = calls::open_at(libc::AT_FDCWD, c"/proc/self", directory).unwrap_or(-1);
        let namespaces = calls::open_at(own, c"ns", directory).unwrap_or(-1);
        let mut link = [0u8; 64];
        let (mut has_own_users, mut has_own_cgroups) = (true, true);
        for (name, path) in &NAMESPACES {
            if let Ok(length) = calls::read_link_at(namespaces, path, &mut link) {
                let number = digits_in(link.get(..length).unwrap_or_default());
                has_own_users &= number != INITIAL_USER;
                has_own_cgroups &= number != INITIAL_CGROUP;
                self.number(name, number);
            }
        }
        // The path identifies the cgroup in the initial namespace, the root directory in any other.
        if has_own_cgroups {
            self.cgroup_seen();
        } else {
            self.file("cgroup_path", own, c"cgroup", usize::MAX, whole);
        }
        // The initial namespace maps all users to themselves.
        if has_own_users {
            self.file("uid_map", own, c"uid_map", usize::MAX, whole);
        }
        self.file("interfaces", own, c"net/dev", MOST_INTERFACES, interface);
        let (most, engines) = if detail.mounts { (usize::MAX, true) } else { (1, false) };
        self.file("mounts", own, c"mountinfo", most, |line| tells_the_root(line, engines).then_some(line));
        if detail.inherited {
            self.inherited(own);
        }
        calls::close(namespaces);
        calls::close(own);
        if detail.limits {
            self.limits();
        }
    }

    /// The inode number of the cgroup directory under `/sys/fs/cgroup`, with its controller.
    fn cgroup_seen(&mut self) {
        for (controller, path, kind) in &CGROUP_DIRECTORIES {
            if let Some(inode) = calls::inode_on(path, *kind) {
                self.push(b"cgroup_inode.");
                self.number(controller, inode);
                break;
            }
        }
    }

    /// The host name, if it could be the short id of a container. Any other could contain anything.
    fn host_name(&mut self) {
        let piece = core::mem::take(&mut self.piece);
        calls::names(piece);
        let own = piece.get(calls::NAME..calls::NAME + ID_DIGITS).unwrap_or_default();
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if piece.get(calls::NAME + ID_DIGITS) == Some(&0) && own.iter().all(is_digit) {
            self.named("host_name", own);
        }
        self.piece = piece;
    }

    /// Reads the limits of the process's own cgroup, wherever it is visible; missing files have no lines.
    fn limits(&mut self) {
        for (controller, directory) in &[("cpu", c"/sys/fs/cgroup/cpu"), ("memory", c"/sys/fs/cgroup/memory")]
        {
            let Some(own) = self.own_cgroup(controller, directory) else { continue };
            for (name, path, whose) in &LIMIT_FILES {
                if is_same(whose.as_bytes(), controller.as_bytes()) {
                    self.file(name, own, path, usize::MAX, whole);
                }
            }
            calls::close(own);
        }
    }

    /// The directory of the process's own cgroup with this controller, which version 1 has mounted there, or
    /// what a mount shows in its place.
    fn own_cgroup(&mut self, controller: &str, version_1: &CStr) -> Option<i32> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let (mount, controller) = match calls::inode_on(version_1, calls::CGROUP_FILESYSTEM) {
            Some(_) => (version_1, controller),
            None => calls::inode_on(c"/sys/fs/cgroup", calls::CGROUP2_FILESYSTEM)
                .map(|_| (c"/sys/fs/cgroup", ""))?,
        };
        let mount = calls::open_at(libc::AT_FDCWD, mount, flags).ok()?;
        let list = calls::open(c"/proc/self/cgroup").unwrap_or(-1);
        let mut filled = 0;
        while let Some(Ok(count @ 1..)) = self.piece.get_mut(filled..).map(|free| calls::read(list, free)) {
            filled += count;
        }
        calls::close(list);
        let mut at = 0;
        while let Some(rest) = self.piece.get(at..filled)
            && let Some(length) = rest.iter().position(|&byte| byte == b'\n')
        {
            let mut fields = rest.get(..length).unwrap_or_default().splitn(3, |&byte| byte == b':');
            let [id, controllers] = [0; 2].map(|_| fields.next().unwrap_or_default());
            // After two colons and the path's own root.
            let path = at + id.len() + controllers.len() + 3;
            at += length + 1;
            if controllers.split(|&byte| byte == b',').any(|one| is_same(one, controller.as_bytes()))
                && let Some(path) = self.piece.get_mut(path..at)
                && let Ok(own) = calls::open_within(mount, path, flags)
            {
                calls::close(mount);
                return Some(own);
            }
        }
        Some(mount)
    }

    /// Appends what fits. A message without its end is refused by its reader, not misread.
    pub fn push(&mut self, bytes: &[u8]) {
        for (place, byte) in self.buffer.iter_mut().skip(self.length).zip(bytes) {
            *place = *byte;
            self.length += 1;
        }
    }

    /// A text on its own line.
    pub fn line(&mut self, text: &str) {
        self.push(text.as_bytes());
        self.push(b"\n");
    }

    /// A name and its value.
    pub fn named(&mut self, name: &str, text: &[u8]) {
        self.push(name.as_bytes());
        self.push(b" ");
        self.push(text);
        self.push(b"\n");
    }

    /// Another number of a line, after a blank.
    pub(crate) fn more(&mut self, value: u64) {
        self.push(b" ");
        self.push(digits_of(value, &mut [0; 20]));
    }

    /// A name and a number in decimal digits.
    pub fn number(&mut self, name: &str, value: u64) {
        self.named(name, digits_of(value, &mut [0; 20]));
    }

    /// The parts that `keep` takes from the lines of a file in a directory, each with a name before it, until
    /// there are this many. Lines longer than a piece are left out; unreadable files have no lines.
    #[inline(always)]
    pub fn file(
        &mut self,
        name: &str,
        directory: i32,
        path: &CStr,
        most: usize,
        keep: impl for<'l> Fn(&'l [u8]) -> Option<&'l [u8]>,
    ) {
        let Ok(fd) = calls::open_at(directory, path, libc::O_RDONLY) else { return };
        let piece = core::mem::take(&mut self.piece);
        let (mut filled, mut kept) = (0, 0);
        while kept < most {
            let end = if most == 1 { piece.len().min(filled + FOR_ONE_LINE) } else { piece.len() };
            let Some(Ok(count @ 1..)) = piece.get_mut(filled..end).map(|free| calls::read(fd, free)) else {
                break;
            };
            let mut rest = piece.get(..filled + count).unwrap_or_default();
            while let Some(length) = rest.iter().position(|&byte| byte == b'\n') {
                if let Some(part) = rest.get(..length).and_then(&keep).filter(|_| kept < most) {
                    kept += 1;
                    self.named(name, part);
                }
                rest = rest.get(length + 1..).unwrap_or_default();
            }
            let left = rest.len();
            let done = filled + count - left;
            for at in 0..left {
                let byte = piece.get(done + at).copied().unwrap_or_default();
                if let Some(place) = piece.get_mut(at) {
                    *place = byte;
                }
            }
            filled = if left == piece.len() { 0 } else { left };
        }
        self.piece = piece;
        calls::close(fd);
    }
}

/// Lets work write text.
impl core::fmt::Write for Message<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// A number in decimal digits, which are written to the end of `digits`.
pub(crate) fn digits_of(value: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut unused = digits.len();
    let mut rest = value;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        unused -= 1;
        if rest == 0 {
            break;
        }
    }
    digits.get(unused..).unwrap_or_default()
}

/// Replaces `==`, which would call out.
fn begins(text: &[u8], with: &[u8]) -> bool {
    text.len() >= with.len() && text.iter().zip(with).all(|(one, other)| one == other)
}

pub(crate) fn is_same(text: &[u8], other: &[u8]) -> bool {
    text.len() == other.len() && begins(text, other)
}

/// A line as it is.
pub(crate) fn whole(line: &[u8]) -> Option<&[u8]> {
    Some(line)
}

/// The name in a line such as `  eth0: 1296 16 0 …`. The heading has none.
fn interface(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().position(|&byte| byte == b':')?;
    Some(line.get(..end)?.trim_ascii_start())
}

/// The number in `pid:[4026531836]`.
pub(crate) fn digits_in(text: &[u8]) -> u64 {
    text.iter()
        .filter(|byte| byte.is_ascii_digit())
        .fold(0u64, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
}

/// Whether a line of `mountinfo` is about the root, for its filesystem and options, or about the files that
/// engines mount over `/etc`, whose source names the container. All others are left out, since every byte of
/// the message passes through the measured engine.
fn tells_the_root(line: &[u8], engines: bool) -> bool {
    let Some(point) = line.split(|&byte| byte == b' ').nth(4) else { return false };
    // Compared one by one, since for a list the compiler makes a table of lengths to jump by.
    let of_engines = ["hostname", "hosts", "resolv.conf"];
    is_same(point, b"/")
        || engines
            && begins(point, b"/etc/")
            && of_engines.iter().any(|name| is_same(point.get(5..).unwrap_or_default(), name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::string::String;
    use std::{format, vec};

    use super::*;

    #[test]
    fn only_the_root_and_the_files_of_engines_are_passed_on() {
        let line = |point: &str| format!("36 35 98:0 /x {point} rw,noatime - ext4 /dev/root rw");
        let tells = |point: &str, engines| tells_the_root(line(point).as_bytes(), engines);
        assert!(tells("/", false) && tells("/", true) && tells("/etc/hostname", true));
        assert!(!tells("/etc/hostname", false) && !tells("/proc", true) && !tells_the_root(b"", true));
    }

    fn said(write: impl Fn(&mut Message<'_>), capacity: usize) -> String {
        let mut buffer = vec![0; capacity];
        let mut message = Message::new(&mut buffer);
        write(&mut message);
        String::from_utf8(message.finish().to_vec()).unwrap()
    }

    #[test]
    fn numbers_have_all_their_digits() {
        for number in [0, 7, 10, 1_000_000_007, u64::MAX] {
            let text = said(|message| message.number("n", number), 8192);
            assert!(text.contains(&format!("\nn {number}\n")), "{text}");
        }
    }

    #[test]
    fn a_file_longer_than_a_piece_is_read_line_by_line() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/calls.rs\0").as_bytes();
        let lines: vec::Vec<&str> = include_str!("calls.rs").lines().collect();
        assert!(include_str!("calls.rs").len() > PIECE);
        let path = CStr::from_bytes_with_nul(path).unwrap();
        let text = said(|message| message.file("x", libc::AT_FDCWD, path, usize::MAX, whole), 65536);
        let found: vec::Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("x ")).collect();
        assert_eq!(found, lines);
        let text = said(|message| message.file("x", libc::AT_FDCWD, path, 3, whole), 65536);
        assert!(text.contains(&format!("x {}\nready", lines[2])), "{text}");
    }

    #[test]
    fn every_detail_has_a_word_of_its_own() {
        for all in 0..8 {
            let detail = Detail { limits: all & 1 > 0, mounts: all & 2 > 0, inherited: all & 4 > 0 };
            assert_eq!(Detail::of(detail.word().unwrap_or_default().as_bytes()), Some(detail));
        }
        assert_eq!(["-", "limit", "limits mounts"].map(|word| Detail::of(word.as_bytes())), [None; 3]);
    }

    #[test]
    fn a_message_that_does_not_fit_loses_its_end() {
        let text = said(|message| (0..1000).for_each(|number| message.number("n", number)), 5000);
        assert_eq!((text.len(), text.ends_with("end\n")), (5000 - PIECE, false));
    }
}
