//! The filesystems that a container sees, with Docker's sources, flags and options, as steps of the child.
//! Paths are relative to the new root, which is the working directory but not yet `/`.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

use dunnage_analysis::subject::{Access, Mount};

use super::super::cgroup::{Hierarchy, Version};
use super::super::steps::Step;
use super::pieces::Piece;
use super::{Facts, NOTHING, Names, Spec};

/// The paths that Docker hides: a directory under an empty tmpfs, a file under `/dev/null`. Each one that
/// exists costs a mount. This is the list of Docker 20.10; later versions add paths.
pub const MASKED_PATHS: [&str; 10] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
];
/// The paths that Docker makes read-only. Each one that exists costs two mount calls.
pub const READ_ONLY_PATHS: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
const DEVICES: [(&str, u32, u32); 6] =
    [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("tty", 5, 0), ("random", 1, 8), ("urandom", 1, 9)];
const DEVICE_LINKS: [(&str, &str); 6] = [
    ("/proc/self/fd", "dev/fd"),
    ("/proc/self/fd/0", "dev/stdin"),
    ("/proc/self/fd/1", "dev/stdout"),
    ("/proc/self/fd/2", "dev/stderr"),
    ("/proc/kcore", "dev/core"),
    ("pts/ptmx", "dev/ptmx"),
];

const NO_DEVICES: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// All of them, except the masks and read-only remounts.
pub fn steps(spec: &Spec, facts: &Facts, names: Names) -> Vec<Step> {
    let mount = |name, target: &'static str, kind, flags, options: Option<&str>| {
        Step::mount(name, (kind, Path::new(target)), Some(kind), flags, options.map(OsStr::new))
    };
    let mkdir = |path: &'static str, mode| Step::mkdir("make directory", Path::new(path), mode);
    // Group 5, tty, is mapped only where all groups are.
    let terminals = match spec.pieces.has(Piece::User) {
        true => "newinstance,ptmxmode=0666,mode=0620",
        false => "newinstance,ptmxmode=0666,mode=0620,gid=5",
    };
    let device_flags = libc::MS_NOSUID | libc::MS_STRICTATIME;
    let terminal_flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    let read_only = NO_DEVICES | libc::MS_RDONLY;
    let shm = OsStr::new("mode=1777,size=67108864");
    let mut steps = vec![
        mount("mount proc", "proc", "proc", NO_DEVICES, None),
        mount("mount dev", "dev", "tmpfs", device_flags, Some("mode=755,size=65536k")),
        mkdir("dev/pts", 0o755),
        mount("mount devpts", "dev/pts", "devpts", terminal_flags, Some(terminals)),
        mount("mount sysfs", "sys", "sysfs", read_only, None),
    ];
    steps.extend(cgroup_view(spec, facts, names));
    steps.extend([
        mkdir("dev/mqueue", 0o755),
        mount("mount mqueue", "dev/mqueue", "mqueue", NO_DEVICES, None),
        mkdir("dev/shm", 0o755),
        Step::mount("mount shm", ("shm", Path::new("dev/shm")), Some("tmpfs"), NO_DEVICES, Some(shm)),
    ]);
    steps.extend(devices(spec));
    steps
}

/// `/sys/fs/cgroup`: with version 2 alone that hierarchy; otherwise a tmpfs with a mount for each version 1
/// hierarchy, as runc and crun make it. On a hybrid host neither of them shows version 2.
fn cgroup_view(spec: &Spec, facts: &Facts, names: Names) -> Vec<Step> {
    let top = Path::new("sys/fs/cgroup");
    let read_only = NO_DEVICES | libc::MS_RDONLY;
    let of_namespace = spec.pieces.has(Piece::CgroupNamespace);
    let view = |hierarchy: &Hierarchy, target: &Path| -> Vec<Step> {
        if !of_namespace {
            let source = bound_cgroup(spec, names, hierarchy);
            let bind = Step::mount("bind cgroup", (source.as_os_str(), target), None, libc::MS_BIND, None);
            return vec![bind, read_only_remount(target)];
        }
        let (kind, options) = match &hierarchy.version {
            Version::V1(options) => ("cgroup", Some(OsStr::new(options))),
            Version::V2 => ("cgroup2", None),
        };
        vec![Step::mount("mount cgroup", ("cgroup", target), Some(kind), read_only, options)]
    };
    let version_1 = |hierarchy: &&Hierarchy| hierarchy.version != Version::V2;
    if !facts.hierarchies.iter().any(|hierarchy| version_1(&hierarchy)) {
        return facts.hierarchies.iter().flat_map(|hierarchy| view(hierarchy, top)).collect();
    }
    let options = Some(OsStr::new("mode=755,size=1024k"));
    let mut steps = vec![Step::mount("mount cgroup", ("cgroup", top), Some("tmpfs"), NO_DEVICES, options)];
    for hierarchy in facts.hierarchies.iter().filter(version_1) {
        let target = top.join(hierarchy.directory_name());
        steps.push(Step::mkdir("make directory", &target, 0o755));
        steps.extend(view(hierarchy, &target));
        steps.extend(controller_links(top, hierarchy));
    }
    steps.push(read_only_remount(top));
    steps
}

