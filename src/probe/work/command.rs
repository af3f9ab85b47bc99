//! Starts somebody's command and waits for it, as a shell in the container would, with nothing between:
//! changes directory, adds to the environment, forks, executes, reaps. Only from the fork to the reaped end
//! is timed.
//!
//! What it writes to standard output goes to `/dev/null`; of standard error the last bytes are kept, for
//! the words of a failure. Whatever the command leaves running when it has ended is ended here.
//!
//! Deliberately absent: a shell (who wants one names it), a file that is no program but whose first line
//! could be a script's (execvp tries a shell, execve does not), and waiting for what was left running.

use core::ffi::CStr;

use sha2::{Digest, Sha256};

use super::{Report, Words};
use crate::sys::command::{self, List, Patience, Program, Reaped, Strings};
use crate::sys::raw;

/// What is kept of standard error.
const KEPT: usize = 2000;
/// The most variables that a command can have.
const VARIABLES: usize = 2048;
/// The longest path of a program.
const PATH: usize = 4096;
/// Where programs are looked for that no variable names a place for, as execvp does.
const USUAL_PLACES: &[u8] = b"/bin:/usr/bin";
/// How often what was left running is looked for.
const LOOKS: usize = 100;

/// `command run|identify DIRECTORY COUNT NAME=VALUE… WORD…`: an empty directory is where we are; without
/// words nothing is started, and what remains is a start by itself. `identify` reports which file would be
/// executed and its SHA-256, and starts nothing.
pub fn work(words: Words, report: &mut Report<'_>) {
    let (Some(mode), Some(directory), Some(count)) = (words.get(0), words.get(1), words.number(2)) else {
        return report.refuse("`command` needs a mode, a directory and a count of variables");
    };
    let first = 3 + count as usize;
    if !directory.is_empty()
        && let Err(errno) = command::change_directory(directory)
    {
        return report.result("directory_refused", errno.into());
    }
    let Some(name) = words.get(first) else { return };
    let mut list = List::<'_, VARIABLES>::default();
    if !fill(&mut list, words, 3..first) {
        return report.refuse("the command has more variables than the probe can hand on");
    }
    let environment = list.strings();
    let mut place = [0u8; PATH];
    let path = match find(name, environment, &mut place) {
        Ok(path) => path,
        Err(errno) => return report.result("not_executed", errno.into()),
    };
    report.note("program", path.to_bytes());
    if mode == c"identify" {
        return identify(path, report);
    }
    run(path, words.strings(first), environment, report);
}

/// Our own environment with these words in place of the variables that they name; false where that is too
/// much.
fn fill<'a>(list: &mut List<'a, VARIABLES>, words: Words<'a>, own: core::ops::Range<usize>) -> bool {
    let own = || own.clone().filter_map(|index| words.get(index));
    let inherited = Strings::environment().iter().map(|entry| -> &'a CStr { entry });
    let mut all = inherited.filter(|entry| !own().any(|other| name(other) == name(entry))).chain(own());
    all.all(|entry| list.push(entry))
}

fn name(entry: &CStr) -> Option<&[u8]> {
    entry.to_bytes().split(|byte| *byte == b'=').next()
}

/// The file that a name means: with a slash itself, else the first on the search path that may be executed.
fn find<'a>(name: &CStr, environment: Strings<'_>, place: &'a mut [u8; PATH]) -> Result<&'a CStr, i32> {
    let name = name.to_bytes();
    if name.is_empty() {
        return Err(libc::ENOENT);
    }
    if name.contains(&b'/') {
        let path = joined(b"", name, place).ok_or(libc::ENAMETOOLONG)?;
        return command::may_be_executed(path).map(|()| path);
    }
    let listed = environment.iter().find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="));
    let mut worst = libc::ENOENT;
    let mut found = None;
    for (index, directory) in listed.unwrap_or(USUAL_PLACES).split(|byte| *byte == b':').enumerate() {
        let Some(path) = joined(directory, name, place) else { continue };
        match command::may_be_executed(path) {
            Ok(()) => {
                found = Some(index);
                break;
            }
            Err(libc::EACCES) => worst = libc::EACCES,
            Err(_) => {}
        }
    }
    let index = found.ok_or(worst)?;
    let directory = listed.unwrap_or(USUAL_PLACES).split(|byte| *byte == b':').nth(index);
    joined(directory.unwrap_or_default(), name, place).ok_or(worst)
}

