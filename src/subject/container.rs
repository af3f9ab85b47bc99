//! Containers as handles. A subject has any number of them at a time; each is made, started, entered, stopped and removed by
//! itself, from whichever thread holds it. A handle that goes takes its container with it, whatever state that is in.
//!
//! What one kind of subject does for each verb is behind [`Verbs`]; names, the journal, and what the first process tells are the
//! same for all and stand here. Deliberately absent: what the verbs are good for; experiments decide that.

// long: the handle and what each verb means for it are one thing, of which every subject shares all.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::account::Account;
use super::channel::{self, Awaited, Channel};
use super::client::{self, Terminal};
use super::component::Client;
use super::resources;
use super::treatment::{Expected, Network};
use super::{
    Access, ContainerRequest, Cpu, Joint, Launch, Mount, Offer, Order, Resident, RunContext, Spec, Subject,
    Work, addresses,
};
use crate::image::EXECUTABLE;
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::message::{Answer, Message};
use crate::probe::{PROBE, Task};
use crate::resource::journal::Entry;
use crate::resource::{Found, command};
use crate::sys::signals;
use crate::sys::spawn::{Ended, Program};
use crate::sys::{cgroup, clock, pidfd, process};
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
    /// CPU time that no listener counts: of this thread where dunnage itself is the client, and of a script.
    pub cpu: Cpu,
}

/// A port of a container that can be reached at an address of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Its own port.
    pub inside: u16,
    /// Where the host has it.
    pub host: SocketAddr,
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
    /// What must be found inside.
    pub expected: Expected,
}

/// What a kind of subject does for each verb of one container. They come in the order of their declaration, `exec` as often as
/// wanted; after a failure only `discard` may follow.
pub trait Verbs: Send {
    /// Makes the container, which does not run yet.
    fn create(&mut self) -> Result<Span, Abort>;
    /// Starts its program.
    fn start(&mut self) -> Result<Span, Abort>;
    /// Runs the probe as a second process inside with this order.
    fn exec(&mut self, order: Order<'_>) -> Result<Entered, Abort>;
    /// Asks its program to end by SIGTERM, and waits until it has.
    fn stop(&mut self) -> Result<Span, Abort>;
    /// Removes it.
    fn remove(&mut self) -> Result<Span, Abort>;
    /// The id of its first process, as the host sees it.
    fn first_process(&mut self) -> Result<i32, Failure>;
    /// Where its own ports can be reached; none where nothing was published.
    fn ports(&mut self) -> Result<Vec<Published>, Failure> {
        Ok(Vec::new())
    }
    /// What its program has written so far, where that is kept.
    fn output(&mut self) -> String {
        String::new()
    }
    /// The daemons that work for its client; why they are not known, where there are some that are not.
    fn daemons(&self) -> Result<&[i32], &str> {
        Ok(&[])
    }
    /// Removes what is left of it, whatever state it is in.
    fn discard(&mut self) -> Result<Found, Failure>;
}

/// A container.
pub struct Container<'a> {
    name: String,
    directory: PathBuf,
    run: &'a RunContext,
    expected: Expected,
    verbs: Box<dyn Verbs + 'a>,
    entry: Option<Entry>,
    /// Whether a verb was given up in the middle: then what it asked for may still come.
    cut_short: bool,
    /// Whether its processes are real.
    has_a_clock: bool,
    created: Span,
    mounts: Vec<Mount>,
    service: Option<Service>,
}

/// The channel to a program that serves.
enum Service {
    /// It has not called yet.
    Awaited(Awaited),
    /// It has, and said this; each order that was sent and is not answered may take so long.
    Ready { channel: Channel, hello: Box<Message>, orders: VecDeque<Nanos> },
}

