//! Shells accept the completion scripts, and the scripts offer what can be typed.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::support::{Need, lacks};
use dunnage::experiment;

fn printed(shell: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dunnage"))
        .args(["completions", shell])
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

fn script(shell: &str) -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("dunnage");
    fs::write(&path, printed(shell).stdout).expect("a script");
    (place, path)
}

/// What bash offers for the last word of a command line.
fn offered(line: &[&str]) -> Vec<String> {
    let (_place, path) = script("bash");
    let (last, before) = line.split_last().expect("a line has a word");
    let previous = before.last().expect("a line begins with the program");
    // As bash itself calls the function: command, word, previous word, and the line in an array.
    let asked = format!(
        "set -u; source '{}'; COMP_WORDS=({}); COMP_CWORD={}; complete -p dunnage > /dev/null || exit 3; \
         _dunnage dunnage '{last}' '{previous}' 2> /dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        path.display(),
        line.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        before.len(),
    );
    let done = Command::new("bash").args(["--norc", "-c", &asked]).output().expect("bash starts");
    assert!(done.status.success(), "{line:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn every_shell_gets_a_script_and_an_unknown_one_the_list() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = printed(shell);
        let text = String::from_utf8(done.stdout).expect("a script is UTF-8");
        assert!(done.status.success() && done.stderr.is_empty(), "{shell}");
        assert!(text.contains("dunnage") && text.contains("doctor"), "{shell}: {text}");
    }
    let unknown = printed("tcsh");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("possible values: bash"));
}

fn accepts_its_script(shell: &str) {
    let (_place, path) = script(shell);
    let done = Command::new(shell).arg("-n").arg(&path).output().expect("the shell starts");
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && complaint.is_empty(), "{shell}: {complaint}");
    // The option has an effect.
    fs::write(&path, "if dunnage; (\n").expect("our file");
    let done = Command::new(shell).arg("-n").arg(&path).output().expect("the shell starts");
    assert!(!done.status.success() && !done.stderr.is_empty(), "{shell}");
}

#[test]
fn bash_accepts_its_script() {
    if lacks("bash_accepts_its_script", Need::Bash) {
        return;
    }
    accepts_its_script("bash");
}

#[test]
fn zsh_accepts_its_script() {
    if lacks("zsh_accepts_its_script", Need::Zsh) {
        return;
    }
    accepts_its_script("zsh");
}

#[test]
fn fish_accepts_its_script() {
    if lacks("fish_accepts_its_script", Need::Fish) {
        return;
    }
    accepts_its_script("fish");
}

#[test]
fn bash_offers_verbs_experiments_subjects_settings_and_formats() {
    if lacks("bash_offers_verbs_experiments_subjects_settings_and_formats", Need::Bash) {
        return;
    }
    assert_eq!(offered(&["dunnage", "do"]), ["doctor"]);
    assert_eq!(offered(&["dunnage", "run", "--qui"]), ["--quick"]);
    for one in experiment::ALL {
        for verb in ["plan", "check", "run"] {
            assert!(offered(&["dunnage", verb, one.name]).contains(&one.name.to_owned()));
        }
    }
    assert_eq!(offered(&["dunnage", "run", "start", "-s", "docker"]), ["docker", "docker+crun"]);
    assert_eq!(offered(&["dunnage", "run", "--set", "prestate=p"]), ["prestate=primed"]);
    assert_eq!(offered(&["dunnage", "report", "--format", "js"]), ["json"]);
    assert_eq!(offered(&["dunnage", "completions", "z"]), ["zsh"]);
    assert_eq!(offered(&["dunnage", "run", "-s", "nothing-is-called-so"]), Vec::<String>::new());
}

#[test]
fn names_for_completion_change_no_error() {
    let done = Command::new(env!("CARGO_BIN_EXE_dunnage"))
        .args(["plan", "strat"])
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2));
    assert!(!told.contains("possible values"), "clap answered instead of us: {told}");
}
