//! What the containers of a subject weigh, and who pays: the containers' own cgroups, the helpers that their engine keeps or starts
//! for them, the caller who asked for them, and the kernel where no cgroup is charged. Everything is read at each step, and divided
//! once the last one is known (`payers`), since a cgroup may turn out to be a helper's later.
//!
//! Deliberately absent: what one container more costs, which the analysis computes from the steps.

mod caller;
mod instrument;
mod payers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::caller::Caller;
use super::helpers::{Helping, Working, own_cgroup};
use super::weight::{Instrument, Weighed, Weight};
use super::{Container, RunContext, Subject};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::sys::cgroup::Version;
use crate::sys::memory::charged::{Charged, Charging, Parts};
use crate::sys::memory::resident::{self, Resident};
use crate::sys::memory::{self, Machine, PAGE};
use crate::sys::{clock, process};
use crate::units::Nanos;

/// The kernel collects what cgroups are charged every two seconds; two readings this far apart that agree are right.
const APART: Nanos = Nanos::from_millis(2_200);
/// How often it is looked whether anything has changed.
const LOOK: Nanos = Nanos::from_millis(200);
/// How long two readings may take to agree.
const PATIENCE: Nanos = Nanos::from_millis(10_000);

/// What was read at a step.
struct Reading {
    /// The containers' own cgroups.
    own: Vec<PathBuf>,
    parts: Option<Parts>,
    cgroups: BTreeMap<PathBuf, Charged>,
    kernel_anywhere: i64,
    machine: Machine,
    processes: Vec<Read>,
    helpers: Vec<Working>,
    dying: Option<i64>,
    unread: i64,
}

/// A process at a step.
struct Read {
    pid: i32,
    started: u64,
    name: String,
    cgroup: Option<PathBuf>,
    has: Resident,
}

/// Weighs the containers of a subject, step by step.
pub struct Scale<'a> {
    subject: &'a dyn Subject,
    run: &'a RunContext,
    charging: Option<Charging>,
    helping: Helping,
    caller: Result<Caller<'a>, String>,
    readings: Vec<Reading>,
    scripted: Vec<Weight>,
    instrument: Option<Instrument>,
    unsettled: i64,
    /// First process and cgroup of each container by its name, asked for once.
    known: BTreeMap<String, (i32, PathBuf)>,
}

