//! Ctrl-C and SIGTERM in the middle of real runs: exit code 5, the samples kept, nothing left.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use dunnage::record;

use crate::dunnage::{Dunnage, Ran};
use crate::left;
use crate::running::until;
use crate::support::{Need, lacks};

/// Sends the signal `times` times after this many lines of events, again when the one before was received.
fn stopped(dunnage: &Dunnage, subjects: &str, signal: i32, lines: usize, times: usize) -> Ran {
    let arguments = format!("run start {subjects} --rounds 200 --events json -o DIR");
    let mut command = dunnage.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut events = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    for _ in 0..lines {
        line.clear();
        assert!(events.read_line(&mut line).is_ok_and(|length| length > 0), "it ended early");
    }
    for _ in 0..times {
        send(&child, signal);
        until("the signal is received", || !is_pending(&child, signal));
    }
    let mut stdout = String::new();
    events.read_to_string(&mut stdout).expect("text");
    let ran = crate::dunnage::finished(child.wait_with_output().expect("it ends"));
    Ran { stdout, ..ran }
}

fn send(child: &Child, signal: i32) {
    // SAFETY: signals a child that has not been waited for.
    unsafe { libc::kill(child.id() as i32, signal) };
}

/// Whether a signal to the process waits to be received. One that ended receives nothing more.
fn is_pending(child: &Child, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let has_ended = field("State:").is_none_or(|state| state.trim().starts_with('Z'));
    let pending = field("ShdPnd:").filter(|_| !has_ended);
    pending.is_some_and(|set| u64::from_str_radix(set.trim(), 16).unwrap() & 1 << (signal - 1) != 0)
}

/// Whether a process with this command line runs.
fn runs(words: &[&str]) -> bool {
    let line: String = words.iter().map(|word| format!("{word}\0")).collect();
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.into_iter().any(|found| found == line.as_bytes())
}

/// Whether the first thread of a process is in `poll` or `ppoll`, by its system call's number in `/proc`.
fn waits(child: &Child) -> bool {
    let call = std::fs::read_to_string(format!("/proc/{}/syscall", child.id())).unwrap_or_default();
    let number = call.split(' ').next().and_then(|number| number.parse().ok());
    [libc::SYS_poll, libc::SYS_ppoll].iter().any(|one| number == Some(*one))
}

fn nothing_is_left(dunnage: &Dunnage, ran: &Ran) {
    assert_eq!(ran.code, 5, "{ran}");
    assert!(
        ran.stderr.contains("interrupted; the samples are kept: continue with `dunnage resume "),
        "{ran}"
    );
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    assert!(!recorded.cut && recorded.damaged == 0);
    assert_eq!(left::of_run(&recorded.run), Vec::<String>::new(), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new(), "{ran}");
}

#[test]
fn ctrl_c_ends_a_run_of_bare_and_floor() {
    let dunnage = Dunnage::new();
    let lacks_floor = lacks("ctrl_c_ends_a_run_of_bare_and_floor", Need::Root);
    let subjects = if lacks_floor { "-s bare" } else { "-s bare -s floor" };
    for (signal, lines) in [(libc::SIGINT, 30), (libc::SIGTERM, 31), (libc::SIGHUP, 1)] {
        nothing_is_left(&dunnage, &stopped(&dunnage, subjects, signal, lines, 1));
        std::fs::remove_dir_all(dunnage.directory()).expect("the run");
    }
}

#[test]
fn a_stopped_run_goes_on() {
    let dunnage = Dunnage::new();
    let mut command = dunnage.command("run start -s bare --rounds 12 --events json -o DIR");
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut events = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert!(events.by_ref().take(40).all(|line| line.is_ok()));
    send(&child, libc::SIGINT);
    assert!(events.all(|line| line.is_ok()));
    assert_eq!(child.wait().expect("it ends").code(), Some(5));
    let ran = dunnage.run("resume DIR");
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(record::load(&dunnage.directory()).expect("a run directory").complete_rounds(), 12);
}

