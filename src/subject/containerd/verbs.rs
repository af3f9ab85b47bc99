//! The verbs of `ctr`, and the commands that each holds: `create` is `containers create`, which makes the container's record and
//! its snapshot; `start` is `tasks start --detach`, which starts the shim, has the runtime create and start the container, and
//! connects its output to nothing; `exec` is `tasks exec`; `stop` is `tasks kill` with SIGTERM and then waiting, on a descriptor of
//! the process, until it has ended; `remove` is `tasks delete`, then `containers delete`, with the time between the two.
//!
//! `containers create` knows no system call filter, no CPU limit and no runtime of one's choice; only `run` does. Of a subject with
//! one of these, `create` does nothing and `start` is `run --detach`, which will do for being entered; a life cycle is not offered.

use super::super::client::Terminal;
use super::Containerd;
use crate::image::EXECUTABLE;
use crate::outcome::{Abort, Failure};
use crate::probe::message::Inside;
use crate::probe::{LIMITS, PROBE};
use crate::subject::container::{Draft, Entered, First, Found, Span, Verbs, nothing_runs};
use crate::subject::{Need, Order, Unavailable};
use crate::sys::spawn::Program;

/// How often containerd may be asked whether it has noticed an end.
const LOOKS: usize = 100;

/// A container of containerd.
pub(super) struct OfContainerd<'a> {
    pub containerd: &'a Containerd,
    pub draft: Draft<'a>,
    /// From `start` on.
    pub first: Option<First>,
    /// Entries so far; each needs a name of its own.
    pub entries: u64,
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
}

impl OfContainerd<'_> {
    /// The program of a verb that makes the container.
    fn making(&self, verb: &[&str]) -> Result<Program, Unavailable> {
        let Draft { run, name, .. } = &self.draft;
        self.containerd.ctr.program(&self.containerd.making(verb, run, name, self.draft.order()))
    }

    /// Asks until containerd has noticed the end of the program: it refuses to delete before.
    fn until_noticed(&self) -> Result<(), Failure> {
        let name = self.draft.name.as_str();
        for _ in 0..LOOKS {
            let tasks = self.containerd.ctr.lines(&["tasks", "ls"])?;
            let words = tasks.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let state = words.into_iter().find(|words| words.first() == Some(&name));
            if state.is_none_or(|words| words.last() == Some(&"STOPPED")) {
                return Ok(());
            }
        }
        Err(Failure::environment(format!(
            "containerd did not notice the end of `{name}` within {LOOKS} looks"
        )))
    }
}

impl Verbs for OfContainerd<'_> {
    fn create(&mut self) -> Result<Span, Abort> {
        if !self.containerd.is_created_apart() {
            return Ok(Span::none());
        }
        Ok(Span::of(&self.draft.carry_out(&self.making(&["containers", "create"])?)?))
    }

    fn start(&mut self) -> Result<Span, Abort> {
        let file = self.draft.directory.join("first.pid");
        let path = file.to_string_lossy();
        let detached = ["--detach", "--null-io", "--pid-file", &*path];
        let program = match self.containerd.is_created_apart() {
            true => self
                .containerd
                .ctr
                .program(&[&["tasks", "start"], &detached[..], &[&self.draft.name]].concat()),
            false => self.making(&[&["run"], &detached[..]].concat()),
        };
        let ended = self.draft.carry_out(&program?)?;
        self.first = Some(First::of_file(&file, "ctr")?);
        Ok(Span::of(&ended))
    }

    fn exec(&mut self, order: Order<'_>) -> Result<Entered, Abort> {
        self.entries += 1;
        let id = format!("entry-{}", self.entries);
        let own = order.words(self.containerd.limits().map(|_| LIMITS));
        let mut words = vec!["tasks", "exec", "--exec-id", &id, &self.draft.name, EXECUTABLE, PROBE];
        words.extend(own.iter().map(String::as_str));
        self.draft.enter(&self.containerd.ctr.program(&words)?, order, Terminal::No)
    }

    fn stop(&mut self) -> Result<Span, Abort> {
        let first = self.first.as_ref().ok_or_else(nothing_runs)?;
        let program =
            self.containerd.ctr.program(&["tasks", "kill", "--signal", "SIGTERM", &self.draft.name])?;
        let span = self.draft.stop(&program, first)?;
        self.until_noticed()?;
        Ok(span)
    }

    fn remove(&mut self) -> Result<Span, Abort> {
        let task = self.containerd.ctr.program(&["tasks", "delete", &self.draft.name])?;
        let container = self.containerd.ctr.program(&["containers", "delete", &self.draft.name])?;
        let first = self.draft.carry_out(&task)?;
        let second = self.draft.carry_out(&container)?;
        Ok(Span { began: first.spawned, ended: second.returned })
    }

    fn first_process(&mut self) -> Result<i32, Failure> {
        self.first.as_ref().map(|first| first.pid).ok_or_else(nothing_runs)
    }

    fn check(&self, inside: &Inside) -> Result<(), Failure> {
        self.draft.check(inside, &self.containerd.expected(), self.containerd.limits())?;
        self.containerd.check_snapshotter(inside)
    }

    fn discard(&mut self) -> Result<Found, Failure> {
        self.containerd.ctr.remove(&self.draft.name, self.containerd.key("snapshotter"))
    }
}