/// A path of a directory and a name, as a C string.
fn joined<'a>(directory: &[u8], name: &[u8], place: &'a mut [u8; PATH]) -> Option<&'a CStr> {
    let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
    let mut at = 0;
    for part in [directory, slash, name, b"\0"] {
        place.get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    CStr::from_bytes_with_nul(&place[..at]).ok()
}

fn identify(path: &CStr, report: &mut Report<'_>) {
    let fd = match raw::open(path) {
        Ok(fd) => fd,
        // Who may execute a file need not be allowed to read it.
        Err(errno) => return report.result("not_read", errno.into()),
    };
    let mut sum = Sha256::new();
    let mut buffer = [0u8; 65536];
    loop {
        match raw::read(fd, &mut buffer) {
            Ok(0) => break,
            Ok(count) => sum.update(&buffer[..count]),
            Err(libc::EINTR) => {}
            Err(errno) => return report.result("not_read", errno.into()),
        }
    }
    raw::close(fd);
    let mut hexadecimal = [0u8; 64];
    for (index, byte) in sum.finalize().iter().enumerate() {
        for (half, digit) in [byte >> 4, byte & 15].into_iter().enumerate() {
            hexadecimal[2 * index + half] = b"0123456789abcdef"[digit as usize];
        }
    }
    report.note("program_sha256", &hexadecimal);
}

fn run(path: &CStr, arguments: Strings<'_>, environment: Strings<'_>, report: &mut Report<'_>) {
    match start_and_wait(path, arguments, environment, report) {
        Ok(()) => {}
        Err(errno) => report.result("not_started", errno.into()),
    }
}

fn start_and_wait(
    path: &CStr,
    arguments: Strings<'_>,
    environment: Strings<'_>,
    report: &mut Report<'_>,
) -> Result<(), i32> {
    let ends = command::collect_children()?;
    let [errors, errors_writer] = command::pipe()?;
    let [complaint, complaint_writer] = command::pipe()?;
    let (input, output) = (raw::open(c"/dev/null")?, command::open_for_writing(c"/dev/null")?);
    // A child that does nothing shows what a child has of us before it executes anything.
    let empty = command::fork(None)?;
    let empty = command::reap(empty, Patience::Waits)?;
    let program = Program {
        path,
        arguments,
        environment,
        streams: [input, output, errors_writer],
        complaint: complaint_writer,
    };
    let began = raw::monotonic();
    let pid = command::fork(Some(&program))?;
    raw::close(errors_writer);
    raw::close(complaint_writer);
    let mut said = Tail::new();
    let reaped = wait(pid, ends, errors, &mut said)?;
    let ended = raw::monotonic();
    said.read_from(errors);
    let mut errno = [0u8; 4];
    if let Ok(4) = raw::read(complaint, &mut errno) {
        report.result("not_executed", i32::from_ne_bytes(errno).into());
        return Ok(());
    }
    report.result("command", (ended - began) as i64);
    report.result("user", reaped.user * 1000);
    report.result("system", reaped.system * 1000);
    report.result("most_memory", reaped.most_memory);
    report.result("own_memory", empty.map_or(0, |empty| empty.most_memory));
    report.result("status", reaped.status.into());
    if reaped.status != 0 {
        said.tell(report);
    }
    report.result("left_running", end_what_is_left());
    Ok(())
}

