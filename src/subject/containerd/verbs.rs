//! The life of a container by the verbs of `ctr`, and the commands that each holds: `create` is
//! `containers create`, which makes the container's record and its snapshot; `start` is
//! `tasks start --detach`, which starts the shim, has the runtime create and start the container, and
//! connects its output to nothing; `exec` is `tasks exec`; `stop` is `tasks kill` with SIGTERM and then
//! waiting, on a descriptor of the process, until it has ended; `delete` is `tasks delete`, then
//! `containers delete`, with the time between the two.
//!
//! `containers create` knows no system call filter, no CPU limit and no runtime of one's choice; only
//! `run` does. Of a subject with one of these, `create` does nothing and `start` is `run --detach`, which
//! will do for being entered; a life cycle is not offered.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::super::client::Terminal;
use super::super::verbs::{self, Entered, Span, Standing, Verbs};
use super::super::{Mount, Need, Order, RunContext};
use super::Containerd;
use super::ctr::Found;
use crate::image::EXECUTABLE;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::probe::{LIMITS, PROBE};
use crate::resource;
use crate::resource::journal::Entry;
use crate::sys::clock;
use crate::sys::spawn::{self, Awaited, Ended, Program};

/// How often containerd may be asked whether it has noticed an end.
const LOOKS: usize = 100;

/// What stays between the verbs.
#[derive(Debug, Default)]
pub(super) struct Life {
    standing: Option<Standing>,
    /// What is bound into it.
    mounts: Vec<Mount>,
    /// Its first process, from `start` on.
    first: Option<OwnedFd>,
    /// Entries so far; each needs a name of its own.
    entries: u64,
    /// Where `ctr` leaves the id of the first process.
    directory: Option<(PathBuf, Entry)>,
}

fn environment(reason: String) -> Failure {
    Failure::new(FailureClass::Environment, reason)
}

impl Containerd {
    /// Whether `containers create` can be asked for all that the subject is.
    fn is_created_apart(&self) -> bool {
        let by_run_only =
            self.key("seccomp") == Some("default") || self.limits().is_some_and(|asked| asked.cpus.is_some());
        !by_run_only && self.spec.runtime.is_none()
    }

    /// What it offers.
    pub(super) fn offered(&self) -> &'static [Need] {
        if self.is_created_apart() { &Need::CONTAINER } else { &[Need::Launch, Need::Exec, Need::Work] }
    }

    fn name(&self) -> Result<&str, Failure> {
        self.life.standing.as_ref().map(|standing| standing.name.as_str()).ok_or_else(verbs::nothing_stands)
    }

    fn program_of(&self, arguments: &[String]) -> Result<Program, Failure> {
        Program::new(self.ctr.program(), arguments).map_err(|error| environment(error.to_string()))
    }

    /// The file in which `ctr` leaves the id of the first process.
    fn pid_file(&mut self, run: &RunContext) -> Result<PathBuf, Failure> {
        if self.life.directory.is_none() {
            let directory = run.workspace().join(run.next_name());
            let entry = run.note(resource::directory(&directory))?;
            let made = std::fs::create_dir_all(&directory);
            self.life.directory = Some((directory, entry));
            made.map_err(|error| environment(format!("cannot make a directory: {error}")))?;
        }
        let (directory, _) = self.life.directory.as_ref().expect("made right before");
        Ok(directory.join("first.pid"))
    }

    /// Asks until containerd has noticed the end of the program: it refuses to delete before.
    fn until_noticed(&self) -> Result<(), Failure> {
        let name = self.name()?;
        for _ in 0..LOOKS {
            let tasks = self.ctr.lines(&["tasks", "ls"]).map_err(|why| environment(why.reason))?;
            let words = tasks.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let state = words.into_iter().find(|words| words.first() == Some(&name));
            if state.is_none_or(|words| words.last() == Some(&"STOPPED")) {
                return Ok(());
            }
        }
        Err(environment(format!("containerd did not notice the end of `{name}` within {LOOKS} looks")))
    }

    /// Removes the container after a command failed that makes one. One that ended by itself makes
    /// nothing any more; one that was killed may have had the daemon begin.
    fn clear_after(&mut self, made: &Result<Ended, Abort>, run: &RunContext) {
        let Err(Abort::Failed(failure)) = made else { return };
        if failure.class != FailureClass::Timeout
            && let Some(standing) = self.life.standing.take()
            && self.ctr.remove(&standing.name, self.key("snapshotter")).is_ok()
        {
            run.cross_out(standing.entry);
        }
    }

    /// Removes what `verbs` made besides containers.
    pub(super) fn forget(&mut self, run: &RunContext) {
        if let Some((directory, entry)) = self.life.directory.take() {
            let _ = std::fs::remove_dir_all(directory);
            run.cross_out(entry);
        }
    }
}

