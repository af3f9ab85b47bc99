//! The floor for real: containers made by system calls, seen from inside and from outside.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dunnage::probe::message::{self, Message};
use dunnage::sys::cgroup::{self, CgroupPlan, LABEL};
use dunnage::sys::container::{
    DOCKER_CAPABILITIES, Gone, LaunchError, LaunchFailed, Piece, Pieces, Prepared, Spec, is_privileged,
    prepare, undo, user_namespaces,
};
use dunnage::sys::signals::Interrupts;
use dunnage::sys::spawn::Status;
use dunnage::units::Nanos;

const PATIENCE: Nanos = Nanos::from_millis(10_000);

/// The tests look at what the whole process leaves, so one runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn skipped(test: &str, need: &str, reason: &str) {
    println!("skipped: {test}: {need}: {reason}");
}

/// An image and a scratch directory, in a temporary directory that everybody may enter.
struct Place {
    top: tempfile::TempDir,
    cgroups: CgroupPlan,
}

impl Place {
    fn new() -> Place {
        let top = tempfile::Builder::new().prefix("dunnage-floor-").tempdir().unwrap();
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for directory in ["rootfs", "scratch"] {
            fs::create_dir(top.path().join(directory)).unwrap();
        }
        let executable = top.path().join("rootfs/dunnage");
        fs::copy(env!("CARGO_BIN_EXE_dunnage"), &executable).unwrap();
        fs::set_permissions(&executable, fs::Permissions::from_mode(0o755)).unwrap();
        let cgroups = CgroupPlan::new(&cgroup::mounted().unwrap());
        cgroups.establish().unwrap();
        Place { top, cgroups }
    }

    fn spec(&self) -> Spec {
        spec_in(self.top.path(), self.cgroups.clone())
    }

    /// What lies in the scratch directory and in our cgroup directories.
    fn remains(&self) -> Vec<PathBuf> {
        let scratch = [self.top.path().join("scratch")];
        let parents = self.cgroups.places.iter().map(|place| place.parent.clone());
        let entries = scratch.into_iter().chain(parents).flat_map(|path| fs::read_dir(path).unwrap());
        let ours = |path: &PathBuf| path.to_string_lossy().contains("floor-test");
        entries.map(|entry| entry.unwrap().path()).filter(ours).collect()
    }
}

/// The probe in the image under `top`, made as an engine makes it.
fn spec_in(top: &Path, cgroups: CgroupPlan) -> Spec {
    Spec {
        rootfs: top.join("rootfs"),
        scratch: top.join("scratch"),
        program: "/dunnage".into(),
        arguments: vec!["probe".into(), "start".into()],
        environment: vec!["PATH=/bin".into()],
        pieces: Pieces::engine(),
        seccomp: Some(allow_all()),
        cgroups,
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.cgroups.retire().unwrap();
    }
}

fn allow_all() -> Vec<libc::sock_filter> {
    vec![libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0x7fff_0000 }]
}

fn run(prepared: &mut Prepared, name: &str) -> Gone {
    let interrupts = Interrupts::install().unwrap();
    prepared.launch(name).unwrap().wait(PATIENCE, &interrupts)
}

fn message_of(gone: &Gone) -> Message {
    let ended = gone.end.as_ref().unwrap();
    assert_eq!(ended.status, Status::Exited(0), "{}", String::from_utf8_lossy(&ended.stderr));
    gone.removed.clone().unwrap();
    message::parse(&ended.stdout).unwrap()
}

fn own_namespaces() -> BTreeSet<u64> {
    let names = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];
    let inode = |name| {
        let link = fs::read_link(format!("/proc/thread-self/ns/{name}")).unwrap();
        link.to_string_lossy().chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    names.into_iter().map(inode).collect()
}

/// The mounts on the host that came from a test; other programs mount theirs meanwhile.
fn mounts() -> Vec<String> {
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
    all.lines()
        .filter(|line| line.contains("dunnage-floor-") || line.contains("floor-test"))
        .map(str::to_owned)
        .collect()
}

/// Whether this machine lets the tests make what root makes; says why not.
fn as_root(test: &str) -> bool {
    if !is_privileged() {
        skipped(test, "root", "CAP_SYS_ADMIN is missing");
    }
    is_privileged()
}

#[test]
fn the_inside_is_what_docker_makes() {
    if !as_root("the_inside_is_what_docker_makes") {
        return;
    }
    let _turn = alone();
    let place = Place::new();
    let mut prepared = prepare(place.spec()).unwrap();
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
    assert_eq!(place.remains(), [PathBuf::new(); 0]);
    prepared.dispose().unwrap();
}

