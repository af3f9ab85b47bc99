//! The places of a container's cgroups, and the steps that make, enter and remove them.
//!
//! As with runc and crun: one directory in every version 1 hierarchy, including named ones, and one in the
//! version 2 hierarchy; both on a hybrid host, although version 2 has no use there. All are in a directory
//! `dunnage`, directly below the hierarchy's root, or, if that is not writable, below the cgroup that dunnage
//! is in and that was delegated to it. Nothing outside `dunnage` is ever written.
//!
//! The container enters version 2 by being born there (`CLONE_INTO_CGROUP`). It enters version 1 by writing 0
//! into `tasks`: that moves a single thread, itself, without the lock that makes a write to `cgroup.procs`
//! cost milliseconds on a quiet machine. The child has only one thread, so the result is the same.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::clock;
use super::super::steps::{Descriptor, Step, StepError};
use super::super::{pidfd, process};
use super::{Hierarchy, Version, is_writable, mounted};
use crate::units::Nanos;

/// The name of the directory in each hierarchy that holds all cgroups made by this program.
pub const LABEL: &str = "dunnage";
/// The step that makes a cgroup.
const CREATE: &str = "create cgroup";
/// The step that enters one.
const ENTER: &str = "enter cgroup";
/// How often a directory is set up again that another run removes at that moment.
const ATTEMPTS: usize = 50;
/// How long to wait before the next attempt.
const MOMENT: Duration = Duration::from_millis(2);
/// How long a cgroup may take to become empty after its processes have been killed.
const PATIENCE: Nanos = Nanos::from_millis(2000);

/// Removes the directories that hold dunnage's cgroups, unless something is in them.
pub fn retire() {
    let _ = CgroupPlan::here().and_then(|plan| plan.retire());
}

/// A hierarchy in which containers get a cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The hierarchy.
    pub hierarchy: Hierarchy,
    /// dunnage's directory, which holds one directory for each container.
    pub parent: PathBuf,
}

/// The places of containers' cgroups on this host; empty if no hierarchy is writable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CgroupPlan {
    /// One place for each hierarchy.
    pub places: Vec<Place>,
    /// Hierarchies that are mounted but not writable.
    pub refused: Vec<Hierarchy>,
    /// How a container enters them.
    pub way: Way,
}

/// How a process enters its cgroups: in each version by the way that only that version has, or by a write to
/// `cgroup.procs`, for which the kernel takes a lock over all forks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// Through `tasks` in version 1, by birth in version 2.
    #[default]
    Cheapest,
    /// By `cgroup.procs` everywhere.
    Procs,
    /// Through `tasks` in version 1.
    Tasks,
    /// By birth in version 2.
    Born,
}

impl Way {
    /// The file to write to in version 1.
    fn file(self) -> &'static str {
        if matches!(self, Way::Cheapest | Way::Tasks) { "tasks" } else { "cgroup.procs" }
    }

    /// Whether a container may be born in its version 2 cgroup.
    pub fn is_by_birth(self) -> bool {
        matches!(self, Way::Cheapest | Way::Born)
    }
}

impl CgroupPlan {
    /// Chooses places in the hierarchies that are mounted here.
    pub fn here() -> io::Result<CgroupPlan> {
        mounted().map(|hierarchies| CgroupPlan::new(&hierarchies))
    }

    /// Chooses places in these hierarchies, without making anything.
    pub fn new(hierarchies: &[Hierarchy]) -> CgroupPlan {
        let mut plan = CgroupPlan::default();
        for hierarchy in hierarchies {
            let bases = [Some(&hierarchy.mount), hierarchy.own.as_ref()];
            match bases.into_iter().flatten().find(|base| is_writable(base)) {
                Some(base) => {
                    plan.places.push(Place { hierarchy: hierarchy.clone(), parent: base.join(LABEL) })
                }
                None => plan.refused.push(hierarchy.clone()),
            }
        }
        plan
    }

