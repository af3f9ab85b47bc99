//! Where a container's bytes go, for each way in which a path can be mounted, against what was mounted.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use dunnage::resource::Held;
use dunnage::resource::filesystem::{Mounted, TYPES, filesystem};
use dunnage::resource::mounts::{self, Source};
use dunnage::subject::storage::{Behind, Class, behind};
use dunnage::subject::{Access, Container, ContainerRequest, Mount, RunContext, Spec};
use dunnage::sys::block_device;

use crate::dunnage::Dunnage;
use crate::handles::images::writing;
use crate::handles::{ends, run_in, subject};
use crate::left::{said, tried};
use crate::support::{Need, lacks};

/// What is behind a path of this process.
fn here(path: &Path) -> Behind {
    behind(std::process::id() as i32, path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// The number of the device that holds a file.
fn device_of(path: &Path) -> (u32, u32) {
    let device = fs::metadata(path).unwrap().dev();
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// The directories of an overlay, as its options.
fn directories(below: &Path) -> String {
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| below.join(name));
    for path in [&lower, &upper, &work] {
        fs::create_dir_all(path).unwrap();
    }
    format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display())
}

fn overlay(below: &Path, more: &str, run: &RunContext) -> Held<PathBuf> {
    let options = directories(below) + more;
    mounts::mount(&run.owner, Source::Filesystem("overlay", &options, None)).unwrap()
}

/// Writes 8 MiB, syncs, and returns how many bytes the device took meanwhile.
fn synced(directory: &Path, device: (u32, u32)) -> u64 {
    let before = block_device::counters(device).unwrap();
    let mut file = File::create(directory.join("file")).unwrap();
    file.write_all(&vec![7; 8 << 20]).unwrap();
    file.sync_all().unwrap();
    block_device::counters(device).unwrap().since(before).unwrap().bytes_written
}

fn on_a_loop_device(run: &RunContext) -> Held<Mounted> {
    filesystem(&run.owner, &run.interrupts, TYPES[0], 64 << 20).unwrap()
}

#[test]
fn an_overlay_writes_to_the_device_of_its_upper_directory_unless_it_is_volatile() {
    const TEST: &str = "an_overlay_writes_to_the_device_of_its_upper_directory_unless_it_is_volatile";
    if lacks(TEST, Need::Ext4) {
        return;
    }
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let disk = on_a_loop_device(&run);
    let name = disk.device.file_name().unwrap().to_str().unwrap().to_owned();
    let plain = here(&disk.point);
    assert_eq!((plain.mount.as_str(), plain.class, plain.upper), ("ext4", Class::Synced, None));
    assert_eq!(plain.device_name.as_deref(), Some(name.as_str()));
    let backing = plain.backing.expect("a file behind the loop device");
    assert_eq!(backing.file, disk.point.with_extension("img"));
    assert_eq!(backing.filesystem, Some(here(&dunnage.state()).filesystem));
    assert_eq!(backing.device, here(&dunnage.state()).device);

    for (more, class) in [("", Class::Synced), (",volatile", Class::Volatile)] {
        let below = disk.point.join(format!("of{more}, with = and blanks"));
        // The kernel wants the commas in its options escaped.
        let escaped = PathBuf::from(below.to_str().unwrap().replace(',', "\\,"));
        fs::create_dir_all(&below).unwrap();
        directories(&below);
        let options =
            ["lower", "upper", "work"].map(|name| format!("{name}dir={}", escaped.join(name).display()));
        let options = options.join(",") + more;
        let overlay = mounts::mount(&run.owner, Source::Filesystem("overlay", &options, None)).unwrap();
        let found = here(&overlay);
        assert_eq!((found.mount.as_str(), found.filesystem.as_str()), ("overlay", "ext4"));
        assert_eq!((found.class, found.upper), (class, Some(below.join("upper"))));
        assert_eq!((found.device, found.device_name.as_deref()), (plain.device, Some(name.as_str())));
        let written = synced(&overlay, found.device.unwrap());
        assert_eq!(written >= 8 << 20, class == Class::Synced, "{class:?}: {written} bytes");
    }
    drop(disk);
    ends(&dunnage, subject("bare", &run), run);
}

#[test]
fn binds_memory_and_filesystems_without_a_device_number_are_found() {
    const TEST: &str = "binds_memory_and_filesystems_without_a_device_number_are_found";
    if lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let memory = mounts::mount(&run.owner, Source::Filesystem("tmpfs", "size=1m", None)).unwrap();
    let found = here(&memory);
    assert_eq!((found.mount.as_str(), found.class, found.device), ("tmpfs", Class::Memory, None));
    let over_memory = overlay(&memory, "", &run);
    let found = here(&over_memory);
    assert_eq!((found.filesystem.as_str(), found.class, found.device), ("tmpfs", Class::Memory, None));
    let bound = mounts::mount(&run.owner, Source::Bind(&memory)).unwrap();
    assert_eq!(here(&bound).class, Class::Memory);
    let bound_disk = mounts::mount(&run.owner, Source::Bind("/usr".as_ref())).unwrap();
    let (found, usual) = (here(&bound_disk), here("/usr".as_ref()));
    assert_eq!((found.filesystem, found.device), (usual.filesystem, usual.device));
    if !lacks(TEST, Need::Btrfs) {
        let disk = filesystem(&run.owner, &run.interrupts, TYPES[2], 0).unwrap();
        let found = here(&disk.point);
        assert_eq!(device_of(&disk.point).0, 0, "btrfs has numbers of its own");
        assert_eq!(found.filesystem, "btrfs");
        assert_eq!(found.device_name.as_deref(), disk.device.file_name().and_then(|name| name.to_str()));
    }
    drop((bound_disk, bound, over_memory, memory));
    ends(&dunnage, subject("bare", &run), run);
}

#[test]
fn the_upper_directory_of_fuse_overlayfs_is_found_through_its_process() {
    const TEST: &str = "the_upper_directory_of_fuse_overlayfs_is_found_through_its_process";
    if lacks(TEST, Need::FuseOverlayfs) || lacks(TEST, Need::Ext4) {
        return;
    }
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let disk = on_a_loop_device(&run);
    for (more, class) in [("", Class::Synced), (",volatile", Class::Volatile)] {
        let below = disk.point.join(format!("of{more}"));
        let below = PathBuf::from(below.to_str().unwrap().replace(',', "-"));
        let point = run.owner.workspace().join(format!("fuse{}", more.len()));
        fs::create_dir_all(&point).unwrap();
        let mut command = Command::new("fuse-overlayfs");
        let mounted = command.args(["-o", &(directories(&below) + more)]).arg(&point).status().unwrap();
        assert!(mounted.success());
        let found = behind(std::process::id() as i32, &point);
        let unmounted = Command::new("umount").arg(&point).status().unwrap();
        assert!(unmounted.success());
        let found = found.unwrap();
        assert_eq!((found.mount.as_str(), found.filesystem.as_str()), ("fuse.fuse-overlayfs", "ext4"));
        assert_eq!((found.class, found.upper), (class, Some(below.join("upper"))));
        assert_eq!(found.device, Some(device_of(&disk.point)));
    }
    drop(disk);
    ends(&dunnage, subject("bare", &run), run);
}

/// The root of each subject, and directories of the host in it, one of them in memory.
#[test]
fn what_is_behind_the_paths_of_a_container_is_what_it_was_given() {
    const TEST: &str = "what_is_behind_the_paths_of_a_container_is_what_it_was_given";
    for (need, text) in [
        (Need::Root, "floor"),
        (Need::Crun, "crun"),
        (Need::Containerd, "containerd"),
        (Need::Docker, "docker:net=none"),
        (Need::Podman, "podman:net=none"),
    ] {
        if lacks(TEST, need) {
            continue;
        }
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let subject = subject(text, &run);
        let memory = mounts::mount(&run.owner, Source::Filesystem("tmpfs", "size=1m", None)).unwrap();
        let disk = run.owner.workspace().join("disk");
        fs::create_dir_all(&disk).unwrap();
        let mount = |host: &Path, inside: &str| Mount {
            host: host.into(),
            inside: inside.into(),
            access: Access::ReadWrite,
        };
        let mounts = vec![mount(&memory, "/memory"), mount(&disk, "/host/disk")];
        let request = ContainerRequest { mounts, ..ContainerRequest::default() };
        let mut container = Container::create(subject.as_ref(), &request, &run).unwrap();
        container.start().unwrap();
        let first = container.first_process().unwrap();
        for (host, inside) in [(memory.as_path(), "/memory"), (&disk, "/host/disk")] {
            container.exec(&writing(&host.join("message"), &format!("{inside}/message"))).unwrap();
            let (found, own) = (behind(first, Path::new(inside)).unwrap(), here(host));
            let facts = |of: &Behind| (of.filesystem.clone(), of.class, of.device, of.upper.clone());
            assert_eq!(facts(&found), facts(&own), "{text}: {inside}");
        }
        let root = behind(first, Path::new("/new-file-would-be-here/..")).unwrap();
        let upper = root.upper.unwrap_or_else(|| panic!("{text} has no overlay"));
        assert_eq!((root.mount.as_str(), root.class), ("overlay", Class::Synced), "{text}");
        fs::write(format!("/proc/{first}/root/written"), "inside").unwrap();
        assert_eq!(fs::read_to_string(upper.join("written")).unwrap(), "inside", "{text}");
        assert_eq!(root.device, here(&upper).device, "{text}");
        drop((container, memory));
        ends(&dunnage, subject, run);
    }
}

#[test]
fn podman_mounts_the_root_volatile_where_it_removes_the_container_itself() {
    const TEST: &str = "podman_mounts_the_root_volatile_where_it_removes_the_container_itself";
    if lacks(TEST, Need::Podman) {
        return;
    }
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let subject = subject("podman:net=none", &run);
    let engine = ::dunnage::subject::podman::find(&Spec::parse("podman").unwrap()).unwrap();
    for (own, class) in [(&["--rm"][..], Class::Volatile), (&[], Class::Synced)] {
        let name = run.owner.next_name();
        let mut command = Command::new("podman");
        command
            .args(["run", "--detach", "--network", "none", "--name", &name])
            .args(own)
            .args(&engine.always);
        let started = command.args([&run.place.reference, "stay"]).output().unwrap();
        assert!(started.status.success(), "{started:?}");
        let pid = said("podman", &["inspect", "--format", "{{.State.Pid}}", &name]);
        let found = behind(pid.trim().parse().unwrap_or(0), Path::new("/"));
        tried("podman", &["rm", "--force", &name]);
        let found = found.unwrap_or_else(|why| panic!("{why}: {started:?}"));
        assert_eq!(found.class, class, "{own:?}: {found:?}");
        assert_eq!(found.filesystem, here("/var/lib/containers".as_ref()).filesystem);
    }
    ends(&dunnage, subject, run);
}
