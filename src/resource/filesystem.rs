//! A filesystem in a file: made with the tools of its type, attached to a loop device, mounted. The device
//! detaches automatically when it is unmounted, for any reason.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::tool;
use super::{Goes, Held, Keeps, Kind, Look, Owner, Record, mounts, unless_gone};
use crate::outcome::{Abort, Failure, OrEnvironment};
use crate::sys::loop_device::{self, LoopDevice};
use crate::sys::place;
use crate::sys::signals::Interrupts;

pub(crate) static KIND: Kind = Kind {
    name: "filesystem",
    goes: Goes::AfterClients,
    keeps: Keeps::Crash,
    shown: |record| format!("the filesystem in `{}`", record.id),
    look: |record, scope| {
        Ok(match scope.look(Path::new(&record.id)) {
            Look::Ours => scope.look(Path::new(record.attribute("mounted on")?)),
            other => other,
        })
    },
    undo: |record, _| {
        let (file, point) = (Path::new(&record.id), Path::new(record.attribute("mounted on")?));
        mounts::unmount(point)?;
        for device in loop_device::of_file(file) {
            loop_device::detach(&device)
                .map_err(|error| format!("cannot detach `{}`: {error}", device.display()))?;
        }
        let _ = std::fs::remove_dir(point);
        unless_gone(std::fs::remove_file(file))
    },
};

/// A supported type of filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    /// Its name for mount(8).
    pub name: &'static str,
    tool: &'static str,
    package: &'static str,
    /// Arguments that make the tool quiet and non-interactive.
    arguments: &'static [&'static str],
    /// The smallest size that its tool accepts.
    pub least: u64,
}

/// The types that containers are usually stored on.
pub const TYPES: [Type; 3] = [
    Type { name: "ext4", tool: "mkfs.ext4", package: "e2fsprogs", arguments: &["-q", "-F"], least: 8 << 20 },
    Type { name: "xfs", tool: "mkfs.xfs", package: "xfsprogs", arguments: &["-q", "-f"], least: 300 << 20 },
    Type {
        name: "btrfs",
        tool: "mkfs.btrfs",
        package: "btrfs-progs",
        arguments: &["-q", "-f"],
        least: 128 << 20,
    },
];

/// A mounted filesystem.
#[derive(Debug)]
pub struct Mounted {
    /// Its mount point.
    pub point: PathBuf,
    /// The loop device below it.
    pub device: PathBuf,
}

/// Makes a filesystem of this many bytes, which occupy space only as they are written, and mounts it.
pub fn filesystem(
    owner: &Arc<Owner>,
    interrupts: &Interrupts,
    kind: Type,
    bytes: u64,
) -> Result<Held<Mounted>, Abort> {
    let tool = tool::find(kind.tool, kind.package)?;
    let point = owner.workspace().join(owner.next_name());
    let file = point.with_extension("img");
    let path = file.to_string_lossy();
    let record = Record::new(&KIND, &*path).with("mounted on", point.to_string_lossy());
    owner.make(&KIND, record, || {
        sparse(&file, bytes.max(kind.least)).or_environment(format_args!("cannot make `{path}`"))?;
        tool::run(&tool, &[kind.arguments, &[&path]].concat(), interrupts)?;
        let device = LoopDevice::attach(&file).map_err(|error| cannot_attach(&path, &error))?;
        mounts::on(&point, mounts::Source::Filesystem(kind.name, "", Some(&device.path)))?;
        std::fs::set_permissions(&point, Permissions::from_mode(place::PRIVATE))
            .or_environment(format_args!("cannot close `{}` to other users", point.display()))?;
        Ok(Mounted { point: point.clone(), device: device.path.clone() })
    })
}

fn sparse(file: &Path, bytes: u64) -> std::io::Result<()> {
    if let Some(directory) = file.parent() {
        place::make(directory)?;
    }
    File::create_new(file)?.set_len(bytes)
}

fn cannot_attach(path: &str, error: &std::io::Error) -> Failure {
    use crate::outcome::FailureClass::{Environment, Permission, Unsupported};
    let class = match error.kind() {
        std::io::ErrorKind::NotFound => Unsupported,
        std::io::ErrorKind::PermissionDenied => Permission,
        _ => Environment,
    };
    Failure::new(class, format!("cannot attach `{path}` to a loop device: {error}"))
}
