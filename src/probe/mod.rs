//! What runs inside a subject: the same executable that measures, asked to be the probe by its
//! first argument. It starts no runtime, parses no options and, unless it works, serves or is asked for limits, allocates
//! nothing; it stamps, reads
//! back from inside what was done to it, works where it is asked to (`work`), writes one message to
//! standard output, and ends. Asked to serve, it stays and carries out orders that come over a channel (`serve`).
//!
//! The message (private to this module, see `message`) is text: a first line with a version, then
//! one fact a line, files as a length followed by that many bytes, and a last line `end`.

pub mod entry;
mod inside;
mod limits;
mod load;
pub mod message;
mod serve;
mod work;

use core::ffi::CStr;

use rustix::fs::{CWD, readlinkat_raw};

use crate::sys::raw;
use entry::Arguments;
use message::MAGIC;

/// The first argument that turns the executable into the probe.
pub const PROBE: &str = "probe";

/// The task of the probe that works: after it come the detail to read back, or `-`, the kind of work and
/// its words.
pub const WORK: &str = "work";

/// The task of the probe that carries out orders: after it come the directory of its channel and the detail to read back, or `-`.
pub const SERVE: &str = "serve";

/// The task of the probe that first enters a root of its own on the host: after it come the root, the
/// directory to begin in, a count, so many times a source, a target and `ro` or `rw`, and then the task that
/// it is to do there.
pub const INSIDE: &str = "inside";

/// The task of the probe that ends as soon as it runs: what a program costs that does nothing.
pub const NOTHING: &CStr = c"none";

pub use dunnage_analysis::experiment::syscall::LEAST_BATCHES;

/// What the probe is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Stamp the entry, read the treatment back, and end.
    Start,
    /// The same as a second process, and say whether the first is ready to be asked to end.
    Enter,
    /// Wait for SIGTERM, then end well. Says nothing.
    Stay,
}

impl Task {
    /// The argument that names the task.
    pub const fn argument(self) -> &'static str {
        match self {
            Task::Start => "start",
            Task::Enter => "enter",
            Task::Stay => "stay",
        }
    }
}

/// The argument after the task that asks for the limits of the probe's cgroup too.
pub const LIMITS: &str = "limits";

/// Where a container sees its cgroup, by controller; the first that is there will do.
pub(crate) const CGROUP_DIRECTORIES: [(&str, &CStr, u64); 4] = [
    ("pids", c"/sys/fs/cgroup/pids", raw::CGROUP_FILESYSTEM),
    ("memory", c"/sys/fs/cgroup/memory", raw::CGROUP_FILESYSTEM),
    ("cpu", c"/sys/fs/cgroup/cpu", raw::CGROUP_FILESYSTEM),
    ("", c"/sys/fs/cgroup", raw::CGROUP2_FILESYSTEM),
];

const NAMESPACES: [(&str, &CStr); 8] = [
    ("cgroup", c"/proc/self/ns/cgroup"),
    ("ipc", c"/proc/self/ns/ipc"),
    ("mnt", c"/proc/self/ns/mnt"),
    ("net", c"/proc/self/ns/net"),
    ("pid", c"/proc/self/ns/pid"),
    ("time", c"/proc/self/ns/time"),
    ("user", c"/proc/self/ns/user"),
    ("uts", c"/proc/self/ns/uts"),
];

/// How many network interfaces the message names at most: a host has as many as it has containers, and more, and the
/// message must end within its capacity whatever there is. That a network is not the loopback alone shows in two of them.
const MOST_INTERFACES: usize = 64;

/// Is the probe, for good: does not return.
///
/// The exit code is 0 when the message was written, 2 for an unknown task, 3 when standard output
/// refused it.
pub fn run(arguments: Arguments) -> ! {
    let main = raw::monotonic();
    if arguments.get(2).map(CStr::to_bytes) == Some(INSIDE.as_bytes()) {
        perform(main, inside::enter(arguments))
    }
    perform(main, arguments)
}