impl<'a> Container<'a> {
    /// Makes a container whose program is the probe; it does not run yet.
    pub fn create(
        subject: &'a dyn Subject,
        request: &ContainerRequest,
        run: &'a RunContext,
    ) -> Result<Container<'a>, Abort> {
        let about = subject.about();
        if !request.ports.is_empty() && !about.publishes_ports {
            let reason = format!("`{}` publishes no ports", about.spec);
            return Err(Failure::new(FailureClass::Unsupported, reason).into());
        }
        let name = run.next_name();
        let directory = run.workspace().join(&name);
        std::fs::create_dir_all(&directory)
            .or_environment(format_args!("cannot make `{}`", directory.display()))?;
        let mut expected = about.expected.clone();
        // What an engine keeps is no network for processes of the host.
        let is_joined = |joint: &Joint| joint.bridge.is_some() || about.makes.contains(&Offer::Network);
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
        let verbs = subject.verbs(draft)?;
        let entry = run.note(resources::container(&about.spec, &name))?;
        let mut made = Container {
            name,
            directory,
            run,
            expected,
            verbs,
            entry: Some(entry),
            cut_short: false,
            has_a_clock: subject.has_a_clock(),
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
        let entered = self.carry_out(|verbs| verbs.exec(order))?;
        self.expected.check(&entered.message.inside, &self.run.host)?;
        Ok(entered)
    }

    /// Enters it with this order so many times in a row. Gives the last entry, and the CPU time of one: that of all of them,
    /// divided, since what an engine does after one falls into the next.
    pub fn exec_counted(&mut self, task: Task, times: i64) -> Result<(Entered, Result<Cpu, String>), Abort> {
        let daemons = self.verbs.daemons().map(<[i32]>::to_vec).map_err(str::to_owned);
        let daemons = daemons.map(|own| [own, self.helpers()].concat());
        let run = self.run;
        let account = self.has_a_clock.then(|| Account::begin(run, daemons.as_deref().unwrap_or_default()));
        let mut own = Cpu::default();
        for _ in 1..times {
            own += self.exec(task)?.cpu;
        }
        let entered = self.exec(task)?;
        own += entered.cpu;
        let heard = account.map_or(Ok(Ok(Cpu::default())), |account| account.settle(run))?;
        let cpu = daemons.and(heard).map(|mut cpu| {
            cpu += own;
            Cpu {
                client: Nanos(cpu.client.0 / times),
                engine: Nanos(cpu.engine.0 / times),
                processes: cpu.processes / times,
            }
        });
        Ok((entered, cpu))
    }

    /// What was started with it and may work for whoever enters: its first process, which may be a kernel of its own, and the
    /// shim or monitor that is the parent of that.
    fn helpers(&mut self) -> Vec<i32> {
        let Ok(first) = self.first_process() else { return Vec::new() };
        let parent = |pid: &i32| process::read(*pid).map(|found| found.parent);
        let own: Vec<i32> = std::iter::successors(Some(std::process::id() as i32), parent).collect();
        std::iter::once(first).chain(parent(&first).filter(|pid| !own.contains(pid))).collect()
    }

    /// Waits until its program has said that it is ready, and checks the treatment that it found. What it said stays what it is.
    pub fn ready(&mut self) -> Result<&Message, Abort> {
        if let Some(Service::Awaited(awaited)) = &self.service {
            let called = awaited.ready(self.run, &mut || self.verbs.first_process());
            let (channel, hello) = called.map_err(|abort| self.with_output(abort))?;
            self.expected.check(&hello.inside, &self.run.host)?;
            self.service = Some(Service::Ready { channel, hello: Box::new(hello), orders: VecDeque::new() });
        }
        match &self.service {
            Some(Service::Ready { hello, .. }) => Ok(hello),
            _ => Err(no_service().into()),
        }
    }

    /// Sends an order, for which nobody waits; [`Container::answer`] does.
    pub fn send(&mut self, work: &Work) -> Result<(), Abort> {
        let Some(Service::Ready { channel, orders, .. }) = &mut self.service else {
            return Err(no_service().into());
        };
        channel.send(work, self.run)?;
        orders.push_back(self.run.allowed + work.takes);
        Ok(())
    }

    /// Waits for the answer to the first of the orders that were sent and are not answered yet. A work that the subject does
    /// not support is a failure of that class.
    pub fn answer(&mut self) -> Result<Answer, Abort> {
        let Some(Service::Ready { channel, orders, .. }) = &mut self.service else {
            return Err(no_service().into());
        };
        let allowed = orders.pop_front().ok_or_else(|| Failure::environment("no order was sent"))?;
        let answered = channel.answer(allowed, self.run);
        let answer = answered.map_err(|abort| self.with_output(abort))?;
        match &answer.done.refused {
            Some(why) => Err(Failure::new(FailureClass::Unsupported, why.clone()).into()),
            None => Ok(answer),
        }
    }

