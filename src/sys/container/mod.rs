//! A container made with bare system calls and nothing else: the kernel's share of what an OCI runtime makes
//! with Docker's default configuration.
//!
//! Everything that can be known in advance is prepared (`prepare`, and the lists of steps in `launch`);
//! between the stamps there is only the kernel's work and the loop over those lists. The cgroups and the
//! overlay's directories are made; a child that shares dunnage's memory is cloned, sets up its inside and
//! executes the program; after it has been reaped they are removed. What remains is also undone if a step
//! fails, and can be undone from the name alone (`undo`).
//!
//! Deliberately absent: networks other than loopback, a terminal.

mod additions;
mod by_descriptor;
mod filesystems;
mod inside;
mod life;
mod one_by_one;
mod pieces;
mod primitive;
mod privileges;
mod rootless;
mod undo;

use std::ffi::{CString, OsString};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use dunnage_analysis::launch::names as stamps;
use dunnage_analysis::names::StampName;
use thiserror::Error;

use super::birth::{self, NotBorn, Stack};
use super::bounds::Bounds;
use super::cgroup::{self, Birth, CgroupPlan, Hierarchy, Limits, Version};
use super::clock;
use super::signals::Interrupts;
use super::spawn::{self, Child, Ended, Streams, Unfinished};
use super::steps::{Step, StepError, number, run_all};
use crate::units::{Nanos, Stamp};
use undo::Removal;

/// For steps without a path, and calls that need an empty string.
const NOTHING: &str = "";

/// Steps with a label: the piece, a dot, and its part.
type Part = (StampName, Vec<Step>);

/// What differs between containers of the same kind.
#[derive(Debug, Clone, Copy)]
struct Names<'a> {
    /// Its name, which is also its host name.
    name: &'a str,
    /// Its directory in the scratch directory.
    own: &'a Path,
    /// Its standard input, output and error.
    streams: [RawFd; 3],
}

pub use super::raw::DOCKER_CAPABILITIES;
pub use additions::Additions;
pub use filesystems::{MASKED_PATHS, READ_ONLY_PATHS};
pub use inside::overlay_over;
pub use life::{Entrance, Made};
pub use pieces::{ALL, Making, Mounts, Piece, Pieces};
pub use primitive::{PRIMITIVES, Primitive, Timed};
pub use rootless::{NoUserNamespaces, is_privileged, user_namespaces};
pub use undo::{Leftovers, leftovers, overlay_directories, undo};

/// The step that opens the cgroup to be born in.
const OPEN_CGROUP: &str = "open cgroup";

/// What a container consists of.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The image, unpacked, or the uppermost of its layers.
    pub rootfs: PathBuf,
    /// Its other layers, uppermost first, in the same directory as that one. Only with an overlay.
    pub below: Vec<PathBuf>,
    /// The caller's directory for the overlays' upper and work directories. On a memory filesystem the price
    /// is the kernel's alone. On a disk it includes making and removing directories there, and writing that
    /// filesystem back: unmounting an overlay does so unless it is mounted `volatile`, which Docker's are
    /// not.
    pub scratch: PathBuf,
    /// The program, as seen inside.
    pub program: PathBuf,
    /// Its arguments, without its own name.
    pub arguments: Vec<OsString>,
    /// Its environment, `KEY=value`.
    pub environment: Vec<OsString>,
    /// The pieces to make.
    pub pieces: Pieces,
    /// The calls that make mounts.
    pub mounts: Mounts,
    /// Whether a change of metadata alone copies no data up in its overlay.
    pub metacopy: bool,
    /// Whether the clock is read between the pieces; see [`Making`].
    pub stamped: bool,
    /// The seccomp program; none for no filter.
    pub seccomp: Option<Vec<libc::sock_filter>>,
    /// The places of its cgroups, already established.
    pub cgroups: CgroupPlan,
    /// Limits of its cgroup.
    pub limits: Limits,
    /// Limits of its processes.
    pub bounds: Bounds,
    /// What it gets in addition to its image.
    pub additions: Additions,
    /// Whose death ends it.
    pub tied: Tied,
}

/// Whose death ends a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tied {
    /// That of the thread that started it.
    ToThread,
    /// None: its program ends when it is no longer needed.
    ToNobody,
}

