//! The life of one container, verb by verb. A subject has one such container at a time and keeps its
//! state itself. Deliberately absent: what the verbs are good for; experiments decide that.

use super::client::{self, Terminal};
use super::treatment::{self, Expected};
use super::{Mount, Order, RunContext, Spec, Work};
use crate::outcome::{Abort, Failure, FailureClass};
use crate::probe::Task;
use crate::probe::message::Message;
use crate::resource::journal::Entry;
use crate::subject::resources::container;
use crate::sys::spawn::{self, Ended, Program};
use crate::units::{Nanos, Stamp};

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

/// The verbs. They come in the order of their declaration, `exec` as often as wanted; after a failure
/// only `discard` may follow. Every one that makes something writes it into the journal before.
pub trait Verbs {
    /// Makes a container whose program is the probe with the task to stay; it does not run yet.
    fn create(&mut self, run: &RunContext) -> Result<Span, Abort> {
        self.create_for(run, &[])
    }
    /// The same with places of the host bound into it.
    fn create_for(&mut self, run: &RunContext, mounts: &[Mount]) -> Result<Span, Abort>;
    /// Starts its program.
    fn start(&mut self, run: &RunContext) -> Result<Span, Abort>;
    /// Runs the probe as a second process inside, and checks the treatment that it finds.
    fn exec(&mut self, run: &RunContext) -> Result<Entered, Abort> {
        self.enter(Task::Enter.into(), run)
    }
    /// Runs the probe as a second process inside, which works; what it needs of the host must have been
    /// bound when the container was made.
    fn exec_work(&mut self, run: &RunContext, work: &Work) -> Result<Entered, Abort> {
        self.enter(work.into(), run)
    }
    /// Runs the probe as a second process inside with this order.
    fn enter(&mut self, order: Order<'_>, run: &RunContext) -> Result<Entered, Abort>;
    /// Asks its program to end by SIGTERM, and waits until it has.
    fn stop(&mut self, run: &RunContext) -> Result<Span, Abort>;
    /// Removes it.
    fn delete(&mut self, run: &RunContext) -> Result<Span, Abort>;
    /// Removes what is left of it, whatever state it is in; without one does nothing. What cannot be
    /// removed stays in the journal.
    fn discard(&mut self, run: &RunContext);
}

/// Carries out one command of a verb; one that fails is a failure in its own words.
pub(super) fn carry_out(run: &RunContext, program: &Program) -> Result<Ended, Abort> {
    let child = spawn::start(program).map_err(|error| client::cannot_start(program, &error))?;
    let waited = child.wait(run.allowed, Some(&run.interrupts));
    let ended = waited.map_err(|why| client::unfinished(run.allowed, program, why))?;
    client::ended_well(&program.shown(), &ended)?;
    Ok(ended)
}

/// The span of a verb that is one command.
pub(super) fn span(ended: &Ended) -> Span {
    Span { began: ended.spawned, ended: ended.returned }
}

/// Carries out a command that runs the probe with the task to enter, and checks what it found.
pub(super) fn enter(
    run: &RunContext,
    program: &Program,
    allowed: Nanos,
    expected: &Expected,
    terminal: Terminal,
) -> Result<Entered, Abort> {
    let child = spawn::start(program).map_err(|error| client::cannot_start(program, &error))?;
    let waited = child.wait(allowed, Some(&run.interrupts));
    let ended = waited.map_err(|why| client::unfinished(allowed, program, why))?;
    Ok(entered(run, &program.shown(), &ended, expected, terminal)?)
}

/// What the probe said that entered, if it is what was asked for.
pub(super) fn entered(
    run: &RunContext,
    shown: &str,
    ended: &Ended,
    expected: &Expected,
    terminal: Terminal,
) -> Result<Entered, Failure> {
    let message = client::message_in(shown, ended, terminal)?;
    expected.check(&message.inside, &run.host)?;
    let treatment = treatment::facts(&message.inside, &run.host);
    Ok(Entered { spawned: ended.spawned, returned: ended.returned, message, treatment })
}

/// A container by its name, and its line in the journal.
#[derive(Debug)]
pub(super) struct Standing {
    /// Its name.
    pub name: String,
    /// Its line.
    pub entry: Entry,
}

impl Standing {
    /// Names the container of a subject, before it is made.
    pub fn announce(run: &RunContext, subject: &Spec) -> Result<Standing, Failure> {
        let name = run.next_name();
        let entry = run.note(container(&subject, &name))?;
        Ok(Standing { name, entry })
    }
}

/// What a verb without a container says; experiments keep the order, so it is a fault of ours.
pub(super) fn nothing_stands() -> Failure {
    Failure::new(FailureClass::Environment, "there is no container for this verb")
}
