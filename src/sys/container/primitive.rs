//! Single pieces, between two clock readings: the kernel's price of exactly these system calls, without the
//! launch around them.
//!
//! Each is done by dunnage, if a runtime does it outside the container, or by a child that shares dunnage's
//! memory, in namespaces of its own that are made before the first stamp. It is undone at once: between two
//! more stamps if undoing needs separate calls, otherwise by the end of the child. Network pieces are made in
//! a new network namespace and never in the host's, so none of them can outlive the child, however dunnage
//! ends.
//!
//! Deliberately absent: waiting for what the kernel tears down in its own threads. It removes network
//! namespaces after their last process has ended, and sends no event when that is complete.

use std::os::fd::RawFd;
use std::path::Path;

use dunnage_analysis::launch::names::{BEGAN, MADE};

use super::super::cgroup::{self, CgroupPlan, Version};
use super::super::link::{Index, Socket, keep_at};
use super::super::spawn::{self, Child, Status, Streams};
use super::super::steps::{Step, StepError, clean_signals, number, run_all};
use super::inside;
use super::privileges::prctl;
use super::undo::{self, Removal};
use super::{
    LaunchError, LaunchFailed, NOTHING, Names, Nanos, Piece, Pieces, Prepared, Running, Stamp, birth,
    check_name, clock,
};

/// A single piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Primitive {
    /// A cgroup in every hierarchy of the plan: made, and removed while empty.
    CgroupCreate,
    /// Entering them in version 1 through `tasks`, which moves one thread.
    CgroupEnterTasks,
    /// Entering them in version 1 through `cgroup.procs`, which moves a process.
    CgroupEnterProcesses,
    /// Entering the one of version 2 through `cgroup.procs`.
    CgroupEnterVersion2,
    /// Removing cgroups that contained a process.
    CgroupRemove,
    /// An overlay over the image: mounted, and unmounted.
    OverlayMount,
    /// Changing the root: `pivot_root`, unmounting the old root, and `chdir`.
    PivotRoot,
    /// Loading the seccomp filter.
    SeccompLoad,
    /// A time namespace.
    TimeNamespace,
    /// A pair of interfaces, one end of it in another network namespace, both set up; then removed.
    VethPair,
    /// Making one end of such a pair a port of a bridge; then removing it.
    BridgePort,
}

/// Every primitive with its name.
pub const PRIMITIVES: [(&str, Primitive); 11] = [
    ("cgroup_create", Primitive::CgroupCreate),
    ("cgroup_enter_tasks", Primitive::CgroupEnterTasks),
    ("cgroup_enter_procs", Primitive::CgroupEnterProcesses),
    ("cgroup_enter_v2", Primitive::CgroupEnterVersion2),
    ("cgroup_remove", Primitive::CgroupRemove),
    ("overlay_mount", Primitive::OverlayMount),
    ("pivot_root", Primitive::PivotRoot),
    ("seccomp_load", Primitive::SeccompLoad),
    ("time_ns", Primitive::TimeNamespace),
    ("veth_pair", Primitive::VethPair),
    ("bridge_port", Primitive::BridgePort),
];

/// The times of a primitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timed {
    /// Right before its first system call.
    pub began: Stamp,
    /// Right after its last.
    pub made: Stamp,
    /// Right before the first call that undoes it, and right after the last, if there are any.
    pub undone: Option<(Stamp, Stamp)>,
    /// When nothing of it was left except what the kernel tears down in its own threads.
    pub gone: Stamp,
}

/// Descriptor numbers in the child, after its streams; the child has its own table.
const OUTER: RawFd = 100;
const OUTER_SOCKET: Socket = Socket(101);
const INNER: RawFd = 102;
const INNER_SOCKET: Socket = Socket(103);
const BRIDGE: Index = Index(100);
const PORT: Index = Index(101);

/// The steps of a primitive, and the process that makes them.
#[derive(Default)]
struct Lists {
    /// By dunnage, first.
    before: Vec<Step>,
    /// By the child; empty without one.
    inside: Vec<Step>,
    /// By the child, after `inside`: the steps that undo it.
    undoing: Vec<Step>,
    /// Namespaces in which the child is born.
    namespaces: Pieces,
    /// By dunnage, after the child was reaped.
    after: Vec<Step>,
    /// Whether the overlay's directories are made.
    overlay: bool,
}

