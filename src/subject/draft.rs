//! What a kind of subject does for one container: the verbs, and a draft of what is to be made. Commands and
//! entries that kinds with a client have in common are methods of the draft. Deliberately absent: names and
//! the journal of containers that stay, which are the handle's, in `container`.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use dunnage_orders::Order;

use super::client::{self, Terminal};
use super::component::Client;
use super::limits::Limits;
use super::resources;
use super::treatment::Expected;
use super::{ContainerRequest, Cpu, Entrypoint, Launch, RunContext, Spec};
use crate::image::EXECUTABLE;
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::PROBE;
use crate::probe::message::Message;
use crate::resource::{Found, command};
use crate::sys::signals;
use crate::sys::spawn::{Ended, Program, Unfinished};
use crate::sys::{clock, pidfd};
use crate::units::{Nanos, Stamp};

/// The time of one verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Right before its first system call.
    pub began: Stamp,
    /// Right after the end of its last command or request was reported.
    pub ended: Stamp,
}

impl Span {
    /// Its duration.
    pub fn took(self) -> Nanos {
        self.ended.since(self.began)
    }

    /// That of a command.
    pub(super) fn of(ended: &Ended) -> Span {
        Span { began: ended.spawned, ended: ended.returned }
    }

    /// A verb for which there is nothing to do.
    pub(super) fn none() -> Span {
        let now = clock::now();
        Span { began: now, ended: now }
    }
}

/// Seconds from SIGTERM to SIGKILL that engines give a program which they are to stop, unless asked otherwise.
pub const GRACE: u32 = 10;

/// So many seconds.
pub(super) fn seconds(count: u32) -> Nanos {
    Nanos::from_millis(i64::from(count) * 1000)
}

/// A second process that was started in a running container and has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Entered {
    /// Right before the system call that starts the command.
    pub spawned: Stamp,
    /// When its end was reported.
    pub returned: Stamp,
    /// What the probe reported from inside.
    pub message: Message,
    /// What was found inside, as recorded with the sample.
    pub treatment: Vec<(&'static str, String)>,
    /// CPU time of this thread where dunnage is the client.
    pub client_cpu: Nanos,
}

/// What a container's program has written, or an engine says about a container, unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The time of the command or request.
    pub span: Span,
    /// The words.
    pub text: String,
}

impl Said {
    /// These streams of a command that has ended.
    pub(super) fn of(ended: &Ended, streams: &[&[u8]]) -> Said {
        let text = String::from_utf8_lossy(&streams.concat()).into_owned();
        Said { span: Span::of(ended), text }
    }

    /// What was already known.
    pub(super) fn known(text: String) -> Said {
        Said { span: Span::none(), text }
    }
}

/// A port of a container that is published at an address of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// The port inside.
    pub inside: u16,
    /// Its address on the host.
    pub host: SocketAddr,
}

/// A container that is about to be made.
#[derive(Debug)]
pub struct Draft<'a> {
    /// Its name.
    pub name: String,
    /// Its own directory, which is removed with it.
    pub directory: PathBuf,
    /// What it is to be.
    pub request: ContainerRequest,
    /// Its run.
    pub run: &'a RunContext,
    /// What must be found inside.
    pub expected: Expected,
}

