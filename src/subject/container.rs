//! Containers as handles. A subject can have any number of them at a time; each is made, started, entered,
//! stopped and removed separately, from whichever thread holds it. Dropping a handle removes its container,
//! in any state.
//!
//! What a kind of subject does for each verb is behind [`Verbs`]; names, the journal, and the first process
//! are handled here for all of them. Deliberately absent: what the verbs are used for, which experiments
//! decide.

// long: a handle and the meaning of each verb for it belong together, and every subject shares all of it.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use dunnage_orders::{self as orders, Answer, Ask, Reply};
use serde::de::DeserializeOwned;

use super::channel::{self, Awaited, Channel};
use super::client::{self, Terminal};
use super::component::Client;
use super::helpers::{Helping, Working};
use super::machine::Machine;
use super::resources;
use super::treatment::{Expected, Network};
use super::{
    Access, Attachment, ContainerRequest, Cpu, Description, Entrypoint, Launch, Layer, Mount, Need, Object,
    ObjectKind, Observed, Resident, RunContext, Spec, Subject, kinds,
};
use crate::image::EXECUTABLE;
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::message::Message;
use crate::probe::{PROBE, Task};
use crate::resource::journal::Entry;
use crate::resource::{Found, command, remove_tree};
use crate::sys::signals;
use crate::sys::spawn::{Ended, Program};
use crate::sys::{cgroup, clock, pidfd, place};
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

    /// A verb for which there is nothing to do.
    pub(super) fn none() -> Span {
        let now = clock::now();
        Span { began: now, ended: now }
    }
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

