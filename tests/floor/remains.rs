//! A container of the floor leaves nothing, whether it succeeds or fails.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dunnage::sys::cgroup::CgroupPlan;
use dunnage::sys::container::{LaunchError, LaunchFailed, Piece, Pieces, Spec, prepare, undo};
use dunnage::sys::pidfd;

use crate::floor::place::{Place, as_root, copy_with_libraries, message_of, mounts, run, spec_in};
use crate::support::{Need, itself, lacks};

#[test]
fn a_launch_that_fails_names_its_step_and_leaves_nothing() {
    const TEST: &str = "a_launch_that_fails_names_its_step_and_leaves_nothing";
    if !as_root(TEST) {
        return;
    }
    let place = Place::new();
    let refused = |spec: Spec| -> LaunchFailed {
        let failed = prepare(spec).unwrap().launch("floor-test-refused").unwrap_err();
        assert_eq!(failed.cleanup, None);
        assert_eq!(place.remains(), Vec::<PathBuf>::new());
        failed
    };
    let step = |failed: LaunchFailed| match failed.error {
        LaunchError::Step(error) => (error.step, error.path, error.errno),
        other => panic!("{other:?}"),
    };
    let missing: PathBuf = "/missing".into();
    let program = refused(Spec { program: missing.clone(), ..place.spec() });
    assert_eq!(program.to_string(), "cannot execute `/missing`: No such file or directory (os error 2)");
    assert_eq!(step(program), ("execute", missing.clone(), libc::ENOENT));

    let plain = Pieces::engine().without(Piece::Filesystems);
    let rootfs = refused(Spec { rootfs: missing, pieces: plain, ..place.spec() });
    assert_eq!((step(rootfs)).0, "mount overlay");

    let scratch = refused(Spec { scratch: "/proc/nowhere".into(), pieces: plain, ..place.spec() });
    assert_eq!(step(scratch).0, "make overlay directory");

    let invalid = vec![libc::sock_filter { code: 0xffff, jt: 0, jf: 0, k: 0 }];
    let filter = refused(Spec { seccomp: Some(invalid), ..place.spec() });
    assert_eq!((step(filter)).0, "install seccomp filter");

    let mut cgroups = place.cgroups.clone();
    if !lacks(TEST, Need::Cgroup) {
        let last = cgroups.places.last_mut().expect("a hierarchy");
        last.parent = "/proc/nowhere/dunnage".into();
        let cgroup = refused(Spec { cgroups, ..place.spec() });
        assert_eq!((step(cgroup)).0, "create cgroup");
    }
    let twice = refused(Spec {
        seccomp: None,
        arguments: vec!["probe".into(); 3],
        program: "/".into(),
        ..place.spec()
    });
    assert_eq!(step(twice).2, libc::EACCES);
    assert_eq!(mounts(), [""; 0]);
}

#[test]
fn two_hundred_launches_leave_nothing() {
    if !as_root("two_hundred_launches_leave_nothing") {
        return;
    }
    let place = Place::new();
    let mut prepared = prepare(place.spec()).unwrap();
    run(&mut prepared, "floor-test-first");
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
    let fds = descriptors();
    for round in 0..200 {
        message_of(&run(&mut prepared, &format!("floor-test-{round}")));
    }
    assert_eq!((descriptors(), mounts()), (fds, vec![]));
    assert_eq!(place.remains(), Vec::<PathBuf>::new());
    // SAFETY: asks whether there is any child; changes nothing.
    let children = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    assert_eq!(children, -1, "a child is left, and with it its namespaces");
    prepared.dispose().unwrap();
}

#[test]
fn another_run_that_ends_leaves_the_shared_directories() {
    if !as_root("another_run_that_ends_leaves_the_shared_directories") {
        return;
    }
    let place = Place::new();
    let mut prepared = prepare(place.spec()).unwrap();
    let other = place.cgroups.establish().unwrap();
    drop(other);
    place.cgroups.retire().unwrap();
    assert!(place.cgroups.places.iter().all(|place| place.parent.is_dir()));
    message_of(&run(&mut prepared, "floor-test-again"));
    assert_eq!(place.remains(), Vec::<PathBuf>::new());
}

#[test]
fn what_a_killed_maker_leaves_is_undone_from_its_name() {
    let test = "what_a_killed_maker_leaves_is_undone_from_its_name";
    if !as_root(test) {
        return;
    }
    let place = Place::new();
    let mut prepared =
        prepare(Spec { pieces: Pieces::engine().without(Piece::Pid), ..place.spec() }).unwrap();
    let name = "floor-test-orphan";
    let left = prepared.leftovers(name);
    let upper = left.scratch.join("upper");
    fs::create_dir_all(&upper).unwrap();
    fs::write(upper.join("file"), "x").unwrap();
    left.cgroups.iter().for_each(|path| fs::create_dir(path).unwrap());
    let mut sleeper = Command::new("sleep").arg("100").spawn().unwrap();
    for path in &left.cgroups {
        fs::write(path.join("cgroup.procs"), sleeper.id().to_string()).unwrap();
    }
    // An existing cgroup with this name belongs to another container, and stays as it is.
    let LaunchFailed { error: LaunchError::Step(taken), cleanup: None } = prepared.launch(name).unwrap_err()
    else {
        panic!("the name was not taken")
    };
    assert_eq!(taken.errno, libc::EEXIST);
    assert!(upper.join("file").exists() && sleeper.try_wait().unwrap().is_none());
    let waiter = std::thread::spawn(move || sleeper.wait().unwrap());
    undo(&left).unwrap();
    assert!(!waiter.join().unwrap().success());
    assert_eq!(place.remains(), Vec::<PathBuf>::new());
    undo(&left).unwrap();
    let mut foreign = left;
    foreign.cgroups = vec!["/sys/fs/cgroup/other/group".into()];
    assert!(undo(&foreign).unwrap_err().to_string().contains("is not a cgroup made by dunnage"));
}

const MAKER: &str = "DUNNAGE_FLOOR_TEST_MAKER";

#[test]
fn a_container_dies_with_its_maker() {
    let test = "a_container_dies_with_its_maker";
    let name = "floor-test-mortal";
    if !as_root(test) {
        return;
    }
    let sleeper = |place_spec: Spec| Spec {
        program: "/bin/sleep".into(),
        arguments: vec!["100".into()],
        seccomp: None,
        ..place_spec
    };
    if let Ok(top) = std::env::var(MAKER) {
        let spec = sleeper(spec_in(Path::new(&top), CgroupPlan::here().unwrap()));
        let running = prepare(spec).unwrap().launch(name).unwrap();
        println!("\npid {}", running.child.pid);
        std::thread::park();
    }
    let place = Place::new();
    copy_with_libraries("/bin/sleep", &place.top.path().join("rootfs"));
    let mut maker = itself::again().env(MAKER, place.top.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(maker.stdout.take().unwrap()).lines().map(Result::unwrap);
    let pid =
        lines.find_map(|line| line.strip_prefix("pid ")?.parse().ok()).expect("it has made the container");
    let container = pidfd::open(pid).unwrap();
    maker.kill().unwrap();
    maker.wait().unwrap();
    let mut ended = libc::pollfd { fd: container.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd.
    assert_eq!(unsafe { libc::poll(&mut ended, 1, 10_000) }, 1, "the container outlived its maker");
    assert!(place.top.path().join("scratch").join(name).exists());
    undo(&prepare(place.spec()).unwrap().leftovers(name)).unwrap();
    assert_eq!(place.remains(), Vec::<PathBuf>::new());
}
