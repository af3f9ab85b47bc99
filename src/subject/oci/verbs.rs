//! The life of a container by the verbs of the OCI runtime specification: `create`, `start`, `exec`
//! (an extension that all runtimes have), `kill`, `delete`. `kill` returns before the program has ended,
//! so `stop` here is `kill` and then waiting, on a descriptor of the process, until it has.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::super::client::Terminal;
use super::super::verbs::{self, Entered, Span, Standing, Verbs};
use super::{Bundle, Entry, Oci};
use crate::image::EXECUTABLE;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::probe::{LIMITS, PROBE};
use crate::subject::limits::Limits;
use crate::subject::{Mount, Order, RunContext, Subject};
use crate::sys::clock;
use crate::sys::spawn::{self, Program};

/// What stays between the verbs.
#[derive(Debug, Default)]
pub(super) struct Life {
    /// The bundle of containers that stay, made when the first is wanted.
    pub bundle: Option<(Bundle, Entry)>,
    /// What is bound into them.
    mounts: Vec<Mount>,
    /// The container, while there is one.
    standing: Option<Standing>,
    /// Its first process, from `create` on.
    first: Option<OwnedFd>,
}

fn environment(reason: String) -> Failure {
    Failure::new(FailureClass::Environment, reason)
}

impl Oci {
    fn verb(&self, words: &[&str]) -> Result<Program, Failure> {
        Program::new(&self.binary, self.arguments(words)).map_err(|error| environment(error.to_string()))
    }

    fn name(&self) -> Result<&str, Failure> {
        self.life.standing.as_ref().map(|standing| standing.name.as_str()).ok_or_else(verbs::nothing_stands)
    }

    /// The bundle's directory, and the file in which the runtime leaves the id of the first process.
    fn standing_bundle(&mut self, run: &RunContext, mounts: &[Mount]) -> Result<(String, PathBuf), Failure> {
        if self.life.mounts != mounts
            && let Some(other) = self.life.bundle.take()
        {
            super::remove_bundle(other, run);
        }
        if self.life.bundle.is_none() {
            self.life.bundle = Some(self.make_bundle(run, Order::Stay(mounts))?);
            self.life.mounts = mounts.to_vec();
        }
        let (bundle, _) = self.life.bundle.as_ref().expect("made right before");
        let directory = bundle.directory();
        Ok((directory.to_string_lossy().into_owned(), directory.join("first.pid")))
    }
}

impl Verbs for Oci {
    fn create_for(&mut self, run: &RunContext, mounts: &[Mount]) -> Result<Span, Abort> {
        let (directory, pid_file) = self.standing_bundle(run, mounts)?;
        let standing = Standing::announce(run, &self.spec)?;
        let pid_path = pid_file.to_string_lossy();
        let words = ["create", "--bundle", &directory, "--pid-file", &pid_path, &standing.name];
        let program = self.verb(&words);
        self.life.standing = Some(standing);
        let ended = verbs::carry_out(run, &program?)?;
        let said = std::fs::read_to_string(&pid_file).unwrap_or_default();
        let pid = said
            .trim()
            .parse()
            .map_err(|_| environment(format!("`{}` left no process id in its pid file", self.spec.name)))?;
        let first = spawn::pidfd(pid);
        self.life.first =
            Some(first.map_err(|error| environment(format!("cannot watch process {pid}: {error}")))?);
        Ok(verbs::span(&ended))
    }

    fn start(&mut self, run: &RunContext) -> Result<Span, Abort> {
        let program = self.verb(&["start", self.name()?])?;
        Ok(verbs::span(&verbs::carry_out(run, &program)?))
    }

    fn enter(&mut self, order: Order<'_>, run: &RunContext) -> Result<Entered, Abort> {
        // runc takes it from the container's configuration, crun only from its own option.
        let own = if self.spec.name == "crun" { &["exec", "--no-new-privs"][..] } else { &["exec"] };
        let limits = Limits::of(&self.spec);
        let words = order.words(limits.map(|_| LIMITS));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let program = self.verb(&[own, &[self.name()?, EXECUTABLE, PROBE], &words].concat())?;
        let entered = verbs::enter(run, &program, order.allowed(run), &self.expected, Terminal::No)?;
        if let Some(limits) = limits {
            limits.check(&entered.message.inside)?;
        }
        Ok(entered)
    }

    fn stop(&mut self, run: &RunContext) -> Result<Span, Abort> {
        let program = self.verb(&["kill", self.name()?, "TERM"])?;
        let first = self.life.first.as_ref().ok_or_else(verbs::nothing_stands)?;
        let ended = verbs::carry_out(run, &program)?;
        match spawn::await_end(first, run.allowed, &run.interrupts) {
            spawn::Awaited::Ended => Ok(Span { began: ended.spawned, ended: clock::now() }),
            spawn::Awaited::Interrupted => Err(Abort::Interrupted),
            spawn::Awaited::TimedOut => {
                let reason =
                    format!("the container did not end within {} after `{}`", run.allowed, program.shown());
                let failure = Failure::new(FailureClass::Timeout, reason);
                Err(Failure { took: run.allowed, ..failure }.into())
            }
        }
    }

    fn delete(&mut self, run: &RunContext) -> Result<Span, Abort> {
        // runsc counts a sandbox as running until somebody has reaped it.
        let own = if self.spec.name == "runsc" { &["delete", "--force"][..] } else { &["delete"] };
        let program = self.verb(&[own, &[self.name()?]].concat())?;
        let ended = verbs::carry_out(run, &program)?;
        if let Some(standing) = self.life.standing.take() {
            run.cross_out(standing.entry);
        }
        self.life.first = None;
        Ok(verbs::span(&ended))
    }

    fn discard(&mut self, run: &RunContext) {
        self.life.first = None;
        let Some(standing) = self.life.standing.take() else { return };
        if self.remove(&standing.name).is_ok() {
            run.cross_out(standing.entry);
        }
    }
}
