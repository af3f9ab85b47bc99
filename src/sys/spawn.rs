//! Starts a program as cheaply as the kernel allows and waits for it without polling.
//!
//! `posix_spawn` shares the parent's memory until the program is executed, so dunnage's own size does not
//! affect the measurement. Output goes to pipes that are drained only after the end, or every quarter of a
//! second if a program writes so much that it would block: a reader that wakes up in the middle of a launch
//! would compete with it. Only if the output is part of the question (`Reading::AtOnce`, `Reading::For` a
//! line) is it read as it arrives. A program of another user, or in its own cgroups, is started in the same
//! way by a direct clone (`birth`). Deliberately absent: shells, and threads.

mod attributes;
mod output;

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::event::PollFd;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use self::attributes::{Actions, Attributes};
use self::output::{Awaited, KEPT_OUTPUT, Output};
pub use self::output::{Line, Reading};
use super::birth::{self, Stack};
use super::bounds::Bounds;
use super::cgroup::{Birth, CgroupPlan, Version};
pub use super::child::Status;
pub(in crate::sys) use super::child::{c_string, reap};
use super::identity::{Hidden, Identity};
use super::signals::Interrupts;
use super::socket::{Patience, READABLE, Stopped, Waited};
use super::steps::{self, Step};
use super::{clock, pidfd};
use crate::units::{Nanos, Stamp};

/// How long a program may wait with full pipes before they are drained.
const DRAIN_EVERY: Nanos = Nanos::from_millis(250);
/// The same for a program that has just filled them.
const DRAIN_BUSY: Nanos = Nanos::from_millis(5);

/// The cgroups of this name.
#[derive(Debug)]
struct Place {
    plan: CgroupPlan,
    name: String,
}

/// A program with its arguments and environment, converted once and started many times.
#[derive(Debug, Clone)]
pub struct Program {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    identity: Option<Arc<Identity>>,
    bounds: Option<Arc<Bounds>>,
    input: Option<Arc<OwnedFd>>,
    blocked: Option<i32>,
    place: Option<Arc<Place>>,
}

impl Program {
    /// Executes `path` with `arguments` (without the program's own name) and the environment of this process.
    pub fn new<S: AsRef<OsStr>>(path: &Path, arguments: impl IntoIterator<Item = S>) -> io::Result<Program> {
        let environment = std::env::vars_os().map(|(key, value)| {
            let mut entry = key;
            entry.push("=");
            entry.push(value);
            entry
        });
        let first = c_string(path.as_os_str())?;
        let rest = arguments.into_iter().map(|argument| c_string(argument.as_ref()));
        Ok(Program {
            path: first.clone(),
            arguments: std::iter::once(Ok(first)).chain(rest).collect::<io::Result<_>>()?,
            environment: environment.map(|entry| c_string(&entry)).collect::<io::Result<_>>()?,
            identity: None,
            bounds: None,
            blocked: None,
            place: None,
            input: None,
        })
    }

    /// The same program with only this environment (`KEY=value`).
    pub fn with_environment<S: AsRef<OsStr>>(mut self, entries: &[S]) -> io::Result<Program> {
        self.environment = entries.iter().map(|entry| c_string(entry.as_ref())).collect::<io::Result<_>>()?;
        Ok(self)
    }

    /// The same program with this variable, which replaces any with the same name.
    pub fn with_variable(mut self, name: &str, value: &OsStr) -> io::Result<Program> {
        let mut entry = OsString::from(format!("{name}="));
        self.environment.retain(|own| !own.to_bytes().starts_with(entry.as_bytes()));
        entry.push(value);
        self.environment.push(c_string(&entry)?);
        Ok(self)
    }

    /// The same program, started with SIGCHLD blocked: it also receives one that came before it began to
    /// listen.
    pub fn keeping_ends_of_children(self) -> Program {
        Program { blocked: Some(libc::SIGCHLD), ..self }
    }

    /// The same program as another user.
    pub fn with_identity(self, identity: &Arc<Identity>) -> Program {
        Program { identity: Some(identity.clone()), ..self }
    }

    /// The same program with these limits instead of dunnage's.
    pub fn bounded(self, bounds: &Bounds) -> Program {
        Program { bounds: Some(Arc::new(bounds.clone())), ..self }
    }

    /// The same program in the cgroups with this name, before its first instruction. The caller makes and
    /// removes them.
    pub fn in_cgroups(self, plan: &CgroupPlan, name: &str) -> Program {
        let place = Place { plan: plan.clone(), name: name.to_owned() };
        Program { place: Some(Arc::new(place)), ..self }
    }

