//! Starts a user's command and waits for it, as a shell in the container would, with nothing in between:
//! changes directory, adds to the environment, forks, executes, reaps. Only the time from the fork to the
//! reaped end is measured.
//!
//! Its output goes where the probe's own would: to the caller that started the container, through the engine.
//! So the probe's message goes to a file. With `discard`, standard output is `/dev/null` instead, and the
//! last bytes of standard error are kept for the words of a failure. Processes that the command leaves
//! running when it ends are killed.
//!
//! A command that is a service (`service`) gets SIGTERM once it is ready, or is not ready in time.
//!
//! Deliberately absent: a shell (users who want one name it), scripts without `#!` (execvp tries a shell,
//! execve does not), and waiting for processes that were left running.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use dunnage_orders::work::{Cached, Command, End, Ended, Mode, Ran, Spent, Took};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Access, FileType, Mode as Permissions, OFlags, access, fcntl_setfl, stat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, chdir, kill_process};
use sha2::{Digest, Sha256};

mod service;

use self::service::Service;
use super::{printable, unsupported};
use crate::outcome::Failure;
use crate::sys::cgroup::own;
use crate::sys::command::{self, Program, Reaped};
use crate::sys::{page_cache, raw};
use crate::units::Nanos;

/// How much of standard error is kept.
const KEPT: usize = 2000;
/// The search path without a variable `PATH`, as in execvp.
const USUAL_PLACES: &[u8] = b"/bin:/usr/bin";
/// How often to look for processes that were left running.
const LOOKS: usize = 100;

/// Runs the command, or says what of it would run. The message goes to the existing file, which first holds the variables,
/// each `NAME=VALUE` and a zero byte. A service has so long to get ready: until the port is open, or without one until the
/// host signals it. An empty directory is the current one.
pub fn work(order: &Command) -> Result<Ran, Failure> {
    let text =
        |word: &str| CString::new(word).map_err(|_| unsupported("a word of a command has a zero byte"));
    let (file, directory) = (text(&order.file)?, text(&order.directory)?);
    let words = order.words.iter().map(|word| text(word)).collect::<Result<Vec<_>, _>>()?;
    let arguments: Vec<&CStr> = words.iter().map(CString::as_c_str).collect();
    let own = variables_in(&file, order.variables).map_err(unsupported)?;
    let own: Vec<&CStr> = own.iter().map(CString::as_c_str).collect();
    let output = message_into(&file)
        .map_err(|errno| unsupported(format!("cannot open the file for the message: error {errno}")))?;
    let mut ran = Ran { program: None, sha256: None, cached: None, charged: None, end: End::NotAsked };
    ran.end = carry_out(order, [&file, &directory], [&arguments, &own], output, &mut ran);
    Ok(ran)
}

fn carry_out(
    order: &Command,
    [file, directory]: [&CStr; 2],
    [arguments, own]: [&[&CStr]; 2],
    output: OwnedFd,
    ran: &mut Ran,
) -> End {
    if !directory.is_empty()
        && let Err(errno) = chdir(directory)
    {
        return End::NoDirectory(errno.raw_os_error());
    }
    // The empty launch searches as well, so that both include the search.
    let Some(name) = arguments.first() else {
        ran.charged = Some(charged());
        return End::NotAsked;
    };
    let inherited = inherited(own);
    let environment: Vec<&CStr> =
        inherited.iter().map(CString::as_c_str).chain(own.iter().copied()).collect();
    let path = match find(name, &environment) {
        Ok(path) => path,
        Err(errno) => return End::NotExecuted(errno.raw_os_error()),
    };
    ran.program = Some(printable(path.to_bytes()));
    match order.mode {
        Mode::Identify => {
            // An executable file need not be readable.
            ran.sha256 =
                std::fs::read(path_of(&path)).ok().map(|bytes| format!("{:x}", Sha256::digest(&bytes)));
            return End::NotAsked;
        }
        Mode::Cold => ran.cached = Some(cached(path_of(&path))),
        Mode::Run => {}
    }
    let output = order.through.then_some(output);
    let service = match order.service.map(|ready| Service::awaited(file, ready)).transpose() {
        Ok(service) => service,
        Err(errno) => return End::NotStarted(errno.raw_os_error()),
    };
    if let Some(port) = service.as_ref().and_then(Service::open_port) {
        return End::PortTaken(port);
    }
    start_and_wait(&path, [arguments, &environment], output, service, ran).unwrap_or_else(End::NotStarted)
}