    /// Makes the directories that hold the containers' own, outside every measured interval, as with an
    /// engine: `/sys/fs/cgroup/…/docker` exists before the first container.
    pub fn establish(&self) -> io::Result<Established> {
        let hold = |place: &Place| {
            hold(place).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot set up `{}`: {error}", place.parent.display()))
            })
        };
        self.places.iter().map(hold).collect::<io::Result<_>>().map(Established)
    }

    /// Removes those directories, unless a run has established them or they contain a container.
    pub fn retire(&self) -> io::Result<()> {
        let remove = |place: &Place| {
            let directory = File::open(&place.parent)?;
            if directory.try_lock().is_err() {
                return Ok(());
            }
            std::fs::remove_dir(&place.parent)
        };
        self.places.iter().try_for_each(|place| match remove(place) {
            Err(error) if ![libc::EBUSY, libc::ENOENT].contains(&error.raw_os_error().unwrap_or(0)) => Err(
                io::Error::new(error.kind(), format!("cannot remove `{}`: {error}", place.parent.display())),
            ),
            _ => Ok(()),
        })
    }

    /// The cgroups of one container.
    pub fn directories(&self, name: &str) -> Vec<PathBuf> {
        self.places.iter().map(|place| place.parent.join(name)).collect()
    }

    /// The version 2 cgroup of one container, in which it is born.
    pub fn version_2(&self, name: &str) -> Option<PathBuf> {
        let place = self.places.iter().find(|place| place.hierarchy.version == Version::V2)?;
        Some(place.parent.join(name))
    }

    /// Steps for the parent: make the container's cgroups.
    pub fn creation(&self, name: &str) -> Vec<Step> {
        self.directories(name).iter().map(|path| Step::mkdir(CREATE, path, 0o755)).collect()
    }

    /// Steps for the child: enter the version 1 cgroups, and the version 2 one if it was not born there.
    pub fn entering(&self, name: &str, birth: Birth) -> Vec<Step> {
        let file = |place: &Place| match (&place.hierarchy.version, birth) {
            (Version::V1(_), _) => Some(place.parent.join(name).join(self.way.file())),
            (Version::V2, Birth::Outside) => Some(place.parent.join(name).join("cgroup.procs")),
            (Version::V2, Birth::Inside) => None,
        };
        self.places.iter().filter_map(file).flat_map(|path| write_zero(&path)).collect()
    }

    /// Steps for the child: enter all cgroups of the plan by a write to this file of each.
    pub fn entering_through(&self, file: &str, name: &str) -> Vec<Step> {
        let paths = self.places.iter().map(|place| place.parent.join(name).join(file));
        paths.flat_map(|path| write_zero(&path)).collect()
    }

    /// The part of the plan in hierarchies of one version.
    pub fn of_version(&self, is_it: impl Fn(&Version) -> bool) -> CgroupPlan {
        let places = self.places.iter().filter(|place| is_it(&place.hierarchy.version));
        CgroupPlan { places: places.cloned().collect(), ..CgroupPlan::default() }
    }

    /// Steps for the parent, after the container has been reaped: remove its cgroups.
    pub fn removal(&self, name: &str) -> Vec<Step> {
        self.directories(name).iter().map(|path| Step::rmdir("remove cgroup", path)).collect()
    }
}

/// Writing 0 to such a file moves the writer itself.
fn write_zero(path: &Path) -> [Step; 3] {
    [Step::open(ENTER, path, libc::O_WRONLY), Step::write(ENTER, path, "0"), Step::close()]
}

/// Whether a container is born in its version 2 cgroup or enters it by a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Birth {
    /// `CLONE_INTO_CGROUP`, since Linux 5.7.
    Inside,
    /// In its parent's cgroup.
    Outside,
}

