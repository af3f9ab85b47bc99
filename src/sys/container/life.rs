//! The life of a container of the floor in parts: made, started, entered, stopped, removed. The steps are
//! those of a launch, divided as the verbs of a runtime.
//!
//! A container is entered as runtimes do it, with the fewest system calls: a child joins the container's
//! cgroups and namespaces and, since joining a PID namespace only affects children, forks a second one, which
//! drops the privileges that the container's own program dropped and executes.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use super::super::birth::{self, Stack};
use super::super::cgroup::{Birth, Limits};
use super::super::clock;
use super::super::spawn::{Child, Streams};
use super::super::steps::{Step, StepError, number, run_all};
use super::undo::Removal;
use super::{
    Facts, LaunchError, LaunchFailed, NOTHING, Piece, Prepared, Running, check_name, inside, privileges,
};
use crate::units::Stamp;

/// A container whose cgroups and directories exist, and whose program does not run yet.
#[derive(Debug)]
#[must_use = "what was made is removed by `remove`"]
pub struct Made {
    name: String,
    removal: Removal,
    /// Right before the first system call that made it.
    pub began: Stamp,
    /// Right after the last.
    pub ended: Stamp,
}

impl Made {
    /// Removes what was made.
    pub fn remove(self) -> Result<(), StepError> {
        self.removal.run()
    }
}

/// The steps of one entry, and the stack of its second child.
#[derive(Debug)]
pub struct Entrance {
    facts: Facts,
    stack: Stack,
}

impl Prepared {
    /// Makes what is outside the container: its cgroups and the overlay's directories.
    pub fn make(&mut self, name: &str) -> Result<Made, LaunchFailed> {
        check_name(name)?;
        let own = self.spec.scratch.join(name);
        // The descriptor of the cgroup to be born in belongs to `start`.
        let steps = self.outside(name, &own);
        let removal = self.removal(name, &own);
        let began = clock::now();
        let (made, done) = run_all(&steps);
        let ended = clock::now();
        match done {
            Ok(_) => Ok(Made { name: name.to_owned(), removal, began, ended }),
            Err(error) => Err(LaunchFailed { error: error.into(), cleanup: removal.after(made).run().err() }),
        }
    }

    /// Changes limits of the container's cgroups; its program may run.
    pub fn limit(&self, made: &Made, limits: &Limits) -> Result<(), StepError> {
        run_all(&self.spec.cgroups.limiting(&made.name, limits)).1.map(drop)
    }

    /// Makes containers that are started separately join the network namespace of this descriptor.
    pub fn join(&mut self, network: OwnedFd) {
        self.network = Some(network);
    }

    /// Starts the program of a container that was made; it runs when this returns. What was made stays, also
    /// after an error.
    pub fn start(&mut self, made: &Made) -> Result<Running, LaunchError> {
        let started = self.attempt(&made.name, Vec::new(), Removal::new(Vec::new(), None));
        started.map_err(|failed| failed.error)
    }

    fn open_cgroup(&self, opening: Option<&Step>) -> Result<Option<OwnedFd>, LaunchError> {
        let (_, directory) = run_all(opening.map_or(&[], std::slice::from_ref));
        let directory = directory?;
        Ok((self.facts.birth == Birth::Inside).then(|| birth::owned(directory)))
    }

    /// An entrance into containers of this kind, for a program with these arguments, including its own name.
    pub fn entrance(&self, arguments: Vec<CString>) -> std::io::Result<Entrance> {
        let facts = Facts { arguments, ..self.facts.clone() };
        Ok(Entrance { facts, stack: Stack::new()? })
    }

    /// Runs the entrance's program as another process of the container whose first process is `first`. It
    /// runs when this returns; the intermediate child has ended and been reaped.
    pub fn enter(&mut self, made: &Made, first: i32, entrance: &mut Entrance) -> Result<Child, LaunchError> {
        let streams = Streams::new().map_err(LaunchError::Setup)?;
        let joining = self.joining(&made.name, first, streams.of_child());
        let executing = self.in_a_row(privileges::privileges(&self.spec, &entrance.facts));
        let opening = self.opening(&made.name);
        let spawned = clock::now();
        let cgroup = self.open_cgroup(opening.as_ref())?;
        let second = &mut entrance.stack;
        let born = birth::give_birth_within(&mut self.stack, cgroup.as_ref(), &joining, second, &executing);
        let pid = born.map_err(|error| self.refused(error))?;
        Child::adopt(pid, spawned, streams).map_err(LaunchError::Setup)
    }

    /// The steps of the first child: session, cgroups, namespaces, streams.
    fn joining(&self, name: &str, first: i32, streams: [i32; 3]) -> Vec<Step> {
        let pieces = self.spec.pieces;
        let mut steps = inside::session();
        if pieces.has(Piece::Cgroup) {
            steps.extend(self.spec.cgroups.entering(name, self.facts.birth));
        }
        let cgroup_namespace =
            if pieces.has(Piece::CgroupNamespace) { libc::CLONE_NEWCGROUP as u64 } else { 0 };
        let namespaces = pieces.namespaces() | cgroup_namespace;
        let process = [number(first), number(0)];
        steps.push(Step::call("open process", NOTHING, libc::SYS_pidfd_open, process).opening());
        let all = [number(0), number(namespaces)];
        steps.push(Step::call("enter namespaces", NOTHING, libc::SYS_setns, all).on_descriptor());
        steps.push(Step::close());
        steps.extend(inside::beginning(&self.spec));
        steps.extend(inside::streams(streams));
        steps
    }
}