/// If several controllers share a hierarchy, each has a link to it.
fn controller_links(top: &Path, hierarchy: &Hierarchy) -> Vec<Step> {
    let directory = hierarchy.directory_name().to_string_lossy();
    let Version::V1(options) = &hierarchy.version else { return Vec::new() };
    let names = options.split(',').filter(|name| options.contains(',') && *name != directory);
    names.map(|name| Step::symlink("link controller", &directory, &top.join(name)).or(libc::EEXIST)).collect()
}

fn bound_cgroup<'a>(spec: &Spec, names: Names, hierarchy: &'a Hierarchy) -> Cow<'a, Path> {
    let place = spec.cgroups.places.iter().find(|place| place.hierarchy == *hierarchy);
    match place {
        Some(place) if spec.pieces.has(Piece::Cgroup) => place.parent.join(names.name).into(),
        _ => hierarchy.own.as_deref().unwrap_or(&hierarchy.mount).into(),
    }
}

fn read_only_remount(target: &Path) -> Step {
    let flags = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY | NO_DEVICES;
    Step::mount("make read-only", (NOTHING, target), None, flags, None)
}

pub(super) fn read_only_bind(path: &Path) -> [Step; 2] {
    let bind = libc::MS_BIND | libc::MS_REC;
    [Step::mount("bind read-only path", (path, path), None, bind, None), read_only_remount(path)]
}

/// A path of the host, with everything mounted below it.
pub(super) fn bound(bind: &Mount) -> Vec<Step> {
    let flags = libc::MS_BIND | libc::MS_REC;
    let target = bind.inside.as_path();
    let mut steps = vec![Step::mount("bind", (bind.host.as_os_str(), target), None, flags, None)];
    if bind.access == Access::ReadOnly {
        let flags = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY;
        steps.push(Step::mount("make read-only", (NOTHING, target), None, flags, None));
    }
    steps
}

/// Device nodes; in a user namespace, where `mknod` is not permitted, the host's own.
fn devices(spec: &Spec) -> Vec<Step> {
    let mut steps = Vec::new();
    for (name, major, minor) in DEVICES {
        let (target, host) = (Path::new("dev").join(name), Path::new("/dev").join(name));
        if spec.pieces.has(Piece::User) {
            steps.push(Step::mknod("make file", &target, libc::S_IFREG | 0o666, 0));
            steps.push(Step::mount("bind device", (&host, &target), None, libc::MS_BIND, None));
        } else {
            let device = libc::makedev(major, minor);
            steps.push(Step::mknod("make device", &target, libc::S_IFCHR | 0o666, device));
        }
    }
    let link = |(target, path)| Step::symlink("make link", target, Path::new(path));
    steps.extend(DEVICE_LINKS.into_iter().map(link));
    steps
}

/// A path that Docker hides, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    /// A file, under `/dev/null`.
    File(&'static str),
    /// A directory, under an empty tmpfs.
    Directory(&'static str),
}

/// The masked paths that this kernel has.
pub fn masks() -> Vec<Mask> {
    let mask = |path: &'static str| {
        let found = std::fs::symlink_metadata(path).ok()?;
        let path = path.trim_start_matches('/');
        Some(if found.is_dir() { Mask::Directory(path) } else { Mask::File(path) })
    };
    MASKED_PATHS.into_iter().filter_map(mask).collect()
}

pub(super) fn masked(mask: &Mask) -> Step {
    let name = "mask path";
    match *mask {
        Mask::File(path) => Step::mount(name, ("dev/null", Path::new(path)), None, libc::MS_BIND, None),
        Mask::Directory(path) => {
            Step::mount(name, ("tmpfs", Path::new(path)), Some("tmpfs"), libc::MS_RDONLY, None)
        }
    }
}

/// The paths that Docker makes read-only and that this kernel has.
pub fn read_only_paths() -> Vec<&'static str> {
    let there = READ_ONLY_PATHS.into_iter().filter(|path| Path::new(path).exists());
    there.map(|path| path.trim_start_matches('/')).collect()
}
