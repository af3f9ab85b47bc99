//! `dunnage doctor` on this machine, and with programs that are missing or misbehave.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::dunnage::{Dunnage, Ran};
use crate::support::{Need, lacks};

const STATES: [&str; 5] = ["ok", "note", "warning", "problem", "n/a"];

/// The document, after checks that apply to every one.
fn document(ran: &Ran) -> Value {
    let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran}"));
    assert_eq!(document["schema"], "dunnage-doctor/2");
    let checks = document["checks"].as_array().expect("a list of checks");
    for check in checks {
        assert!(STATES.contains(&check["state"].as_str().expect("a state")), "{check}");
        assert!(check["found"].as_str().is_some_and(|found| !found.contains('\n')), "{check}");
        assert!(check["command"].is_null() || check["advice"].is_null(), "{check}");
    }
    let mut names: Vec<_> = checks.iter().filter_map(|check| check["name"].as_str()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), checks.len(), "a name stands twice: {ran}");
    let problem = checks.iter().any(|check| check["state"] == "problem");
    let works = document["subjects_that_work"].as_array().is_some_and(|list| !list.is_empty());
    assert_eq!(ran.code, if !works { 4 } else { i32::from(problem) }, "{ran}");
    document
}

fn check<'a>(document: &'a Value, name: &str) -> &'a Value {
    let checks = document["checks"].as_array().expect("a list of checks");
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name} in {document:#}"))
}

fn script(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our file");
}

#[test]
fn without_engines_nothing_of_them_is_a_problem() {
    let empty = tempfile::tempdir().expect("a directory");
    let dunnage = Dunnage::new().with("PATH", &empty.path().display().to_string());
    let document = document(&dunnage.run("doctor --format json"));
    for name in
        ["docker-daemon", "podman-answers", "runtime-crun", "stats-formulas", "docker", "podman+runc", "crun"]
    {
        assert_eq!(check(&document, name)["state"], "n/a");
    }
    assert!(document["subjects_that_work"].as_array().unwrap().contains(&Value::from("bare")));
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_daemon_that_hangs_is_given_up_and_its_subjects_are_not_tried() {
    let place = tempfile::tempdir().expect("a directory");
    script(
        place.path(),
        "docker",
        "[ \"$1\" = --version ] && { echo Docker version 28.0.1; exit; }; exec /bin/sleep 1000",
    );
    let dunnage = Dunnage::new().with("PATH", &place.path().display().to_string());
    let began = Instant::now();
    let document = document(&dunnage.run("doctor --format json"));
    // The doctor waits 5 s, once; other verbs wait 20 s, and there are two subjects.
    assert!(began.elapsed() < Duration::from_secs(60));
    let daemon = check(&document, "docker-daemon");
    assert!(
        daemon["state"] == "problem" && daemon["found"].as_str().unwrap().contains("gave no answer"),
        "{daemon}"
    );
    for name in ["docker", "docker+crun"] {
        let subject = check(&document, name);
        assert!(subject["found"].as_str().unwrap().ends_with("see `docker-daemon`"), "{subject}");
    }
}

#[test]
fn a_podman_that_is_broken_is_a_problem_in_its_own_words() {
    let place = tempfile::tempdir().expect("a directory");
    script(place.path(), "podman", "echo 'the database \x1b[31mis gone' >&2; exit 125");
    let dunnage = Dunnage::new().with("PATH", &place.path().display().to_string());
    let ran = dunnage.run("doctor --format json");
    let podman = check(&document(&ran), "podman-answers").clone();
    assert!(
        podman["state"] == "problem" && podman["found"].as_str().unwrap().contains("is gone"),
        "{podman}"
    );
    assert!(!ran.stdout.contains('\x1b'));
}

#[test]
fn the_page_says_the_same_in_its_width_and_in_no_colour_here() {
    let empty = tempfile::tempdir().expect("a directory");
    let dunnage = Dunnage::new().with("PATH", &empty.path().display().to_string());
    let brief = dunnage.run("doctor");
    assert!(brief.stdout.starts_with("dunnage doctor: ") && brief.stdout.lines().count() <= 40, "{brief}");
    let works = brief.stdout.lines().find(|line| line.starts_with("can be measured here"));
    assert!(works.is_some_and(|line| line.contains(" bare")), "{brief}");
    let ran = dunnage.run("doctor --full");
    assert!(ran.stdout.starts_with("dunnage doctor: "), "{ran}");
    let is_bare = |line: &str| line.split_whitespace().take(2).eq(["ok", "bare"]);
    assert!(ran.stdout.contains("subjects ─") && ran.stdout.lines().any(is_bare), "{ran}");
    assert!(!ran.stdout.contains('\x1b'));
    let wide = ran.stdout.lines().filter(|line| line.chars().count() > 100);
    assert!(wide.clone().all(|line| line.trim_start().starts_with("fix: ")), "{ran}");
}

#[test]
fn an_ordinary_user_gets_an_answer() {
    if lacks("an_ordinary_user_gets_an_answer", Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let copy = dunnage.given_to(65534);
    let wrapper = format!("setpriv --reuid 65534 --regid 65534 --clear-groups {}", copy.display());
    let document = document(&dunnage.through(&wrapper, "doctor --format json"));
    assert_eq!(check(&document, "user")["state"], "warning");
    assert!(document["subjects_that_work"].as_array().unwrap().contains(&Value::from("bare")));
}
