//! Two at once: neither a run nor a sweep disturbs what another run is using.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use dunnage::record;

use crate::dunnage::Dunnage;
use crate::support::{Need, lacks};

/// Every planned cell of every round was measured.
fn assert_undisturbed(dunnage: &Dunnage, rounds: usize) {
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    assert_eq!(recorded.failures, Vec::new());
    assert_eq!(recorded.complete_rounds(), rounds);
}

/// Starts it and waits until its first round has begun.
fn begun(mut command: Command) -> (std::process::Child, impl Iterator<Item = String>) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    lines.next().expect("an event");
    (child, lines)
}

#[test]
fn two_runs_in_one_state_directory_do_not_disturb_each_other() {
    let dunnage = Dunnage::new();
    let lacks_floor = lacks("two_runs_in_one_state_directory_do_not_disturb_each_other", Need::Root);
    let subjects = if lacks_floor { "-s a=fake -s bare" } else { "-s a=fake -s floor" };
    let arguments = format!("run start {subjects} --rounds 10 --events json -o DIR");
    let (mut first, lines) = begun(dunnage.command(&arguments));
    let second = dunnage.run(&arguments.replace("DIR", "second"));
    assert_eq!(second.code, 0, "{second}");
    lines.for_each(drop);
    assert_eq!(first.wait().expect("it ends").code(), Some(0));
    assert_undisturbed(&dunnage, 10);
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new());
}

fn sweep_during_a_run(subject: &str, rounds: usize) {
    let running = Dunnage::new();
    let arguments = format!("run start -s {subject} --rounds {rounds} --events json -o DIR");
    let (mut child, lines) = begun(running.command(&arguments));
    let (done, is_done) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        lines.for_each(drop);
        let _ = done.send(());
    });
    let elsewhere = Dunnage::new();
    let mut removed = Vec::new();
    let mut sweeps = 0;
    while is_done.try_recv().is_err() {
        for swept in [running.run("sweep"), elsewhere.run("sweep")] {
            assert_eq!(swept.code, 0, "{swept}");
            removed
                .extend(swept.stdout.lines().filter(|line| line.starts_with("removed ")).map(str::to_owned));
        }
        sweeps += 1;
    }
    reader.join().expect("a reader");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert!(sweeps > 0);
    // Containers of other tests' killed runs may be among them.
    let own = record::load(&running.directory()).expect("a run directory").run;
    let own: Vec<_> = removed.iter().filter(|line| line.contains(&own)).collect();
    assert!(own.is_empty(), "{own:?}");
    assert_undisturbed(&running, rounds);
}

#[test]
fn a_sweep_leaves_a_living_run_of_floor_alone() {
    if !lacks("a_sweep_leaves_a_living_run_of_floor_alone", Need::Root) {
        sweep_during_a_run("floor", 20);
    }
}

#[test]
fn a_sweep_leaves_a_living_run_of_docker_alone() {
    if !lacks("a_sweep_leaves_a_living_run_of_docker_alone", Need::Docker) {
        sweep_during_a_run("docker", 2);
    }
}

#[test]
fn a_sweep_leaves_a_living_run_of_podman_alone() {
    if !lacks("a_sweep_leaves_a_living_run_of_podman_alone", Need::Podman) {
        sweep_during_a_run("podman", 2);
    }
}