/// Facts about the host, found before the first launch.
#[derive(Debug, Clone)]
pub(in crate::sys) struct Facts {
    birth: Birth,
    hierarchies: Vec<Hierarchy>,
    /// A layer with the mount points that the image lacks; engines have a similar one.
    mount_points: Option<PathBuf>,
    masked: Vec<filesystems::Mask>,
    read_only: Vec<&'static str>,
    last_capability: usize,
    user: (usize, usize),
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

/// A container that can be launched many times, under different names.
#[derive(Debug)]
pub struct Prepared {
    spec: Spec,
    facts: Facts,
    stack: Stack,
    /// The network namespace to join, if there is one.
    network: Option<OwnedFd>,
}

/// Why a container was not launched.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The kernel refused a step.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The kernel cannot mount an overlay in a user namespace, or not on this filesystem.
    #[error(
        "cannot mount an overlay in a user namespace (Linux before 5.11, or a filesystem without support)"
    )]
    OverlayInUserNamespace(#[source] StepError),
    /// The kernel refused the clone.
    #[error("cannot clone into new namespaces")]
    Clone(#[source] std::io::Error),
    /// This machine lacks something that it needs.
    #[error("{0}")]
    Impossible(String),
    /// A preparation failed.
    #[error("cannot set up a launch")]
    Setup(#[source] std::io::Error),
    /// The name cannot be the name of a directory, a cgroup and a host.
    #[error(
        "`{0}` cannot name a container: 1 to 64 letters, digits, `-`, `_` or `.`, not beginning with `.`"
    )]
    Name(String),
}

/// A launch that failed, and what could not be cleaned up after it.
#[derive(Debug, Error)]
#[error("{error}{}", .cleanup.as_ref().map(|left| format!("; cleanup failed: {left}")).unwrap_or_default())]
pub struct LaunchFailed {
    /// Why.
    #[source]
    pub error: LaunchError,
    /// What could not be removed, if anything.
    pub cleanup: Option<StepError>,
}

impl LaunchFailed {
    /// The whole chain of causes, without repetitions.
    pub fn told(self) -> String {
        let left = self.cleanup.map(|left| format!("; cleanup failed: {left}")).unwrap_or_default();
        format!("{:#}{left}", anyhow::Error::new(self.error))
    }
}

impl From<LaunchError> for LaunchFailed {
    fn from(error: LaunchError) -> LaunchFailed {
        LaunchFailed { error, cleanup: None }
    }
}

/// A container whose program runs.
#[derive(Debug)]
#[must_use = "its cgroups and directories are removed by `wait`"]
pub struct Running {
    /// Its first process.
    pub child: Child,
    removal: Removal,
    own_cpu: Nanos,
    /// When each part of it ended; empty unless requested.
    stamps: Vec<(StampName, Stamp)>,
}

/// A container that is gone, except for what `removed` reports.
#[derive(Debug)]
pub struct Gone {
    /// How its program ended. Its `returned` is the stamp below.
    pub end: Result<Ended, Unfinished>,
    /// Right after its first process was reaped.
    pub reaped: Stamp,
    /// When its cgroups and directories were also removed, which is when an OCI runtime's `run` returns.
    pub returned: Stamp,
    /// CPU time of this thread in launch and removal.
    pub own_cpu: Nanos,
    /// When each part of it ended, in order, including the removal; empty unless requested.
    pub stamps: Vec<(StampName, Stamp)>,
    /// What could not be removed.
    pub removed: Result<(), StepError>,
}

/// Finds the facts that a launch needs, refuses what cannot work, and makes the layer of mount points in the
/// scratch directory.
pub fn prepare(mut spec: Spec) -> Result<Prepared> {
    if !is_privileged() && spec.pieces != Pieces::NONE {
        user_namespaces().context("containers of an ordinary user need user namespaces")?;
        spec.pieces = spec.pieces.with(Piece::User);
    }
    let hosts = spec.additions.binds.iter().map(|bind| &bind.host);
    let inside = spec.additions.binds.iter().map(|bind| &bind.inside);
    for path in inside.chain(&spec.additions.directory) {
        spawn::c_string(path.as_os_str())?;
    }
    for path in [&spec.rootfs, &spec.scratch].into_iter().chain(&spec.below).chain(hosts) {
        ensure!(path.is_absolute(), "`{}` is not an absolute path", path.display());
        spawn::c_string(path.as_os_str())?;
    }
    let words = |list: &[OsString]| -> std::io::Result<Vec<CString>> {
        list.iter().map(|word| spawn::c_string(word)).collect()
    };
    let mut arguments = vec![spawn::c_string(spec.program.as_os_str())?];
    arguments.extend(words(&spec.arguments)?);
    let facts = Facts {
        birth: birth_of(&spec),
        hierarchies: cgroup::mounted()?,
        mount_points: additions::mount_points(&spec)?,
        masked: filesystems::masks(),
        read_only: filesystems::read_only_paths(),
        last_capability: last_capability()?,
        user: super::raw::user_and_group(),
        arguments,
        environment: words(&spec.environment)?,
    };
    let stack = Stack::new().context("cannot map a stack")?;
    Ok(Prepared { spec, facts, stack, network: None })
}

/// Whether a container can be born in a version 2 cgroup on this kernel.
pub fn can_be_born() -> bool {
    birth::possible_birth() == Birth::Inside
}

