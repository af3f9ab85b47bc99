//! Primitives do what they are timed for, leave nothing, and report why where they cannot.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dunnage::sys::cgroup::{self, CgroupPlan};
use dunnage::sys::container::{
    LaunchError, PRIMITIVES, Piece, Pieces, Prepared, Primitive, Spec, is_privileged, prepare,
    user_namespaces,
};
use dunnage::sys::seccomp::{self, Profile};
use dunnage::sys::signals::Interrupts;
use dunnage::sys::spawn::Status;

use crate::place::{PATIENCE, Place, alone, as_root, mounts, one_test, skipped, spec_in};

/// The interfaces, network namespaces in use and mounts that other processes can see.
fn world() -> (Vec<String>, usize, Vec<String>) {
    let interfaces = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut names: Vec<String> =
        interfaces.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.starts_with("dunnage"));
    (names, own_children(), mounts())
}

fn own_children() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    children.map(|list| list.split_whitespace().count()).sum()
}

fn with_filter(spec: Spec) -> Spec {
    Spec { seccomp: Some(seccomp::compile(&Profile::from_oci(&seccomp::built_in()).unwrap())), ..spec }
}

/// What a program of the host sees where a primitive was done and not undone.
fn seen(place: &Place, primitive: Primitive, program: &str, arguments: &[&str]) -> String {
    let arguments = arguments.iter().map(Into::into).collect();
    let spec = Spec { program: program.into(), arguments, ..with_filter(place.spec()) };
    let interrupts = Interrupts::install().unwrap();
    let running = prepare(spec).unwrap().launch_in(primitive, "floor-test-seen").unwrap();
    let gone = running.wait(PATIENCE, Some(&interrupts));
    gone.removed.unwrap();
    let ended = gone.end.unwrap();
    assert_eq!(ended.status, Status::Exited(0), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

/// Looks until it is there. The other end of a pair is in a network namespace that nothing holds once the
/// program is executed: the kernel removes it in the background, and both ends with it, sometimes before the
/// look.
fn before_it_goes(is_there: impl Fn(&str) -> bool, look: impl Fn() -> String) {
    const LOOKS: usize = 100;
    let looks: Vec<String> = (0..LOOKS).map(|_| look()).take_while(|said| !is_there(said)).collect();
    assert!(looks.len() < LOOKS, "never seen: {:?}", looks.first());
}

#[test]
fn every_primitive_is_done_and_undone() {
    if !as_root("every_primitive_is_done_and_undone") {
        return;
    }
    let _turn = alone();
    let place = Place::new();
    let before = world();
    let mut prepared = prepare(with_filter(place.spec())).unwrap();
    for (_, primitive) in PRIMITIVES {
        for _ in 0..3 {
            done(&mut prepared, primitive);
        }
    }
    prepared.dispose().unwrap();
    assert_eq!(place.remains(), Vec::<PathBuf>::new());
    assert_eq!(world(), before);
}

/// Does a primitive, or prints why this machine cannot.
fn done(prepared: &mut Prepared, primitive: Primitive) {
    match prepared.time(primitive, "floor-test-primitive") {
        Ok(timed) => {
            assert!(timed.began < timed.made && timed.made < timed.gone, "{primitive:?}: {timed:?}");
            let undone = timed.undone.is_none_or(|(from, to)| timed.made <= from && from < to);
            assert!(undone, "{primitive:?}: {timed:?}");
            println!("{primitive:?}: {} ns", timed.made.since(timed.began).0);
        }
        Err(failed) => {
            assert_eq!(failed.cleanup, None);
            // What a kernel was built without, or a host does not mount, is reported and not done.
            let known = match &failed.error {
                LaunchError::Impossible(_) => true,
                LaunchError::Step(error) => {
                    [libc::EOPNOTSUPP, libc::EINVAL, libc::ENOSYS, libc::EPERM].contains(&error.errno)
                }
                _ => false,
            };
            assert!(known, "{primitive:?}: {failed}");
            skipped("every_primitive_is_done_and_undone", &format!("{primitive:?}"), &failed.to_string());
        }
    }
}

#[test]
fn a_primitive_is_there_when_it_was_done() {
    if !as_root("a_primitive_is_there_when_it_was_done") {
        return;
    }
    let _turn = alone();
    let place = Place::new();
    let cat = |primitive, file: &str| seen(&place, primitive, "/bin/cat", &[file]);
    let status = cat(Primitive::SeccompLoad, "/proc/self/status");
    assert!(status.contains("Seccomp:\t2\n") && status.contains("NoNewPrivs:\t1\n"), "{status}");
    let first = |line: &&str| !line.starts_with("0::");
    for (primitive, is_meant) in [
        (Primitive::CgroupEnterTasks, &first as &dyn Fn(&&str) -> bool),
        (Primitive::CgroupEnterProcesses, &first),
        (Primitive::CgroupEnterVersion2, &|line: &&str| line.starts_with("0::")),
    ] {
        let own = place.cgroups.of_version(|version| (*version == cgroup::Version::V2) != is_meant(&"1:x"));
        if own.places.is_empty() {
            skipped("a_primitive_is_there_when_it_was_done", &format!("{primitive:?}"), "no such hierarchy");
            continue;
        }
        let listed = cat(primitive, "/proc/self/cgroup");
        let inside = listed.lines().filter(|line| line.ends_with("/dunnage/floor-test-seen"));
        let inside: Vec<_> = inside.collect();
        assert_eq!(inside.len(), own.places.len(), "{primitive:?}: {listed}");
        assert!(inside.iter().all(is_meant), "{primitive:?}: {listed}");
    }
    let overlay = cat(Primitive::OverlayMount, "/proc/self/mountinfo");
    assert!(overlay.lines().any(|line| line.contains("floor-test-seen") && line.contains(" - overlay ")));
    // This program has this path only in the image.
    let probe = seen(&place, Primitive::PivotRoot, "/dunnage", &["probe", "start"]);
    assert!(probe.ends_with("\nend\n"), "{probe}");
    let host = fs::read_link("/proc/self/ns/time_for_children").map(|link| link.display().to_string());
    if let Ok(host) = host {
        let arguments = ["/proc/self/ns/time_for_children"];
        let own = seen(&place, Primitive::TimeNamespace, "/bin/readlink", &arguments);
        assert_ne!(own.trim(), host);
    }
    let is_there = |interfaces: &str| interfaces.contains("dunnage1:");
    before_it_goes(is_there, || cat(Primitive::VethPair, "/proc/self/net/dev"));
    let names: BTreeSet<_> =
        fs::read_dir("/sys/class/net").unwrap().flatten().map(|one| one.file_name()).collect();
    assert!(!names.contains(std::ffi::OsStr::new("dunnage1")), "the host has an interface of the test");
    // The bridge has an entry for a port's own addresses.
    let script = "mount -t sysfs none /sys && { cat /sys/class/net/dunnage1/operstate; ls /sys/class/net/dunnage0/brif; }; exit 0";
    let look = || seen(&place, Primitive::BridgePort, "/usr/bin/unshare", &["--mount", "sh", "-c", script]);
    before_it_goes(|port| port == "up\ndunnage1\n", look);
    assert_eq!(place.remains(), Vec::<PathBuf>::new());
}

#[test]
fn what_cannot_be_done_is_said_and_leaves_nothing() {
    if !as_root("what_cannot_be_done_is_said_and_leaves_nothing") {
        return;
    }
    let _turn = alone();
    let place = Place::new();
    let mut none = prepare(Spec { cgroups: CgroupPlan::default(), seccomp: None, ..place.spec() }).unwrap();
    for primitive in [Primitive::CgroupCreate, Primitive::CgroupEnterTasks, Primitive::SeccompLoad] {
        let failed = none.time(primitive, "floor-test-none").unwrap_err();
        assert!(matches!(failed.error, LaunchError::Impossible(_)), "{failed}");
    }
    // An existing cgroup with this name belongs to another container.
    let taken = place.spec().cgroups.directories("floor-test-taken");
    if let Some(last) = taken.last() {
        fs::create_dir(last).unwrap();
        let failed =
            prepare(place.spec()).unwrap().time(Primitive::CgroupCreate, "floor-test-taken").unwrap_err();
        assert!(matches!(&failed.error, LaunchError::Step(error) if error.errno == libc::EEXIST), "{failed}");
        assert_eq!((failed.cleanup, place.remains()), (None, vec![last.clone()]));
        fs::remove_dir(last).unwrap();
    }
    let invalid = vec![libc::sock_filter { code: 0xffff, jt: 0, jf: 0, k: 0 }];
    let spec = Spec { seccomp: Some(invalid), ..place.spec() };
    let failed = prepare(spec).unwrap().time(Primitive::SeccompLoad, "floor-test-invalid").unwrap_err();
    assert!(failed.to_string().contains("install seccomp filter"), "{failed}");
    assert_eq!(place.remains(), Vec::<PathBuf>::new());
}

#[test]
fn a_set_without_pieces_needs_no_rights_and_others_are_varied() {
    let _turn = alone();
    let place = Place::new();
    let prepared = prepare(Spec { pieces: Pieces::NONE, ..place.spec() }).unwrap();
    assert_eq!(prepared.making().pieces, Pieces::NONE);
    if is_privileged() {
        assert_eq!(
            prepared.vary(Pieces::NONE.with(Piece::Uts).into(), Path::new("/p")).unwrap().making().pieces,
            Pieces::NONE.with(Piece::Uts)
        );
    } else if user_namespaces().is_ok() {
        let both = Pieces::NONE.with(Piece::Uts).with(Piece::User);
        assert_eq!(
            prepared.vary(Pieces::NONE.with(Piece::Uts).into(), Path::new("/p")).unwrap().making().pieces,
            both
        );
    }
}

const INNER: &str = "DUNNAGE_FLOOR_TEST_PRIMITIVES";

#[test]
fn an_ordinary_user_does_what_a_user_namespace_allows() {
    let test = "an_ordinary_user_does_what_a_user_namespace_allows";
    if let Ok(top) = std::env::var(INNER) {
        return rootless(Path::new(&top));
    }
    if let Err(reason) = user_namespaces() {
        return skipped(test, "user namespaces", &reason.to_string());
    }
    let _turn = alone();
    let place = Place::new();
    if !is_privileged() {
        return rootless(place.top.path());
    }
    let copy = place.top.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let scratch = place.top.path().join("scratch");
    std::os::unix::fs::chown(&scratch, Some(65534), Some(65534)).unwrap();
    let [_, exact, name] = one_test("primitive", test);
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&copy)
        .args([&exact, "--nocapture", &name])
        .env(INNER, place.top.path())
        .output();
    match output {
        Ok(output) => {
            println!("{}", String::from_utf8_lossy(&output.stdout));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        Err(error) => skipped(test, "setpriv", &error.to_string()),
    }
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
}

fn rootless(top: &Path) {
    let cgroups = CgroupPlan::here().unwrap();
    cgroups.establish().unwrap();
    let mut prepared = prepare(with_filter(spec_in(top, cgroups))).unwrap();
    for (_, primitive) in PRIMITIVES {
        done(&mut prepared, primitive);
    }
    // It needs no cgroup, and no rights on the host.
    prepared.time(Primitive::SeccompLoad, "floor-test-rootless").unwrap();
    prepared.time(Primitive::TimeNamespace, "floor-test-rootless").unwrap();
    prepared.dispose().unwrap();
}