/// What a kind of subject does for each verb of one container. They are called in the order of their
/// declaration, `exec` any number of times; after a failure only `discard` may follow.
pub trait Verbs: Send {
    /// Makes the container, which does not run yet.
    fn create(&mut self) -> Result<Span, Abort>;
    /// Starts its program.
    fn start(&mut self) -> Result<Span, Abort>;
    /// Runs the probe as a second process inside with this order.
    fn exec(&mut self, order: Entrypoint<'_>) -> Result<Entered, Abort>;
    /// Sends its program SIGTERM, and waits until it has ended.
    fn stop(&mut self) -> Result<Span, Abort>;
    /// Removes it.
    fn remove(&mut self) -> Result<Span, Abort>;
    /// The process id of its first process on the host.
    fn first_process(&mut self) -> Result<i32, Failure>;
    /// Where its ports can be reached; empty where none is published.
    fn ports(&mut self) -> Result<Vec<Published>, Failure> {
        Ok(Vec::new())
    }
    /// What its program has written so far, where that is kept.
    fn output(&mut self) -> String {
        String::new()
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
    fn reply(&mut self, order: &orders::Order) -> Result<String, Abort> {
        let _ = order;
        Err(no_service().into())
    }
}

/// A container.
pub struct Container<'a> {
    name: String,
    directory: PathBuf,
    run: &'a RunContext,
    expected: Expected,
    verbs: Box<dyn Verbs + 'a>,
    entry: Option<Entry>,
    /// Whether a verb was abandoned midway: then a daemon may still carry it out.
    cut_short: bool,
    daemons: Result<Vec<i32>, String>,
    helping: Helping,
    /// Of this thread, as far as it was its client.
    client_cpu: Nanos,
    machine: &'a dyn Machine,
    created: Span,
    mounts: Vec<Mount>,
    service: Option<Service>,
}

/// The channel to a program that serves.
enum Service {
    /// The probe has not connected yet.
    Awaited(Awaited),
    /// It has connected and sent `hello`; `orders` has the time allowed to each unanswered order.
    Ready { channel: Channel, hello: Box<Message>, orders: VecDeque<Nanos> },
    /// It has said `hello`, and its verbs carry out orders; these replies were not asked for yet.
    Script { hello: Box<Message>, replies: VecDeque<String> },
}

impl<'a> Container<'a> {
    /// Makes a container whose program is the probe; it does not run yet.
    pub fn create(
        subject: &'a dyn Subject,
        request: &ContainerRequest,
        run: &'a RunContext,
    ) -> Result<Container<'a>, Abort> {
        let about = subject.about();
        if let Some(why) = lacking(about, request) {
            let reason = format!("`{}` {why}", about.spec);
            return Err(Failure::new(FailureClass::Unsupported, reason).into());
        }
        let helping = Helping::begin(subject);
        let name = run.next_name();
        let directory = run.workspace().join(&name);
        place::make(&directory).or_environment(format_args!("cannot make `{}`", directory.display()))?;
        let mut expected = about.expected.clone();
        // A network that an engine keeps cannot be joined by processes of the host.
        let is_joined = |attachment: &Attachment| {
            attachment.bridge.is_some() || about.makes.contains(&ObjectKind::Network)
        };
        if request.network.as_ref().is_some_and(is_joined) {
            expected.network = Network::Connected;
        }
        let mut draft = Draft {
            name: name.clone(),
            directory: directory.clone(),
            request: request.clone(),
            run,
            expected: expected.clone(),
        };
        let service = match request.program {
            Resident::Waits => None,
            Resident::Serves => {
                let (awaited, host) = Awaited::below(&directory)?;
                let inside = PathBuf::from(channel::INSIDE);
                draft.request.channel = Some(inside.clone());
                draft.request.mounts.push(Mount { host, inside, access: Access::ReadWrite });
                Some(Service::Awaited(awaited))
            }
        };
        let mut verbs = subject.verbs(draft)?;
        let scripted = |hello| Service::Script { hello: Box::new(hello), replies: VecDeque::new() };
        let service = service.map(|awaited| verbs.hello().map_or(awaited, scripted));
        let entry = run.note(resources::container(&about.spec, &name))?;
        let mut made = Container {
            name,
            directory,
            run,
            expected,
            verbs,
            entry: Some(entry),
            cut_short: false,
            daemons: subject.daemons().map(<[i32]>::to_vec).map_err(str::to_owned),
            helping,
            client_cpu: Nanos(0),
            machine: subject.machine(),
            created: Span::none(),
            mounts: request.mounts.clone(),
            service,
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

    /// How long it took to make it.
    pub fn created(&self) -> Span {
        self.created
    }

    /// Starts its program.
    pub fn start(&mut self) -> Result<Span, Abort> {
        self.carry_out(|verbs| verbs.start())
    }

    /// Runs the probe as a second process inside with this order, and checks its treatment. Anything that it
    /// needs of the host must have been requested when the container was made.
    pub fn exec<'b>(&mut self, order: impl Into<Entrypoint<'b>>) -> Result<Entered, Abort> {
        let order = order.into();
        let entered = self.carry_out(|verbs| verbs.exec(order))?;
        self.client_cpu = self.client_cpu + entered.client_cpu;
        self.expected.check(&entered.message.inside, &self.run.host)?;
        Ok(entered)
    }

