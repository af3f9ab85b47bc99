//! Storage drivers for real: an engine gets the driver that is asked for, from its own daemon or store or
//! from a private one, and what serves is read back from inside. Nothing is left, also after kill -9.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::dunnage::{Dunnage, Ran};
use crate::left;
use crate::running::Running;
use crate::support::{Need, Sweeps, lacks};
use ::dunnage::record::{self, Recorded};

/// A subject, and what its root must be.
type Driver = (&'static str, &'static [&'static str]);

const FUSE: &[&str] = &["fuse.fuse-overlayfs", "fuse"];
const PLAIN: &[&str] = &["ext4", "ext3", "xfs", "btrfs", "zfs", "f2fs", "tmpfs"];

/// Runs one round with these subjects, and checks what was read back and that nothing is left.
fn serve(drivers: &[Driver]) -> Recorded {
    let dunnage = Dunnage::new();
    let subjects: String = drivers.iter().map(|(subject, _)| format!(" -s {subject}")).collect();
    let ran = dunnage.run(&format!("run start --rounds 1 --set prestate=primed{subjects} -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let run = record::load(&dunnage.directory()).expect("a run directory");
    check_nothing_left(&dunnage, &run.run, &ran);
    assert!(run.failures.is_empty(), "{:?}", run.failures);
    for (subject, roots) in drivers {
        let cells = (0..run.plan.cells.len())
            .filter(|cell| run.plan.subjects[run.plan.cells[*cell].subject].label == *subject);
        let found: Vec<_> =
            cells.flat_map(|cell| run.facts(cell, ::dunnage::launch::names::STORAGE)).collect();
        let is_asked = |fact: &Option<&str>| fact.is_some_and(|fact| roots.contains(&fact));
        assert!(!found.is_empty() && found.iter().all(is_asked), "{subject}: {found:?}");
    }
    run
}

fn check_nothing_left(dunnage: &Dunnage, run: &str, told: &Ran) {
    assert_eq!(
        crate::resources::left::left_of(&dunnage.state(), run, &left::ENGINES),
        Vec::<String>::new(),
        "{told}"
    );
    assert_eq!(left::of_run(run), Vec::<String>::new(), "{told}");
    let mut roots = fs::read_dir("/run").expect("/run").flatten().map(|entry| entry.path());
    assert_eq!(roots.find(|path| path.to_string_lossy().contains(run)), None, "{told}");
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new(), "{told}");
}

/// A fact about a subject.
fn note<'a>(run: &'a Recorded, subject: &str, name: &str) -> &'a str {
    &run.environment.subjects[subject].notes[name]
}

fn said(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().expect("the program is there");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Whether docker's version is at least this.
fn docker_is(least: u32) -> bool {
    let version = said("docker", &["version", "--format", "{{.Server.Version}}"]);
    version.split('.').next().and_then(|major| major.parse().ok()).is_some_and(|own: u32| own >= least)
}

#[test]
fn docker_serves_with_every_driver() {
    const TEST: &str = "docker_serves_with_every_driver";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Dockerd) {
        return;
    }
    let mut drivers: Vec<Driver> =
        vec![("docker:storage=overlay2", &["overlay"]), ("docker:storage=vfs", PLAIN)];
    if !lacks(TEST, Need::FuseOverlayfs) {
        drivers.push(("docker:storage=fuse-overlayfs", FUSE));
    }
    if !lacks(TEST, Need::Btrfs) {
        drivers.push(("docker:net=none,storage=btrfs", &["btrfs"]));
    }
    match docker_is(24) {
        true => drivers.push(("docker:storage=containerd", &["overlay"])),
        false => drivers.push(("docker:client=api,storage=overlay", &["overlay"])),
    }
    let before = said("docker", &["info", "--format", "{{.ID}} {{.Driver}}"]);
    let foreign = left::Foreign::plant(vec!["docker"]);
    let run = serve(&drivers);
    assert_eq!(said("docker", &["info", "--format", "{{.ID}} {{.Driver}}"]), before);
    assert_eq!(foreign.missing(), Vec::<String>::new());
    for (subject, _) in &drivers {
        let own = before.split(' ').nth(1) == subject.split("storage=").nth(1);
        let daemon = if own { "the user's" } else { "private" };
        assert_eq!(note(&run, subject, "daemon"), daemon, "{subject}");
        let components = &run.environment.subjects[*subject].components;
        let count = |role: &str| components.iter().filter(|one| one.role == role).count();
        assert_eq!((count("daemon"), count("containerd")), (1, 1), "{subject}: {components:?}");
    }
    assert_eq!(note(&run, "docker:storage=vfs", "image store"), "graph driver");
    if !lacks(TEST, Need::PerfEvents) {
        check_engine_cpu(&run);
    }
}

/// The daemon, its containerd, the shim and the runtime together take tens of milliseconds.
fn check_engine_cpu(run: &Recorded) {
    for (index, cell) in run.plan.cells.iter().enumerate() {
        let metrics = run.plan.metrics(cell);
        let place = metrics.iter().position(|metric| metric.name == "engine_cpu").expect("a metric");
        let values = &run.series[index].values[place];
        assert!(values.iter().all(|seconds| *seconds > 0.005), "{}: {values:?}", cell.subject);
    }
}

#[test]
fn podman_serves_with_every_driver() {
    const TEST: &str = "podman_serves_with_every_driver";
    if lacks(TEST, Need::Podman) || lacks(TEST, Need::FuseOverlayfs) {
        return;
    }
    let drivers: [Driver; 4] = [
        ("podman:storage=overlay", &["overlay"]),
        ("podman:storage=fuse-overlayfs", FUSE),
        ("podman:storage=vfs", PLAIN),
        ("podman:client=api,storage=vfs", PLAIN),
    ];
    let own = "{{.Store.GraphDriverName}}";
    let before = said("podman", &["info", "--format", own]);
    let foreign = left::Foreign::plant(vec!["podman"]);
    let run = serve(&drivers);
    assert_eq!(said("podman", &["info", "--format", own]), before);
    assert_eq!(foreign.missing(), Vec::<String>::new());
    assert_eq!(note(&run, "podman:storage=vfs", "store"), "private");
}

/// Killed while containers run in a private daemon on a loop device, and in a private store.
#[test]
fn a_sweep_removes_private_daemons_and_stores() {
    const TEST: &str = "a_sweep_removes_private_daemons_and_stores";
    let needs = [Need::Docker, Need::Dockerd, Need::Btrfs, Need::Podman, Need::FuseOverlayfs];
    if needs.into_iter().any(|need| lacks(TEST, need)) {
        return;
    }
    let dunnage = Dunnage::new();
    let _turn = Sweeps::begin();
    let subjects = "-s docker:storage=btrfs -s podman:storage=fuse-overlayfs";
    let mut run = Running::start(&dunnage, &format!("run lifecycle {subjects} --rounds 50 -o DIR"));
    // Daemon and store are made before, and serve until the end.
    run.await_event(&["\"cell ends\"", "docker"]);
    let (run, there) =
        run.kill_with(|run| crate::resources::left::left_of(&dunnage.state(), run, &left::ENGINES));
    let has = |what: &str| there.iter().any(|line| line.contains(what));
    assert!(has("dockerd") && has("loop") && has(&format!("runs/{run}/s")), "{there:?}");
    let swept = dunnage.run("sweep");
    assert_eq!(swept.code, 0, "{swept}");
    assert!(swept.stdout.contains("the private daemon in"), "{swept}");
    assert!(swept.stdout.contains("the private store in"), "{swept}");
    check_nothing_left(&dunnage, &run, &swept);
}

#[test]
fn an_unknown_driver_is_wrong_usage() {
    for (subject, known) in [("docker:storage=overlay3", "overlay2"), ("podman:storage=btrfs", "overlay")] {
        let ran = Dunnage::new().run(&format!("check start -s {subject}"));
        assert_eq!(ran.code, 2, "{ran}");
        assert!(ran.stderr.contains("storage") && ran.stderr.contains(known), "{ran}");
    }
}

/// A daemon's program that only says its version: nothing more is asked of it.
#[test]
fn a_dropped_driver_names_the_version_that_dropped_it() {
    const TEST: &str = "a_dropped_driver_names_the_version_that_dropped_it";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Dockerd) {
        return;
    }
    let programs = tempfile::tempdir().expect("a directory");
    let script = programs.path().join("dockerd");
    fs::write(&script, "#!/bin/sh\necho Docker version 29.1.3, build f52814d\n").expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a script");
    let dunnage = Dunnage::new().with_first_on_path(programs.path());
    let ran = dunnage.run("check start -s docker:storage=aufs -s docker:storage=devicemapper");
    assert_eq!(ran.code, 4, "{ran}");
    for words in ["`aufs` in version 24.0, and this is 29.1", "`devicemapper` in version 25.0"] {
        assert!(ran.stdout.contains(words), "{ran}");
    }
}

#[test]
fn a_driver_that_does_not_start_is_unavailable_in_the_daemons_words() {
    const TEST: &str = "a_driver_that_does_not_start_is_unavailable_in_the_daemons_words";
    let has_aufs = fs::read_to_string("/proc/filesystems").is_ok_and(|all| all.contains("aufs"));
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Dockerd) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = dunnage.run("check start -s docker:storage=aufs");
    let (code, words) = match (docker_is(24), has_aufs) {
        (true, _) => (4, "dropped the storage driver `aufs`"),
        (false, true) => (0, ""),
        (false, false) => {
            (4, "a private daemon with the storage driver `aufs` did not start: failed to start daemon")
        }
    };
    assert!(ran.code == code && ran.stdout.contains(words), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new(), "{ran}");
}
