//! What the child does before its program, in crun's order and with the values of Docker's default
//! configuration. A pure list of steps; nothing is done here.
//!
//! Deliberately absent, because they are specific to an engine rather than to containers: a session keyring,
//! device rules, resource limits, sysctls, and the files that engines mount over `/etc`.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::Path;

use dunnage_analysis::launch::names as stamps;

use super::super::link::loopback_up;
use super::super::steps::{Step, number, set_up_streams, text};
use super::by_descriptor::{by_descriptor, namespace_of};
use super::pieces::{Mounts, Piece};
use super::privileges::{prctl, privileges};
use super::{Facts, NOTHING, Names, Part, Spec, Tied, filesystems, undo};

/// The step that fails on kernels where only root may mount overlayfs.
pub(super) const MOUNT_OVERLAY: &str = "mount overlay";

/// All steps of the child, grouped by piece.
pub fn parts(spec: &Spec, facts: &Facts, names: Names) -> Vec<Part> {
    let has = |piece| spec.pieces.has(piece);
    // With stamps, a namespace that otherwise the clone makes.
    let own = |piece: Piece| spec.stamped.then(|| unshare(piece.namespace().unwrap_or(0)));
    let first = |step: Option<Step>, steps: Vec<Step>| step.into_iter().chain(steps).collect();
    let mut begin = session();
    if spec.tied == Tied::ToNobody {
        begin.remove(0);
    }
    let mut parts = vec![(stamps::CLONE, Vec::new()), (stamps::SESSION_MAKE, begin)];
    if has(Piece::User) {
        parts.push((stamps::USER_MAP, user_mapping(facts)));
    }
    if has(Piece::Cgroup) {
        parts.push((stamps::CGROUP_ENTER, spec.cgroups.entering(names.name, facts.birth)));
    }
    if has(Piece::Network) {
        parts.push((stamps::NET_MAKE, first(own(Piece::Network), loopback_up())));
    }
    if has(Piece::Ipc) {
        parts.push((stamps::IPC_MAKE, first(own(Piece::Ipc), Vec::new())));
    }
    if has(Piece::CgroupNamespace) {
        parts.push((stamps::CGROUP_NS_MAKE, vec![unshare(libc::CLONE_NEWCGROUP)]));
    }
    if has(Piece::Mounts) {
        parts.extend(mounts(spec, facts, names, own(Piece::Mounts)));
    }
    if has(Piece::Uts) {
        let arguments = [text(names.name), number(names.name.len())];
        let name = Step::call("set host name", names.name, libc::SYS_sethostname, arguments);
        parts.push((stamps::UTS_MAKE, first(own(Piece::Uts), vec![name])));
    }
    parts.push((stamps::SESSION_STREAMS, streams(names.streams)));
    parts.extend(privileges(spec, facts));
    parts
}

/// A namespace of this kind that a process makes for itself.
pub(super) fn unshare(flag: i32) -> Step {
    Step::call("make namespace", NOTHING, libc::SYS_unshare, [number(flag)])
}

/// The root and the mounts in it, made with the requested calls.
fn mounts(spec: &Spec, facts: &Facts, names: Names, own: Option<Step>) -> Vec<Part> {
    let has = |piece| spec.pieces.has(piece);
    let [private, mount, enter] = root(spec, facts, names);
    let root_is = if has(Piece::Overlay) { stamps::OVERLAY_MOUNT } else { stamps::MOUNT_BIND };
    let near =
        shared_place(spec).map(|place| Step::call("enter layers", place, libc::SYS_chdir, [text(place)]));
    let first = |steps: Vec<Step>| near.into_iter().chain(steps).collect();
    let mut parts = match spec.mounts {
        Mounts::OpenTree => {
            let [made, entered] = namespace_of(mount);
            vec![(root_is, first(made)), (stamps::MOUNT_MAKE, entered)]
        }
        _ => {
            let private = own.into_iter().chain([private]).collect();
            vec![(stamps::MOUNT_MAKE, private), (root_is, first(vec![mount, enter]))]
        }
    };
    let mut last = Vec::new();
    if has(Piece::Filesystems) {
        parts.push((stamps::FILESYSTEMS_MOUNT, filesystems::steps(spec, facts, names)));
        if has(Piece::MaskedPaths) {
            parts.push((stamps::MASKED_MOUNT, facts.masked.iter().map(filesystems::masked).collect()));
        }
        if has(Piece::ReadOnlyPaths) {
            let bind = |path: &&str| filesystems::read_only_bind(Path::new(path));
            parts.push((stamps::READ_ONLY_MOUNT, facts.read_only.iter().flat_map(bind).collect()));
        }
        last.extend(spec.additions.binds.iter().flat_map(filesystems::bound));
    }
    if spec.mounts != Mounts::OpenTree {
        last.extend(pivot());
    }
    last.extend(beginning(spec));
    parts.push((stamps::MOUNT_PIVOT, last));
    if spec.mounts == Mounts::Fsmount {
        for (_, steps) in &mut parts {
            *steps = std::mem::take(steps).into_iter().flat_map(by_descriptor).collect();
        }
    }
    parts
}