/// What a kind of subject does for each verb of one container. `create`, `start`, `stop` and `remove` are called in this
/// order, the others while it exists, any number of times; after one of the four has failed, only `discard` follows.
pub trait Verbs: Send {
    /// Makes the container, which does not run yet.
    fn create(&mut self) -> Result<Span, Abort>;
    /// Starts its program.
    fn start(&mut self) -> Result<Span, Abort>;
    /// Makes and starts it, detached, by one command where there is one.
    fn run(&mut self) -> Result<Span, Abort> {
        let (created, started) = (self.create()?, self.start()?);
        Ok(Span { began: created.began, ended: started.ended })
    }
    /// Runs the probe as a second process inside with this order.
    fn exec(&mut self, order: Entrypoint<'_>) -> Result<Entered, Abort>;
    /// Sends its program SIGTERM and, after so many seconds, SIGKILL; waits until it has ended. Without a
    /// second, it is killed at once.
    fn stop(&mut self, grace: u32) -> Result<Span, Abort>;
    /// Removes it.
    fn remove(&mut self) -> Result<Span, Abort>;
    /// Kills its program and removes it, by one command where there is one.
    fn end(&mut self) -> Result<Span, Abort> {
        let (stopped, removed) = (self.stop(0)?, self.remove()?);
        Ok(Span { began: stopped.began, ended: removed.ended })
    }
    /// The process id of its first process on the host.
    fn first_process(&mut self) -> Result<i32, Failure>;
    /// Where its ports can be reached; empty where none is published.
    fn ports(&mut self) -> Result<Vec<Published>, Failure> {
        Ok(Vec::new())
    }
    /// What its program has written so far, standard output first.
    fn logs(&mut self) -> Result<Said, Abort> {
        Err(no_verb("logs"))
    }
    /// What it uses, in the engine's own words.
    fn stats(&mut self) -> Result<Said, Abort> {
        Err(no_verb("stats"))
    }
    /// Changes these limits of its cgroup while it runs.
    fn update(&mut self, limits: &Limits) -> Result<Span, Abort> {
        let _ = limits;
        Err(no_verb("update"))
    }
    /// Whether the thread that calls a verb is the client itself, and starts no command.
    fn is_its_own_client(&self) -> bool {
        false
    }
    /// CPU time that it has used so far, where that is not the machine's.
    fn own_account(&self) -> Option<Cpu> {
        None
    }
    /// Removes what is left of it, in any state.
    fn discard(&mut self) -> Result<Found, Failure>;
    /// What its program said when it was ready for orders, where it is no process and has no channel.
    fn hello(&mut self) -> Option<Message> {
        None
    }
    /// Carries out an order of such a program, and returns its reply as it travels.
    fn reply(&mut self, order: &Order) -> Result<String, Abort> {
        let _ = order;
        Err(no_service().into())
    }
}

/// Whether a request was abandoned that a daemon may still carry out.
pub(super) fn is_cut_short(abort: &Abort) -> bool {
    match abort {
        Abort::Interrupted => true,
        Abort::Failed(failure) => failure.class == FailureClass::Timeout,
    }
}

/// Whether the container can no longer appear. A daemon that was not waited for may still make it after the
/// removal, so then its line stays in the journal for a later sweep.
pub(super) fn is_over(cut_short: bool, removed: &Result<Found, Failure>) -> bool {
    match removed {
        Ok(Found::No) => !cut_short,
        Ok(Found::Yes) => true,
        Err(_) => false,
    }
}

/// Carries out one launch under its own line in the journal. If it fails, `discard` removes what it left.
pub(super) fn recorded(
    run: &RunContext,
    spec: &Spec,
    name: &str,
    launch: impl FnOnce() -> Result<Launch, Abort>,
    discard: impl FnOnce() -> Result<Found, Failure>,
) -> Result<Launch, Abort> {
    let entry = run.note(resources::container(spec, name))?;
    let launched = launch();
    if launched.as_ref().err().is_none_or(|abort| is_over(is_cut_short(abort), &discard())) {
        run.cross_out(entry);
    }
    launched
}

impl Draft<'_> {
    /// What its program is to do.
    pub(super) fn entrypoint(&self) -> Entrypoint<'_> {
        Entrypoint::Stay(&self.request)
    }

    /// Runs one command; if it fails, the failure has the command's own words.
    pub(super) fn carry_out(&self, client: &Client, words: &[impl AsRef<str>]) -> Result<Span, Abort> {
        self.ended(self.run.allowed, client, words).map(|ended| Span::of(&ended))
    }

    /// The same for a command that may take this long; how it ended.
    pub(super) fn ended(
        &self,
        allowed: Nanos,
        client: &Client,
        words: &[impl AsRef<str>],
    ) -> Result<Ended, Abort> {
        command::carry_out(&client.program(words)?, allowed, &self.run.interrupts)
    }

    /// What a command says on standard output.
    pub(super) fn ask(&self, client: &Client, words: &[impl AsRef<str>]) -> Result<Said, Abort> {
        let ended = self.ended(self.run.allowed, client, words)?;
        Ok(Said::of(&ended, &[&ended.stdout]))
    }

    /// Has a client run the probe with this order inside, with this verb.
    pub(super) fn enter(
        &self,
        client: &Client,
        verb: &[&str],
        order: Entrypoint<'_>,
        terminal: Terminal,
    ) -> Result<Entered, Abort> {
        let order_words = order.words(self.expected.detail());
        let words = [&self.name, EXECUTABLE, PROBE].into_iter().chain(order_words.iter().map(String::as_str));
        let words: Vec<&str> = verb.iter().copied().chain(words).collect();
        self.enter_by(&client.program(&words)?, order, terminal)
    }

    /// The same with a complete command.
    pub(super) fn enter_by(
        &self,
        program: &Program,
        order: Entrypoint<'_>,
        terminal: Terminal,
    ) -> Result<Entered, Abort> {
        let allowed = order.allowed(self.run);
        let ended = command::until_it_ends(program, order.reading(), allowed, Some(&self.run.interrupts))?;
        Ok(self.entered(&program.shown(), &ended, terminal, order)?)
    }

    /// The result of an entry from the probe's message.
    pub(super) fn entered(
        &self,
        shown: &str,
        ended: &Ended,
        terminal: Terminal,
        order: Entrypoint<'_>,
    ) -> Result<Entered, Failure> {
        let message = client::message_in(shown, ended, terminal, order)?;
        let treatment = self.run.treatment(&self.expected, &message.inside);
        let (spawned, returned, client_cpu) = (ended.spawned, ended.returned, Nanos(0));
        Ok(Entered { spawned, returned, message, treatment, client_cpu })
    }

    /// Stops the first process, to which `kill` sends a signal of this name: SIGTERM and, after its grace,
    /// SIGKILL.
    pub(super) fn stop<'w>(
        &self,
        client: &Client,
        kill: impl Fn(&'static str) -> Vec<&'w str>,
        first: &First,
        grace: u32,
    ) -> Result<Span, Abort> {
        let mut span = None;
        let attempts = [("SIGTERM", seconds(grace)), ("SIGKILL", self.run.allowed)];
        for (signal, allowed) in attempts.into_iter().filter(|(_, allowed)| *allowed > Nanos(0)) {
            let sent = match (self.carry_out(client, &kill(signal)), span) {
                // It may have ended right before.
                (Err(_), Some(span))
                    if self.run.interrupts.await_end(Some(&first.process), Nanos(0))
                        == signals::Awaited::Ended =>
                {
                    return Ok(Span { ended: clock::now(), ..span });
                }
                (sent, _) => sent?,
            };
            let span = *span.get_or_insert(sent);
            match self.run.interrupts.await_end(Some(&first.process), allowed) {
                signals::Awaited::Ended => return Ok(Span { ended: clock::now(), ..span }),
                signals::Awaited::Interrupted => return Err(Abort::Interrupted),
                signals::Awaited::TimedOut => {}
            }
        }
        let (allowed, shown) = (self.run.allowed, client.program(&kill("SIGKILL"))?.shown());
        let reason = format!("the container did not end within {allowed} after `{shown}`");
        Err(Failure { took: allowed, ..Failure::new(FailureClass::Timeout, reason) }.into())
    }
}

