//! What a container leaves outside its namespaces, and how to remove it: with prepared steps, within the
//! measured interval; or from its name alone, if its maker was killed. Mounts are not included: they are in
//! the container's own namespace, and the container dies with the thread that made it.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::super::cgroup::{self, CgroupPlan, LABEL};
use super::super::steps::{Descriptor, Step, StepError, number, text};

/// Everything that one container leaves, to be recorded before it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftovers {
    /// Its cgroups.
    pub cgroups: Vec<PathBuf>,
    /// The directory of its overlay.
    pub scratch: PathBuf,
}

/// What the container `name` leaves if it is made in `scratch` with `plan`.
pub fn leftovers(scratch: &Path, name: &str, plan: &CgroupPlan) -> Leftovers {
    Leftovers { cgroups: plan.directories(name), scratch: scratch.join(name) }
}

/// Kills what still runs in those cgroups and removes them and the scratch directory. A missing one is not an
/// error; a cgroup outside dunnage's directories is refused.
pub fn undo(leftovers: &Leftovers) -> Result<()> {
    for path in &leftovers.cgroups {
        let ours = path.parent().and_then(Path::file_name).is_some_and(|parent| parent == LABEL);
        ensure!(ours, "`{}` is not a cgroup made by dunnage", path.display());
    }
    let remove = |path| cgroup::remove(&Step::rmdir("remove cgroup", path));
    let cgroups: Vec<_> = leftovers.cgroups.iter().map(|path| remove(path)).collect();
    let scratch = remove_scratch(&leftovers.scratch);
    cgroups.into_iter().collect::<Result<(), _>>()?;
    scratch.with_context(|| format!("cannot remove `{}`", leftovers.scratch.display()))
}

/// The directories of a container's overlay, in the order in which they are made: its own, which is also the
/// mount point and hides the other two from it, the upper and the work directory.
pub fn overlay_directories(own: &Path) -> [PathBuf; 3] {
    [own.to_owned(), own.join("upper"), own.join("work")]
}

/// The step that unmounts an overlay immediately.
pub(super) fn unmount(own: &Path) -> Step {
    Step::call("unmount overlay", own, libc::SYS_umount2, [text(own), number(0usize)])
}

/// The directory that overlayfs makes in its work directory; an ordinary user may remove it but not enter it. A removed file
/// leaves something in it.
fn made_by_overlayfs(own: &Path) -> PathBuf {
    own.join("work/work")
}

/// Removes the overlay's directory with everything that the container wrote.
fn remove_scratch(own: &Path) -> io::Result<()> {
    let made = made_by_overlayfs(own);
    match std::fs::remove_dir(&made) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o700))?;
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match std::fs::remove_dir_all(own) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// The steps that remove what a container leaves.
#[derive(Debug)]
pub(super) struct Removal {
    cgroups: Vec<Step>,
    overlay: Vec<Step>,
    own: PathBuf,
}

impl Removal {
    /// For these cgroups, and the overlay's directory if there is one.
    pub fn new(cgroups: Vec<Step>, overlay: Option<&Path>) -> Removal {
        let remove = |path: &PathBuf| Step::rmdir("remove overlay directory", path);
        let own = overlay.map(Path::to_owned).unwrap_or_default();
        let mut steps = Vec::new();
        if overlay.is_some() {
            steps.push(remove(&made_by_overlayfs(&own)));
            steps.extend(overlay_directories(&own).iter().rev().map(remove));
        }
        Removal { cgroups, overlay: steps, own }
    }

    /// What must be removed if only the first `made` steps before the clone succeeded. What already existed
    /// under the same name belongs to another run.
    pub fn after(mut self, made: usize) -> Removal {
        if made <= self.cgroups.len() {
            self.overlay.clear();
        }
        self.cgroups.truncate(made);
        self
    }

    /// Removes everything, continues after an error, and returns the first error.
    pub fn run(&self) -> Result<(), StepError> {
        self.run_in_parts(|| ())
    }

    /// The same; `between` is called after the cgroups are removed and before the directories are.
    pub fn run_in_parts(&self, between: impl FnOnce()) -> Result<(), StepError> {
        let mut first = Ok(());
        for step in &self.cgroups {
            first = first.and(cgroup::remove(step));
        }
        between();
        first.and(self.remove_overlay())
    }

    /// Removes the directories, assuming first that the program wrote nothing; then with everything that it
    /// wrote.
    fn remove_overlay(&self) -> Result<(), StepError> {
        for step in &self.overlay {
            match step.run(&mut Descriptor::none()) {
                Ok(_) | Err(libc::ENOENT) => {}
                Err(errno) => {
                    return remove_scratch(&self.own)
                        .map_err(|error| step.failed(error.raw_os_error().unwrap_or(errno)));
                }
            }
        }
        Ok(())
    }
}