fn perform(main: u64, arguments: Arguments) -> ! {
    let (task, detail) = (arguments.get(2), arguments.get(3));
    match task.map(CStr::to_bytes) {
        None | Some(b"start") => start(main, detail, |_| ()),
        Some(b"enter") => start(main, detail, |message| message.init()),
        Some(b"stay") => stay(),
        Some(word) if word == SERVE.as_bytes() => serve::serve(main, detail, arguments.get(4)),
        Some(b"load") => load::be(detail.map(CStr::to_bytes)),
        Some(word) if word == NOTHING.to_bytes() => raw::exit(0),
        Some(word) if word == WORK.as_bytes() => work(main, detail, &arguments.words()),
        Some(_) => unknown(),
    }
}

fn start(main: u64, detail: Option<&CStr>, first: fn(&mut Message<'_>)) -> ! {
    let mut buffer = [0; CAPACITY];
    let mut message = Message::begin(&mut buffer, main);
    first(&mut message);
    message.treatment(detail);
    message.write_out()
}

/// Blocks SIGTERM, then waits for it: the first process of a PID namespace is sent only what it
/// blocks or handles.
fn stay() -> ! {
    match raw::wait_for_signal(libc::SIGTERM) {
        Ok(_) => raw::exit(0),
        Err(_) => raw::exit(3),
    }
}

/// Reads the treatment back before it works, so that what the work stamps is not between the two.
fn work(main: u64, detail: Option<&CStr>, words: &[&CStr]) -> ! {
    let mut buffer = vec![0; work::CAPACITY];
    let mut message = Message::begin(&mut buffer, main);
    message.treatment(detail);
    match work::run(words.get(4..).unwrap_or_default(), &mut message) {
        true => message.write_out(),
        false => unknown(),
    }
}

fn unknown() -> ! {
    let _ = raw::write_all(2, b"dunnage probe: unknown task\n");
    raw::exit(2)
}

/// The name in a line such as `  eth0: 1296 16 0 …`, of which there are not too many yet. The heading has none.
fn interface(line: &[u8], kept: usize) -> Option<&[u8]> {
    let end = line.iter().position(|&byte| byte == b':').filter(|_| kept < MOST_INTERFACES)?;
    Some(line[..end].trim_ascii_start())
}

/// The number in `pid:[4026531836]`.
fn digits_in(text: &[u8]) -> u64 {
    text.iter()
        .filter(|byte| byte.is_ascii_digit())
        .fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

/// Bytes that a message without results may have.
const CAPACITY: usize = 16384;

/// A message being written.
struct Message<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

impl<'a> Message<'a> {
    /// One with its first line.
    fn new(buffer: &'a mut [u8]) -> Message<'a> {
        let mut message = Message { buffer, length: 0 };
        message.line(MAGIC);
        message
    }

    /// One with the stamps that every probe takes.
    fn begin(buffer: &'a mut [u8], main: u64) -> Message<'a> {
        let mut message = Message::new(buffer);
        message.number("entry", entry::stamp());
        message.number("main", main);
        message
    }

    /// Ends it, and gives all of it.
    fn finish(&mut self) -> &[u8] {
        self.number("ready", raw::monotonic());
        self.line("end");
        &self.buffer[..self.length]
    }

    fn write_out(&mut self) -> ! {
        match raw::write_all(1, self.finish()) {
            Ok(()) => raw::exit(0),
            Err(_) => raw::exit(3),
        }
    }

    /// The first process of a container is the one with the id 1 where process ids are the container's
    /// own. Its mask tells whether SIGTERM waits for it: sent before it is ready, it would be lost.
    fn init(&mut self) {
        self.file("init", c"/proc/1/status", |line, _| line.starts_with(b"SigBlk:").then_some(line));
    }

    /// Reads back from inside what the subject was asked to apply, its limits too where the detail asks for
    /// them.
    fn treatment(&mut self, detail: Option<&CStr>) {
        let (user, group) = raw::user_and_group();
        self.number("uid", user as u64);
        self.number("gid", group as u64);
        self.number("seccomp", raw::prctl(libc::PR_GET_SECCOMP, 0).unwrap_or(usize::MAX) as u64);
        self.number("no_new_privs", raw::prctl(libc::PR_GET_NO_NEW_PRIVS, 0).unwrap_or(usize::MAX) as u64);
        if let Some(effective) = raw::effective_capabilities() {
            self.number("capabilities", effective);
        }
        let mut link = [0u8; 64];
        for (name, path) in NAMESPACES {
            if let Ok(length) = readlinkat_raw(CWD, path, &mut link) {
                self.number(name, digits_in(&link[..length]));
            }
        }
        let seen = |(controller, path, kind)| Some((controller, raw::inode_on(path, kind)?));
        if let Some((controller, inode)) = CGROUP_DIRECTORIES.into_iter().find_map(seen) {
            self.push(b"cgroup_inode.");
            self.number(controller, inode);
        }
        self.file("cgroup_path", c"/proc/self/cgroup", |line, _| Some(line));
        self.file("uid_map", c"/proc/self/uid_map", |line, _| Some(line));
        self.file("interfaces", c"/proc/self/net/dev", interface);
        self.file("mounts", c"/proc/self/mountinfo", |line, _| tells_the_root(line).then_some(line));
        if detail.map(CStr::to_bytes) == Some(LIMITS.as_bytes()) {
            limits::read(self);
        }
    }

    /// Appends what fits. A message that lost its end is refused by its reader, not misread.
    fn push(&mut self, bytes: &[u8]) {
        let fitting = (self.buffer.len() - self.length).min(bytes.len());
        self.buffer[self.length..self.length + fitting].copy_from_slice(&bytes[..fitting]);
        self.length += fitting;
    }

    fn line(&mut self, text: &str) {
        self.push(text.as_bytes());
        self.push(b"\n");
    }

    /// A name, and what is said by it.
    fn named(&mut self, name: &str, text: &[u8]) {
        for part in [name.as_bytes(), b" ", text, b"\n"] {
            self.push(part);
        }
    }

    fn number(&mut self, name: &str, value: u64) {
        let mut digits = [0u8; 20];
        let mut first = digits.len();
        let mut rest = value;
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.named(name, &digits[first..]);
    }

    /// What `keep` takes of the lines of a file (given the line and how many were kept), each with a
    /// name before it. Lines longer than the buffer are left out; unreadable files have no lines.
    fn file(&mut self, name: &str, path: &CStr, keep: fn(&[u8], usize) -> Option<&[u8]>) {
        let Ok(fd) = raw::open(path) else { return };
        let mut buffer = [0u8; 4096];
        let mut filled = 0;
        let mut kept = 0;
        while let Ok(count @ 1..) = raw::read(fd, &mut buffer[filled..]) {
            filled += count;
            let mut done = 0;
            while let Some(length) = buffer[done..filled].iter().position(|&byte| byte == b'\n') {
                let line = &buffer[done..done + length];
                if let Some(part) = keep(line, kept) {
                    kept += 1;
                    self.named(name, part);
                }
                done += length + 1;
            }
            buffer.copy_within(done..filled, 0);
            filled -= done;
            if filled == buffer.len() {
                filled = 0;
            }
        }
        raw::close(fd);
    }
}

/// Lets works write text.
impl core::fmt::Write for Message<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// Whether a line of `mountinfo` is about the root, for its filesystem and options, or about the files that engines
/// lay over `/etc`, whose source names the container. All others stay inside, since every byte of the message
/// passes through the engine that is measured.
fn tells_the_root(line: &[u8]) -> bool {
    let mount_point = line.split(|&byte| byte == b' ').nth(4);
    matches!(mount_point, Some(b"/" | b"/etc/hostname" | b"/etc/hosts" | b"/etc/resolv.conf"))
}

#[cfg(test)]
mod tests {
    use super::tells_the_root;

    #[test]
    fn only_the_root_and_the_files_of_engines_are_passed_on() {
        let line = |point: &str| format!("36 35 98:0 /x {point} rw,noatime - ext4 /dev/root rw");
        assert!(tells_the_root(line("/").as_bytes()));
        assert!(tells_the_root(line("/etc/hostname").as_bytes()));
        assert!(!tells_the_root(line("/proc").as_bytes()));
        assert!(!tells_the_root(b""));
    }
}