    /// Has its program carry out an order.
    pub fn ask(&mut self, work: &Work) -> Result<Answer, Abort> {
        self.send(work)?;
        self.answer()
    }

    /// A failure with what the program has written, where it has no words yet.
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

    /// The places of the host that are bound into it because somebody asked for it.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
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
        if let Some(Service::Ready { channel: Channel { process: Some(process), .. }, .. }) = self.service {
            return Ok(process);
        }
        self.verbs.first_process()
    }

    /// CPU time that its first process has used so far, all its threads together.
    pub fn cpu(&mut self) -> Result<Nanos, Failure> {
        let first = self.first_process()?;
        clock::process_cpu(first).or_environment(format_args!("cannot read the CPU time of process {first}"))
    }

    /// Its own addresses, those of loopback not among them.
    pub fn addresses(&mut self) -> Result<Vec<IpAddr>, Failure> {
        let first = self.first_process()?;
        addresses::of_process(first)
            .or_environment(format_args!("cannot read the addresses of process {first}"))
    }

    /// The directories of its cgroups, one in each hierarchy that is mounted here.
    pub fn cgroups(&mut self) -> Result<Vec<PathBuf>, Failure> {
        let first = self.first_process()?;
        let mounted = cgroup::mounted_of(first)
            .or_environment(format_args!("cannot read the cgroups of process {first}"))?;
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

/// Carries one launch out under its line in the journal. Of one that failed `discard` removes what it left.
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
    pub(super) fn order(&self) -> Order<'_> {
        Order::Stay(&self.request)
    }

    /// Carries out one command; one that fails is a failure in its own words.
    pub(super) fn carry_out(&self, client: &Client, words: &[impl AsRef<str>]) -> Result<Span, Abort> {
        let ended = command::carry_out(&client.program(words)?, self.run.allowed, &self.run.interrupts)?;
        Ok(Span { began: ended.spawned, ended: ended.returned })
    }

    /// Has a client run the probe with this order inside, by this verb.
    pub(super) fn enter(
        &self,
        client: &Client,
        verb: &[&str],
        order: Order<'_>,
        terminal: Terminal,
    ) -> Result<Entered, Abort> {
        let order_words = order.words(self.expected.detail());
        let words = [&self.name, EXECUTABLE, PROBE].into_iter().chain(order_words.iter().map(String::as_str));
        let words: Vec<&str> = verb.iter().copied().chain(words).collect();
        self.enter_by(&client.program(&words)?, order, terminal)
    }

    /// The same by a command that is whole.
    pub(super) fn enter_by(
        &self,
        program: &Program,
        order: Order<'_>,
        terminal: Terminal,
    ) -> Result<Entered, Abort> {
        let allowed = order.allowed(self.run);
        let ended = command::until_it_ends(program, order.reading(), allowed, Some(&self.run.interrupts))?;
        Ok(self.entered(&program.shown(), &ended, terminal, order)?)
    }

    /// What a probe said that entered.
    pub(super) fn entered(
        &self,
        shown: &str,
        ended: &Ended,
        terminal: Terminal,
        order: Order<'_>,
    ) -> Result<Entered, Failure> {
        let message = client::message_in(shown, ended, terminal, order)?;
        let treatment = self.run.treatment(&message.inside);
        let cpu = Cpu::default();
        Ok(Entered { spawned: ended.spawned, returned: ended.returned, message, treatment, cpu })
    }

    /// Waits for the end of the first process, after this command has sent it SIGTERM.
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
        let pid =
            pid.map_err(|_| Failure::environment(format!("`{by}` left no process id in its pid file")))?;
        let process = pidfd::open(pid).or_environment(format_args!("cannot watch process {pid}"))?;
        Ok(First { pid, process })
    }
}

/// What a verb says that comes before its time; the order is the experiments' to keep, so it is a fault of ours.
pub(super) fn nothing_runs() -> Failure {
    Failure::environment("there is no running container for this verb")
}

/// The same of orders to a program that takes none, or is not known to be ready.
fn no_service() -> Failure {
    Failure::environment("there is no service in this container that is ready")
}