/// The variables that this file holds.
fn variables_in(file: &CStr, count: usize) -> Result<Vec<CString>, String> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let bytes =
        std::fs::read(path_of(file)).map_err(|error| format!("cannot read the variables: {error}"))?;
    let pairs = bytes.split_inclusive(|byte| *byte == 0);
    let all: Vec<CString> =
        pairs.filter_map(|pair| CStr::from_bytes_with_nul(pair).ok()).map(CStr::to_owned).collect();
    if all.len() == count { Ok(all) } else { Err(format!("there are {} of {count} variables", all.len())) }
}

/// Sends the message to this file; returns the previous standard output.
fn message_into(file: &CStr) -> Result<OwnedFd, i32> {
    let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC;
    let file = rustix::fs::open(file, flags, Permissions::empty()).map_err(Errno::raw_os_error)?;
    command::exchange_output(&file)
}

/// The probe's own environment without the variables that these words set.
fn inherited(own: &[&CStr]) -> Vec<CString> {
    let is_own = |name: &[u8]| {
        own.iter().any(|entry| entry.to_bytes().split(|byte| *byte == b'=').next() == Some(name))
    };
    let variables = std::env::vars_os().filter(|(name, _)| !is_own(name.as_bytes()));
    let entry = |(name, value): (OsString, OsString)| {
        CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
    };
    variables.filter_map(entry).collect()
}

/// The file for a name: the path itself if it has a slash, else the first executable one on the search path.
fn find(name: &CStr, environment: &[&CStr]) -> Result<CString, Errno> {
    let name = name.to_bytes();
    if name.is_empty() {
        return Err(Errno::NOENT);
    }
    let joined = |parts: &[&[u8]]| CString::new(parts.concat()).map_err(|_| Errno::INVAL);
    if name.contains(&b'/') {
        let path = joined(&[name])?;
        return may_be_executed(&path).map(|()| path);
    }
    let listed = environment.iter().find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="));
    let mut worst = Errno::NOENT;
    for directory in listed.unwrap_or(USUAL_PLACES).split(|byte| *byte == b':') {
        let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
        let path = joined(&[directory, slash, name])?;
        match may_be_executed(&path) {
            Ok(()) => return Ok(path),
            Err(Errno::ACCESS) => worst = Errno::ACCESS,
            Err(_) => {}
        }
    }
    Err(worst)
}

fn may_be_executed(path: &CStr) -> Result<(), Errno> {
    let about = stat(path)?;
    access(path, Access::EXEC_OK)?;
    if FileType::from_raw_mode(about.st_mode) == FileType::RegularFile { Ok(()) } else { Err(Errno::ACCESS) }
}

fn path_of(path: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(path.to_bytes()))
}

/// How many pages of the file are in the page cache, and its length. Reads none of it.
fn cached(path: &Path) -> Cached {
    let pages = page_cache::resident(path).ok().map(|pages| pages as u64);
    Cached { pages, bytes: path.metadata().map_or(0, |about| about.len()) }
}

/// The peak memory of its own cgroup, or why that is not known. The host knows who shares the cgroup.
fn charged() -> Result<u64, String> {
    own::peak_memory().map_err(str::to_owned)
}

/// With an `output` the command writes there, and to the probe's standard error.
fn start_and_wait(
    path: &CStr,
    words: [&[&CStr]; 2],
    output: Option<OwnedFd>,
    mut service: Option<Service>,
    ran: &mut Ran,
) -> Result<End, i32> {
    let ends = command::collect_children()?;
    let (errors, errors_writer) = pipe()?;
    let (mut complaint, complaint_writer) = pipe()?;
    let null = |flags| {
        rustix::fs::open(c"/dev/null", flags | OFlags::CLOEXEC, Permissions::empty())
            .map_err(Errno::raw_os_error)
    };
    let (input, nowhere) = (null(OFlags::RDONLY)?, null(OFlags::WRONLY)?);
    let streams = match &output {
        Some(output) => [input.as_raw_fd(), output.as_raw_fd(), 2],
        None => [&input, &nowhere, &errors_writer].map(AsRawFd::as_raw_fd),
    };
    let program = Program::new(path, words, streams, complaint_writer.as_raw_fd());
    // A child that does nothing shows how much memory a child has from the probe before it executes.
    let empty = command::fork(None)?;
    let empty = command::reap(empty, 0)?;
    let began = raw::monotonic();
    let pid = command::fork(Some(&program))?;
    drop((errors_writer, complaint_writer, output));
    let mut said = Tail { pipe: errors, bytes: Vec::new() };
    if let Some(service) = &mut service {
        service.begins(pid, began);
    }
    let reaped = wait(pid, &ends, &mut said, &mut service)?;
    let ended = raw::monotonic();
    said.read();
    let mut errno = [0u8; 4];
    if complaint.read_exact(&mut errno).is_ok() {
        return Ok(End::NotExecuted(i32::from_ne_bytes(errno)));
    }
    let took = match service {
        Some(service) => Took::Service(service.told()),
        None => {
            ran.charged = Some(charged());
            Took::Command(Spent {
                took: Nanos((ended - began) as i64),
                user: Nanos(reaped.user * 1000),
                system: Nanos(reaped.system * 1000),
                most_memory: reaped.most_memory,
                own_memory: empty.map_or(0, |empty| empty.most_memory),
            })
        }
    };
    let said = if reaped.status == 0 { String::new() } else { printable(&said.bytes) };
    let left_running = end_what_is_left();
    Ok(End::Ended(Ended { status: reaped.status, said, left_running, took }))
}