impl<'a> Scale<'a> {
    /// From now on, what clients are started for belongs to the caller.
    ///
    /// # Errors
    /// If this machine does not say what cgroups are charged.
    pub fn begin(subject: &'a dyn Subject, run: &'a RunContext) -> Result<Scale<'a>, Failure> {
        let is_scripted = subject.machine().is_scripted();
        let charging =
            (!is_scripted).then(Charging::here).transpose().or_environment("cannot weigh containers")?;
        let begun = charging.as_ref().map(|charging| Caller::begin(charging, run));
        let caller = begun.unwrap_or_else(|| Err(Failure::environment("it is scripted")));
        Ok(Scale {
            subject,
            run,
            charging,
            helping: Helping::begin(subject),
            caller: caller.map_err(|why| why.reason),
            readings: Vec::new(),
            scripted: Vec::new(),
            instrument: None,
            unsettled: 0,
            known: BTreeMap::new(),
        })
    }

    /// Reads everything, once the containers have settled.
    pub fn weigh(&mut self, containers: &mut [Container<'_>]) -> Result<(), Abort> {
        let Some(charging) = self.charging.clone() else {
            self.scripted.extend(self.subject.machine().weight(self.run, containers.len() as i64));
            return Ok(());
        };
        let mut firsts = Vec::new();
        for one in containers {
            let (first, cgroup) = match self.known.get(one.name()) {
                Some(known) => known.clone(),
                None => {
                    let first = one.first_process()?;
                    let cgroup = own_cgroup(&charging, first, one.name())?;
                    self.check(&charging, &cgroup, one.name())?;
                    self.known.insert(one.name().to_owned(), (first, cgroup.clone()));
                    (first, cgroup)
                }
            };
            firsts.push((first, cgroup));
        }
        let own: Vec<PathBuf> = firsts.iter().map(|(_, cgroup)| cgroup.clone()).collect();
        self.settle(&charging, &own)?;
        let firsts: Vec<i32> = firsts.into_iter().map(|(first, _)| first).collect();
        let helpers = self.helping.find(self.subject.daemons().unwrap_or_default(), &firsts);
        let reading = read(&charging, own, helpers).or_environment("cannot weigh containers")?;
        if let Some(gone) = reading.own.iter().find(|one| !reading.cgroups.contains_key(*one)) {
            let reason = format!("a container has ended: there is no `{}` any more", gone.display());
            return Err(Failure::new(FailureClass::Crash, reason).into());
        }
        self.readings.push(reading);
        Ok(())
    }

    /// Asks the engine's own tool about a container that was weighed; last, since the engine's processes grow by it.
    pub fn ask(&mut self, container: &mut Container<'_>) -> Result<(), Abort> {
        if let (Some(charging), Some((_, cgroup))) = (&self.charging, self.known.get(container.name())) {
            self.instrument = instrument::asked(container, (charging, cgroup), self.subject)?;
        }
        Ok(())
    }

    /// Refuses a cgroup that is not this container's alone: any may be called as one of a container's.
    fn check(&self, charging: &Charging, cgroup: &Path, name: &str) -> Result<(), Failure> {
        let holds_dunnage = charging.own().starts_with(cgroup)
            || self.caller.as_ref().is_ok_and(|caller| caller.directory().starts_with(cgroup));
        if holds_dunnage || self.known.values().any(|(_, other)| other == cgroup) {
            let reason = format!("`{name}` has no memory cgroup of its own: it is in `{}`", cgroup.display());
            return Err(Failure::environment(reason));
        }
        Ok(())
    }

    /// Waits until two readings of these cgroups agree.
    fn settle(&mut self, charging: &Charging, own: &[PathBuf]) -> Result<(), Abort> {
        let caller = self.caller.as_ref().ok().map(|caller| caller.directory().to_owned());
        let watched: Vec<PathBuf> = own.iter().cloned().chain(caller).collect();
        let look = || -> Vec<Charged> {
            watched.iter().map(|one| charging.with_those_below(one).unwrap_or_default()).collect()
        };
        let began = clock::now();
        let (mut since, mut before) = (began, look());
        loop {
            self.run.quiet(LOOK)?;
            let (now, at) = (look(), clock::now());
            if !now.iter().zip(&before).all(|(now, before)| now.is_near(*before, PAGE)) {
                (since, before) = (at, now);
            }
            let has_settled = at.since(since) >= APART;
            if has_settled || at.since(began) >= PATIENCE {
                self.unsettled += i64::from(!has_settled);
                return Ok(());
            }
        }
    }

    /// Divides what was read among those who pay for it, and leaves the caller's cgroup.
    pub fn end(self) -> Result<Weighed, Abort> {
        let Scale { readings, scripted, instrument, unsettled, charging, caller, .. } = self;
        let no_caller = caller.as_ref().err().cloned();
        let Some(charging) = charging else {
            return Ok(Weighed { steps: scripted, helpers: "none".to_owned(), ..Weighed::default() });
        };
        let directory = caller.as_ref().ok().map(|caller| caller.directory().to_owned());
        let weighed = payers::divided(&readings, charging.root(), directory.as_deref());
        caller.ok().map_or(Ok(()), Caller::end)?;
        Ok(Weighed { instrument, unsettled, no_caller, ..weighed })
    }
}

fn read(charging: &Charging, own: Vec<PathBuf>, helpers: Vec<Working>) -> std::io::Result<Reading> {
    let (machine, kernel_anywhere) = (memory::machine()?, charging.kernel_anywhere()?);
    let (cgroups, dying) = (charging.all(), charging.dying());
    let parts = own.iter().map(|one| charging.parts(one)).try_fold(Parts::default(), |mut sum, one| {
        sum += one?;
        Some(sum)
    });
    let parts = parts.filter(|_| *charging.version() == Version::V2);
    let (mut processes, mut unread) = (Vec::new(), 0);
    for one in process::all() {
        match resident::of(one.pid) {
            Ok(has) => processes.push(Read {
                pid: one.pid,
                started: one.started(),
                cgroup: charging.of(one.pid).ok(),
                name: one.name,
                has,
            }),
            // One that has ended has nothing.
            Err(error) if [libc::ESRCH, libc::ENOENT].contains(&error.raw_os_error().unwrap_or(0)) => {}
            Err(_) => unread += 1,
        }
    }
    Ok(Reading { own, parts, cgroups, kernel_anywhere, machine, processes, helpers, dying, unread })
}
