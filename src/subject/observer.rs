//! What watches a launch, or what is done with running containers, from outside. All observers are armed right before the first
//! system call of what they watch and stopped once it has returned and is gone, or has settled, so that none is in its time.
//!
//! The CPU time of all processes is the first of them (`account`); a run has the list.

use std::path::Path;

use dunnage_analysis::names::Counter;

use super::Cpu;
use crate::outcome::{Abort, Artefact, Word};
use crate::sys::accounting::{Client, Listener, thread};
use crate::sys::signals::Interrupts;
use crate::units::Nanos;

/// What is watched, as far as it is known.
#[derive(Debug)]
pub struct Watched<'a> {
    /// Hears what processes do, or why it cannot.
    pub listener: Result<&'a Listener, &'a str>,
    /// The user's requests to stop.
    pub interrupts: &'a Interrupts,
    /// The daemons that work for it, or why some of them are not known.
    pub daemons: Result<&'a [i32], &'a str>,
    /// The runtime's executable, which must have run, where one is asked for.
    pub runtime: Option<&'a Path>,
    /// Which processes are the client; known once it has started.
    pub client: Client,
    /// CPU time of this thread that is the client's.
    pub client_cpu: Nanos,
    /// Processes of the containers themselves, on the host, as far as they are known.
    pub own: Vec<i32>,
}

/// Something that watches.
pub trait Observer<'a> {
    /// Right before the first system call.
    fn arm(&mut self, of: &Watched<'a>) -> Result<(), Abort>;
    /// Waits until what was started meanwhile is calm, where containers continue to run.
    fn settle(&mut self, _: &Watched<'a>) -> Result<(), Abort> {
        Ok(())
    }
    /// Right after everything is gone or has settled.
    fn stop(&mut self, of: &Watched<'a>);
    /// Adds what it found, once nothing is watched any more and all is known that can be. An error is the outcome of what was
    /// watched.
    fn facts(&mut self, of: &Watched<'a>, found: &mut Observed) -> Result<(), Abort>;
    /// The files that it leaves with the sample.
    fn artefacts(&mut self) -> Vec<(Word, Artefact)> {
        Vec::new()
    }
}

/// Makes an observer for one thing that is watched.
pub type Make = for<'a> fn(&Watched<'a>) -> Box<dyn Observer<'a> + 'a>;

/// What observers found.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// CPU time, or why there is none.
    pub cpu: Result<Cpu, String>,
    /// Other numbers.
    pub counters: Vec<(Counter, i64)>,
    /// Facts in addition to the treatment's.
    pub facts: Vec<(&'static str, String)>,
    /// Files.
    pub artefacts: Vec<(Word, Artefact)>,
}

impl Observed {
    /// CPU time alone.
    pub fn of(cpu: Result<Cpu, String>) -> Observed {
        Observed { cpu, counters: Vec::new(), facts: Vec::new(), artefacts: Vec::new() }
    }
}

/// Something that is being watched.
pub struct Watch<'a> {
    of: Watched<'a>,
    observers: Vec<Box<dyn Observer<'a> + 'a>>,
    /// Whether they have not been stopped.
    is_open: bool,
}

impl<'a> Watch<'a> {
    /// Arms these observers. What this thread starts from now on, and what these daemons do, is watched.
    pub(super) fn arm(
        observers: &[Make],
        (listener, interrupts): (Result<&'a Listener, &'a str>, &'a Interrupts),
        daemons: Result<&'a [i32], &'a str>,
    ) -> Result<Watch<'a>, Abort> {
        let (client, client_cpu) = (Client::Children(thread()), Nanos(0));
        let of =
            Watched { listener, interrupts, daemons, runtime: None, client, client_cpu, own: Vec::new() };
        let observers = observers.iter().map(|make| make(&of)).collect();
        let mut watch = Watch { of, observers, is_open: true };
        watch.observers.iter_mut().try_for_each(|one| one.arm(&watch.of))?;
        Ok(watch)
    }

    /// Stops the observers of a launch of which nothing is left.
    pub(super) fn stop(
        mut self,
        (client, client_cpu): (Client, Nanos),
        runtime: Option<&'a Path>,
    ) -> Result<Observed, Abort> {
        self.stop_all();
        (self.of.client, self.of.client_cpu, self.of.runtime) = (client, client_cpu, runtime);
        self.found()
    }

    /// The same for what continues to run: once it is calm, since a monitor still cleans up after an entry has returned.
    /// `client_cpu` is this thread's time that is the client's. `before` are processes of the containers that ran already; `own`
    /// finds those that run now, which may ask the engine and so comes when nothing is watched any more.
    pub fn settle(
        mut self,
        client_cpu: Nanos,
        before: Vec<i32>,
        own: impl FnOnce() -> Vec<i32>,
    ) -> Result<Observed, Abort> {
        (self.of.client_cpu, self.of.own) = (client_cpu, before);
        self.observers.iter_mut().rev().try_for_each(|one| one.settle(&self.of))?;
        self.stop_all();
        if self.of.own.is_empty() {
            self.of.own = own();
        }
        self.found()
    }

    fn stop_all(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.observers.iter_mut().rev().for_each(|one| one.stop(&self.of));
        }
    }

    fn found(mut self) -> Result<Observed, Abort> {
        let mut found = Observed::of(Err("it was not counted".to_owned()));
        for one in &mut self.observers {
            one.facts(&self.of, &mut found)?;
            found.artefacts.extend(one.artefacts());
        }
        Ok(found)
    }
}

/// After an error too: what an observer has started ends.
impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.stop_all();
    }
}