/// Waits for the command, reading what it says meanwhile, so that it never waits for us.
fn wait(pid: i32, ends: i32, mut errors: i32, said: &mut Tail) -> Result<Reaped, i32> {
    loop {
        let [ended, spoke] = command::wait_for_either([ends, errors]);
        if spoke && !said.read_from(errors) {
            errors = -1;
        }
        if ended {
            let mut record = [0u8; 128];
            let _ = raw::read(ends, &mut record);
            if let Some(reaped) = command::reap(pid, Patience::Looks)? {
                return Ok(reaped);
            }
        }
    }
}

/// Ends what the command left running, and what that left; gives how many.
fn end_what_is_left() -> i64 {
    let mut ended = 0;
    for _ in 0..LOOKS {
        let Ok(fd) = raw::open(c"/proc/thread-self/children") else { break };
        let mut listed = [0u8; 4096];
        let length = raw::read(fd, &mut listed).unwrap_or(0);
        raw::close(fd);
        let numbers = listed[..length]
            .split(|byte| *byte == b' ')
            .filter_map(|word| core::str::from_utf8(word).ok()?.parse::<i32>().ok().filter(|pid| *pid > 1));
        let mut any = false;
        for pid in numbers {
            any = true;
            command::kill(pid);
            ended += i64::from(matches!(command::reap(pid, Patience::Waits), Ok(Some(_))));
        }
        if !any {
            break;
        }
    }
    ended
}

/// The last bytes of something.
struct Tail {
    bytes: [u8; KEPT],
    /// Bytes that came, the forgotten ones among them.
    came: usize,
}

impl Tail {
    fn new() -> Tail {
        Tail { bytes: [0; KEPT], came: 0 }
    }

    /// Reads what is there; false at the end.
    fn read_from(&mut self, fd: i32) -> bool {
        let mut chunk = [0u8; 16384];
        loop {
            match raw::read(fd, &mut chunk) {
                Ok(0) => return false,
                Ok(count) => self.take(&chunk[..count]),
                Err(_) => return true,
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let lost = bytes.len().saturating_sub(KEPT);
        self.came += lost;
        for byte in &bytes[lost..] {
            self.bytes[self.came % KEPT] = *byte;
            self.came += 1;
        }
    }

    fn tell(&mut self, report: &mut Report<'_>) {
        if self.came > KEPT {
            self.bytes.rotate_left(self.came % KEPT);
        }
        report.note("said", &self.bytes[..self.came.min(KEPT)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_kept_in_their_order() {
        let mut tail = Tail::new();
        for number in 0..3000u32 {
            tail.take(&number.to_ne_bytes());
        }
        tail.bytes.rotate_left(tail.came % KEPT);
        assert_eq!(tail.bytes[KEPT - 4..], 2999u32.to_ne_bytes());
        assert_eq!(tail.bytes[..4], 2500u32.to_ne_bytes());
        let mut tail = Tail::new();
        tail.take(&[7; KEPT + 5]);
        tail.take(b"end");
        tail.bytes.rotate_left(tail.came % KEPT);
        assert_eq!(&tail.bytes[KEPT - 4..], b"\x07end");
    }

    #[test]
    fn a_name_is_looked_for_as_execvp_does() {
        let mut place = [0u8; PATH];
        let mut list = List::<4>::default();
        assert!(list.push(c"A=1") && list.push(c"PATH=/nonexistent:/etc:/bin"));
        let environment = list.strings();
        assert_eq!(find(c"sh", environment, &mut place), Ok(c"/bin/sh"));
        assert_eq!(find(c"/bin/sh", environment, &mut place), Ok(c"/bin/sh"));
        assert_eq!(find(c"passwd-of-nobody", environment, &mut place), Err(libc::ENOENT));
        // There, and not to be executed.
        assert_eq!(find(c"group", environment, &mut place), Err(libc::EACCES));
        assert_eq!(find(c"", environment, &mut place), Err(libc::ENOENT));
    }
}
