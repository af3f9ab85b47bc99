//! Mounts made by dunnage: on a directory in the run's own directory, and undone with everything mounted
//! below.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::mount::{MountFlags, UnmountFlags};

use super::{Goes, Held, Keeps, Kind, Owner, Record, unless_gone};
use crate::host::mounts;
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::sys::place;

pub(crate) static KIND: Kind = Kind {
    name: "mount",
    goes: Goes::AfterClients,
    keeps: Keeps::Process,
    shown: |record| format!("the mount on `{}`", record.id),
    look: |record, scope| Ok(scope.look(Path::new(&record.id))),
    undo: |record, _| {
        let point = Path::new(&record.id);
        unmount(point)?;
        let found = unless_gone(std::fs::remove_dir(point));
        let _ = point.parent().map(std::fs::remove_dir);
        found
    },
};

/// What to mount.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// Another path of the host.
    Bind(&'a Path),
    /// A filesystem of this type, with these options and, if it needs one, this source.
    Filesystem(&'a str, &'a str, Option<&'a Path>),
}

/// Mounts it on a new directory, in one that no other user can enter: what is mounted may hold programs that give its
/// owner's rights to all who can reach them.
pub fn mount(owner: &Arc<Owner>, source: Source<'_>) -> Result<Held<PathBuf>, Abort> {
    let point = owner.workspace().join(owner.next_name()).join("mount");
    owner.make(&KIND, Record::new(&KIND, point.to_string_lossy()), || {
        on(&point, source)?;
        Ok(point.clone())
    })
}

/// Mounts on a directory, which is made.
pub(super) fn on(point: &Path, source: Source<'_>) -> Result<(), Failure> {
    place::make(point).or_environment(format_args!("cannot make `{}`", point.display()))?;
    let (mounted, what) = match source {
        Source::Bind(place) => (rustix::mount::mount_bind(place, point), format!("`{}`", place.display())),
        Source::Filesystem(kind, options, device) => {
            let device = device.unwrap_or(Path::new(kind));
            let options =
                std::ffi::CString::new(options).map_err(|error| Failure::environment(error.to_string()))?;
            (
                rustix::mount::mount(device, point, kind, MountFlags::empty(), options.as_c_str()),
                kind.to_owned(),
            )
        }
    };
    mounted.map_err(|error| {
        let class = match error {
            rustix::io::Errno::NODEV => FailureClass::Unsupported,
            rustix::io::Errno::PERM => FailureClass::Permission,
            _ => FailureClass::Environment,
        };
        Failure::new(class, format!("cannot mount {what} on `{}`: {error}", point.display()))
    })
}

/// Unmounts everything on a directory and below it, latest first.
pub(super) fn unmount(below: &Path) -> Result<(), String> {
    for point in self::below(below)?.iter().rev() {
        rustix::mount::unmount(point, UnmountFlags::DETACH)
            .map_err(|error| format!("cannot unmount `{}`: {error}", point.display()))?;
    }
    Ok(())
}

/// The mount points on a directory and below it, latest last.
pub(super) fn below(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").map_err(|error| error.to_string())?;
    let points = mounts::parse(&table).into_iter().map(|mount| mount.point);
    Ok(points.filter(|point| point.starts_with(directory)).collect())
}