impl Prepared {
    /// Does a primitive with the container's image, cgroups and filter, and undoes it. Nothing of it is left
    /// when this returns, also after an error.
    pub fn time(&mut self, primitive: Primitive, name: &str) -> Result<Timed, LaunchFailed> {
        let (mut lists, removal) = self.lists_of(primitive, name)?;
        let (made, ready) = run_all(&lists.before);
        if let Err(error) = ready {
            return Err(LaunchFailed { error: error.into(), cleanup: removal.after(made).run().err() });
        }
        if !lists.inside.is_empty() {
            lists.inside.append(&mut lists.undoing);
            lists.inside.push(Step::call("end", NOTHING, libc::SYS_exit_group, [number(0usize)]));
            let ended = self.live(lists.namespaces, &lists.inside).and_then(|pid| match spawn::reap(pid) {
                Ok(Status::Exited(0)) => Ok(()),
                Ok(status) => Err(LaunchError::Impossible(format!("the child ended with {status}"))),
                Err(error) => Err(LaunchError::Setup(error)),
            });
            if let Err(error) = ended {
                return Err(LaunchFailed { error, cleanup: removal.run().err() });
            }
        }
        finish(&removal, &lists)
    }

    /// Does a primitive and executes the container's program before it is undone, so that the program sees
    /// its effect. Only for primitives of a child.
    pub fn launch_in(&mut self, primitive: Primitive, name: &str) -> Result<Running, LaunchFailed> {
        let (mut lists, removal) = self.lists_of(primitive, name)?;
        let streams = Streams::new().map_err(LaunchError::Setup)?;
        lists.inside.extend(inside::streams(streams.of_child()));
        lists.inside.extend(clean_signals());
        lists.inside.push(Step::execute(&self.spec.program, &self.facts.arguments, &self.facts.environment));
        let spawned = clock::now();
        let (made, ready) = run_all(&lists.before);
        let child = ready.map_err(LaunchError::Step).and_then(|_| {
            let pid = self.live(lists.namespaces, &lists.inside)?;
            Child::adopt(pid, spawned, streams).map_err(LaunchError::Setup)
        });
        match child {
            Ok(child) => Ok(Running { child, removal, own_cpu: Nanos(0), stamps: Vec::new() }),
            Err(error) => Err(LaunchFailed { error, cleanup: removal.after(made).run().err() }),
        }
    }

    /// A child that makes these steps.
    fn live(&mut self, namespaces: Pieces, steps: &[Step]) -> Result<i32, LaunchError> {
        let born = birth::give_birth(&mut self.stack, namespaces.namespaces(), None, steps);
        born.map_err(|error| self.refused(error))
    }

    fn lists_of(&self, primitive: Primitive, name: &str) -> Result<(Lists, Removal), LaunchFailed> {
        check_name(name)?;
        let own = self.spec.scratch.join(name);
        let cgroups = self.cgroups_of(primitive)?;
        let mut lists = self.lists(primitive, &cgroups, name, &own)?;
        // The directories are made last, as `Removal` expects.
        if lists.overlay {
            let make = |path: &std::path::PathBuf| Step::mkdir("make overlay directory", path, 0o755);
            lists.before.extend(undo::overlay_directories(&own).iter().map(make));
        }
        let removal = Removal::new(cgroups.removal(name), lists.overlay.then_some(own.as_path()));
        Ok((lists, removal))
    }

    /// The cgroups that a primitive needs; an empty plan if it needs none.
    fn cgroups_of(&self, primitive: Primitive) -> Result<CgroupPlan, LaunchError> {
        let all = &self.spec.cgroups;
        let cgroups = match primitive {
            Primitive::CgroupCreate | Primitive::CgroupRemove => all.clone(),
            Primitive::CgroupEnterTasks | Primitive::CgroupEnterProcesses => {
                all.of_version(|version| *version != Version::V2)
            }
            Primitive::CgroupEnterVersion2 => all.of_version(|version| *version == Version::V2),
            _ => return Ok(CgroupPlan::default()),
        };
        match cgroups.places.is_empty() {
            true => Err(LaunchError::Impossible("no such cgroup hierarchy is writable here".into())),
            false => Ok(cgroups),
        }
    }

