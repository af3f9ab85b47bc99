//! Starts a program as cheaply as the kernel allows and waits for it without polling.
//!
//! `posix_spawn` shares the parent's memory until the program is executed, so our own size does
//! not enter the measurement. Output goes to pipes that are emptied only after the end, or every
//! quarter of a second when a program writes so much that it would block: a reader that wakes up
//! in the middle of a launch would compete with it. A program of another user is started in the same
//! way by `identity`, one in cgroups of its own by `placed`. Deliberately absent: shells, and threads.

mod attributes;
mod foreign;
mod placed;

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use self::attributes::{Actions, Attributes};
pub use self::foreign::{Awaited, await_end};
pub use super::child::Status;
pub(in crate::sys) use super::child::{c_string, reap};
use super::identity::{self, Identity};
use super::signals::Interrupts;
use super::{clock, pidfd};
use crate::units::{Nanos, Stamp};

/// Output beyond this is read and thrown away.
const KEPT_OUTPUT: usize = 1 << 20;
/// How long a program may be left with full pipes before they are emptied.
const DRAIN_EVERY: Nanos = Nanos::from_millis(250);
/// The same for a program that has just been seen to fill them.
const DRAIN_BUSY: Nanos = Nanos::from_millis(5);

/// How long a program may go on after the person asked to stop. One that ends by itself leaves
/// nothing half made, as killing the client of a daemon may.
const GRACE: Nanos = Nanos::from_millis(5000);

/// A program with its arguments and environment, converted once and started many times.
#[derive(Debug, Clone)]
pub struct Program {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    identity: Option<Arc<Identity>>,
    input: Option<Arc<OwnedFd>>,
    blocked: Option<i32>,
    place: Option<Arc<placed::Place>>,
}

impl Program {
    /// `path` is executed with `arguments` (which do not include the program's own name) and the
    /// environment of this process.
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
            blocked: None,
            place: None,
            input: None,
        })
    }

    /// The same program with this environment (`KEY=value`) and no other.
    pub fn with_environment<S: AsRef<OsStr>>(mut self, entries: &[S]) -> io::Result<Program> {
        self.environment = entries.iter().map(|entry| c_string(entry.as_ref())).collect::<io::Result<_>>()?;
        Ok(self)
    }

    /// The same program, started with the end of its children blocked: it learns of one that came before it
    /// began to listen.
    pub fn keeping_ends_of_children(self) -> Program {
        Program { blocked: Some(libc::SIGCHLD), ..self }
    }

    /// The same program as somebody else.
    pub fn with_identity(self, identity: &Arc<Identity>) -> Program {
        Program { identity: Some(identity.clone()), ..self }
    }

    /// The same program with this file as its standard input, from where the file is read now.
    pub fn reading(self, input: OwnedFd) -> Program {
        Program { input: Some(Arc::new(input)), ..self }
    }

    /// The command line as a person would type it, for messages.
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

/// Both ends of a pipe whose ends close on exec and hold as much as an ordinary user may ask for.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors; on success both are new and ours.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// What a started program writes, collected on demand.
#[derive(Debug)]
pub struct Output {
    reader: OwnedFd,
    kept: Vec<u8>,
}

impl Output {
    /// A pipe: the collecting side, and the descriptor to give to a child.
    pub fn pipe() -> io::Result<(Output, OwnedFd)> {
        let (reader, writer) = pipe()?;
        // SAFETY: sets a flag and the size of a pipe that we own; a refused size leaves the old one.
        unsafe {
            libc::fcntl(reader.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK);
            libc::fcntl(reader.as_raw_fd(), libc::F_SETPIPE_SZ, KEPT_OUTPUT as libc::c_int);
        }
        Ok((Output { reader, kept: Vec::new() }, writer))
    }

    /// Takes what is in the pipe now, without waiting, and returns how many bytes that was.
    pub fn drain(&mut self) -> usize {
        let mut chunk = [0u8; 16384];
        let mut total = 0;
        loop {
            // SAFETY: the buffer is writable for its whole length.
            let count =
                unsafe { libc::read(self.reader.as_raw_fd(), chunk.as_mut_ptr().cast(), chunk.len()) };
            let Ok(count @ 1..) = usize::try_from(count) else { return total };
            total += count;
            let room = KEPT_OUTPUT - self.kept.len();
            self.kept.extend_from_slice(&chunk[..count.min(room)]);
        }
    }