/// Copies a program of the host with its libraries into an image; says whether there are any.
fn copy_with_libraries(program: &str, rootfs: &Path) -> bool {
    let Ok(output) = Command::new("ldd").arg(program).output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let libraries = text.split_whitespace().filter(|word| word.starts_with('/'));
    output.status.success()
        && libraries.chain([program]).all(|file| {
            let target = rootfs.join(&file[1..]);
            fs::create_dir_all(target.parent().unwrap()).is_ok() && fs::copy(file, target).is_ok()
        })
}

/// What a shell finds inside, for the facts that the probe does not tell.
#[test]
fn files_mounts_and_host_name_are_dockers() {
    let test = "files_mounts_and_host_name_are_dockers";
    if !as_root(test) {
        return;
    }
    let _turn = alone();
    let place = Place::new();
    let rootfs = place.top.path().join("rootfs");
    let programs = ["/bin/sh", "/bin/cat", "/bin/ls", "/bin/touch", "/bin/mkdir"];
    if !programs.iter().all(|program| copy_with_libraries(program, &rootfs)) {
        return skipped(test, "a shell to copy", "ldd cannot tell its libraries");
    }
    let script = "cd /proc; cat sys/kernel/hostname self/mountinfo; ls -l /dev; echo \"flags $(cat /sys/class/net/lo/flags)\"; \
                  echo \"keys <$(cat keys)>\"; touch /written; mkdir -p /a/b; \
                  set -- self/fd/*; echo \"fds $*\"; (echo 1 > /proc/sys/kernel/panic) 2>/dev/null || echo read-only";
    let spec =
        Spec { program: "/bin/sh".into(), arguments: ["-c", script].map(Into::into).into(), ..place.spec() };
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
    assert_eq!(place.remains(), [PathBuf::new(); 0], "what the program wrote was left behind");
}

#[test]
fn pieces_can_be_left_out() {
    if !as_root("pieces_can_be_left_out") {
        return;
    }
    let _turn = alone();
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
    assert_eq!((shared(&bare), bare.seccomp, bare.no_new_privs), (7, 0, 0));
    assert_eq!(shared(&inside(Pieces::NONE.with(Piece::Network), &on_host)), 6);
    let host_cgroups = inside(Pieces::engine().without(Piece::CgroupNamespace), image);
    let in_ours = |line: &&String| line.ends_with("dunnage/floor-test-pieces");
    assert_eq!(host_cgroups.cgroup_path.iter().filter(in_ours).count(), place.cgroups.places.len());
    let all = inside(Pieces::engine().without(Piece::Capabilities).without(Piece::NoNewPrivileges), image);
    assert_ne!(all.capabilities, DOCKER_CAPABILITIES);
    assert_ne!(inside(Pieces::engine().without(Piece::Overlay), image).root().unwrap().0, "overlay");
    for piece in dunnage::sys::container::ALL {
        if piece != Piece::Mounts && piece != Piece::Overlay {
            inside(Pieces::engine().without(piece), image);
        }
    }
    inside(Pieces::engine().with(Piece::User), image);
    assert_eq!(place.remains(), [PathBuf::new(); 0]);
}