/// Keeps dunnage's directories where they are until it is dropped: each is locked, and `retire` leaves what is
/// locked. The kernel ends the lock with the process.
#[derive(Debug)]
#[must_use = "without it another run may remove the directories"]
pub struct Established(#[expect(dead_code, reason = "held for their locks")] Vec<Option<File>>);

/// Sets a directory up and locks it. Where someone else has locked it for longer than a removal takes, as any
/// user can, it stays unlocked.
fn hold(place: &Place) -> io::Result<Option<File>> {
    let mut last = Ok(None);
    for _ in 0..ATTEMPTS {
        match establish(place).and_then(|()| locked(&place.parent)) {
            Ok(None) => last = Ok(None),
            Err(error) if [libc::ENOENT, libc::ENODEV].contains(&error.raw_os_error().unwrap_or(0)) => {
                last = Err(error);
            }
            done => return done,
        }
        std::thread::sleep(MOMENT);
    }
    last
}

/// The directory with a shared lock on it; none where another has an exclusive one.
fn locked(path: &Path) -> io::Result<Option<File>> {
    let directory = File::open(path)?;
    if directory.try_lock_shared().is_err() {
        return Ok(None);
    }
    let is_there = directory.metadata()?.ino() == std::fs::metadata(path)?.ino();
    is_there.then_some(Some(directory)).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

fn establish(place: &Place) -> io::Result<()> {
    match std::fs::create_dir(&place.parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if place.hierarchy.version == Version::V2 {
        return delegate_controllers(&place.parent);
    }
    if place.hierarchy.has("cpuset") {
        // A v1 cpuset starts empty and then accepts no process. dunnage's directory gets the values of its
        // parent; the containers' cpusets inherit them from it in the kernel.
        fill(&place.parent, place.parent.parent().unwrap_or(&place.hierarchy.mount))?;
        std::fs::write(place.parent.join("cgroup.clone_children"), "1")?;
    }
    Ok(())
}

/// Copies the values of the parent into an empty cpuset.
fn fill(directory: &Path, above: &Path) -> io::Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if std::fs::read_to_string(directory.join(file))?.trim().is_empty() {
            std::fs::write(directory.join(file), std::fs::read_to_string(above.join(file))?)?;
        }
    }
    Ok(())
}

/// Delegates every available controller to the containers' cgroups. One that refuses (as the cpu controller
/// does while real-time tasks run) is left out, as in runc.
fn delegate_controllers(parent: &Path) -> io::Result<()> {
    let available = std::fs::read_to_string(parent.join("cgroup.controllers"))?;
    let control = parent.join("cgroup.subtree_control");
    let all: Vec<_> = available.split_whitespace().map(|one| format!("+{one}")).collect();
    if !all.is_empty() && std::fs::write(&control, all.join(" ")).is_err() {
        all.iter().for_each(|one| std::fs::write(&control, one).unwrap_or(()));
    }
    Ok(())
}

/// Runs one step of a removal. Processes that are still in the cgroup are killed and waited for; a missing
/// directory is not an error.
pub(in crate::sys) fn remove(step: &Step) -> Result<(), StepError> {
    let mut result = step.run(&mut Descriptor::none());
    let deadline = clock::now().0 as i64 + PATIENCE.0;
    while result == Err(libc::EBUSY) && (clock::now().0 as i64) < deadline {
        if empty(step.path(), Nanos(deadline - clock::now().0 as i64)).is_err() {
            break;
        }
        result = step.run(&mut Descriptor::none());
    }
    match result {
        Ok(_) | Err(libc::ENOENT) => Ok(()),
        Err(errno) => Err(step.failed(errno)),
    }
}

/// Kills the processes in a cgroup and waits for the end of the first one by its pidfd: version 1 has no
/// event for an empty cgroup, and that of version 2 says no more than the end of the processes.
///
/// A reaped container has left its cgroups: the kernel takes a task out of them before its parent can reap
/// it, and reaps the init of a PID namespace last. So this is for a container without a PID namespace, and
/// for kernels that take a task out only when it has left its CPU, shortly after it was reaped; those show an
/// empty cgroup that is busy, and send no event.
fn empty(directory: &Path, allowed: Nanos) -> io::Result<()> {
    let listed = std::fs::read_to_string(directory.join("cgroup.procs"))?;
    let members = || listed.lines().filter_map(|line| line.parse().ok());
    let first: Option<i32> = members().next();
    let Some(first) = first else {
        std::thread::sleep(std::time::Duration::from_micros(100));
        return Ok(());
    };
    let Ok(held) = pidfd::open(first) else { return Ok(()) };
    members().for_each(|pid| kill_member(directory, pid));
    process::await_end(&held, allowed);
    Ok(())
}

/// Kills a process if, once it can no longer be replaced by another with the same id, it is still in the
/// cgroup.
fn kill_member(directory: &Path, pid: i32) {
    let Ok(process) = pidfd::open(pid) else { return };
    let listed = std::fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    if listed.lines().any(|line| line.parse() == Ok(pid)) {
        pidfd::signal(&process, libc::SIGKILL).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> CgroupPlan {
        let place = |version, mount: &str| Place {
            hierarchy: Hierarchy { version, mount: mount.into(), own: None },
            parent: Path::new(mount).join(LABEL),
        };
        CgroupPlan {
            places: vec![place(Version::V1("cpu".into()), "/c/cpu"), place(Version::V2, "/c/unified")],
            ..CgroupPlan::default()
        }
    }

    #[test]
    fn every_directory_of_a_container_lies_in_ours() {
        let paths = plan().directories("a");
        assert_eq!(paths, [Path::new("/c/cpu/dunnage/a"), Path::new("/c/unified/dunnage/a")]);
        assert_eq!(plan().version_2("a").unwrap(), paths[1]);
    }

    #[test]
    fn version_1_is_entered_by_tasks_and_version_2_by_birth() {
        let entered = |birth| {
            let steps = plan().entering("a", birth);
            steps.iter().filter(|step| step.opens()).map(|step| step.path().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(entered(Birth::Inside), [Path::new("/c/cpu/dunnage/a/tasks")]);
        assert_eq!(entered(Birth::Outside)[1], Path::new("/c/unified/dunnage/a/cgroup.procs"));
    }

    #[test]
    fn a_way_that_was_chosen_is_gone() {
        for (way, file, is_by_birth) in [
            (Way::Procs, "cgroup.procs", false),
            (Way::Tasks, "tasks", false),
            (Way::Born, "cgroup.procs", true),
        ] {
            let plan = CgroupPlan { way, ..plan() };
            let steps = plan.entering("a", if way.is_by_birth() { Birth::Inside } else { Birth::Outside });
            let opened: Vec<_> = steps.iter().filter(|step| step.opens()).map(Step::path).collect();
            assert_eq!(opened[0], Path::new("/c/cpu/dunnage/a").join(file), "{way:?}");
            assert_eq!(
                (way.is_by_birth(), opened.len()),
                (is_by_birth, if is_by_birth { 1 } else { 2 }),
                "{way:?}"
            );
        }
    }

    #[test]
    fn what_is_not_ours_to_write_is_refused() {
        let nowhere = Hierarchy { version: Version::V2, mount: "/proc/1/nowhere".into(), own: None };
        let plan = CgroupPlan::new(std::slice::from_ref(&nowhere));
        assert_eq!((plan.places, plan.refused), (vec![], vec![nowhere]));
    }
}
