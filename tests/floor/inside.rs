//! A container of the floor from inside, for root and for an ordinary user.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dunnage::launch::names::SPAWN;
use dunnage::probe::message;
use dunnage::sys::cgroup::CgroupPlan;
use dunnage::sys::container::{
    ALL, DOCKER_CAPABILITIES, Mounts, Piece, Pieces, Spec, is_privileged, prepare, user_namespaces,
};
use dunnage::sys::raw;

use crate::floor::place::{
    Place, again_without_rights, as_root, copy_with_libraries, message_of, own_namespaces,
    own_namespaces_of_children, run, spec_in,
};
use crate::support::{Need, itself, skip};

#[test]
fn the_inside_is_what_docker_makes() {
    if !as_root("the_inside_is_what_docker_makes") {
        return;
    }
    let place = Place::new();
    is_what_docker_makes(&place, place.spec());
    // Namespaces one by one, with the clock read between the pieces.
    is_what_docker_makes(&place, Spec { stamped: true, ..place.spec() });
    assert_eq!(
        own_namespaces(),
        own_namespaces_of_children(),
        "what this thread starts next is where it was"
    );
}

fn is_what_docker_makes(place: &Place, spec: Spec) {
    let mut prepared = prepare(spec).unwrap();
    let gone = run(&mut prepared, "floor-test-inside");
    let message = message_of(&gone);
    let inside = &message.inside;
    let own = own_namespaces();
    for (name, inode) in &inside.namespaces {
        let shared = ["time", "user"].contains(&name.as_str());
        assert!(shared || !own.contains(inode), "the {name} namespace is the host's");
    }
    assert_eq!(inside.root().unwrap().0, "overlay");
    assert_eq!(inside.capabilities, DOCKER_CAPABILITIES);
    assert_eq!((inside.uid, inside.gid), (0, 0));
    assert_eq!((inside.no_new_privs, inside.seccomp), (1, 2));
    assert_eq!(inside.interfaces, ["lo"]);
    assert!(inside.cgroup_path.iter().all(|line| line.ends_with(":/")), "{:?}", inside.cgroup_path);
    let ended = gone.end.as_ref().unwrap();
    assert!(ended.spawned < message.entry && message.entry < gone.reaped && gone.reaped < gone.returned);
    assert_eq!(ended.returned, gone.returned);
    assert!(gone.own_cpu.0 > 0);
    assert_eq!(place.remains(), Vec::<PathBuf>::new());
    let stamps: Vec<_> = [(SPAWN, ended.spawned)].into_iter().chain(gone.stamps.iter().copied()).collect();
    assert!(stamps.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{stamps:?}");
    let ends = |name: &str| stamps.iter().any(|(own, _)| own.text().split('.').next() == Some(name));
    let without_the_root = ALL.iter().filter(|(_, piece)| *piece != Piece::User);
    let named = without_the_root
        .map(|(name, _)| *name)
        .chain(["clone", "session", "exit"])
        .filter(|name| ends(name))
        .count();
    // Without stamps no clock is read.
    assert_eq!(named, if prepared.making().stamped { ALL.len() + 2 } else { 0 }, "{stamps:?}");
    prepared.dispose().unwrap();
}

/// What a shell finds inside, for the facts that the probe does not report.
#[test]
fn files_mounts_and_host_name_are_dockers() {
    let test = "files_mounts_and_host_name_are_dockers";
    if !as_root(test) {
        return;
    }
    let place = Place::new();
    let rootfs = place.top.path().join("rootfs");
    let programs = ["/bin/sh", "/bin/cat", "/bin/ls", "/bin/touch", "/bin/mkdir"];
    programs.iter().for_each(|program| copy_with_libraries(program, &rootfs));
    let script = "cd /proc; cat sys/kernel/hostname self/mountinfo; ls -l /dev; echo \"flags $(cat /sys/class/net/lo/flags)\"; \
                  echo \"keys <$(cat keys)>\"; touch /written; mkdir -p /a/b; \
                  set -- self/fd/*; echo \"fds $*\"; (echo 1 > /proc/sys/kernel/panic) 2>/dev/null || echo read-only";
    for mounts in [Mounts::Mount, Mounts::Fsmount, Mounts::OpenTree] {
        if let Some(why) = mounts.lacking() {
            skip(&format!("{test} ({mounts:?})"), Need::Kernel, why);
            continue;
        }
        let arguments = ["-c", script].map(Into::into).into();
        has_dockers_files(&place, Spec { mounts, program: "/bin/sh".into(), arguments, ..place.spec() });
    }
}

fn has_dockers_files(place: &Place, spec: Spec) {
    let gone = run(&mut prepare(spec).unwrap(), "floor-test-files");
    let ended = gone.end.unwrap();
    let text = String::from_utf8(ended.stdout).unwrap();
    for expected in [
        "floor-test-files\n",
        " / rw,relatime - overlay overlay ",
        " /proc rw,nosuid,nodev,noexec,relatime - proc proc ",
        " /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755",
        " /dev/pts rw,nosuid,noexec,relatime - devpts devpts rw,gid=5,mode=620,ptmxmode=666",
        " /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs ",
        " /dev/mqueue rw,nosuid,nodev,noexec,relatime - mqueue mqueue ",
        " /dev/shm rw,nosuid,nodev,noexec,relatime - tmpfs shm rw,size=65536k",
        " /proc/sys ro,nosuid,nodev,noexec,relatime - proc proc ",
        "crw-rw-rw- 1 0 0 1, 3 ",
        "ptmx -> pts/ptmx",
        "stdin -> /proc/self/fd/0",
        "flags 0x9\n",
        "keys <>\n",
        "fds self/fd/0 self/fd/1 self/fd/2 self/fd/3\n", // the last is the shell's directory
        "read-only\n",
    ] {
        let squeezed = text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        assert!(squeezed.contains(expected), "`{expected}` is missing in:\n{text}");
    }
    gone.removed.unwrap();
    assert_eq!(place.remains(), Vec::<PathBuf>::new(), "what the program wrote was left behind");
}

#[test]
fn pieces_can_be_left_out() {
    if !as_root("pieces_can_be_left_out") {
        return;
    }
    let place = Place::new();
    let own = own_namespaces();
    let inside = |pieces: Pieces, program: &Path| {
        let spec = Spec { pieces, program: program.to_owned(), seccomp: None, ..place.spec() };
        let mut prepared = prepare(spec).unwrap();
        let message = message_of(&run(&mut prepared, "floor-test-pieces")).inside;
        prepared.dispose().unwrap();
        message
    };
    let image = Path::new("/dunnage");
    let on_host = place.top.path().join("rootfs/dunnage");
    let bare = inside(Pieces::NONE, &on_host);
    let shared = |one: &message::Inside| one.namespaces.values().filter(|inode| own.contains(inode)).count();
    // Without its own filter it has the one that this process may be under.
    let ours = raw::prctl(libc::PR_GET_SECCOMP, 0).unwrap() as u64;
    assert_eq!((shared(&bare), bare.seccomp, bare.no_new_privs), (7, ours, 0));
    assert_eq!(shared(&inside(Pieces::NONE.with(Piece::Network), &on_host)), 6);
    let host_cgroups = inside(Pieces::engine().without(Piece::CgroupNamespace), image);
    let in_ours = |line: &&String| line.ends_with("dunnage/floor-test-pieces");
    assert_eq!(host_cgroups.cgroup_path.iter().filter(in_ours).count(), place.cgroups.places.len());
    let all = inside(Pieces::engine().without(Piece::Capabilities).without(Piece::NoNewPrivileges), image);
    assert_ne!(all.capabilities, DOCKER_CAPABILITIES);
    assert_ne!(inside(Pieces::engine().without(Piece::Overlay), image).root().unwrap().0, "overlay");
    for (_, piece) in ALL {
        if piece != Piece::Mounts && piece != Piece::Overlay {
            inside(Pieces::engine().without(piece), image);
        }
    }
    inside(Pieces::engine().with(Piece::User), image);
    assert_eq!(place.remains(), Vec::<PathBuf>::new());
}

/// The cgroup modes that this machine is not in are made in a mount namespace.
#[test]
fn every_division_of_the_cgroup_hierarchies_will_do() {
    let test = "every_division_of_the_cgroup_hierarchies_will_do";
    if !as_root(test) {
        return;
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let only_second = "umount -R /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup";
    let only_first = "umount /sys/fs/cgroup/unified";
    for (mode, change) in [("v2", only_second), ("v1", only_first), ("none", "umount -R /sys/fs/cgroup")] {
        if mode == "v1" && !mounts.contains(" /sys/fs/cgroup/unified ") {
            skip(
                &format!("{test} ({mode})"),
                Need::Cgroup,
                "only a hybrid host can become one without version 2",
            );
            continue;
        }
        let script = format!("{change} && exec \"$@\"");
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script, "sh"])
            .args(itself::words(&itself::path_of(the_inside_is_what_docker_makes)))
            .output()
            .expect("unshare is there");
        println!("{mode}");
        itself::passed(&output);
    }
}

