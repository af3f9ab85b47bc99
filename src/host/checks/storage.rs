//! Can bundles, images and overlay mounts live where dunnage keeps its files?

use super::{Finding, Overlay, View};

/// Root filesystems of containers are overlay mounts.
pub(super) fn overlay(view: &View) -> Finding {
    match view.settings.overlay {
        Some(Overlay::Ready) => Finding::ok("the kernel has it"),
        Some(Overlay::Module) => {
            Finding::warning("a module that is not loaded: the first start would pay for it")
                .command("sudo modprobe overlay")
        }
        Some(Overlay::Absent) => Finding::problem(
            "the kernel has no overlay filesystem: no floor, and engines fall back on copies",
        )
        .advice("use a kernel with CONFIG_OVERLAY_FS"),
        None => Finding::not_applicable("the kernel does not tell"),
    }
}

/// Runs, bundles and the cleanup journal are written there.
pub(super) fn writable(view: &View) -> Finding {
    let path = view.state.path.display();
    match view.state.writable {
        Some(true) => Finding::ok(format!("`{path}`")),
        Some(false) => Finding::problem(format!("`{path}` cannot be written to"))
            .command(format!("sudo mkdir -p '{path}' && sudo chown \"$(id -u)\" '{path}'")),
        None => Finding::not_applicable(format!("`{path}` cannot be looked at")),
    }
}

/// The probe is executed from there.
pub(super) fn exec(view: &View) -> Finding {
    let Some(storage) = view.facts.storage_for("state") else {
        return Finding::not_applicable("the mount of the state directory is unknown");
    };
    let point = storage.mounted_on.display();
    if storage.has("noexec") {
        return Finding::problem(format!("`{point}` is mounted `noexec`: the probe cannot be started there"))
            .command(format!("sudo mount -o remount,exec '{point}'"));
    }
    Finding::ok(format!("programs can be started on `{point}`"))
}

/// A disk that fills up during a run loses samples.
const WANTED_BYTES: u64 = 1 << 30;
const NEEDED_BYTES: u64 = 100 << 20;
/// An unpacked image, a bundle and the directories of an overlay mount for each subject, some times over.
const NEEDED_FILES: u64 = 1000;

pub(super) fn space(view: &View) -> Finding {
    let Some(left) = view.state.left else {
        return Finding::not_applicable("the state directory's filesystem does not tell");
    };
    let mib = left.bytes >> 20;
    let fix = format!("make room below `{}`, or choose another state directory", view.state.path.display());
    if left.files.is_some_and(|files| files < NEEDED_FILES) {
        let files = left.files.unwrap_or_default();
        return Finding::problem(format!("only {files} more files can be made")).advice(fix);
    }
    match left.bytes {
        bytes if bytes < NEEDED_BYTES => Finding::problem(format!("only {mib} MiB are left")).advice(fix),
        bytes if bytes < WANTED_BYTES => Finding::warning(format!("only {mib} MiB are left")).advice(fix),
        _ => Finding::ok(format!("{:.1} GiB are left", left.bytes as f64 / f64::from(1 << 30))),
    }
}

/// Upper directories of overlay mounts lie there, and not every filesystem can hold one.
pub(super) fn filesystem(view: &View) -> Finding {
    let Some(storage) = view.facts.storage_for("state") else {
        return Finding::not_applicable("the mount of the state directory is unknown");
    };
    let (kind, device) = (storage.filesystem.as_str(), &storage.device);
    let elsewhere = "choose a state directory on ext4, xfs or btrfs";
    match kind {
        "tmpfs" | "ramfs" => {
            Finding::warning(format!("{kind}: bundles lie in memory, unlike those of the engines"))
                .advice(elsewhere)
        }
        "overlay" | "aufs" | "vfat" | "exfat" | "ecryptfs" => {
            Finding::problem(format!("{kind} cannot hold the upper directory of an overlay mount"))
                .advice(elsewhere)
        }
        "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "virtiofs" | "ceph" => {
            Finding::problem(format!("{kind} from `{device}`: neither an upper directory nor a local disk"))
                .advice(elsewhere)
        }
        _ if kind == "fuse" || kind.starts_with("fuse.") || kind == "fuseblk" => {
            Finding::problem(format!("{kind} from `{device}`: neither an upper directory nor a local disk"))
                .advice(elsewhere)
        }
        _ => Finding::ok(format!("{kind} on `{device}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State::{self, *};
    use super::super::view::planted;
    use super::*;
    use crate::sys::filesystem::Left;

    #[test]
    fn overlay_must_be_there() {
        let found = |overlay: Option<Overlay>| {
            let mut view = planted();
            view.settings.overlay = overlay;
            super::overlay(&view).state
        };
        assert_eq!(found(Some(Overlay::Absent)), Problem);
        assert_eq!(found(Some(Overlay::Module)), Warning);
        assert_eq!(found(Some(Overlay::Ready)), Ok);
        assert_eq!(found(None), NotApplicable);
    }

    #[test]
    fn the_state_directory_must_take_files_and_start_programs() {
        let mut view = planted();
        view.state.writable = Some(false);
        let finding = writable(&view);
        assert_eq!(finding.state, Problem);
        let fix = "sudo mkdir -p '/var/lib/dunnage' && sudo chown \"$(id -u)\" '/var/lib/dunnage'";
        assert_eq!(&*finding.fix.unwrap(), fix);

        view.facts.storage[0].options = vec!["rw".to_owned(), "nodev".to_owned()];
        assert_eq!(exec(&view).state, Ok);
        view.facts.storage[0].options.push("noexec".to_owned());
        assert_eq!(&*exec(&view).fix.unwrap(), "sudo mount -o remount,exec '/'");
    }

    #[test]
    fn less_than_a_gibibyte_warns_and_little_is_a_problem() {
        let found = |bytes: u64, files: Option<u64>| -> State {
            let mut view = planted();
            view.state.left = Some(Left { bytes, files });
            space(&view).state
        };
        assert_eq!(found((1 << 30) - 1, None), Warning);
        assert_eq!(found(1 << 30, None), Ok);
        assert_eq!(found((100 << 20) - 1, None), Problem);
        assert_eq!(found(100 << 20, None), Warning);
        assert_eq!(found(1 << 40, Some(999)), Problem);
        assert_eq!(found(1 << 40, Some(1000)), Ok);
    }

    #[test]
    fn some_filesystems_cannot_hold_bundles() {
        let found = |kind: &str| -> State {
            let mut view = planted();
            view.facts.storage[0].filesystem = kind.to_owned();
            filesystem(&view).state
        };
        assert_eq!(found("tmpfs"), Warning);
        assert_eq!(found("overlay"), Problem);
        assert_eq!(found("nfs4"), Problem);
        assert_eq!(found("fuse.sshfs"), Problem);
        for fine in ["ext4", "xfs", "btrfs", "zfs"] {
            assert_eq!(found(fine), Ok);
        }
    }
}