/// A program that was waited for as long as its grace, and then killed, is stopped as well.
pub(super) fn stopped(end: Result<Ended, Unfinished>) -> Result<Stamp, Abort> {
    match end {
        Ok(ended) => Ok(ended.returned),
        Err(Unfinished::TimedOut { .. }) => Ok(clock::now()),
        Err(Unfinished::Interrupted) => Err(Abort::Interrupted),
        Err(Unfinished::Failed(error)) => {
            Err(Failure::environment(format!("cannot wait for the program: {error}")).into())
        }
    }
}

/// The first process of a container, which is not dunnage's child.
#[derive(Debug)]
pub(super) struct First {
    pub pid: i32,
    pub process: OwnedFd,
}

impl First {
    /// From the pid file of the program that started it.
    pub fn of_file(path: &Path, by: &str) -> Result<First, Failure> {
        let said = std::fs::read_to_string(path).unwrap_or_default();
        let pid = said.trim().parse();
        let pid =
            pid.map_err(|_| Failure::environment(format!("`{by}` left no process id in its pid file")))?;
        let process = pidfd::open(pid).or_environment(format_args!("cannot watch process {pid}"))?;
        Ok(First { pid, process })
    }
}

/// A verb that a kind of subject does not have.
pub(super) fn no_verb(verb: &str) -> Abort {
    Failure::new(FailureClass::Unsupported, format!("this kind of subject has no verb `{verb}`")).into()
}

/// A verb called out of order. Experiments keep the order, so this is a bug in dunnage.
pub(super) fn nothing_runs() -> Failure {
    Failure::environment("the container is not running")
}

/// An order to a program that takes none or is not ready, which is a bug in dunnage too.
pub(super) fn no_service() -> Failure {
    Failure::environment("no service is ready in this container")
}