fn stop_while_it_runs(subject: &str) {
    let dunnage = Dunnage::new();
    let subjects = format!("-s {subject}");
    // Once in the first launch, where the client may still end; then twice in a later one.
    for (lines, times) in [(2, 1), (7, 2)] {
        let ran = stopped(&dunnage, &subjects, libc::SIGINT, lines, times);
        if times > 1 {
            // A client that was killed may leave its daemon at work. What stays because another test uses it
            // is not this run's.
            let swept = dunnage.run("sweep");
            let run = record::load(&dunnage.directory()).expect("a run directory").run;
            let stuck = |line: &str| line.starts_with("could not") && line.contains(&run);
            assert!(!swept.stdout.lines().any(stuck), "{swept}");
        }
        nothing_is_left(&dunnage, &ran);
        std::fs::remove_dir_all(dunnage.directory()).expect("the run");
    }
}

#[test]
fn ctrl_c_ends_a_run_of_crun() {
    if !lacks("ctrl_c_ends_a_run_of_crun", Need::Crun) && !lacks("ctrl_c_ends_a_run_of_crun", Need::Root) {
        stop_while_it_runs("crun");
    }
}

#[test]
fn ctrl_c_ends_a_run_of_runc() {
    if !lacks("ctrl_c_ends_a_run_of_runc", Need::Runc) && !lacks("ctrl_c_ends_a_run_of_runc", Need::Root) {
        stop_while_it_runs("runc");
    }
}

#[test]
fn ctrl_c_ends_a_run_of_docker() {
    if !lacks("ctrl_c_ends_a_run_of_docker", Need::Docker) {
        stop_while_it_runs("docker");
    }
}

#[test]
fn ctrl_c_ends_a_run_over_an_api() {
    if !lacks("ctrl_c_ends_a_run_over_an_api", Need::Docker) {
        stop_while_it_runs("docker:client=api");
    }
}

#[test]
fn ctrl_c_ends_a_run_of_podman() {
    if !lacks("ctrl_c_ends_a_run_of_podman", Need::Podman)
        && !lacks("ctrl_c_ends_a_run_of_podman", Need::Root)
    {
        stop_while_it_runs("podman");
    }
}

/// A client that reports through a named pipe that it is asked, and takes its time to answer.
#[test]
fn ctrl_c_while_an_engine_is_asked_what_it_is_ends_the_run() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().expect("a directory");
    let (client, told) = (place.path().join("docker"), place.path().join("told"));
    let told_path = std::ffi::CString::new(told.to_str().expect("text")).expect("no zero");
    // SAFETY: the path is a C string.
    assert_eq!(unsafe { libc::mkfifo(told_path.as_ptr(), 0o600) }, 0);
    let script = format!("#!/bin/sh\necho asked > {}\nsleep 1\nexit 1\n", told.display());
    std::fs::write(&client, script).expect("a script");
    std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).expect("our file");
    let dunnage = Dunnage::new().with_first_on_path(place.path());
    let mut command = dunnage.command("run start -s docker -s bare --rounds 3 -o DIR");
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    assert_eq!(std::fs::read_to_string(&told).expect("the script's word"), "asked\n");
    send(&child, libc::SIGINT);
    let ran = crate::dunnage::finished(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 5, "{ran}");
}

/// A pause of dunnage itself is not part of any sample.
#[test]
fn a_launch_during_which_dunnage_was_stopped_does_not_count() {
    let dunnage = Dunnage::new();
    let mut command = dunnage.command("run command -s bare --rounds 4 --events json -o DIR");
    // No other process has this command line.
    let seconds = format!("0.8{:07}", std::process::id());
    command.args(["--cmd", &format!("sleep {seconds}")]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut events = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let is_second = |line: &String| line.contains("\"round begins\"") && line.contains("\"round\":2");
    events.by_ref().find(is_second).expect("a second round");
    events.by_ref().find(|line| line.contains("\"cell begins\"")).expect("a cell");
    // Only a command that still runs once dunnage stands still is one that it was launching meanwhile.
    until("the command runs", || {
        // Only a wait can be seen to take too long.
        if !runs(&["sleep", &seconds]) || !waits(&child) {
            return false;
        }
        send(&child, libc::SIGSTOP);
        let is_within = runs(&["sleep", &seconds]);
        if !is_within {
            send(&child, libc::SIGCONT);
        }
        is_within
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    send(&child, libc::SIGCONT);
    events.for_each(drop);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    let [row] = &recorded.failures[..] else { panic!("one failure: {:?}", recorded.failures) };
    let why = format!("{:?}", row.cause);
    assert!(row.round >= 2 && why.contains("dunnage itself did not run for "), "{why}");
}
