//! Whether bundles, images and overlay mounts can be where dunnage keeps its files.

use super::{Check, Finding, check};

/// A disk that fills up during a run loses samples.
const WANTED_BYTES: u64 = 1 << 30;
/// What a run with the small image may write.
pub const NEEDED_BYTES: u64 = 100 << 20;
/// Several times an unpacked image, a bundle and the directories of an overlay mount for each subject.
const NEEDED_FILES: u64 = 1000;

pub(super) const CHECKS: &[Check] = &[
    check("overlay", "root filesystems of containers are overlay mounts", |view| {
        let known = view.tree.text("/proc/filesystems")?;
        if known.lines().any(|line| line.split_whitespace().last() == Some("overlay")) {
            return Some(Finding::ok("supported by the kernel"));
        }
        let kernel = &view.facts.kernel;
        let modules = view.tree.text(format!("/lib/modules/{}/modules.dep", kernel.release.as_deref()?));
        let is_loadable =
            modules.is_some_and(|list| list.contains("/overlay.ko")) && !kernel.was_told("nomodule");
        Some(match is_loadable {
            true => Finding::warning("the module is not loaded, so the first start would load it")
                .command("sudo modprobe overlay"),
            false => {
                let what = "the kernel has no overlay filesystem: no floor, and engines fall back to copies";
                Finding::problem(what).advice("use a kernel with CONFIG_OVERLAY_FS")
            }
        })
    }),
    check(
        "state-writable",
        "runs, bundles and the cleanup journal are written to the state directory",
        |view| {
            let path = view.state.path.display();
            let mount = view.facts.storage.as_ref().map(|storage| &storage.mount);
            let finding = match mount.filter(|mount| mount.has("ro")) {
                Some(mount) => {
                    let point = mount.point.display();
                    let what = format!("`{path}` is not writable: `{point}` is mounted read-only");
                    Finding::problem(what).advice(format!(
                        "set `$DUNNAGE_STATE` to a directory elsewhere, or `sudo mount -o remount,rw '{point}'`"
                    ))
                }
                None => Finding::problem(format!("`{path}` is not writable"))
                    .command(format!("sudo mkdir -p '{path}' && sudo chown \"$(id -u)\" '{path}'")),
            };
            finding.unless(view.state.writable?, format!("`{path}`"))
        },
    ),
    check("state-private", "who can change the state directory can change what is measured", |view| {
        let path = view.state.path.display();
        let objection = view.state.objection.as_deref().unwrap_or_default();
        Finding::problem(format!("`{path}` is not used: {objection}"))
            .advice("set `$DUNNAGE_STATE` to a directory of your own, below directories that no other user can change")
            .unless(view.state.objection.is_none(), "only you and root can change it")
    }),
    check("state-exec", "the probe is executed from the state directory", |view| {
        let mount = &view.facts.storage.as_ref()?.mount;
        let point = mount.point.display();
        Finding::problem(format!("`{point}` is mounted with `noexec`, so the probe cannot start"))
            .command(format!("sudo mount -o remount,exec '{point}'"))
            .unless(!mount.has("noexec"), format!("programs can run on `{point}`"))
    }),
    check("state-space", "samples are lost if the disk fills up during a run", |view| {
        let left = view.state.left?;
        let path = view.state.path.display();
        let fix = format!("free space below `{path}`, or set `$DUNNAGE_STATE` to another directory");
        if let Some(files) = left.files.filter(|files| *files < NEEDED_FILES) {
            return Some(Finding::problem(format!("only {files} more files can be created")).advice(fix));
        }
        let (needed, wanted) = (NEEDED_BYTES >> 20, WANTED_BYTES >> 20);
        let little = format!("only {} MiB left: a run needs {needed} to {wanted} MiB", left.bytes >> 20);
        Some(match left.bytes {
            bytes if bytes < NEEDED_BYTES => Finding::problem(little).advice(fix),
            bytes if bytes < WANTED_BYTES => Finding::warning(little).advice(fix),
            bytes => Finding::ok(format!("{:.1} GiB left", bytes as f64 / f64::from(1 << 30))),
        })
    }),
    check(
        "state-filesystem",
        "the state directory contains upper directories of overlay mounts, which some filesystems do not support",
        |view| {
            let mount = &view.facts.storage.as_ref()?.mount;
            let (kind, device) = (mount.filesystem.as_str(), &mount.source);
            let finding = match kind {
                "tmpfs" | "ramfs" => {
                    Finding::warning(format!("{kind}: bundles are in memory, unlike those of the engines"))
                }
                "overlay" | "aufs" | "vfat" | "exfat" | "ecryptfs" => {
                    Finding::problem(format!("{kind} does not support upper directories of overlay mounts"))
                }
                "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "virtiofs" | "ceph" | "fuse" | "fuseblk" => {
                    remote(kind, device)
                }
                _ if kind.starts_with("fuse.") => remote(kind, device),
                _ => return Some(Finding::ok(format!("{kind} on `{device}`"))),
            };
            Some(finding.advice("choose a state directory on ext4, xfs or btrfs"))
        },
    ),
];