    /// The same program with this file as its standard input, from the current position.
    pub fn reading(self, input: OwnedFd) -> Program {
        Program { input: Some(Arc::new(input)), ..self }
    }

    /// The command line as a user would type it, for messages.
    pub fn shown(&self) -> String {
        let words: Vec<_> = self.arguments.iter().map(|word| quoted(&word.to_string_lossy())).collect();
        words.join(" ")
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The standard streams of a child: empty input, and pipes for its output.
#[derive(Debug)]
pub(in crate::sys) struct Streams {
    stdout: Output,
    stderr: Output,
    child: [OwnedFd; 3],
}

impl Streams {
    pub fn new() -> io::Result<Streams> {
        let (stdout, stdout_writer) = Output::pipe()?;
        let (stderr, stderr_writer) = Output::pipe()?;
        let null = std::fs::File::open("/dev/null")?;
        Ok(Streams { stdout, stderr, child: [null.into(), stdout_writer, stderr_writer] })
    }

    /// The child's ends: input, output, error.
    pub fn of_child(&self) -> [RawFd; 3] {
        self.child.each_ref().map(AsRawFd::as_raw_fd)
    }
}

/// A started program that has not been waited for.
#[derive(Debug)]
pub struct Child {
    /// Its process id, as dunnage sees it.
    pub pid: i32,
    /// Taken right before the system call that starts it.
    pub spawned: Stamp,
    pidfd: OwnedFd,
    stdout: Output,
    stderr: Output,
    reading: Reading,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Taken right before the system call that started it.
    pub spawned: Stamp,
    /// Taken right after the kernel reported its end.
    pub returned: Stamp,
    /// How it ended.
    pub status: Status,
    /// The first mebibyte of its standard output.
    pub stdout: Vec<u8>,
    /// The first mebibyte of its standard error.
    pub stderr: Vec<u8>,
    /// The number of bytes on its standard output, if counted.
    pub written: Option<u64>,
    /// When the line that is waited for arrived.
    pub came: Option<Stamp>,
}

/// Why waiting stopped before the program ended. It has been killed and reaped.
#[derive(Debug)]
pub enum Unfinished {
    /// The time allowed ran out.
    TimedOut {
        /// Its standard output up to then.
        stdout: Vec<u8>,
        /// Its standard error up to then.
        stderr: Vec<u8>,
    },
    /// The user interrupted.
    Interrupted,
    /// The kernel refused to wait.
    Failed(io::Error),
}

fn pointers(strings: &[CString]) -> Vec<*mut libc::c_char> {
    strings.iter().map(|one| one.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect()
}

/// Starts a program; its input is empty unless given, and its output is collected.
pub fn start(program: &Program) -> io::Result<Child> {
    let streams = Streams::new()?;
    let mut ends = streams.of_child();
    if let Some(input) = &program.input {
        ends[0] = input.as_raw_fd();
    }
    let (pid, spawned) = match (&program.place, &program.identity, &program.bounds) {
        (None, None, None) => program.spawned(ends)?,
        _ => program.cloned(ends)?,
    };
    Child::adopt(pid, spawned, streams)
}

/// Each returns the process id, and the time right before the clone.
impl Program {
    fn spawned(&self, streams: [RawFd; 3]) -> io::Result<(i32, Stamp)> {
        let actions = Actions::new(streams)?;
        let attributes = Attributes::new(self.blocked)?;
        let arguments = pointers(&self.arguments);
        let environment = pointers(&self.environment);
        let mut pid = 0;
        let spawned = clock::now();
        // SAFETY: all strings live in `self`, the arrays end with a null pointer, attributes and actions are
        // initialised.
        let result = unsafe {
            libc::posix_spawn(
                &mut pid,
                self.path.as_ptr(),
                &actions.0,
                &attributes.0,
                arguments.as_ptr(),
                environment.as_ptr(),
            )
        };
        attributes::check(result)?;
        Ok((pid, spawned))
    }

    /// The same with a direct clone: `posix_spawn` can change neither user, cgroup nor limits.
    fn cloned(&self, streams: [RawFd; 3]) -> io::Result<(i32, Stamp)> {
        let mut stack = if self.identity.is_some() { Stack::watched()? } else { Stack::new()? };
        let mut steps = Vec::new();
        let mut birthplace: Option<OwnedFd> = None;
        if let Some(place) = &self.place {
            birthplace = place.birthplace()?;
            let born_there = if birthplace.is_some() { Birth::Inside } else { Birth::Outside };
            steps.extend(place.plan.entering(&place.name, born_there));
        }
        steps.extend(self.bounds.iter().flat_map(|bounds| bounds.steps()));
        if let Some(identity) = &self.identity {
            c_string(identity.directory.as_os_str())?;
            steps.extend(identity.steps());
        }
        // What `posix_spawn` does in all other cases.
        steps.push(Step::call("make session", "", libc::SYS_setsid, []));
        steps.extend(steps::set_up_streams(streams));
        steps.extend(self.identity.iter().flat_map(|_| steps::without_handlers()));
        steps.extend(steps::clean_signals());
        let path = Path::new(OsStr::from_bytes(self.path.to_bytes()));
        steps.push(Step::execute(path, &self.arguments, &self.environment));
        let _hidden = self.identity.as_ref().map(|_| Hidden::begin());
        let spawned = clock::now();
        let born = birth::give_birth(&mut stack, 0, birthplace.as_ref(), &steps);
        Ok((born?, spawned))
    }
}

impl Place {
    /// The version 2 cgroup to be born in, if the kernel supports it.
    fn birthplace(&self) -> io::Result<Option<OwnedFd>> {
        let second = self.plan.of_version(|version| *version == Version::V2).version_2(&self.name);
        match second.filter(|_| birth::possible_birth() == Birth::Inside) {
            Some(directory) => Ok(Some(std::fs::File::open(directory)?.into())),
            None => Ok(None),
        }
    }
}

impl Child {
    /// Takes ownership of a child of this process that was started with these streams.
    pub(in crate::sys) fn adopt(pid: i32, spawned: Stamp, streams: Streams) -> io::Result<Child> {
        match pidfd::open(pid) {
            Ok(pidfd) => {
                let Streams { stdout, stderr, .. } = streams;
                Ok(Child { pid, spawned, pidfd, stdout, stderr, reading: Reading::Late })
            }
            Err(error) => {
                kill_group(pid);
                reap(pid).ok();
                Err(error)
            }
        }
    }

    /// The same, with its output read in this way.
    pub fn read(mut self, reading: Reading) -> Child {
        if let Reading::For(line) = &reading {
            for output in [&mut self.stdout, &mut self.stderr] {
                output.awaited = Some(Awaited { line: line.clone(), begun: Vec::new(), came: None });
            }
        }
        Child { reading, ..self }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        pidfd::signal(&self.pidfd, signal)
    }

    /// Waits until it ends. After an interrupt it has a few seconds left, after a second one none. At the
    /// deadline it and its process group are killed; the caller removes what it started elsewhere.
    pub fn wait(mut self, allowed: Nanos, interrupts: Option<&Interrupts>) -> Result<Ended, Unfinished> {
        let mut patience = Patience::new(allowed, interrupts);
        let mut drain_in = DRAIN_EVERY;
        let stopped = loop {
            match self.next(&mut patience, drain_in) {
                Ok(Waited::Ready) => return self.collect().map_err(Unfinished::Failed),
                Ok(Waited::Nothing) => {
                    let full = self.stdout.drain() + self.stderr.drain() >= KEPT_OUTPUT / 16;
                    drain_in = if full { DRAIN_BUSY } else { DRAIN_EVERY };
                }
                Err(stopped) => break stopped,
            }
        };
        kill_group(self.pid);
        reap(self.pid).map_err(Unfinished::Failed)?;
        match stopped {
            Stopped::Interrupted => Err(Unfinished::Interrupted),
            _ => Err(Unfinished::TimedOut { stdout: self.stdout.finish(), stderr: self.stderr.finish() }),
        }
    }

    /// Sleeps until it ends, or for this long; meanwhile reads output that must be read at once.
    fn next(&mut self, patience: &mut Patience<'_>, slice: Nanos) -> Result<Waited, Stopped> {
        let is_read = |output: &&Output| self.reading.is_at_once() && !output.is_over;
        let readers = [&self.stdout, &self.stderr].into_iter().filter(is_read).map(|output| &output.reader);
        let watched: Vec<_> = readers.chain([&self.pidfd]).map(|one| PollFd::new(one, READABLE)).collect();
        if watched.len() == 1 {
            return patience.wait(&self.pidfd, READABLE, slice);
        }
        patience.wait_for(&watched, slice)?;
        self.drain();
        patience.wait(&self.pidfd, READABLE, Nanos(0))
    }

    /// Reads what it has written so far, so that it never blocks on a full pipe.
    pub fn drain(&mut self) {
        self.stdout.drain();
        self.stderr.drain();
    }

    /// What it has written so far, standard output first.
    pub fn output(&mut self) -> String {
        self.drain();
        [&self.stdout, &self.stderr].map(|one| String::from_utf8_lossy(&one.kept)).concat()
    }

    /// Sends SIGTERM and waits; kills it after `allowed`.
    pub fn end(self, allowed: Nanos) -> Result<Ended, Unfinished> {
        self.signal(libc::SIGTERM).ok();
        self.wait(allowed, None)
    }

    fn collect(mut self) -> io::Result<Ended> {
        let status = reap(self.pid)?;
        let returned = clock::now();
        self.drain();
        let came = [&self.stdout, &self.stderr].map(|one| one.awaited.as_ref().and_then(|line| line.came));
        Ok(Ended {
            came: came.into_iter().flatten().min(),
            spawned: self.spawned,
            returned,
            status,
            written: Some(self.stdout.count),
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
        })
    }
}

/// Readable when the child has ended.
impl AsFd for Child {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

fn kill_group(pid: i32) {
    // Only this child and the process group that it leads.
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = kill_process(pid, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(path: &str, arguments: &[&str], allowed: Nanos) -> Result<Ended, Unfinished> {
        let interrupts = Interrupts::install().unwrap();
        let program = Program::new(Path::new(path), arguments).unwrap();
        start(&program).unwrap().wait(allowed, Some(&interrupts))
    }

    #[test]
    fn a_program_has_a_session_to_itself_and_so_a_share_of_the_cpus() {
        let says = |place: &str| {
            String::from_utf8(run("/bin/cat", &[place], Nanos::from_millis(5000)).unwrap().stdout)
        };
        let stat = says("/proc/self/stat").unwrap();
        let pid = stat.split(' ').next().unwrap();
        assert_eq!(stat.rsplit(") ").next().unwrap().split(' ').nth(3), Some(pid), "{stat}");
        // A kernel without autogroups does not have this file.
        if let Ok(ours) = std::fs::read_to_string("/proc/self/autogroup") {
            assert_ne!(says("/proc/self/autogroup").unwrap(), ours);
        }
    }

    #[test]
    fn output_and_status_of_a_program_arrive() {
        let ended =
            run("/bin/sh", &["-c", "echo out; echo err >&2; exit 3"], Nanos::from_millis(5000)).unwrap();
        assert_eq!(ended.status, Status::Exited(3));
        assert_eq!((ended.stdout.as_slice(), ended.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
        assert!(ended.returned > ended.spawned);
    }

    #[test]
    fn a_program_that_writes_more_than_a_pipe_holds_neither_blocks_nor_fills_memory() {
        let script = "head -c 3000000 /dev/zero; exit 0";
        let ended = run("/bin/sh", &["-c", script], Nanos::from_millis(60_000)).unwrap();
        assert_eq!(ended.status, Status::Exited(0));
        assert_eq!(ended.stdout.len(), KEPT_OUTPUT);
    }

    #[test]
    fn what_is_read_at_once_comes_whole_and_nobody_waits_for_a_full_pipe() {
        let program =
            Program::new(Path::new("/bin/sh"), ["-c", "head -c 30000000 /dev/zero; exit 4"]).unwrap();
        let child = start(&program).unwrap().read(Reading::AtOnce);
        let ended = child.wait(Nanos::from_millis(60_000), None).unwrap();
        assert_eq!((ended.status, ended.written), (Status::Exited(4), Some(30_000_000)));
        // Thirty full pipes of a mebibyte, a quarter of a second each, would take seven seconds.
        assert!(ended.returned.since(ended.spawned) < Nanos::from_millis(5000));
        let closed = Program::new(Path::new("/bin/sh"), ["-c", "exec >&- 2>&-; sleep 0.1"]).unwrap();
        let child = start(&closed).unwrap().read(Reading::AtOnce);
        assert_eq!(child.wait(Nanos::from_millis(60_000), None).unwrap().status, Status::Exited(0));
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_group_and_its_words_are_kept() {
        let unfinished =
            run("/bin/sh", &["-c", "echo started; sleep 100"], Nanos::from_millis(200)).unwrap_err();
        let Unfinished::TimedOut { stdout, .. } = unfinished else { panic!("{unfinished:?}") };
        assert_eq!(stdout, b"started\n");
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error() {
        let program = Program::new(Path::new("/nonexistent/program"), [""; 0]).unwrap();
        assert_eq!(start(&program).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn command_lines_are_shown_as_they_would_be_typed() {
        let program = Program::new(Path::new("/bin/echo"), ["a b", "it's", "x=1"]).unwrap();
        assert_eq!(program.shown(), r"/bin/echo 'a b' 'it'\''s' x=1");
    }
}
