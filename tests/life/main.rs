//! Containers that live by verbs, for real: every subject that works here is created, started, entered,
//! stopped and removed, with the treatment asked for, and leaves nothing, however it ends.

#[path = "../support/dunnage.rs"]
mod dunnage;
#[path = "../support/left.rs"]
mod left;
#[path = "../support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use ::dunnage::outcome::FailureClass;
use ::dunnage::plan::Cell;
use ::dunnage::record::{self, Cause, Recorded};
use dunnage::{Dunnage, Ran};
use support::{Need, lacks};

fn recorded(dunnage: &Dunnage, ran: &Ran) -> Recorded {
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    assert_eq!(left::of_run(&recorded.run), Vec::<String>::new(), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new(), "{ran}");
    recorded
}

/// The values of a metric, by cell of the experiment and subject.
fn values(run: &Recorded, experiment: &str, subject: &str, metric: &str) -> Vec<f64> {
    let found = run.plan.cells.iter().enumerate().filter(|(_, cell)| {
        cell.experiment == experiment && run.plan.subjects[cell.subject].label == subject
    });
    let of_cell = |(index, cell): (usize, &Cell)| {
        let metrics = run.plan.metrics(cell);
        let metric = metrics.iter().position(|one| one.name == metric).expect("a metric");
        run.series[index].values[metric].clone()
    };
    found.flat_map(of_cell).collect()
}