fn birth_of(spec: &Spec) -> Birth {
    let second = |place: &cgroup::Place| place.hierarchy.version == Version::V2;
    let may_be = spec.pieces.has(Piece::Cgroup) && spec.cgroups.way.is_by_birth();
    match may_be && spec.cgroups.places.iter().any(second) {
        true => birth::possible_birth(),
        false => Birth::Outside,
    }
}

fn last_capability() -> Result<usize> {
    let path = "/proc/sys/kernel/cap_last_cap";
    let content = std::fs::read_to_string(path).with_context(|| format!("cannot read `{path}`"))?;
    match content.trim().parse() {
        Ok(last @ 0..=63) => Ok(last),
        _ => bail!("`{path}` holds `{}`", content.trim()),
    }
}

fn check_name(name: &str) -> Result<(), LaunchError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match (1..=64).contains(&name.len()) && name.chars().all(fits) && !name.starts_with('.') {
        true => Ok(()),
        false => Err(LaunchError::Name(name.to_owned())),
    }
}

impl Prepared {
    /// The same container made in another way, which executes `program`; both share the scratch directory.
    pub fn vary(&self, Making { pieces, way, mounts, stamped }: Making, program: &Path) -> Result<Prepared> {
        let cgroups = CgroupPlan { way, ..self.spec.cgroups.clone() };
        prepare(Spec { pieces, cgroups, mounts, stamped, program: program.to_owned(), ..self.spec.clone() })
    }

    /// The pieces that it is made of, including a user namespace where that is needed, and how.
    pub fn making(&self) -> Making {
        let Spec { pieces, mounts, stamped, ref cgroups, .. } = self.spec;
        Making { pieces, way: cgroups.way, mounts, stamped }
    }

    /// These steps in sequence, with a stamp after each part if requested.
    fn in_a_row(&self, parts: Vec<Part>) -> Vec<Step> {
        let stamp = |name| self.spec.stamped.then(|| Step::stamp(name));
        parts.into_iter().flat_map(|(name, steps)| steps.into_iter().chain(stamp(name))).collect()
    }

    /// The number of instructions in the seccomp filter; 0 without one.
    pub fn filter_instructions(&self) -> usize {
        let filter = self.spec.seccomp.as_ref().filter(|_| self.spec.pieces.has(Piece::Seccomp));
        filter.map_or(0, Vec::len)
    }

    /// What a container with this name may leave, to be recorded before it is launched.
    pub fn leftovers(&self, name: &str) -> Leftovers {
        leftovers(&self.spec.scratch, name, &self.spec.cgroups)
    }

    /// Launches a container; its program runs when this returns. It dies with the calling thread.
    ///
    /// The `spawned` stamp is taken before the first cgroup is made. If any step fails, everything is undone
    /// before this returns.
    pub fn launch(&mut self, name: &str) -> Result<Running, LaunchFailed> {
        check_name(name)?;
        let own = self.spec.scratch.join(name);
        self.attempt(name, self.outside(name, &own), self.removal(name, &own))
    }

    /// Makes these steps and starts the program; `removal` undoes what they make. The cgroup to be born in is
    /// opened last before the clone.
    fn attempt(
        &mut self,
        name: &str,
        mut before: Vec<Step>,
        removal: Removal,
    ) -> Result<Running, LaunchFailed> {
        let streams = Streams::new().map_err(LaunchError::Setup)?;
        let own = self.spec.scratch.join(name);
        let own_processes = self.own_processes().map_err(LaunchError::Setup)?;
        if own_processes.is_some() {
            before.extend(self.in_a_row(vec![(stamps::PID_MAKE, vec![inside::unshare(libc::CLONE_NEWPID)])]));
        }
        before.extend(self.in_a_row(vec![(stamps::CGROUP_OPEN, self.opening(name).into_iter().collect())]));
        let names = Names { name, own: &own, streams: streams.of_child() };
        let mut inside = self.in_a_row(inside::parts(&self.spec, &self.facts, names));
        let mut namespaces = self.namespaces_at_birth();
        if let Some(network) = &self.network {
            let namespace = [number(network.as_raw_fd()), number(libc::CLONE_NEWNET)];
            inside.insert(0, Step::call("enter network", NOTHING, libc::SYS_setns, namespace));
            namespaces &= !(libc::CLONE_NEWNET as u64);
        }
        let cpu = clock::thread_cpu();
        let spawned = clock::now();
        let (made, ready) = run_all(&before);
        let born = ready.map_err(LaunchError::Step).and_then(|directory| {
            let cgroup = (self.facts.birth == Birth::Inside).then(|| birth::owned(directory));
            birth::give_birth(&mut self.stack, namespaces, cgroup.as_ref(), &inside)
                .map_err(|error| self.refused(error))
        });
        let own_cpu = Nanos(clock::thread_cpu().0 - cpu.0);
        let back = own_processes.map_or(Ok(()), |own| one_by_one::back_among(&own));
        let born = born.and_then(|pid| back.map(|()| pid).map_err(LaunchError::Step));
        let adopted = born.and_then(|pid| Child::adopt(pid, spawned, streams).map_err(LaunchError::Setup));
        match adopted {
            Ok(child) => {
                let stamps = before.iter().chain(&inside).filter_map(Step::stamped).collect();
                Ok(Running { child, removal, own_cpu, stamps })
            }
            Err(error) => Err(LaunchFailed { error, cleanup: removal.after(made).run().err() }),
        }
    }