/// A pipe with close-on-exec ends; the reading end never blocks.
fn pipe() -> Result<(File, OwnedFd), i32> {
    let made = pipe_with(PipeFlags::CLOEXEC).and_then(|(reader, writer)| {
        fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        Ok((reader.into(), writer))
    });
    made.map_err(Errno::raw_os_error)
}

/// Waits for the command and meanwhile reads its output, so that it never waits for the probe.
fn wait(pid: i32, ends: &OwnedFd, said: &mut Tail, service: &mut Option<Service>) -> Result<Reaped, i32> {
    let mut goes_on = true;
    loop {
        let [ended, _, spoke] = {
            let told = service.as_ref().map_or(ends.as_fd(), Service::as_fd);
            let mut watched =
                [ends.as_fd(), told, said.pipe.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            let pause = service.as_ref().map(Service::pause);
            let _ = poll(&mut watched[..2 + usize::from(goes_on)], pause.as_ref());
            watched.map(|one| !one.revents().is_empty())
        };
        if spoke {
            goes_on = said.read();
        }
        if ended {
            let _ = rustix::io::read(ends, &mut [0u8; 128]);
            if let Some(reaped) = command::reap(pid, libc::WNOHANG)? {
                return Ok(reaped);
            }
        }
        if let Some(service) = service {
            service.look();
        }
    }
}

/// Kills what the command left running, and what that left; returns how many.
pub(super) fn end_what_is_left() -> u64 {
    let mut ended = 0;
    for _ in 0..LOOKS {
        let listed = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        let children = listed.split_whitespace().filter_map(|word| word.parse().ok());
        let children: Vec<i32> = children.filter(|pid| *pid > 1).collect();
        for pid in &children {
            let _ = Pid::from_raw(*pid).map(|pid| kill_process(pid, Signal::KILL));
            ended += u64::from(matches!(command::reap(*pid, 0), Ok(Some(_))));
        }
        if children.is_empty() {
            break;
        }
    }
    ended
}

/// The last bytes that come through a pipe.
struct Tail {
    pipe: File,
    bytes: Vec<u8>,
}

impl Tail {
    /// Reads what is available; false at the end.
    fn read(&mut self) -> bool {
        let mut chunk = [0u8; 16384];
        loop {
            match self.pipe.read(&mut chunk) {
                Ok(0) => return false,
                Ok(count) => self.take(&chunk[..count]),
                Err(_) => return true,
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.bytes.drain(..self.bytes.len().saturating_sub(KEPT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_kept_in_their_order() {
        let mut tail = Tail { pipe: pipe().unwrap().0, bytes: Vec::new() };
        for number in 0..3000u32 {
            tail.take(&number.to_ne_bytes());
        }
        assert_eq!(tail.bytes[KEPT - 4..], 2999u32.to_ne_bytes());
        assert_eq!(tail.bytes[..4], 2500u32.to_ne_bytes());
        tail.take(&[7; KEPT + 5]);
        tail.take(b"end");
        assert_eq!(&tail.bytes[KEPT - 4..], b"\x07end");
    }

    #[test]
    fn a_name_is_looked_for_as_execvp_does() {
        let find = |name| find(name, &[c"A=1", c"PATH=/nonexistent:/etc:/bin"]);
        assert_eq!(find(c"sh").as_deref(), Ok(c"/bin/sh"));
        assert_eq!(find(c"/bin/sh").as_deref(), Ok(c"/bin/sh"));
        assert_eq!(find(c"passwd-of-nobody"), Err(Errno::NOENT));
        // It exists, but cannot be executed.
        assert_eq!(find(c"group"), Err(Errno::ACCESS));
        assert_eq!(find(c""), Err(Errno::NOENT));
    }
}