#[test]
fn a_launch_that_fails_names_its_step_and_leaves_nothing() {
    if !as_root("a_launch_that_fails_names_its_step_and_leaves_nothing") {
        return;
    }
    let _turn = alone();
    let place = Place::new();
    let refused = |spec: Spec| -> LaunchFailed {
        let failed = prepare(spec).unwrap().launch("floor-test-refused").unwrap_err();
        assert_eq!(failed.cleanup, None);
        assert_eq!(place.remains(), [PathBuf::new(); 0]);
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
    if let Some(last) = cgroups.places.last_mut() {
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
    let _turn = alone();
    let place = Place::new();
    let mut prepared = prepare(place.spec()).unwrap();
    run(&mut prepared, "floor-test-first");
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
    let fds = descriptors();
    for round in 0..200 {
        message_of(&run(&mut prepared, &format!("floor-test-{round}")));
    }
    assert_eq!((descriptors(), mounts()), (fds, vec![]));
    assert_eq!(place.remains(), [PathBuf::new(); 0]);
    // SAFETY: asks whether there is any child; changes nothing.
    let children = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    assert_eq!(children, -1, "a child is left, and with it its namespaces");
    prepared.dispose().unwrap();
}

#[test]
fn what_a_killed_maker_leaves_is_undone_from_its_name() {
    let test = "what_a_killed_maker_leaves_is_undone_from_its_name";
    if !as_root(test) {
        return;
    }
    let _turn = alone();
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
    // A name that is taken is another's container: it stays as it is.
    let LaunchFailed { error: LaunchError::Step(taken), cleanup: None } = prepared.launch(name).unwrap_err()
    else {
        panic!("the name was not taken")
    };
    assert_eq!(taken.errno, libc::EEXIST);
    assert!(upper.join("file").exists() && sleeper.try_wait().unwrap().is_none());
    let waiter = std::thread::spawn(move || sleeper.wait().unwrap());
    undo(&left).unwrap();
    assert!(!waiter.join().unwrap().success());
    assert_eq!(place.remains(), [PathBuf::new(); 0]);
    undo(&left).unwrap();
    let mut foreign = left;
    foreign.cgroups = vec!["/sys/fs/cgroup/somebody/else".into()];
    assert!(undo(&foreign).unwrap_err().to_string().contains("is not a cgroup of ours"));
    assert_eq!(LABEL, "dunnage");
}

/// The test executable itself, to run one test of it as another process.
fn one_test(test: &str) -> [String; 3] {
    [std::env::current_exe().unwrap().to_str().unwrap().to_owned(), "--exact".into(), test.to_owned()]
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
        let spec = sleeper(spec_in(Path::new(&top), CgroupPlan::new(&cgroup::mounted().unwrap())));
        let running = prepare(spec).unwrap().launch(name).unwrap();
        println!("\npid {}", running.pid());
        std::thread::park();
    }
    let _turn = alone();
    let place = Place::new();
    if !copy_with_libraries("/bin/sleep", &place.top.path().join("rootfs")) {
        return skipped(test, "a sleeping program to copy", "ldd cannot tell its libraries");
    }
    let [program, exact, test] = one_test(test);
    let mut maker = Command::new(program)
        .args([exact, test, "--nocapture".into()])
        .env(MAKER, place.top.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(maker.stdout.take().unwrap()).lines().map(Result::unwrap);
    let pid = lines.find_map(|line| line.strip_prefix("pid ")?.parse().ok()).unwrap();
    let container = dunnage::sys::spawn::pidfd(pid).unwrap();
    maker.kill().unwrap();
    maker.wait().unwrap();
    let mut ended = libc::pollfd { fd: container.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd.
    assert_eq!(unsafe { libc::poll(&mut ended, 1, 10_000) }, 1, "the container outlived its maker");
    assert!(place.top.path().join("scratch").join(name).exists());
    undo(&prepare(place.spec()).unwrap().leftovers(name)).unwrap();
    assert_eq!(place.remains(), [PathBuf::new(); 0]);
}

/// The modes that this machine is not in are made in a mount namespace.
#[test]
fn every_division_of_the_cgroup_hierarchies_will_do() {
    let test = "every_division_of_the_cgroup_hierarchies_will_do";
    if !as_root(test) {
        return;
    }
    let _turn = alone();
    let only_second = "umount -R /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup";
    let only_first = "umount /sys/fs/cgroup/unified";
    for (mode, change) in [("v2", only_second), ("v1", only_first), ("none", "umount -R /sys/fs/cgroup")] {
        let script = format!("{{ {change}; }} || exit 77; exec \"$@\"");
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script, "sh"])
            .args(one_test("the_inside_is_what_docker_makes"))
            .output();
        match output {
            Ok(output) if output.status.success() => {}
            Ok(output) if output.status.code() == Some(77) => {
                skipped(test, mode, &String::from_utf8_lossy(&output.stderr))
            }
            Ok(output) => panic!("{mode}: {}", String::from_utf8_lossy(&output.stdout)),
            Err(error) => skipped(test, "unshare", &error.to_string()),
        }
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
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&copy)
        .args(["--exact", "--nocapture", test])
        .env(INNER, place.top.path())
        .output();
    match output {
        Ok(output) => {
            println!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(output.status.success());
        }
        Err(error) => skipped(test, "setpriv", &error.to_string()),
    }
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
}

fn rootless(top: &Path) {
    let cgroups = CgroupPlan::new(&cgroup::mounted().unwrap());
    cgroups.establish().unwrap();
    let spec = spec_in(top, cgroups);
    let mut prepared = prepare(spec).unwrap();
    assert!(prepared.pieces().has(Piece::User));
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
