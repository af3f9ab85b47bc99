//! Containers as handles. A subject has any number of them at a time; each is made, started, entered, stopped and removed by
//! itself, from whichever thread holds it. A handle that goes takes its container with it, whatever state that is in.
//!
//! What one kind of subject does for each verb is behind [`Verbs`]; names, the journal, and what the first process tells are the
//! same for all and stand here. Deliberately absent: what the verbs are good for; experiments decide that.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::client::{self, Terminal};
use super::limits::Limits;
use super::resources;
use super::treatment::{self, Expected};
use super::{Mount, Order, RunContext, Subject};
use crate::outcome::{Abort, Failure, FailureClass};
use crate::probe::message::Message;
use crate::resource::journal::Entry;
use crate::sys::spawn::{self, Awaited, Ended, Program};
use crate::sys::{cgroup, clock, pidfd};
use crate::units::{Nanos, Stamp};

/// What a container is to be, beside what its subject is.
#[derive(Debug, Clone, Default)]
pub struct ContainerRequest {
    /// Places of the host that are bound into it.
    pub mounts: Vec<Mount>,
}

/// One verb, carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Right before the first system call that belongs to it.
    pub began: Stamp,
    /// Right after the end of its last command or request was reported.
    pub ended: Stamp,
}

impl Span {
    /// How long it took.
    pub fn took(self) -> Nanos {
        self.ended.since(self.began)
    }

    /// Of a command.
    pub(super) fn of(ended: &Ended) -> Span {
        Span { began: ended.spawned, ended: ended.returned }
    }

    /// Of a verb for which there is nothing to do.
    pub(super) fn none() -> Span {
        let now = clock::now();
        Span { began: now, ended: now }
    }
}

/// A second process that was started in a running container, and has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Entered {
    /// Right before the system call that starts the command.
    pub spawned: Stamp,
    /// When its end was reported.
    pub returned: Stamp,
    /// What the probe said from inside.
    pub message: Message,
    /// What was found inside, as recorded with the sample.
    pub treatment: Vec<(&'static str, String)>,
}

/// Whether a container that was to be removed was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It was, and is removed.
    Yes,
    /// It was not.
    No,
}

/// A container that is about to be made.
#[derive(Debug)]
pub struct Draft<'a> {
    /// Its name.
    pub name: String,
    /// A directory of its own, which goes with it.
    pub directory: PathBuf,
    /// What it is to be.
    pub request: ContainerRequest,
    /// The run that it belongs to.
    pub run: &'a RunContext,
}

/// What a kind of subject does for each verb of one container. They come in the order of their declaration, `exec` as often as
/// wanted; after a failure only `discard` may follow.
pub trait Verbs: Send {
    /// Makes the container, which does not run yet.
    fn create(&mut self) -> Result<Span, Abort>;
    /// Starts its program.
    fn start(&mut self) -> Result<Span, Abort>;
    /// Runs the probe as a second process inside with this order, and checks the treatment that it finds.
    fn exec(&mut self, order: Order<'_>) -> Result<Entered, Abort>;
    /// Asks its program to end by SIGTERM, and waits until it has.
    fn stop(&mut self) -> Result<Span, Abort>;
    /// Removes it.
    fn remove(&mut self) -> Result<Span, Abort>;
    /// The id of its first process, as the host sees it.
    fn first_process(&mut self) -> Result<i32, Failure>;
    /// Removes what is left of it, whatever state it is in.
    fn discard(&mut self) -> Result<Found, Failure>;
}

/// A container.
pub struct Container<'a> {
    name: String,
    directory: PathBuf,
    run: &'a RunContext,
    verbs: Box<dyn Verbs + 'a>,
    entry: Option<Entry>,
    /// Whether a verb was given up in the middle: then what it asked for may still come.
    cut_short: bool,
    created: Span,
}

impl<'a> Container<'a> {
    /// Makes a container whose program is the probe, waiting to be asked to end; it does not run yet.
    pub fn create(
        subject: &'a dyn Subject,
        request: &ContainerRequest,
        run: &'a RunContext,
    ) -> Result<Container<'a>, Abort> {
        let name = run.next_name();
        let directory = run.workspace().join(&name);
        std::fs::create_dir_all(&directory)
            .map_err(|error| environment(format!("cannot make `{}`: {error}", directory.display())))?;
        let draft = Draft { name: name.clone(), directory: directory.clone(), request: request.clone(), run };
        let verbs = subject.verbs(draft)?;
        let entry = run.note(resources::container(subject.spec(), &name))?;
        let mut made = Container {
            name,
            directory,
            run,
            verbs,
            entry: Some(entry),
            cut_short: false,
            created: Span::none(),
        };
        made.created = made.carry_out(|verbs| verbs.create())?;
        Ok(made)
    }

    fn carry_out<T>(&mut self, verb: impl FnOnce(&mut dyn Verbs) -> Result<T, Abort>) -> Result<T, Abort> {
        let done = verb(self.verbs.as_mut());
        self.cut_short |= done.as_ref().is_err_and(is_cut_short);
        done
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it took to make it.
    pub fn created(&self) -> Span {
        self.created
    }

    /// Starts its program.
    pub fn start(&mut self) -> Result<Span, Abort> {
        self.carry_out(|verbs| verbs.start())
    }

    /// Runs the probe as a second process inside with this order, and checks the treatment that it finds. What it needs of the
    /// host must have been asked for when the container was made.
    pub fn exec<'b>(&mut self, order: impl Into<Order<'b>>) -> Result<Entered, Abort> {
        let order = order.into();
        self.carry_out(|verbs| verbs.exec(order))
    }

    /// Asks its program to end by SIGTERM, and waits until it has.
    pub fn stop(&mut self) -> Result<Span, Abort> {
        self.carry_out(|verbs| verbs.stop())
    }

    /// Removes it, now that it is stopped.
    pub fn remove(mut self) -> Result<Span, Abort> {
        let removed = self.carry_out(|verbs| verbs.remove())?;
        if let Some(entry) = self.entry.take() {
            self.run.cross_out(entry);
        }
        Ok(removed)
    }

    /// The id of its first process, as the host sees it.
    pub fn first_process(&mut self) -> Result<i32, Failure> {
        self.verbs.first_process()
    }

    /// The directories of its cgroups, one in each hierarchy that is mounted here.
    pub fn cgroups(&mut self) -> Result<Vec<PathBuf>, Failure> {
        let first = self.first_process()?;
        let mounted = cgroup::mounted_of(first)
            .map_err(|error| environment(format!("cannot read the cgroups of process {first}: {error}")))?;
        Ok(mounted.into_iter().filter_map(|hierarchy| hierarchy.own).collect())
    }
}