    /// Everything collected so far.
    pub fn finish(mut self) -> Vec<u8> {
        self.drain();
        self.kept
    }
}

/// A started program that has not been waited for.
#[derive(Debug)]
pub struct Child {
    /// Its process id, as we see it.
    pub pid: i32,
    /// Taken right before the system call that starts it.
    pub spawned: Stamp,
    pidfd: OwnedFd,
    stdout: Output,
    stderr: Output,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Taken right before the system call that started it.
    pub spawned: Stamp,
    /// Taken right after the kernel said that it had ended.
    pub returned: Stamp,
    /// How it ended.
    pub status: Status,
    /// CPU time of the program and of the children that it waited for, from `wait4`: the
    /// scheduler's nanoseconds, cut to microseconds by the kernel.
    pub waited_cpu: Nanos,
    /// The first mebibyte of its standard output.
    pub stdout: Vec<u8>,
    /// The first mebibyte of its standard error.
    pub stderr: Vec<u8>,
}

/// Why waiting stopped before the program ended. It has been killed and reaped by then.
#[derive(Debug)]
pub enum Unfinished {
    /// The time allowed ran out; this is what it had written.
    TimedOut {
        /// Its standard output up to then.
        stdout: Vec<u8>,
        /// Its standard error up to then.
        stderr: Vec<u8>,
    },
    /// The person asked to stop.
    Interrupted,
    /// The kernel refused to wait.
    Failed(io::Error),
}

