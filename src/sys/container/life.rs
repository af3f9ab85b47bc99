//! The life of a container of the floor in parts: made, started, entered, asked to end, removed. The
//! same steps as in a launch, cut where a runtime's verbs cut them.
//!
//! A container is entered as runtimes enter it, with the fewest system calls: a child joins the
//! container's cgroups and namespaces, and since a PID namespace takes in only children, forks a
//! second one, which gives up the privileges that the container's own program gave up and executes.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};

use super::super::birth::{self, Born, Stack};
use super::super::cgroup::Birth;
use super::super::clock;
use super::super::spawn::{self, Child, Output};
use super::super::steps::{Step, number, run_all};
use super::inside;
use super::undo::Removal;
use super::{
    ATTEMPTS, Facts, LaunchError, LaunchFailed, Piece, Prepared, Running, check_name, lacks_parent,
    privileges,
};
use super::{NOTHING, Names};
use crate::units::Stamp;

/// A container whose cgroups and directories are there, and whose program does not run yet.
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
    pub fn remove(self) -> Result<(), super::super::steps::StepError> {
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
    /// Makes what lies outside of the container: its cgroups and the overlay's directories.
    pub fn make(&mut self, name: &str) -> Result<Made, LaunchFailed> {
        let mut made = self.attempt_to_make(name);
        // As for a launch: another run that ended since removed the directories shared with it.
        for _ in 0..ATTEMPTS {
            match &made {
                Err(failed) if failed.lacks_parent() && self.spec.cgroups.establish().is_ok() => {
                    made = self.attempt_to_make(name);
                }
                _ => break,
            }
        }
        made
    }

    fn attempt_to_make(&mut self, name: &str) -> Result<Made, LaunchFailed> {
        check_name(name).map_err(|error| LaunchFailed { error, cleanup: None })?;
        let own = self.spec.scratch.join(name);
        // The descriptor of the cgroup that it is born in belongs to the start.
        let steps = self.making(name, &own);
        let removal = self.removal(name, &own);
        let began = clock::now();
        let (made, done) = run_all(&steps);
        let ended = clock::now();
        match done {
            Ok(_) => Ok(Made { name: name.to_owned(), removal, began, ended }),
            Err(error) => Err(LaunchFailed { error: error.into(), cleanup: removal.after(made).run().err() }),
        }
    }

    /// Has containers that are started apart join the network namespace of this descriptor.
    pub fn join(&mut self, network: OwnedFd) {
        self.network = Some(network);
    }

    /// Starts the program of a container that was made; it runs when this returns. What was made
    /// stays, whatever this returns.
    pub fn start(&mut self, made: &Made) -> Result<Running, LaunchError> {
        let mut started = self.attempt_to_start(made);
        // What another run took away since is made again, before the interval begins anew.
        for _ in 0..ATTEMPTS {
            match &started {
                Err(error) if lacks_parent(error) => {
                    self.make_again(made);
                    started = self.attempt_to_start(made);
                }
                _ => break,
            }
        }
        started
    }

    /// Whether it worked is seen at the next attempt to start.
    fn make_again(&self, made: &Made) {
        let own = self.spec.scratch.join(&made.name);
        let steps = self.making(&made.name, &own);
        let _ = made.removal.run();
        let _ = self.spec.cgroups.establish();
        let _ = run_all(&steps);
    }

    fn attempt_to_start(&mut self, made: &Made) -> Result<Running, LaunchError> {
        let own = self.spec.scratch.join(&made.name);
        let (stdout, stdout_writer) = Output::pipe().map_err(LaunchError::Setup)?;
        let (stderr, stderr_writer) = Output::pipe().map_err(LaunchError::Setup)?;
        let stdin = spawn::null_device().map_err(LaunchError::Setup)?;
        let streams = [stdin.as_raw_fd(), stdout_writer.as_raw_fd(), stderr_writer.as_raw_fd()];
        let mut inside =
            inside::steps(&self.spec, &self.facts, Names { name: &made.name, own: &own, streams });
        let mut namespaces = self.spec.pieces.namespaces();
        if let Some(network) = &self.network {
            let namespace = [number(network.as_raw_fd()), number(libc::CLONE_NEWNET)];
            inside.insert(0, Step::call("enter network", NOTHING, libc::SYS_setns, namespace));
            namespaces &= !(libc::CLONE_NEWNET as u64);
        }
        let opening = self.opening(&made.name);
        let cpu = clock::thread_cpu();
        let spawned = clock::now();
        let cgroup = self.open_cgroup(opening.as_ref())?;
        let born = birth::give_birth(&mut self.stack, namespaces, cgroup.as_ref(), &inside);
        let own_cpu = crate::units::Nanos(clock::thread_cpu().0 - cpu.0);
        match born.map_err(|errno| LaunchError::Clone(std::io::Error::from_raw_os_error(errno)))? {
            Born::Alive(pid) => {
                let child = Child::adopt(pid, spawned, stdout, stderr).map_err(LaunchError::Setup)?;
                Ok(Running { child, removal: Removal::new(Vec::new(), None), own_cpu })
            }
            Born::Failed { pid, step, errno } => {
                spawn::reap(pid).ok();
                Err(self.refused(inside[step].failed(errno)))
            }
        }
    }

    fn open_cgroup(&self, opening: Option<&Step>) -> Result<Option<OwnedFd>, LaunchError> {
        let (_, directory) = run_all(opening.map_or(&[], std::slice::from_ref));
        let directory = directory?;
        Ok((self.facts.birth == Birth::Inside).then(|| birth::owned(directory)))
    }

    /// An entrance into containers of this kind, for a program with these arguments, its own name
    /// among them.
    pub fn entrance(&self, arguments: Vec<CString>) -> std::io::Result<Entrance> {
        let facts = Facts { arguments, ..self.facts.clone() };
        Ok(Entrance { facts, stack: Stack::new()? })
    }

    /// Runs the entrance's program as another process of the container whose first process is `first`.
    /// It runs when this returns; the child between us and it has ended and been reaped.
    pub fn enter(&mut self, made: &Made, first: i32, entrance: &mut Entrance) -> Result<Child, LaunchError> {
        let (stdout, stdout_writer) = Output::pipe().map_err(LaunchError::Setup)?;
        let (stderr, stderr_writer) = Output::pipe().map_err(LaunchError::Setup)?;
        let stdin = spawn::null_device().map_err(LaunchError::Setup)?;
        let streams = [stdin.as_raw_fd(), stdout_writer.as_raw_fd(), stderr_writer.as_raw_fd()];
        let joining = self.joining(&made.name, first, streams);
        let executing = privileges::privileges(&self.spec, &entrance.facts);
        let opening = self.opening(&made.name);
        let spawned = clock::now();
        let cgroup = self.open_cgroup(opening.as_ref())?;
        let second = &mut entrance.stack;
        let born = birth::give_birth_within(&mut self.stack, cgroup.as_ref(), &joining, second, &executing);
        match born.map_err(|errno| LaunchError::Clone(std::io::Error::from_raw_os_error(errno)))? {
            Born::Alive(pid) => Child::adopt(pid, spawned, stdout, stderr).map_err(LaunchError::Setup),
            Born::Failed { pid, step, errno } => {
                spawn::reap(pid).ok();
                let refused = joining.iter().chain(&executing).nth(step);
                Err(refused.map_or_else(
                    || LaunchError::Clone(std::io::Error::from_raw_os_error(errno)),
                    |step| LaunchError::Step(step.failed(errno)),
                ))
            }
        }
    }

    /// What the first child does: a session of its own, the cgroups, the namespaces, the streams.
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
