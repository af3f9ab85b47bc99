//! The verbs of `ctr` and their commands. `create` is `containers create`, which makes the container's record
//! and its snapshot. `start` is `tasks start --detach`, which starts the shim, has the runtime create and
//! start the container, and discards its output. `exec` is `tasks exec`. `stop` is `tasks kill` with SIGTERM,
//! then a wait on a pidfd until the process has ended. `remove` is `tasks delete`, then `containers delete`,
//! including the time between them. `stats` is `tasks metrics`. It has no verb that changes limits, and keeps no
//! output.
//!
//! `containers create` has no options for a system call filter or a runtime; only `run` has.
//! With one of these, `create` does nothing and `start` is `run --detach`. That is enough for entries, but a
//! life cycle is not offered.

use super::super::client::Terminal;
use super::Containerd;
use crate::outcome::{Abort, Failure};
use crate::resource::Found;
use crate::subject::draft::{Draft, Entered, First, Said, Span, Verbs, nothing_runs};
use crate::subject::{Entrypoint, Spec};

/// How often containerd is asked whether it has noticed the end of a program.
const LOOKS: usize = 100;

/// A container of containerd.
pub(super) struct OfContainerd<'a> {
    pub containerd: &'a Containerd,
    pub draft: Draft<'a>,
    /// Set by `start`.
    pub first: Option<First>,
    /// Entries so far; each needs a unique name.
    pub entries: u64,
}

/// Whether `containers create` has options for everything that a subject asks for.
pub(super) fn is_created_apart(spec: &Spec) -> bool {
    spec.get("seccomp") != Some("default") && spec.runtime.is_none()
}

impl OfContainerd<'_> {
    fn is_created_apart(&self) -> bool {
        is_created_apart(&self.containerd.about.spec)
    }

    /// A verb that makes the container.
    fn make(&self, verb: &[&str]) -> Result<Span, Abort> {
        let Draft { run, name, .. } = &self.draft;
        let words = self.containerd.making(verb, run, name, self.draft.entrypoint());
        self.draft.carry_out(&self.containerd.ctr, &words)
    }

    /// Waits until containerd has noticed the end of the program: before that it refuses to delete.
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
            "containerd did not notice that `{name}` has ended, in {LOOKS} attempts"
        )))
    }
}

impl Verbs for OfContainerd<'_> {
    fn create(&mut self) -> Result<Span, Abort> {
        if !self.is_created_apart() {
            return Ok(Span::none());
        }
        self.make(&["containers", "create"])
    }

    fn start(&mut self) -> Result<Span, Abort> {
        let file = self.draft.directory.join("first.pid");
        let path = file.to_string_lossy();
        let detached = ["--detach", "--null-io", "--pid-file", &*path];
        let span = match self.is_created_apart() {
            true => {
                let words = [&["tasks", "start"], &detached[..], &[&self.draft.name]].concat();
                self.draft.carry_out(&self.containerd.ctr, &words)?
            }
            false => self.make(&[&["run"], &detached[..]].concat())?,
        };
        self.first = Some(First::of_file(&file, "ctr")?);
        Ok(span)
    }

    fn run(&mut self) -> Result<Span, Abort> {
        let file = self.draft.directory.join("first.pid");
        let span = self.make(&["run", "--detach", "--null-io", "--pid-file", &file.to_string_lossy()])?;
        self.first = Some(First::of_file(&file, "ctr")?);
        Ok(span)
    }

    fn exec(&mut self, entrypoint: Entrypoint<'_>) -> Result<Entered, Abort> {
        self.entries += 1;
        let id = format!("entry-{}", self.entries);
        self.draft.enter(&self.containerd.ctr, &["tasks", "exec", "--exec-id", &id], entrypoint, Terminal::No)
    }

    fn stop(&mut self, grace: u32) -> Result<Span, Abort> {
        let first = self.first.as_ref().ok_or_else(nothing_runs)?;
        let kill = |signal| vec!["tasks", "kill", "--signal", signal, &self.draft.name];
        let span = self.draft.stop(&self.containerd.ctr, kill, first, grace)?;
        self.until_noticed()?;
        Ok(span)
    }

    fn remove(&mut self) -> Result<Span, Abort> {
        let first = self.draft.carry_out(&self.containerd.ctr, &["tasks", "delete", &self.draft.name])?;
        let words = ["containers", "delete", &self.draft.name];
        let second = self.draft.carry_out(&self.containerd.ctr, &words)?;
        Ok(Span { began: first.began, ended: second.ended })
    }

    fn first_process(&mut self) -> Result<i32, Failure> {
        self.first.as_ref().map(|first| first.pid).ok_or_else(nothing_runs)
    }

    fn stats(&mut self) -> Result<Said, Abort> {
        self.draft.ask(&self.containerd.ctr, &["tasks", "metrics", "--format", "json", &self.draft.name])
    }

    fn discard(&mut self) -> Result<Found, Failure> {
        self.containerd.ctr.remove(&self.draft.name, self.containerd.key("snapshotter"))
    }
}