const INNER: &str = "DUNNAGE_FLOOR_TEST_INNER";

#[test]
fn an_ordinary_user_needs_no_engine_either() {
    let test = "an_ordinary_user_needs_no_engine_either";
    if let Ok(top) = std::env::var(INNER) {
        return rootless(Path::new(&top));
    }
    if let Err(reason) = user_namespaces() {
        return skip(test, Need::Userns, &reason.to_string());
    }
    let place = Place::new();
    if !is_privileged() {
        return rootless(place.top.path());
    }
    let scratch = place.top.path().join("scratch");
    std::os::unix::fs::chown(&scratch, Some(65534), Some(65534)).unwrap();
    again_without_rights(place.top.path(), INNER);
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
}

fn rootless(top: &Path) {
    let cgroups = CgroupPlan::here().unwrap();
    let _established = cgroups.establish().unwrap();
    let spec = spec_in(top, cgroups);
    let mut prepared = prepare(spec).unwrap();
    assert!(prepared.making().pieces.has(Piece::User));
    let inside = message_of(&run(&mut prepared, "floor-test-rootless")).inside;
    let own = own_namespaces();
    for (name, inode) in &inside.namespaces {
        assert!(name == "time" || !own.contains(inode), "the {name} namespace is the host's");
    }
    assert_eq!(inside.root().unwrap().0, "overlay");
    assert_eq!((inside.uid, inside.capabilities), (0, DOCKER_CAPABILITIES));
    assert_eq!((inside.no_new_privs, inside.seccomp), (1, 2));
    assert_eq!(inside.interfaces, ["lo"]);
    prepared.dispose().unwrap();
}
