//! A full disk, and directories that cannot be written to.

use std::process::Command;

use crate::dunnage::{Dunnage, finished};
use crate::support::{Need, lacks};

/// Calls the program with a small filesystem mounted on `place`, then runs `after` there.
fn in_a_small_world(dunnage: &Dunnage, size: &str, place: &str, script: &str) -> crate::dunnage::Ran {
    let script = script.replace("DUNNAGE ", concat!(env!("CARGO_BIN_EXE_dunnage"), " "));
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]);
    command.arg(format!("mkdir -p {place}; mount -t tmpfs -o size={size} tmpfs {place}; {script}"));
    command.env("DUNNAGE_STATE", dunnage.state()).env("DIR", dunnage.directory());
    finished(command.output().expect("unshare is there"))
}

#[test]
fn a_full_disk_ends_the_run_and_keeps_the_samples() {
    if lacks("a_full_disk_ends_the_run_and_keeps_the_samples", Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = in_a_small_world(
        &dunnage,
        "64k",
        "$DIR",
        "DUNNAGE run start -s a=fake --rounds 500 -o $DIR/run >/dev/null; echo $?; DUNNAGE report $DIR/run",
    );
    assert!(ran.stdout.starts_with("1\n"), "{ran}");
    assert_eq!(ran.stderr.matches("error: ").count(), 1, "{ran}");
    assert!(ran.stderr.contains("error: the run stopped: cannot write "), "{ran}");
    assert!(ran.stderr.contains("No space left on device"), "{ran}");
    assert!(ran.stderr.contains("hint: "), "{ran}");
    assert!(ran.code == 0 && ran.stdout.contains("of 500 rounds"), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_file_that_may_not_grow_ends_the_run_and_keeps_the_samples() {
    let dunnage = Dunnage::new();
    // The content of the state directory is made before the limit.
    let first = dunnage.run("run start -s a=fake --rounds 1 -o DIR-first");
    assert_eq!(first.code, 0, "{first}");
    let limited = |arguments: &str, last: &[&str]| {
        let mut command = dunnage.command(arguments);
        command.args(last);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "ulimit -f 64; exec \"$0\" \"$@\""])
            .arg(command.get_program())
            .args(command.get_args());
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        finished(shell.current_dir(command.get_current_dir().unwrap()).output().unwrap())
    };
    let ran = limited("run start -s a=fake --rounds 500 -o DIR", &[]);
    assert_eq!(ran.code, 1, "{ran}");
    assert_eq!(ran.stderr.matches("error: ").count(), 1, "{ran}");
    for words in ["the samples so far are kept", "File too large", "`ulimit -f`"] {
        assert!(ran.stderr.contains(words), "{words}: {ran}");
    }
    let report = dunnage.run("report DIR");
    assert!(report.code == 0 && report.stdout.contains("of 500 rounds"), "{report}");
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new());
    // Programs that dunnage starts have the default action, and are killed as they are without dunnage.
    let grows =
        format!("dd if=/dev/zero of={} bs=100k count=1", dunnage.state().with_file_name("grown").display());
    let ran = limited("check command -s bare", &["--cmd", &grows]);
    assert!(ran.stdout.contains("ended with signal 25"), "{ran}");
}

#[test]
fn a_full_state_directory_is_one_error_with_a_hint() {
    if lacks("a_full_state_directory_is_one_error_with_a_hint", Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = in_a_small_world(&dunnage, "16k", "$DUNNAGE_STATE", "DUNNAGE run start -s a=fake -o $DIR");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("No space left on device"), "{ran}");
    assert!(ran.stderr.contains("hint: ") && ran.stderr.contains("DUNNAGE_STATE"), "{ran}");
    assert!(!dunnage.directory().exists());
}

#[test]
fn a_state_directory_that_cannot_be_made_is_one_error_with_a_hint() {
    let dunnage = Dunnage::new().with("DUNNAGE_STATE", "/proc/nowhere");
    for verb in ["run start -s a=fake -o DIR", "sweep", "plan start -s a=fake"] {
        let ran = dunnage.run(verb);
        assert_eq!(ran.code, 1, "{ran}");
        let told = ran.stderr.contains("cannot use the state directory `/proc/nowhere`");
        assert!(told && ran.stderr.contains("hint: set `$DUNNAGE_STATE`"), "{ran}");
    }
    let ran = dunnage.run("doctor");
    assert!(ran.code == 4 && ran.stdout.contains("\ncan be measured here  nothing\n"), "{ran}");
    assert!(ran.stdout.contains("fix: set `$DUNNAGE_STATE`") && !ran.stderr.contains("error"), "{ran}");
}

#[test]
fn a_state_directory_that_became_read_only_is_one_error_with_a_hint() {
    if lacks("a_state_directory_that_became_read_only_is_one_error_with_a_hint", Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let script = "DUNNAGE check start -s a=fake 2>/dev/null; mount -o remount,ro $DUNNAGE_STATE; DUNNAGE doctor; DUNNAGE check start -s a=fake";
    let ran = in_a_small_world(&dunnage, "64m", "$DUNNAGE_STATE", script);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("error: cannot use the state directory"), "{ran}");
    assert!(ran.stderr.contains("hint: set `$DUNNAGE_STATE`"), "{ran}");
    let told = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["can be measured here nothing", "is mounted read-only", "sudo mount -o remount,rw"] {
        assert!(told.contains(words), "{words}: {ran}");
    }
}

#[test]
fn a_run_directory_that_cannot_be_made_is_one_error() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start -s a=fake --rounds 2 -o /proc/nowhere/run");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("error: cannot create `/proc/nowhere/run`"), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_sweep_needs_no_room() {
    if lacks("a_sweep_needs_no_room", Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    // It is killed when it has certainly something to leave: a directory of a container, seen while it is stopped.
    let script = "DUNNAGE run start -s floor --rounds 500 -o $DIR >/dev/null 2>&1 & cd $DUNNAGE_STATE
        until ! kill -STOP $! || ls -d runs/*/dunnage-* >/dev/null 2>&1; do kill -CONT $!; sleep 0.02; done; kill -9 $!; wait $!
        rm -r images; head -c 64m /dev/zero >fill 2>/dev/null; DUNNAGE sweep; ls -A journal runs 2>/dev/null | grep '^[^:]*[^:]$'";
    let ran = in_a_small_world(&dunnage, "48m", "$DUNNAGE_STATE", script);
    assert!(ran.stdout.contains("removed ") && !ran.stdout.contains("could not"), "{ran}");
    assert!(!ran.stderr.contains("error") && ran.code == 1, "something is left, or it failed: {ran}");
}
