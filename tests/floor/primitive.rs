//! Primitives do what they are timed for, leave nothing, and report why where they cannot.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dunnage::sys::cgroup::{self, CgroupPlan};
use dunnage::sys::container::{
    LaunchError, LaunchFailed, PRIMITIVES, Piece, Pieces, Prepared, Primitive, Spec, is_privileged, prepare,
    user_namespaces,
};
use dunnage::sys::seccomp::{self, Profile};
use dunnage::sys::signals::Interrupts;
use dunnage::sys::spawn::Status;

use crate::floor::place::{PATIENCE, Place, again_without_rights, as_root, mounts, spec_in};
use crate::support::{Need, lacks, skip};

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
    const TEST: &str = "every_primitive_is_done_and_undone";
    if !as_root(TEST) {
        return;
    }
    let place = Place::new();
    let before = world();
    let mut prepared = prepare(with_filter(place.spec())).unwrap();
    for (_, primitive) in PRIMITIVES {
        if is_lacking(TEST, primitive) {
            assert_refused(&mut prepared, primitive);
            continue;
        }
        for _ in 0..3 {
            done(&mut prepared, primitive);
        }
    }
    prepared.dispose().unwrap();
    assert_eq!(place.remains(), Vec::<PathBuf>::new());
    assert_eq!(world(), before);
}

/// What a primitive needs that this machine does not have, asked without the code under test.
fn lacking(primitive: Primitive) -> Option<(Need, String)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let is_mounted = |kind: &str| mounts.contains(&format!(" - {kind} "));
    let hierarchy = |is_there: bool| match Need::Cgroup.ready() {
        Ok(()) if is_there => None,
        Ok(()) => Some((Need::Cgroup, "no such hierarchy is mounted".to_owned())),
        Err(reason) => Some((Need::Cgroup, reason)),
    };
    // In a network namespace that ends with the command.
    let interface = |words: &str| {
        let mut command = Command::new("unshare");
        if !is_privileged() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["--net", "ip", "link", "add"]).args(words.split(' '));
        let output = command.output().expect("unshare is there");
        if output.status.success() {
            return None;
        }
        let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        assert!(complaint.contains("Unknown device type"), "ip link add {words}: {complaint}");
        Some((Need::Kernel, complaint))
    };
    let pair = || interface("dunnage1 type veth peer name eth0");
    match primitive {
        Primitive::CgroupCreate | Primitive::CgroupRemove => {
            hierarchy(is_mounted("cgroup") || is_mounted("cgroup2"))
        }
        Primitive::CgroupEnterTasks | Primitive::CgroupEnterProcesses => hierarchy(is_mounted("cgroup")),
        Primitive::CgroupEnterVersion2 => hierarchy(is_mounted("cgroup2")),
        Primitive::TimeNamespace => {
            let found = fs::symlink_metadata("/proc/self/ns/time");
            found.err().map(|error| (Need::Kernel, format!("/proc/self/ns/time: {error}")))
        }
        Primitive::VethPair => pair(),
        Primitive::BridgePort => pair().or_else(|| interface("dunnage0 type bridge")),
        Primitive::OverlayMount | Primitive::PivotRoot | Primitive::SeccompLoad => None,
    }
}

/// Whether this machine lacks what a primitive needs; then the skip is reported.
fn is_lacking(test: &str, primitive: Primitive) -> bool {
    let lacking = lacking(primitive);
    if let Some((need, why)) = &lacking {
        skip(&format!("{test} ({primitive:?})"), *need, why);
    }
    lacking.is_some()
}

const NAME: &str = "floor-test-primitive";

/// Does a primitive, which this machine can.
fn done(prepared: &mut Prepared, primitive: Primitive) {
    let timed = prepared.time(primitive, NAME).unwrap_or_else(|failed| panic!("{primitive:?}: {failed:?}"));
    assert!(timed.began < timed.made && timed.made < timed.gone, "{primitive:?}: {timed:?}");
    let has_calls = matches!(
        primitive,
        Primitive::CgroupCreate | Primitive::OverlayMount | Primitive::VethPair | Primitive::BridgePort
    );
    assert_eq!(timed.undone.is_some(), has_calls, "{primitive:?}: {timed:?}");
    let undone = timed.undone.is_none_or(|(from, to)| timed.made <= from && from < to);
    assert!(undone, "{primitive:?}: {timed:?}");
    println!("{primitive:?}: {} ns", timed.made.since(timed.began).0);
}

/// What a kernel was built without, or a host does not mount, is reported, and nothing of it is left.
fn assert_refused(prepared: &mut Prepared, primitive: Primitive) {
    let failed = prepared.time(primitive, NAME).expect_err("this machine does not have it");
    assert_known(primitive, &failed);
}