    /// Does this with it, watched until nothing that was started meanwhile runs any more.
    pub fn watched<T>(
        &mut self,
        verbs: impl FnOnce(&mut Container<'a>) -> Result<T, Abort>,
    ) -> Result<(T, Observed), Abort> {
        if let Some(before) = self.verbs.own_account() {
            let done = verbs(self)?;
            let after = self.verbs.own_account().unwrap_or_default();
            return Ok((done, Observed::of(Ok(after - before))));
        }
        let daemons = self.daemons.clone();
        let watch = self.run.watch(daemons.as_deref().map_err(String::as_str))?;
        let before = self.client_cpu;
        let done = verbs(self)?;
        let own = self.own_processes();
        let observed = watch.settle(Nanos(self.client_cpu.0 - before.0), &own)?;
        Ok((done, observed))
    }

    /// Enters it with this order `times` times in a row. Returns the last entry and the mean CPU time of one:
    /// what an engine does after one entry overlaps the next, so only the sum is known.
    pub fn exec_counted(&mut self, task: Task, times: i64) -> Result<(Entered, Observed), Abort> {
        let (entered, observed) = self.watched(|container| {
            (1..times).try_for_each(|_| container.exec(task).map(drop))?;
            container.exec(task)
        })?;
        let mean = |cpu: Cpu| Cpu {
            client: Nanos(cpu.client.0 / times),
            engine: Nanos(cpu.engine.0 / times),
            shared: Nanos(cpu.shared.0 / times),
            processes: cpu.processes / times,
            port_helpers: cpu.port_helpers / times,
        };
        Ok((entered, Observed { cpu: observed.cpu.map(mean), ..observed }))
    }

    /// What works for it: the daemons, and the helpers of this container.
    pub fn helpers(&mut self) -> Vec<Working> {
        let first: Vec<i32> = self.first_process().into_iter().collect();
        self.helping.find(self.daemons.as_deref().unwrap_or_default(), &first)
    }

    /// Its processes and helpers, as far as they are its alone: its first process may be a kernel that works for an entry.
    fn own_processes(&mut self) -> Vec<i32> {
        let Ok(first) = self.first_process() else { return Vec::new() };
        let its = self.helpers().into_iter().filter(|one| one.container.is_some());
        std::iter::once(first).chain(its.map(|one| one.process.pid)).collect()
    }

    /// Waits until its program has said that it is ready, and checks its treatment. Later calls return the
    /// same message.
    pub fn ready(&mut self) -> Result<&Message, Abort> {
        if let Some(Service::Awaited(awaited)) = &self.service {
            let called = awaited.ready(self.run, &mut || self.verbs.first_process());
            let (channel, hello) = called.map_err(|abort| self.with_output(abort))?;
            self.expected.check(&hello.inside, &self.run.host)?;
            for mount in self.mounts.iter().filter(|mount| mount.access == Access::Given) {
                let peer = &channel.peer;
                place::give(&mount.host, peer.user, peer.group).or_environment(format_args!(
                    "cannot give `{}` to user {}",
                    mount.host.display(),
                    peer.user
                ))?;
            }
            self.service = Some(Service::Ready { channel, hello: Box::new(hello), orders: VecDeque::new() });
        }
        match &self.service {
            Some(Service::Ready { hello, .. } | Service::Script { hello, .. }) => Ok(hello),
            _ => Err(no_service().into()),
        }
    }

    /// What was found inside once it was ready, as recorded.
    pub fn treatment(&mut self) -> Result<Vec<(&'static str, String)>, Abort> {
        let inside = self.ready()?.inside.clone();
        Ok(self.run.treatment(&self.expected, &inside))
    }

    /// Sends an order that takes this long without waiting; [`Container::answer`] waits.
    pub fn send(&mut self, order: impl Into<orders::Order>, takes: Nanos) -> Result<(), Abort> {
        match &mut self.service {
            Some(Service::Ready { channel, orders, .. }) => {
                channel.send(&order.into(), self.run)?;
                orders.push_back(self.run.allowed + takes);
            }
            Some(Service::Script { replies, .. }) => replies.push_back(self.verbs.reply(&order.into())?),
            _ => return Err(no_service().into()),
        }
        Ok(())
    }

    /// Waits for the answer to the oldest unanswered order. Why it was not carried out is a failure.
    pub fn answer<T: DeserializeOwned>(&mut self) -> Result<Answer<T>, Abort> {
        let unsent = || Failure::environment("no order was sent");
        let answered = match &mut self.service {
            Some(Service::Ready { channel, orders, .. }) => {
                channel.answer(orders.pop_front().ok_or_else(unsent)?, self.run)
            }
            Some(Service::Script { replies, .. }) => {
                let reply = replies.pop_front().ok_or_else(unsent)?;
                Ok(serde_json::from_str(&reply).or_environment("a scripted reply cannot be read")?)
            }
            _ => return Err(no_service().into()),
        };
        let Reply { began, ended, cpu, done } = answered.map_err(|abort| self.with_output(abort))?;
        Ok(Answer { began, ended, cpu, done: done? })
    }

    /// Sends an order that takes this long, and waits for its answer.
    pub fn ask<O: Ask>(&mut self, order: O, takes: Nanos) -> Result<Answer<O::Answer>, Abort> {
        self.send(order, takes)?;
        self.answer()
    }

    /// Adds what the program has written to a failure that has no words yet.
    fn with_output(&mut self, abort: Abort) -> Abort {
        match abort {
            Abort::Failed(failure) if failure.words.is_none() => {
                failure.with_words(self.verbs.output().as_bytes()).into()
            }
            abort => abort,
        }
    }

    /// What its program has written so far, where the subject keeps that.
    pub fn output(&mut self) -> String {
        self.verbs.output()
    }

    /// Where its published ports can be reached.
    pub fn ports(&mut self) -> Result<Vec<Published>, Failure> {
        self.verbs.ports()
    }

    /// The paths of the host that were bound into it on request.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// Sends its program SIGTERM, and waits until it has ended.
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

    /// The process id of its first process on the host.
    pub fn first_process(&mut self) -> Result<i32, Failure> {
        if let Some(Service::Ready { channel, .. }) = &self.service
            && let Some(process) = channel.peer.pid
        {
            return Ok(process);
        }
        self.verbs.first_process()
    }

    /// CPU time that all threads of its first process have used so far.
    pub fn cpu(&mut self) -> Result<Nanos, Failure> {
        let first = self.first_process()?;
        clock::process_cpu(first).or_environment(format_args!("cannot read the CPU time of process {first}"))
    }

    /// Its own addresses, without loopback.
    pub fn addresses(&mut self) -> Result<Vec<IpAddr>, Failure> {
        self.machine.addresses(self.first_process())
    }

    /// The directories of its cgroups, one in each hierarchy that is mounted here.
    pub fn cgroups(&mut self) -> Result<Vec<PathBuf>, Failure> {
        let first = self.first_process()?;
        let mounted = cgroup::mounted_of(first)
            .or_environment(format_args!("cannot read the cgroups of process {first}"))?;
        Ok(mounted.into_iter().filter_map(|hierarchy| hierarchy.own).collect())
    }
}

/// What this subject cannot do of a request.
fn lacking(about: &Description, request: &ContainerRequest) -> Option<&'static str> {
    let knows_names = kinds::of(&about.spec).is_ok_and(|kind| kind.layer == Layer::Engine);
    let is_known =
        |image: &Object| about.makes.contains(&ObjectKind::Image) && image.name().is_some() == knows_names;
    if !request.ports.is_empty() && !about.offers.contains(&Need::Ports) {
        return Some("does not publish ports");
    }
    if !request.volumes.is_empty() && !about.makes.contains(&ObjectKind::Volume) {
        return Some("does not mount volumes");
    }
    request
        .image
        .as_ref()
        .is_some_and(|image| !is_known(image))
        .then_some("cannot run an image of another subject")
}

/// Removes the container if that has not been done. If it cannot be removed, the journal keeps it.
impl Drop for Container<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take()
            && is_over(self.cut_short, &self.verbs.discard())
        {
            self.run.cross_out(entry);
        }
        let _ = remove_tree(&self.directory);
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
        let ended = command::carry_out(&client.program(words)?, self.run.allowed, &self.run.interrupts)?;
        Ok(Span { began: ended.spawned, ended: ended.returned })
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

    /// Waits until the first process has ended, after this command has sent it SIGTERM.
    pub(super) fn stop(&self, client: &Client, words: &[&str], first: &First) -> Result<Span, Abort> {
        let sent = self.carry_out(client, words)?;
        let allowed = self.run.allowed;
        match self.run.interrupts.await_end(Some(&first.process), allowed) {
            signals::Awaited::Ended => Ok(Span { ended: clock::now(), ..sent }),
            signals::Awaited::Interrupted => Err(Abort::Interrupted),
            signals::Awaited::TimedOut => {
                let reason = format!(
                    "the container did not end within {allowed} after `{}`",
                    client.program(words)?.shown()
                );
                Err(Failure { took: allowed, ..Failure::new(FailureClass::Timeout, reason) }.into())
            }
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

/// A verb called out of order. Experiments keep the order, so this is a bug in dunnage.
pub(super) fn nothing_runs() -> Failure {
    Failure::environment("the container is not running")
}

/// The same for orders to a program that takes none or is not ready.
fn no_service() -> Failure {
    Failure::environment("no service is ready in this container")
}