impl Verbs for Containerd {
    fn create_for(&mut self, run: &RunContext, mounts: &[Mount]) -> Result<Span, Abort> {
        let standing = Standing::announce(run, &self.spec)?;
        let arguments = self.making(&["containers", "create"], run, &standing.name, Order::Stay(mounts));
        self.life.mounts = mounts.to_vec();
        self.life.standing = Some(standing);
        self.life.entries = 0;
        if !self.is_created_apart() {
            let now = clock::now();
            return Ok(Span { began: now, ended: now });
        }
        let program = self.program_of(&arguments)?;
        let made = verbs::carry_out(run, &program);
        self.clear_after(&made, run);
        Ok(verbs::span(&made?))
    }

    fn start(&mut self, run: &RunContext) -> Result<Span, Abort> {
        let file = self.pid_file(run)?;
        let path = file.to_string_lossy();
        let name = self.name()?;
        let arguments = match self.is_created_apart() {
            true => {
                self.ctr.arguments(&["tasks", "start", "--detach", "--null-io", "--pid-file", &path, name])
            }
            false => self.making(
                &["run", "--detach", "--null-io", "--pid-file", &path],
                run,
                name,
                Order::Stay(&self.life.mounts),
            ),
        };
        let program = self.program_of(&arguments)?;
        let started = verbs::carry_out(run, &program);
        self.clear_after(&started, run);
        let ended = started?;
        let said = std::fs::read_to_string(&file).unwrap_or_default();
        let pid = said
            .trim()
            .parse()
            .map_err(|_| environment("`ctr` left no process id in its pid file".into()))?;
        let first = spawn::pidfd(pid);
        self.life.first =
            Some(first.map_err(|error| environment(format!("cannot watch process {pid}: {error}")))?);
        Ok(verbs::span(&ended))
    }

    fn enter(&mut self, order: Order<'_>, run: &RunContext) -> Result<Entered, Abort> {
        self.life.entries += 1;
        let id = format!("entry-{}", self.life.entries);
        let name = self.name()?;
        let own = order.words(self.limits().map(|_| LIMITS));
        let mut words = vec!["tasks", "exec", "--exec-id", &id, name, EXECUTABLE, PROBE];
        words.extend(own.iter().map(String::as_str));
        let program = self.program_of(&self.ctr.arguments(&words))?;
        let entered = verbs::enter(run, &program, order.allowed(run), &self.expected(), Terminal::No)?;
        self.check_snapshotter(&entered.message.inside)?;
        if let Some(limits) = self.limits() {
            limits.check(&entered.message.inside)?;
        }
        Ok(entered)
    }

    fn stop(&mut self, run: &RunContext) -> Result<Span, Abort> {
        let words = ["tasks", "kill", "--signal", "SIGTERM", self.name()?];
        let program = self.program_of(&self.ctr.arguments(&words))?;
        let first = self.life.first.as_ref().ok_or_else(verbs::nothing_stands)?;
        let ended = verbs::carry_out(run, &program)?;
        let span = match spawn::await_end(first, run.allowed, &run.interrupts) {
            Awaited::Ended => Span { began: ended.spawned, ended: clock::now() },
            Awaited::Interrupted => return Err(Abort::Interrupted),
            Awaited::TimedOut => {
                let reason =
                    format!("the container did not end within {} after `{}`", run.allowed, program.shown());
                let failure = Failure::new(FailureClass::Timeout, reason);
                return Err(Failure { took: run.allowed, ..failure }.into());
            }
        };
        self.until_noticed()?;
        Ok(span)
    }

    fn delete(&mut self, run: &RunContext) -> Result<Span, Abort> {
        let name = self.name()?;
        let task = self.program_of(&self.ctr.arguments(&["tasks", "delete", name]))?;
        let container = self.program_of(&self.ctr.arguments(&["containers", "delete", name]))?;
        let first = verbs::carry_out(run, &task)?;
        let second = verbs::carry_out(run, &container)?;
        if let Some(standing) = self.life.standing.take() {
            run.cross_out(standing.entry);
        }
        self.life.first = None;
        Ok(Span { began: first.spawned, ended: second.returned })
    }

    fn discard(&mut self, run: &RunContext) {
        self.life.first = None;
        let Some(standing) = self.life.standing.take() else { return };
        // A daemon whose client was killed may still make the container that is not there yet: then
        // the journal keeps it for whoever comes next.
        if matches!(self.ctr.remove(&standing.name, self.key("snapshotter")), Ok(Found::Yes)) {
            run.cross_out(standing.entry);
        }
    }
}
