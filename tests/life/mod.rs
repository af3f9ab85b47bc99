//! Containers that live by verbs, for real: every subject that works here is created, started, entered,
//! stopped and removed, with the treatment asked for, and leaves nothing, however it ends.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::dunnage::{Dunnage, Ran};
use crate::left;
use crate::running::Running;
use crate::support::{Need, Sweeps, lacks};
use ::dunnage::outcome::FailureClass;
use ::dunnage::plan::Cell;
use ::dunnage::record::{self, Cause, Recorded};
use ::dunnage::sys::cgroup::CgroupPlan;

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
    let least = |subject: &str| {
        let values = values(&run, "exec", subject, "returned");
        assert_eq!(values.len(), 4);
        values.into_iter().fold(f64::INFINITY, f64::min)
    };
    assert!(least(subject) > 0.0 && least("bare") > 0.0, "{} {}", least(subject), least("bare"));
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

/// Both experiments, in the first cell of this one that begins.
fn living<'a>(dunnage: &'a Dunnage, subject: &str, experiment: &str) -> Running<'a> {
    let arguments = format!("run lifecycle exec -s {subject} --rounds 50 -o DIR");
    let mut run = Running::start(dunnage, &arguments);
    run.await_event(&["\"cell begins\"", experiment]);
    run
}

const BOTH: [&str; 2] = ["lifecycle", "exec"];

/// Both signals are sent while a container lives, which is the case during most of either experiment.
fn leaves_nothing_when_stopped(subject: &str, experiments: &[&str], make: fn() -> Dunnage) {
    let engine = subject.split(':').next().expect("a name");
    let look = |run: &str| left::of_run_in(&[engine], run);
    for &experiment in experiments {
        let dunnage = make();
        let (run, status) = living(&dunnage, subject, experiment).signal_with(libc::SIGINT, look);
        assert_eq!(status.code(), Some(5), "{status}");
        assert_eq!(left::of_run(&run), Vec::<String>::new());
        assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());

        let dunnage = make();
        let _turn = Sweeps::begin();
        let (run, there) = living(&dunnage, subject, experiment).kill_with(look);
        let swept = dunnage.run("sweep");
        assert_eq!(swept.code, 0, "{swept}");
        assert!(swept.stdout.contains(&format!(" of run {run}")), "{there:?}, {swept}");
        assert_eq!(left::of_run(&run), Vec::<String>::new(), "{there:?}, {swept}");
    }
}

#[test]
fn a_stopped_or_killed_life_of_the_floor_leaves_nothing() {
    leaves_nothing_when_stopped("floor", &BOTH, || Dunnage::new().without_engines());
}

#[test]
fn a_stopped_or_killed_life_of_crun_leaves_nothing() {
    if !lacks("a_stopped_or_killed_life_of_crun_leaves_nothing", Need::Crun) {
        leaves_nothing_when_stopped("crun", &["exec"], || Dunnage::new().without_engines());
    }
}

#[test]
fn a_stopped_or_killed_life_of_runc_leaves_nothing() {
    if !lacks("a_stopped_or_killed_life_of_runc_leaves_nothing", Need::Runc) {
        leaves_nothing_when_stopped("runc", &["lifecycle"], || Dunnage::new().without_engines());
    }
}

#[test]
fn a_stopped_or_killed_life_of_podman_leaves_nothing() {
    if !lacks("a_stopped_or_killed_life_of_podman_leaves_nothing", Need::Podman) {
        leaves_nothing_when_stopped("podman:net=none", &BOTH, Dunnage::new);
    }
}

/// A shell of this name, which waits for a line, instead of a sweep of another state directory.
#[test]
fn a_run_waits_for_a_sweep_to_end() {
    // Then no other sweep is waited for.
    let _turn = Sweeps::begin();
    let words = "check start -s bare --set prestate=primed";
    let dunnage = Dunnage::new();
    let began = Instant::now();
    assert_eq!(dunnage.run(words).code, 0);
    let alone = began.elapsed();

    let place = tempfile::tempdir().expect("a directory");
    let program = place.path().join("dunnage");
    // Written by a child, so that no child of another thread still has it open.
    assert!(Command::new("cp").arg("/bin/bash").arg(&program).status().expect("a shell").success());
    std::fs::write(place.path().join("sweep"), "read line").expect("its script");
    let mut sweep = Command::new(&program);
    let mut sweep =
        sweep.arg("sweep").current_dir(&place).stdin(Stdio::piped()).spawn().expect("the shell starts");
    let mut check = dunnage.command(words);
    let mut check = check.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let expected = format!("waiting for `dunnage sweep` (process {}) to end", sweep.id());
    let mut told = BufReader::new(check.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(told.any(|line| line.contains(&expected)), "{expected}");
    // A check that does not wait ends within this time.
    std::thread::sleep(3 * alone);
    assert!(check.try_wait().expect("a child").is_none(), "it did not wait");
    drop(sweep.stdin.take());
    assert!(sweep.wait().is_ok());
    told.for_each(drop);
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

/// Another run that ends at any moment leaves the directories that hold the cgroups of this one.
#[test]
fn another_run_that_ends_costs_no_sample() {
    const TEST: &str = "another_run_that_ends_costs_no_sample";
    if [Need::Root, Need::Cgroup, Need::Runc].into_iter().any(|need| lacks(TEST, need)) {
        return;
    }
    let plan = CgroupPlan::here().expect("cgroups");
    let dunnage = Dunnage::new();
    let mut command = dunnage.command("run start -s floor -s runc -s bare:cpus=0.5 --rounds 12 -o DIR");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    while child.try_wait().expect("our child").is_none() {
        plan.retire().expect("it is removed or left");
        std::thread::sleep(Duration::from_micros(200));
    }
    let run = record::load(&dunnage.directory()).expect("a run directory");
    assert!(run.failures.is_empty(), "{:?}", run.failures);
}