fn lives(subject: &str) {
    let dunnage = Dunnage::new();
    let ran = dunnage.run(&format!("run lifecycle exec -s bare -s {subject} --rounds 2 -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let run = recorded(&dunnage, &ran);
    assert!(run.failures.is_empty(), "{:?}", run.failures);
    for verb in ["create", "start", "exec", "stop", "remove"] {
        let values = values(&run, "lifecycle", subject, verb);
        assert_eq!(values.len(), 2);
        assert!(values.iter().all(|value| *value > 0.0 && *value < 8.0), "{verb}: {values:?}");
    }
    // An entry cannot be faster than the creation of a process.
    let least = |subject: &str| {
        let values = values(&run, "exec", subject, "returned");
        assert_eq!(values.len(), 4);
        values.into_iter().fold(f64::INFINITY, f64::min)
    };
    assert!(least(subject) > 0.0 && least("bare") > 0.0);
    assert!(values(&run, "lifecycle", "bare", "create").is_empty(), "a process has no life cycle");
}

#[test]
fn the_floor_lives_by_verbs() {
    lives("floor");
    for subject in ["floor:pid=host", "floor:net=host,seccomp=off"] {
        let dunnage = Dunnage::new();
        let ran = dunnage.run(&format!("check lifecycle exec -s {subject} --set prestate=primed"));
        assert_eq!(ran.code, 0, "{ran}");
    }
}

#[test]
fn runc_lives_by_verbs() {
    if !lacks("runc_lives_by_verbs", Need::Runc) {
        lives("runc");
    }
}

#[test]
fn crun_lives_by_verbs() {
    if !lacks("crun_lives_by_verbs", Need::Crun) {
        lives("crun");
    }
}

#[test]
fn docker_lives_by_verbs() {
    if !lacks("docker_lives_by_verbs", Need::Docker) {
        lives("docker");
    }
}

#[test]
fn podman_lives_by_verbs() {
    if !lacks("podman_lives_by_verbs", Need::Podman) {
        lives("podman");
    }
}

/// Stops a run of both experiments with this signal after this many lines of events.
fn broken_off(dunnage: &Dunnage, subject: &str, signal: i32, lines: usize) -> String {
    let arguments = format!("run lifecycle exec -s {subject} --rounds 50 --events json -o DIR");
    let mut child =
        dunnage.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let events = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(events.take(lines).filter(|line| line.is_ok()).count(), lines);
    // Somewhere in the next cell.
    std::thread::sleep(std::time::Duration::from_millis(130));
    // SAFETY: signals a child that has not been waited for.
    unsafe { libc::kill(child.id() as i32, signal) };
    child.wait().expect("it ends");
    record::load(&dunnage.directory()).expect("a run directory").run
}

fn leaves_nothing_when_stopped(subject: &str) {
    for lines in [3, 5, 8] {
        let dunnage = Dunnage::new();
        let run = broken_off(&dunnage, subject, libc::SIGINT, lines);
        assert_eq!(left::of_run(&run), Vec::<String>::new());
        assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
    }
    for lines in [4, 6] {
        let dunnage = Dunnage::new();
        let run = broken_off(&dunnage, subject, libc::SIGKILL, lines);
        let swept = dunnage.run("sweep");
        assert_eq!(swept.code, 0, "{swept}");
        assert_eq!(left::of_run(&run), Vec::<String>::new(), "{swept}");
    }
}

#[test]
fn a_stopped_or_killed_life_of_the_floor_leaves_nothing() {
    leaves_nothing_when_stopped("floor");
}

#[test]
fn a_stopped_or_killed_life_of_crun_leaves_nothing() {
    if !lacks("a_stopped_or_killed_life_of_crun_leaves_nothing", Need::Crun) {
        leaves_nothing_when_stopped("crun");
    }
}

#[test]
fn a_stopped_or_killed_life_of_podman_leaves_nothing() {
    if !lacks("a_stopped_or_killed_life_of_podman_leaves_nothing", Need::Podman) {
        leaves_nothing_when_stopped("podman:net=none");
    }
}

/// A shell of this name, which waits for a line, instead of a sweep of another state directory.
#[test]
fn a_run_waits_for_a_sweep_to_end() {
    let place = tempfile::tempdir().expect("a directory");
    let program = place.path().join("dunnage");
    std::fs::copy("/bin/bash", &program).expect("a shell");
    std::fs::write(place.path().join("sweep"), "read line").expect("its script");
    let mut sweep = Command::new(&program);
    let mut sweep =
        sweep.arg("sweep").current_dir(&place).stdin(Stdio::piped()).spawn().expect("the shell starts");
    let dunnage = Dunnage::new();
    let mut check = dunnage.command("check start -s bare --set prestate=primed");
    let mut check = check.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut told = String::new();
    BufReader::new(check.stderr.take().expect("a pipe")).read_line(&mut told).expect("a line");
    let expected = format!("waiting for `dunnage sweep` (process {}) to end", sweep.id());
    assert!(told.contains(&expected), "{told}");
    assert!(check.try_wait().expect("a child").is_none(), "it did not wait");
    drop(sweep.stdin.take());
    assert!(sweep.wait().is_ok());
    assert_eq!(check.wait().expect("it ends").code(), Some(0));
}

/// Its script makes `stop` take twelve seconds, as an engine waits for a program that ignores SIGTERM.
#[test]
fn the_patience_of_an_engine_is_not_the_price_of_stopping() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run lifecycle -s fake:time=60s,noise=1 --rounds 1 -o DIR");
    let run = recorded(&dunnage, &ran);
    let causes: Vec<_> = run.failures.iter().map(|row| &row.cause).collect();
    assert!(!causes.is_empty(), "{ran}");
    for cause in causes {
        let Cause::Failed(failure) = cause else { panic!("{cause:?}") };
        assert_eq!(failure.class, FailureClass::Treatment);
        assert!(failure.reason.contains("SIGTERM"), "{failure}");
    }
    // A container that stops within two seconds is fine.
    let ran = Dunnage::new().run("check lifecycle -s fake:time=10s,noise=1");
    assert_eq!(ran.code, 0, "{ran}");
}

#[test]
fn what_has_no_life_cycle_is_said_to_have_none() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run lifecycle -s bare --rounds 1 -o DIR");
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stderr.contains("lifecycle of `bare`: it has no container"), "{ran}");
    let ran = dunnage.run("plan lifecycle -s bare -s floor --full");
    assert!(ran.stdout.contains("is not in lifecycle"), "{ran}");
}

/// If the directory of dunnage's cgroups is missing, runtimes make it anew without the values that a cpuset
/// inherits, and processes cannot enter cgroups in it.
#[test]
fn shared_cgroups_that_others_make_anew_cost_no_sample() {
    const TEST: &str = "shared_cgroups_that_others_make_anew_cost_no_sample";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Cgroup) {
        return;
    }
    let shared = std::path::Path::new("/sys/fs/cgroup/cpuset/dunnage");
    if !shared.parent().is_some_and(|root| root.join("cpuset.cpus").exists()) {
        return support::skip(TEST, Need::Cgroup, "there is no cpuset of version 1");
    }
    let dunnage = Dunnage::new();
    let mut command = dunnage.command("run lifecycle exec -s floor --rounds 12 --set prestate=primed -o DIR");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut broken = 0;
    while child.try_wait().expect("our child").is_none() {
        // Refused while a container is in it.
        if std::fs::remove_dir(shared).is_ok() && std::fs::create_dir(shared).is_ok() {
            broken += 1;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let run = record::load(&dunnage.directory()).expect("a run directory");
    assert!(broken > 0, "nothing was made anew, so nothing is tested");
    assert!(run.failures.is_empty(), "{:?}", run.failures);
    let _ = std::fs::remove_dir(shared);
}
