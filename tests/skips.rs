//! A skip is printed, counted, and a failure if its need is required. Tested in a child process, because both
//! depend on the environment.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Need, skip};

const PLANT: &str = "DUNNAGE_TEST_PLANT_A_SKIP";

/// Runs the named test of this executable again, which then only skips.
fn skip_in_a_child(test: &str, required: &str, list: &Path) -> Output {
    Command::new(std::env::current_exe().expect("our own path"))
        .args(["--exact", &format!("skips::{test}"), "--nocapture"])
        .env(PLANT, test)
        .env("DUNNAGE_TEST_REQUIRE", required)
        .env("DUNNAGE_TEST_SKIPS", list)
        .output()
        .expect("the test executable runs")
}

/// Whether this is that child.
fn is_the_child(test: &str) -> bool {
    let planted = std::env::var(PLANT).is_ok_and(|planted| planted == test);
    if planted {
        skip(test, Need::Crun, "of two\nlines");
    }
    planted
}

#[test]
fn a_skip_is_told_and_recorded_on_one_line() {
    const SELF: &str = "a_skip_is_told_and_recorded_on_one_line";
    if is_the_child(SELF) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let list = directory.path().join("skips");
    let line = format!("skipped: {SELF}: crun: of two lines\n");
    for _ in 0..2 {
        let output = skip_in_a_child(SELF, "docker,docker+crun", &list);
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains(&line));
    }
    assert_eq!(std::fs::read_to_string(list).expect("the list"), line.repeat(2));
}

#[test]
fn a_required_need_fails_the_test_and_is_no_skip() {
    const SELF: &str = "a_required_need_fails_the_test_and_is_no_skip";
    if is_the_child(SELF) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let list = directory.path().join("skips");
    let output = skip_in_a_child(SELF, "docker,crun", &list);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("`crun` is required here"));
    assert!(!list.exists());
}