/// A session of its own, independent of the terminal; SIGKILL when its maker dies, since no other process
/// would end it; and no umask.
pub(super) fn session() -> Vec<Step> {
    vec![
        prctl("set parent-death signal", libc::PR_SET_PDEATHSIG, [libc::SIGKILL as usize, 0]),
        Step::call("make session", NOTHING, libc::SYS_setsid, []),
        Step::call("set umask", NOTHING, libc::SYS_umask, [number(0)]),
    ]
}

/// Maps root inside to the user outside, the only mapping that needs no privilege and no helper.
pub(super) fn user_mapping(facts: &Facts) -> Vec<Step> {
    let (user, group) = facts.user;
    let files = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ];
    let write = |(path, content): (&str, String)| {
        let path = Path::new(path);
        let name = "map user";
        [Step::open(name, path, libc::O_WRONLY), Step::write(name, path, &content), Step::close()]
    };
    files.into_iter().flat_map(write).collect()
}

/// Makes mounts private so that none propagates to the host; then mounts the new root, and enters it.
pub(super) fn root(spec: &Spec, facts: &Facts, names: Names) -> [Step; 3] {
    let private = libc::MS_REC | libc::MS_PRIVATE;
    let private = Step::mount("make mounts private", (NOTHING, Path::new("/")), None, private, None);
    let (mount, target) = if spec.pieces.has(Piece::Overlay) {
        let options = overlay_options(spec, facts, names.own);
        (Step::mount(MOUNT_OVERLAY, ("overlay", names.own), Some("overlay"), 0, Some(&options)), names.own)
    } else {
        let (target, flags) = (spec.rootfs.as_path(), libc::MS_BIND | libc::MS_REC);
        (Step::mount("bind image", (&spec.rootfs, target), None, flags, None), target)
    };
    [private, mount, Step::call("enter root", target, libc::SYS_chdir, [text(target)])]
}

/// The directory that holds the layers of an image with several. The options of a mount must fit into a page,
/// so this is the working directory and they have only the layers' names.
fn shared_place(spec: &Spec) -> Option<&Path> {
    if spec.below.is_empty() { None } else { spec.rootfs.parent() }
}

/// The mount option string; overlayfs needs commas, colons and backslashes escaped.
fn overlay_options(spec: &Spec, facts: &Facts, own: &Path) -> OsString {
    let place = shared_place(spec);
    let name = |layer| place.and_then(|place| Path::strip_prefix(layer, place).ok()).unwrap_or(layer);
    let lower = facts.mount_points.as_deref().into_iter().chain(spec.layers().map(name));
    let mut options = overlay_over(lower, own);
    if spec.pieces.has(Piece::User) {
        options.push(",userxattr");
    }
    if spec.metacopy {
        options.push(",metacopy=on");
    }
    options
}

/// The options of an overlay over these layers, uppermost first, with its own directories below `own`.
pub fn overlay_over<'a>(lower: impl Iterator<Item = &'a Path>, own: &Path) -> OsString {
    let mut options = OsString::from("lowerdir=");
    for (index, layer) in lower.enumerate() {
        options.push(if index == 0 { "" } else { ":" });
        options.push(escaped(layer));
    }
    let [_, upper, work] = undo::overlay_directories(own);
    for (key, value) in [(",upperdir=", &upper), (",workdir=", &work)] {
        options.push(key);
        options.push(escaped(value));
    }
    options.push(",index=off");
    options
}

fn escaped(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let escape = |byte: &u8| match byte {
        b',' | b':' | b'\\' => vec![b'\\', *byte],
        _ => vec![*byte],
    };
    OsString::from_vec(path.as_os_str().as_bytes().iter().flat_map(escape).collect())
}

/// The old root is stacked on the new one and unmounted at once, so it needs no directory; the kernel frees
/// the rest of it in the background.
pub(super) fn pivot() -> [Step; 3] {
    let here = || text(".");
    [
        Step::call("pivot root", NOTHING, libc::SYS_pivot_root, [here(), here()]),
        Step::call("detach old root", NOTHING, libc::SYS_umount2, [here(), number(libc::MNT_DETACH)]),
        Step::call("enter root", "/", libc::SYS_chdir, [text("/")]),
    ]
}

/// The working directory of the program, if not the root.
pub(super) fn beginning(spec: &Spec) -> Option<Step> {
    let path = spec.additions.directory.as_ref()?;
    Some(Step::call("enter directory", path, libc::SYS_chdir, [text(path)]))
}

/// Input, output and error; the program gets no other descriptor.
pub(super) fn streams(streams: [RawFd; 3]) -> Vec<Step> {
    const CLOSE_ON_EXEC: u32 = 1 << 2;
    let mut steps: Vec<_> = set_up_streams(streams).collect();
    let others = [number(3), number(u32::MAX), number(CLOSE_ON_EXEC)];
    // Before Linux 5.9 only the close-on-exec flag of each descriptor closes it.
    steps.push(Step::call("close others", NOTHING, libc::SYS_close_range, others).or(libc::ENOSYS));
    steps
}