/// Removes it where that was not done. What cannot be removed stays in the journal.
impl Drop for Container<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take()
            && is_over(self.cut_short, &self.verbs.discard())
        {
            self.run.cross_out(entry);
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Whether somebody was not waited for who may still do what was asked.
pub(super) fn is_cut_short(abort: &Abort) -> bool {
    match abort {
        Abort::Interrupted => true,
        Abort::Failed(failure) => failure.class == FailureClass::Timeout,
    }
}

/// Whether nothing of a container can come any more. A daemon that was not waited for may still make the one that is not there
/// yet: the journal keeps it for whoever comes next.
pub(super) fn is_over(cut_short: bool, removed: &Result<Found, Failure>) -> bool {
    match removed {
        Ok(Found::No) => !cut_short,
        Ok(Found::Yes) => true,
        Err(_) => false,
    }
}

fn environment(reason: String) -> Failure {
    Failure::new(FailureClass::Environment, reason)
}

impl Draft<'_> {
    /// What its program is to do.
    pub(super) fn order(&self) -> Order<'_> {
        Order::Stay(&self.request)
    }

    /// Carries out one command; one that fails is a failure in its own words.
    pub(super) fn carry_out(&self, program: &Program) -> Result<Ended, Abort> {
        let ended = self.until_it_ends(program, self.run.allowed)?;
        client::ended_well(&program.shown(), &ended)?;
        Ok(ended)
    }

    fn until_it_ends(&self, program: &Program, allowed: Nanos) -> Result<Ended, Abort> {
        let child = spawn::start(program).map_err(|error| client::cannot_start(program, &error))?;
        let waited = child.wait(allowed, Some(&self.run.interrupts));
        waited.map_err(|why| client::unfinished(allowed, program, why))
    }

    /// Carries out a command that runs the probe with this order inside, and checks what it found.
    pub(super) fn enter(
        &self,
        program: &Program,
        order: Order<'_>,
        checks: Checks<'_>,
    ) -> Result<Entered, Abort> {
        let ended = self.until_it_ends(program, order.allowed(self.run))?;
        Ok(checks.entered(self.run, &program.shown(), &ended)?)
    }

    /// Waits for the end of the first process, after this command has sent it SIGTERM.
    pub(super) fn stop(&self, program: &Program, first: &First) -> Result<Span, Abort> {
        let ended = self.carry_out(program)?;
        let allowed = self.run.allowed;
        match spawn::await_end(&first.process, allowed, &self.run.interrupts) {
            Awaited::Ended => Ok(Span { began: ended.spawned, ended: clock::now() }),
            Awaited::Interrupted => Err(Abort::Interrupted),
            Awaited::TimedOut => {
                let reason =
                    format!("the container did not end within {allowed} after `{}`", program.shown());
                Err(Failure { took: allowed, ..Failure::new(FailureClass::Timeout, reason) }.into())
            }
        }
    }
}

/// What a probe that entered must have found.
#[derive(Debug)]
pub(super) struct Checks<'a> {
    pub expected: &'a Expected,
    pub limits: Option<Limits>,
    pub terminal: Terminal,
}

impl Checks<'_> {
    /// What it said, if it is what was asked for.
    pub fn entered(&self, run: &RunContext, shown: &str, ended: &Ended) -> Result<Entered, Failure> {
        let message = client::message_in(shown, ended, self.terminal)?;
        self.expected.check(&message.inside, &run.host)?;
        if let Some(limits) = &self.limits {
            limits.check(&message.inside)?;
        }
        let treatment = treatment::facts(&message.inside, &run.host);
        Ok(Entered { spawned: ended.spawned, returned: ended.returned, message, treatment })
    }
}

/// The first process of a container that others started.
#[derive(Debug)]
pub(super) struct First {
    pub pid: i32,
    pub process: OwnedFd,
}

impl First {
    /// From the file in which the program that started it left its id.
    pub fn of_file(path: &Path, by: &str) -> Result<First, Failure> {
        let said = std::fs::read_to_string(path).unwrap_or_default();
        let pid = said.trim().parse();
        let pid = pid.map_err(|_| environment(format!("`{by}` left no process id in its pid file")))?;
        let process =
            pidfd::open(pid).map_err(|error| environment(format!("cannot watch process {pid}: {error}")))?;
        Ok(First { pid, process })
    }
}

/// What a verb says that comes before its time; the order is the experiments' to keep, so it is a fault of ours.
pub(super) fn nothing_runs() -> Failure {
    environment("there is no running container for this verb".to_owned())
}