    fn lists(
        &self,
        primitive: Primitive,
        cgroups: &CgroupPlan,
        name: &str,
        own: &Path,
    ) -> Result<Lists, LaunchError> {
        let (before, after) = (cgroups.creation(name), cgroups.removal(name));
        Ok(match primitive {
            Primitive::CgroupCreate => {
                Lists { before: timed(before), after: timed(after), ..Lists::default() }
            }
            Primitive::CgroupRemove => {
                let inside = cgroups.entering_through("cgroup.procs", name);
                Lists { before, inside, after: timed(after), ..Lists::default() }
            }
            Primitive::CgroupEnterTasks
            | Primitive::CgroupEnterProcesses
            | Primitive::CgroupEnterVersion2 => {
                let file = if primitive == Primitive::CgroupEnterTasks { "tasks" } else { "cgroup.procs" };
                let mut inside = inside::session();
                inside.extend(timed(cgroups.entering_through(file, name)));
                Lists { before, inside, after, ..Lists::default() }
            }
            Primitive::OverlayMount => {
                let [private, mount, _] = self.mounting(name, own);
                let unmount = undo::unmount(own);
                Lists {
                    overlay: true,
                    ..self.child(Piece::Mounts, vec![private], vec![mount], vec![unmount])
                }
            }
            Primitive::PivotRoot => {
                let mounting = Vec::from(self.mounting(name, own));
                let pivot = Vec::from(inside::pivot());
                Lists { overlay: true, ..self.child(Piece::Mounts, mounting, pivot, Vec::new()) }
            }
            Primitive::SeccompLoad => {
                let filter = self.spec.seccomp.as_deref();
                let filter = filter.ok_or(LaunchError::Impossible("no seccomp filter to load".into()))?;
                let first = vec![prctl("set no_new_privs", libc::PR_SET_NO_NEW_PRIVS, [1, 0])];
                self.child(None, first, vec![Step::seccomp(filter)], Vec::new())
            }
            Primitive::TimeNamespace => {
                self.child(None, Vec::new(), vec![inside::unshare(libc::CLONE_NEWTIME)], Vec::new())
            }
            Primitive::VethPair => {
                let undo = OUTER_SOCKET.delete(PORT);
                self.child(Piece::Network, two_networks(), pair(), undo.into())
            }
            Primitive::BridgePort => {
                let mut first = two_networks();
                first.extend(OUTER_SOCKET.create_bridge(BRIDGE, "dunnage0"));
                first.extend(OUTER_SOCKET.set_up(BRIDGE));
                first.extend(pair());
                let [on, off] = [Some(BRIDGE), None].map(|bridge| OUTER_SOCKET.set_bridge(PORT, bridge));
                self.child(Piece::Network, first, on.into(), off.into())
            }
        })
    }

    /// Makes mounts private, mounts the overlay, enters it.
    fn mounting(&self, name: &str, own: &Path) -> [Step; 3] {
        let mut spec = self.spec.clone();
        spec.pieces = spec.pieces.with(Piece::Overlay).with(Piece::Mounts);
        inside::root(&spec, &self.facts, Names { name, own, streams: [0; 3] })
    }

    /// The steps of a child in its own namespace: `first`, then the primitive, then what undoes it.
    fn child(
        &self,
        namespace: impl Into<Option<Piece>>,
        first: Vec<Step>,
        make: Vec<Step>,
        undo: Vec<Step>,
    ) -> Lists {
        // An ordinary user needs a user namespace for all of it.
        let user = self.spec.pieces.has(Piece::User);
        let own = if user { Pieces::NONE.with(Piece::User) } else { Pieces::NONE };
        let namespaces = namespace.into().map_or(own, |piece| own.with(piece));
        let mut steps = inside::session();
        if user {
            steps.extend(inside::user_mapping(&self.facts));
        }
        steps.extend(first);
        steps.extend(timed(make));
        let undoing = if undo.is_empty() { undo } else { timed(undo) };
        Lists { inside: steps, undoing, namespaces, ..Lists::default() }
    }
}

/// These steps between two clock readings.
fn timed(steps: Vec<Step>) -> Vec<Step> {
    std::iter::once(Step::stamp(BEGAN)).chain(steps).chain([Step::stamp(MADE)]).collect()
}

/// A second network namespace in addition to the child's first, and a netlink socket in each.
fn two_networks() -> Vec<Step> {
    let own = || Step::open("open network namespace", Path::new("/proc/self/ns/net"), libc::O_RDONLY);
    let mut steps = vec![own()];
    steps.extend(keep_at(OUTER));
    steps.extend(OUTER_SOCKET.open());
    steps.push(inside::unshare(libc::CLONE_NEWNET));
    steps.push(own());
    steps.extend(keep_at(INNER));
    steps.extend(INNER_SOCKET.open());
    let back = [number(OUTER), number(libc::CLONE_NEWNET)];
    steps.push(Step::call("enter network namespace", NOTHING, libc::SYS_setns, back));
    steps
}

/// A pair of interfaces that connects them, both set up.
fn pair() -> Vec<Step> {
    let create = OUTER_SOCKET.create_pair(PORT, ["dunnage1", "eth0"], INNER);
    create.into_iter().chain(OUTER_SOCKET.set_up(PORT)).chain(INNER_SOCKET.set_up(PORT)).collect()
}

/// Removes what is left, and returns the stamps in the order in which they were taken.
fn finish(removal: &Removal, lists: &Lists) -> Result<Timed, LaunchFailed> {
    let mut first: Result<(), StepError> = Ok(());
    for step in &lists.after {
        first = first.and(cgroup::remove(step));
    }
    // The cgroups have been removed by now; the overlay's directories have not.
    first.and(removal.run()).map_err(LaunchError::Step)?;
    let gone = clock::now();
    let all = lists.before.iter().chain(&lists.inside).chain(&lists.after);
    match all.filter_map(Step::stamped).map(|(_, stamp)| stamp).collect::<Vec<Stamp>>()[..] {
        [began, made] => Ok(Timed { began, made, undone: None, gone }),
        [began, made, from, to] => Ok(Timed { began, made, undone: Some((from, to)), gone }),
        _ => Err(LaunchError::Impossible("a stamp is missing".into()).into()),
    }
}