fn pointers(strings: &[CString]) -> Vec<*mut libc::c_char> {
    strings.iter().map(|one| one.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect()
}

/// `/dev/null`, for children that have nothing to read.
pub fn null_device() -> io::Result<OwnedFd> {
    Ok(std::fs::File::open("/dev/null")?.into())
}

/// Starts a program; its input is empty unless given, and its output collected.
pub fn start(program: &Program) -> io::Result<Child> {
    let (stdout, stdout_writer) = Output::pipe()?;
    let (stderr, stderr_writer) = Output::pipe()?;
    let null = null_device()?;
    let stdin = program.input.as_deref().unwrap_or(&null).as_raw_fd();
    let streams = [stdin, stdout_writer.as_raw_fd(), stderr_writer.as_raw_fd()];
    let words = [&program.arguments[..], &program.environment];
    if let Some(place) = &program.place {
        let (pid, spawned) = placed::start(place, &program.path, words, streams)?;
        return Child::adopt(pid, spawned, stdout, stderr);
    }
    if let Some(identity) = &program.identity {
        let (pid, spawned) = identity::start(identity, &program.path, words, streams)?;
        return Child::adopt(pid, spawned, stdout, stderr);
    }
    let actions = Actions::new(streams)?;
    let attributes = Attributes::new(program.blocked)?;
    let arguments = pointers(&program.arguments);
    let environment = pointers(&program.environment);
    let mut pid = 0;
    let spawned = clock::now();
    // SAFETY: all strings live in `program`, the arrays end with a null pointer, attributes and
    // actions are initialised.
    let result = unsafe {
        libc::posix_spawn(
            &mut pid,
            program.path.as_ptr(),
            &actions.0,
            &attributes.0,
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    };
    attributes::check(result)?;
    Child::adopt(pid, spawned, stdout, stderr)
}

impl Child {
    /// Takes over a child of this process that was started by other means.
    pub fn adopt(pid: i32, spawned: Stamp, stdout: Output, stderr: Output) -> io::Result<Child> {
        match pidfd::open(pid) {
            Ok(pidfd) => Ok(Child { pid, spawned, pidfd, stdout, stderr }),
            Err(error) => {
                kill_group(pid);
                reap(pid).ok();
                Err(error)
            }
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        pidfd::signal(&self.pidfd, signal)
    }

    /// Waits until it ends. When the person wants to stop, it has a few seconds left, and none
    /// when they insist. At the deadline it and its process group are killed; what it started
    /// elsewhere is the caller's to clean up.
    pub fn wait(mut self, allowed: Nanos, interrupts: Option<&Interrupts>) -> Result<Ended, Unfinished> {
        let mut deadline = clock::now().0 as i64 + allowed.0;
        let grace = |deadline: i64| deadline.min(clock::now().0 as i64 + GRACE.0);
        let mut patience = DRAIN_EVERY;
        let mut asked = interrupts.is_some_and(Interrupts::asked);
        if asked {
            deadline = grace(deadline);
        }
        // A negative descriptor is one that poll passes over.
        let stop = interrupts.map_or(-1, |interrupts| interrupts.as_raw_fd());
        let interrupted = loop {
            let left = Nanos(deadline - clock::now().0 as i64);
            if left.0 <= 0 {
                break asked;
            }
            let watched = [self.pidfd.as_raw_fd(), stop].map(|fd| (fd, libc::POLLIN));
            match pidfd::ready(watched, left.min(patience)) {
                [true, _] => return self.collect().map_err(Unfinished::Failed),
                [_, true] if asked => break true,
                [_, true] => {
                    asked = interrupts.is_some_and(Interrupts::asked);
                    deadline = grace(deadline);
                }
                _ => {
                    let full = self.stdout.drain() + self.stderr.drain() >= KEPT_OUTPUT / 16;
                    patience = if full { DRAIN_BUSY } else { DRAIN_EVERY };
                }
            }
        };
        kill_group(self.pid);
        reap(self.pid).map_err(Unfinished::Failed)?;
        if interrupted {
            return Err(Unfinished::Interrupted);
        }
        Err(Unfinished::TimedOut { stdout: self.stdout.finish(), stderr: self.stderr.finish() })
    }

    /// Takes what it has written so far, so that a program that goes on never blocks on a full pipe.
    pub fn drain(&mut self) {
        self.stdout.drain();
        self.stderr.drain();
    }

    /// What it has written so far, standard output first.
    pub fn output(&mut self) -> String {
        self.drain();
        [&self.stdout, &self.stderr].map(|one| String::from_utf8_lossy(&one.kept)).concat()
    }

    /// Asks it to end and waits; one that does not is killed after `allowed`.
    pub fn end(self, allowed: Nanos) -> Result<Ended, Unfinished> {
        // SAFETY: signals a child that we started and have not reaped.
        unsafe { libc::kill(self.pid, libc::SIGTERM) };
        self.wait(allowed, None)
    }

    fn collect(self) -> io::Result<Ended> {
        let (status, waited_cpu) = reap(self.pid)?;
        let returned = clock::now();
        Ok(Ended {
            spawned: self.spawned,
            returned,
            status,
            waited_cpu,
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
        })
    }
}

/// Becomes readable when the child ends.
impl AsRawFd for Child {
    fn as_raw_fd(&self) -> RawFd {
        self.pidfd.as_raw_fd()
    }
}

fn kill_group(pid: i32) {
    // SAFETY: signals only the child that we started and the group that it leads.
    unsafe {
        libc::kill(-pid, libc::SIGKILL);
        libc::kill(pid, libc::SIGKILL);
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
    fn output_and_status_of_a_program_arrive() {
        let ended =
            run("/bin/sh", &["-c", "echo out; echo err >&2; exit 3"], Nanos::from_millis(5000)).unwrap();
        assert_eq!(ended.status, Status::Exited(3));
        assert_eq!((ended.stdout.as_slice(), ended.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
        assert!(ended.returned > ended.spawned);
        assert!(ended.waited_cpu.0 > 0);
    }

    #[test]
    fn a_program_that_writes_more_than_a_pipe_holds_neither_blocks_nor_fills_memory() {
        let script = "head -c 3000000 /dev/zero; exit 0";
        let ended = run("/bin/sh", &["-c", script], Nanos::from_millis(60_000)).unwrap();
        assert_eq!(ended.status, Status::Exited(0));
        assert_eq!(ended.stdout.len(), KEPT_OUTPUT);
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
