//! Containers as handles. A subject can have any number of them at a time; each is made, started, entered,
//! stopped and removed separately, from whichever thread holds it. Dropping a handle removes its container,
//! in any state.
//!
//! What a kind of subject does for each verb is behind [`Verbs`]; names, the journal, and the first process
//! are handled here for all of them. Deliberately absent: what the verbs are used for, which experiments
//! decide.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::path::PathBuf;

use dunnage_orders::{self as orders, Answer, Ask, Reply};
use serde::de::DeserializeOwned;

use super::channel::{self, Awaited, Channel};
use super::draft::{Draft, Entered, Published, Said, Span, Verbs, is_cut_short, is_over, no_service};
use super::helpers::{Helping, Working};
use super::limits::Limits;
use super::machine::Machine;
use super::resources;
use super::treatment::{Expected, Network};
use super::{
    Access, Attachment, ContainerRequest, Cpu, Description, Entrypoint, Layer, Mount, Need, Object,
    ObjectKind, Observed, Resident, RunContext, Subject, kinds,
};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::Task;
use crate::probe::message::Message;
use crate::resource::journal::Entry;
use crate::resource::remove_tree;
use crate::sys::process::{self, Process};
use crate::sys::{cgroup, clock, place};
use crate::units::Nanos;

/// The verb that makes a container.
type Make = fn(&mut dyn Verbs) -> Result<Span, Abort>;

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
    /// Its own, once they are found.
    processes: Vec<Process>,
    /// Whether it is watched: then the engine is asked for nothing that the user did not ask for.
    is_watched: bool,
    /// Of this thread, as far as it was its client.
    client_cpu: Nanos,
    machine: &'a dyn Machine,
    created: Span,
    mounts: Vec<Mount>,
    /// Limits of its cgroup that its subject's keys do not ask for.
    limits: Limits,
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
        Container::made_by(subject, request, run, |verbs| verbs.create())
    }

    /// Makes and starts one, detached, by one command where there is one.
    pub fn run(
        subject: &'a dyn Subject,
        request: &ContainerRequest,
        run: &'a RunContext,
    ) -> Result<Container<'a>, Abort> {
        let mut made = Container::made_by(subject, request, run, |verbs| verbs.run())?;
        if made.service.is_none() {
            made.check_limits(None)?;
        }
        Ok(made)
    }

    fn made_by(
        subject: &'a dyn Subject,
        request: &ContainerRequest,
        run: &'a RunContext,
        verb: Make,
    ) -> Result<Container<'a>, Abort> {
        let about = subject.about();
        if let Some(why) = lacking(about, request) {
            let reason = format!("`{}` {why}", about.spec);
            return Err(Failure::new(FailureClass::Unsupported, reason).into());
        }
        request.limits.check_next_to(about.expected.limits)?;
        let helping = Helping::begin(subject);
        let name = run.next_name();
        let directory = run.workspace().join(&name);
        place::make(&directory).or_environment(format_args!("cannot make `{}`", directory.display()))?;
        let made = Container::in_directory(subject, request, run, (name, &directory, helping, verb));
        // A container that there is removes its directory itself.
        made.inspect_err(|_| drop(remove_tree(&directory)))
    }

    fn in_directory(
        subject: &'a dyn Subject,
        request: &ContainerRequest,
        run: &'a RunContext,
        (name, directory, helping, verb): (String, &std::path::Path, Helping, Make),
    ) -> Result<Container<'a>, Abort> {
        let about = subject.about();
        let directory = directory.to_owned();
        let mut expected = about.expected.clone();
        // A network that an engine keeps cannot be joined by processes of the host.
        let is_joined = |attachment: &Attachment| {
            attachment.bridge.is_some() || about.makes.contains(&ObjectKind::Network)
        };
        if request.network.as_ref().is_some_and(is_joined) {
            expected.network = Network::Connected;
        }
        if !request.options.is_empty() {
            expected = Expected::anything();
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
            processes: Vec::new(),
            is_watched: false,
            client_cpu: Nanos(0),
            machine: subject.machine(),
            created: Span::none(),
            mounts: request.mounts.clone(),
            limits: request.limits,
            service,
        };
        made.created = made.carry_out(verb)?;
        Ok(made)
    }

    fn carry_out<T>(&mut self, verb: impl FnOnce(&mut dyn Verbs) -> Result<T, Abort>) -> Result<T, Abort> {
        let before = self.verbs.is_its_own_client().then(clock::thread_cpu);
        let done = verb(self.verbs.as_mut());
        let used = before.map_or(0, |before| clock::thread_cpu().0 - before.0);
        self.client_cpu = Nanos(self.client_cpu.0 + used);
        self.cut_short |= done.as_ref().is_err_and(is_cut_short);
        done
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long it took to make it, or to make and start it.
    pub fn created(&self) -> Span {
        self.created
    }

    /// Starts its program.
    pub fn start(&mut self) -> Result<Span, Abort> {
        let span = self.carry_out(|verbs| verbs.start())?;
        // One that serves says its process id itself, so the engine need not be asked.
        if self.service.is_none() {
            self.check_limits(None)?;
        }
        Ok(span)
    }

    /// Checks, outside every measured interval, that its own limits are in force for its first process.
    fn check_limits(&mut self, first: Option<i32>) -> Result<(), Failure> {
        // A scripted container has no cgroup.
        if self.limits == Limits::default() || self.verbs.own_account().is_some() || self.is_watched {
            return Ok(());
        }
        let first = first.map_or_else(|| self.first_process(), Ok)?;
        let found = Limits::in_force(first)
            .or_environment(format_args!("cannot read the cgroups of process {first}"))?;
        match self.limits.fault(&found) {
            Some(fault) => Err(Failure::new(FailureClass::Treatment, format!("not as asked: {fault}"))),
            None => Ok(()),
        }
    }

    /// Runs the probe as a second process inside with this order, and checks its treatment. Anything that it
    /// needs of the host must have been requested when the container was made.
    pub fn exec<'b>(&mut self, order: impl Into<Entrypoint<'b>>) -> Result<Entered, Abort> {
        let order = order.into();
        let before = self.client_cpu;
        let entered = self.carry_out(|verbs| verbs.exec(order))?;
        // Without what reads the message.
        self.client_cpu = before + entered.client_cpu;
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
        self.find_processes();
        let running = self.own_processes();
        let daemons = self.daemons.clone();
        let watch = self.run.watch(daemons.as_deref().map_err(String::as_str))?;
        let before = self.client_cpu;
        self.is_watched = true;
        let done = verbs(self);
        self.is_watched = false;
        let (done, used) = (done?, Nanos(self.client_cpu.0 - before.0));
        let observed = watch.settle(used, running, || {
            self.find_processes();
            self.own_processes()
        })?;
        if self.service.is_none() {
            self.check_limits(None)?;
        }
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

    /// Finds its processes and helpers once it runs, as far as they are its alone: its first process may be a kernel that works for
    /// an entry. Asking the engine takes time of its own, so call it before anything that nothing may disturb.
    pub fn find_processes(&mut self) {
        if self.processes.is_empty()
            && let Ok(first) = self.first_process()
        {
            let its = self.helpers().into_iter().filter(|one| one.container.is_some());
            self.processes = process::read(first).into_iter().chain(its.map(|one| one.process)).collect();
        }
    }

    /// The ids of those that are still there: another process may have the id of one that has ended.
    fn own_processes(&self) -> Vec<i32> {
        let is_there = |one: &&Process| process::read(one.pid).is_some_and(|now| now.is_same(one));
        self.processes.iter().filter(is_there).map(|one| one.pid).collect()
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
            self.check_limits(channel.peer.pid)?;
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
                let said = self.verbs.logs().map(|said| said.text).unwrap_or_default();
                failure.with_words(said.as_bytes()).into()
            }
            abort => abort,
        }
    }

    /// What its program has written so far, standard output first; the first mebibyte of a stream where a command says it.
    pub fn logs(&mut self) -> Result<Said, Abort> {
        self.carry_out(|verbs| verbs.logs())
    }

    /// What it uses, in its engine's own words: JSON of the engine's own form.
    pub fn stats(&mut self) -> Result<Said, Abort> {
        self.carry_out(|verbs| verbs.stats())
    }

    /// Changes these limits of its cgroup while it runs, and checks that they are in force. Others stay.
    pub fn update(&mut self, limits: &Limits) -> Result<Span, Abort> {
        limits.check_next_to(self.expected.limits)?;
        let span = self.carry_out(|verbs| verbs.update(limits))?;
        self.limits = limits.or(self.limits);
        self.check_limits(None)?;
        Ok(span)
    }

    /// Where its published ports can be reached.
    pub fn ports(&mut self) -> Result<Vec<Published>, Failure> {
        self.verbs.ports()
    }

    /// The paths of the host that were bound into it on request.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// Sends its program SIGTERM and, after so many seconds, SIGKILL; waits until it has ended. Without a
    /// second, it is killed at once. Engines give [`GRACE`](super::GRACE) unless asked otherwise.
    pub fn stop(&mut self, grace: u32) -> Result<Span, Abort> {
        self.carry_out(|verbs| verbs.stop(grace))
    }

    /// Removes it, now that it is stopped.
    pub fn remove(self) -> Result<Span, Abort> {
        self.removed_by(|verbs| verbs.remove())
    }

    /// Kills its program and removes it, by one command where there is one.
    pub fn end(self) -> Result<Span, Abort> {
        self.removed_by(|verbs| verbs.end())
    }

    fn removed_by(mut self, verb: Make) -> Result<Span, Abort> {
        let removed = self.carry_out(verb)?;
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