    /// The steps outside the container. What must be removed later is made first.
    fn outside(&self, name: &str, own: &Path) -> Vec<Step> {
        let mut parts = Vec::new();
        if self.spec.pieces.has(Piece::Cgroup) {
            parts.push((stamps::CGROUP_CREATE, self.spec.cgroups.creation(name)));
        }
        if self.has_overlay() {
            let make = |path: &PathBuf| Step::mkdir("make overlay directory", path, 0o755);
            parts.push((
                stamps::OVERLAY_DIRECTORIES,
                undo::overlay_directories(own).iter().map(make).collect(),
            ));
        }
        if self.spec.pieces.has(Piece::Cgroup) && self.spec.limits != Limits::default() {
            parts.push((stamps::CGROUP_LIMIT, self.spec.cgroups.limiting(name, &self.spec.limits)));
        }
        self.in_a_row(parts)
    }

    /// The step that opens the cgroup to be born in, if there is one.
    fn opening(&self, name: &str) -> Option<Step> {
        match (self.facts.birth, self.spec.cgroups.version_2(name)) {
            (Birth::Inside, Some(path)) => {
                Some(Step::open(OPEN_CGROUP, &path, libc::O_PATH | libc::O_DIRECTORY))
            }
            _ => None,
        }
    }

    fn removal(&self, name: &str, own: &Path) -> Removal {
        let cgroups = match self.spec.pieces.has(Piece::Cgroup) {
            true => self.spec.cgroups.removal(name),
            false => Vec::new(),
        };
        Removal::new(cgroups, self.has_overlay().then_some(own))
    }

    fn has_overlay(&self) -> bool {
        self.spec.pieces.has(Piece::Overlay) && self.spec.pieces.has(Piece::Mounts)
    }

    fn refused(&self, error: NotBorn) -> LaunchError {
        match error {
            NotBorn::Step(error)
                if self.spec.pieces.has(Piece::User) && error.step == inside::MOUNT_OVERLAY =>
            {
                LaunchError::OverlayInUserNamespace(error)
            }
            NotBorn::Step(error) => LaunchError::Step(error),
            NotBorn::Clone(error) => LaunchError::Clone(error),
            error @ NotBorn::Stuck => LaunchError::Clone(error.into()),
        }
    }

    /// Removes the layer of mount points from the scratch directory.
    pub fn dispose(self) -> Result<()> {
        let Some(layer) = self.facts.mount_points else { return Ok(()) };
        std::fs::remove_dir_all(&layer).with_context(|| format!("cannot remove `{}`", layer.display()))
    }
}

impl Running {
    /// Waits for its end, kills it at the deadline or on an interrupt, and removes it.
    pub fn wait(mut self, allowed: Nanos, interrupts: Option<&Interrupts>) -> Gone {
        let mut end = self.child.wait(allowed, interrupts);
        let reaped = end.as_ref().map_or_else(|_| clock::now(), |ended| ended.returned);
        let cpu = clock::thread_cpu();
        let mut cgroups_removed = None;
        let is_stamped = !self.stamps.is_empty();
        let removed = self.removal.run_in_parts(|| cgroups_removed = is_stamped.then(clock::now));
        let returned = clock::now();
        if let Some(between) = cgroups_removed {
            self.stamps.extend([
                (stamps::EXIT, reaped),
                (stamps::CGROUP_REMOVE, between),
                (stamps::OVERLAY_REMOVE, returned),
            ]);
        }
        let own_cpu = self.own_cpu + Nanos(clock::thread_cpu().0 - cpu.0);
        if let Ok(ended) = &mut end {
            ended.returned = returned;
        }
        Gone { end, reaped, returned, own_cpu, stamps: self.stamps, removed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_lead_elsewhere_are_refused() {
        for name in ["", ".", "..", ".mount-points", "a/b", "a b", &"x".repeat(65)] {
            assert!(matches!(check_name(name), Err(LaunchError::Name(_))), "`{name}` was accepted");
        }
        assert!(check_name("run-7f.floor_2").is_ok());
    }
}