fn remote(kind: &str, device: &str) -> Finding {
    Finding::problem(format!(
        "{kind} from `{device}`: not a local disk, and no support for upper directories"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::State::{self, *};
    use super::super::View;
    use super::super::found;
    use crate::sys::filesystem::Left;

    fn state(check: &str, change: impl Fn(&mut View)) -> State {
        found(check, change).state
    }

    #[test]
    fn overlay_is_in_the_kernel_or_a_module_or_not_there() {
        let overlay = |files: &[(&str, &str)]| {
            state("overlay", |v| files.iter().for_each(|(path, text)| v.tree.plant(path, text)))
        };
        let without = ("/proc/filesystems", "nodev\tsysfs\n\text4\n");
        let module = ("/lib/modules/6.1.0/modules.dep", "kernel/fs/overlayfs/overlay.ko.xz:\n");
        assert_eq!(overlay(&[("/proc/filesystems", "nodev\toverlay\n")]), Ok);
        assert_eq!(overlay(&[without, module]), Warning);
        assert_eq!(overlay(&[without]), Problem);
        let nomodule = |v: &mut View| {
            [without, module].iter().for_each(|(path, text)| v.tree.plant(path, text));
            v.facts.kernel.command_line = Some("nomodule".to_owned());
        };
        assert_eq!(state("overlay", nomodule), Problem);
        assert_eq!(state("overlay", |v| v.tree.clear("/proc/filesystems")), NotApplicable);
    }

    #[test]
    fn the_state_directory_must_take_files_and_start_programs() {
        let finding = found("state-writable", |v| v.state.writable = Some(false));
        assert_eq!(finding.state, Problem);
        let fix = "sudo mkdir -p '/var/lib/dunnage' && sudo chown \"$(id -u)\" '/var/lib/dunnage'";
        assert_eq!(&*finding.fix.unwrap(), fix);

        let finding = found("state-writable", |v| {
            v.state.writable = Some(false);
            v.facts.storage.as_mut().unwrap().mount.options = vec!["ro".to_owned()];
        });
        assert!(finding.what.ends_with("`/` is mounted read-only"), "{finding:?}");
        assert!(finding.fix.unwrap().contains("set `$DUNNAGE_STATE`"));

        let finding =
            found("state-private", |v| v.state.objection = Some("`/x` belongs to user 7".to_owned()));
        assert_eq!(
            (finding.state, &*finding.what),
            (Problem, "`/var/lib/dunnage` is not used: `/x` belongs to user 7")
        );
        assert_eq!(state("state-private", |_| ()), Ok);

        let mounted = |option: &str| {
            found("state-exec", |v| {
                v.facts.storage.as_mut().unwrap().mount.options = vec!["rw".to_owned(), option.to_owned()];
            })
        };
        assert_eq!(mounted("nodev").state, Ok);
        assert_eq!(&*mounted("noexec").fix.unwrap(), "sudo mount -o remount,exec '/'");
    }

    #[test]
    fn less_than_a_gibibyte_warns_and_little_is_a_problem() {
        let space = |bytes: u64, files: Option<u64>| {
            state("state-space", |v| v.state.left = Some(Left { bytes, files }))
        };
        assert_eq!(space((1 << 30) - 1, None), Warning);
        assert_eq!(space(1 << 30, None), Ok);
        assert_eq!(space((100 << 20) - 1, None), Problem);
        assert_eq!(space(100 << 20, None), Warning);
        assert_eq!(space(1 << 40, Some(999)), Problem);
        assert_eq!(space(1 << 40, Some(1000)), Ok);
    }

    #[test]
    fn some_filesystems_cannot_hold_bundles() {
        let on = |kind: &str| {
            let mount = |v: &mut View| v.facts.storage.as_mut().unwrap().mount.filesystem = kind.to_owned();
            state("state-filesystem", mount)
        };
        assert_eq!(on("tmpfs"), Warning);
        assert_eq!(on("overlay"), Problem);
        assert_eq!(on("nfs4"), Problem);
        assert_eq!(on("fuse.sshfs"), Problem);
        for fine in ["ext4", "xfs", "btrfs", "zfs"] {
            assert_eq!(on(fine), Ok);
        }
    }
}