fn assert_known(primitive: Primitive, failed: &LaunchFailed) {
    assert_eq!(failed.cleanup, None);
    let is_known = match &failed.error {
        LaunchError::Impossible(_) => true,
        LaunchError::Step(error) => {
            [libc::EOPNOTSUPP, libc::EINVAL, libc::ENOSYS, libc::EPERM].contains(&error.errno)
        }
        _ => false,
    };
    assert!(is_known, "{primitive:?}: {failed}");
}

#[test]
fn a_primitive_is_there_when_it_was_done() {
    const TEST: &str = "a_primitive_is_there_when_it_was_done";
    if !as_root(TEST) {
        return;
    }
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
        if is_lacking(TEST, primitive) {
            continue;
        }
        let own = place.cgroups.of_version(|version| (*version == cgroup::Version::V2) != is_meant(&"1:x"));
        assert!(!own.places.is_empty(), "{primitive:?}");
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
    if !is_lacking(TEST, Primitive::TimeNamespace) {
        let file = "/proc/self/ns/time_for_children";
        let own = seen(&place, Primitive::TimeNamespace, "/bin/readlink", &[file]);
        let host = fs::read_link(file).unwrap();
        assert!(own.starts_with("time:[") && own.trim() != host.to_str().unwrap(), "{own} {host:?}");
    }
    if !is_lacking(TEST, Primitive::VethPair) {
        let is_there = |interfaces: &str| interfaces.contains("dunnage1:");
        before_it_goes(is_there, || cat(Primitive::VethPair, "/proc/self/net/dev"));
    }
    let names: BTreeSet<_> =
        fs::read_dir("/sys/class/net").unwrap().flatten().map(|one| one.file_name()).collect();
    assert!(!names.contains(std::ffi::OsStr::new("dunnage1")), "the host has an interface of the test");
    // The bridge has an entry for a port's own addresses.
    let script = "mount -t sysfs none /sys && { cat /sys/class/net/dunnage1/operstate; ls /sys/class/net/dunnage0/brif; }; exit 0";
    let look = || seen(&place, Primitive::BridgePort, "/usr/bin/unshare", &["--mount", "sh", "-c", script]);
    if !is_lacking(TEST, Primitive::BridgePort) {
        before_it_goes(|port| port == "up\ndunnage1\n", look);
    }
    assert_eq!(place.remains(), Vec::<PathBuf>::new());
}

#[test]
fn what_cannot_be_done_is_said_and_leaves_nothing() {
    const TEST: &str = "what_cannot_be_done_is_said_and_leaves_nothing";
    if !as_root(TEST) {
        return;
    }
    let place = Place::new();
    let mut none = prepare(Spec { cgroups: CgroupPlan::default(), seccomp: None, ..place.spec() }).unwrap();
    for primitive in [Primitive::CgroupCreate, Primitive::CgroupEnterTasks, Primitive::SeccompLoad] {
        let failed = none.time(primitive, "floor-test-none").unwrap_err();
        assert!(matches!(failed.error, LaunchError::Impossible(_)), "{failed}");
    }
    // An existing cgroup with this name belongs to another container.
    let taken = place.spec().cgroups.directories("floor-test-taken");
    if !lacks(TEST, Need::Cgroup) {
        let last = taken.last().expect("a hierarchy");
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
    let place = Place::new();
    let prepared = prepare(Spec { pieces: Pieces::NONE, ..place.spec() }).unwrap();
    assert_eq!(prepared.making().pieces, Pieces::NONE);
    if is_privileged() {
        assert_eq!(
            prepared.vary(Pieces::NONE.with(Piece::Uts).into(), Path::new("/p")).unwrap().making().pieces,
            Pieces::NONE.with(Piece::Uts)
        );
    } else if let Err(reason) = user_namespaces() {
        skip("a_set_without_pieces_needs_no_rights_and_others_are_varied", Need::Userns, &reason.to_string());
    } else {
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
    let has_cgroups = !cgroups.places.is_empty();
    let mut prepared = prepare(with_filter(spec_in(top, cgroups))).unwrap();
    for (name, primitive) in PRIMITIVES {
        let is_with_cgroups = name.starts_with("cgroup_");
        if is_with_cgroups && has_cgroups {
            // Which of them the kernel allows depends on what was delegated to this user.
            prepared.time(primitive, NAME).map_or_else(|failed| assert_known(primitive, &failed), drop);
        } else if is_with_cgroups {
            assert_refused(&mut prepared, primitive);
        } else if !is_lacking("an_ordinary_user_does_what_a_user_namespace_allows", primitive) {
            done(&mut prepared, primitive);
        }
    }
    prepared.dispose().unwrap();
}
