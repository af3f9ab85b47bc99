//! `dunnage compare` for a user or a CI job: exit codes, and runs with faults.

use std::fs;

use crate::dunnage::{Dunnage, Ran};

/// Runs of the scripted subject, in `DIR-before` and so on.
fn measured(runs: &[(&str, &str)]) -> Dunnage {
    let dunnage = Dunnage::new();
    for (place, arguments) in runs {
        let ran = dunnage.run(&format!("run start --set prestate=idle -o DIR-{place} {arguments}"));
        assert_eq!(ran.code, 0, "{ran}");
    }
    dunnage
}

const BEFORE: (&str, &str) = ("before", "-s a=fake:time=20ms,noise=1 --rounds 20 --seed 7");
const AFTER: (&str, &str) = ("after", "-s a=fake:time=24ms,noise=1 --rounds 20 --seed 8");

fn refused(ran: &Ran, code: i32, words: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{ran}");
    assert!(
        ran.stderr.starts_with("error: ") && ran.stderr.contains(words) && !ran.stderr.contains("panicked"),
        "{ran}"
    );
}

#[test]
fn a_regression_has_an_exit_code_of_its_own() {
    let dunnage = measured(&[BEFORE, AFTER]);
    let plain = dunnage.run("compare DIR-before DIR-after");
    assert_eq!(plain.code, 0, "{plain}");
    assert!(plain.stdout.contains("slower"), "{plain}");
    let failed = dunnage.run("compare DIR-before DIR-after --fail-on slower");
    assert_eq!(failed.code, 3, "{failed}");
    assert!(failed.stderr.starts_with("regression: returned of `a` rises: +2"), "{failed}");
    assert_eq!(failed.stdout, plain.stdout);
    assert_eq!(dunnage.run("compare DIR-before DIR-after --fail-on slower=5%").code, 3);
    assert_eq!(dunnage.run("compare DIR-before DIR-after --fail-on slower=50%").code, 0);
    let faster = dunnage.run("compare DIR-after DIR-before --fail-on slower");
    assert_eq!(faster.code, 0, "{faster}");
    assert!(faster.stderr.starts_with("no regression found: all "), "{faster}");
    assert!(faster.stderr.contains("not corrected for changes of the machine"), "{faster}");
    let equal = dunnage.run("compare DIR-before DIR-before --fail-on slower");
    assert_eq!(equal.code, 0, "{equal}");
}

/// A new build that crashes now and then fails the gate, also where its times are as before.
#[test]
fn rounds_that_fail_are_a_regression_or_leave_it_open() {
    let dunnage = Dunnage::new();
    for (place, script, code) in
        [("old", "", 0), ("third", ",fail=3", 6), ("two", ",fail=15", 6), ("one", ",fail=30", 0)]
    {
        let ran = dunnage.run(&format!(
            "run start --set prestate=idle -s a=fake:time=20ms,noise=1{script} --rounds 30 --seed 4 -o DIR-{place}"
        ));
        assert_eq!(ran.code, code, "{ran}");
    }
    for (old, new, code, words) in [
        (
            "old",
            "third",
            3,
            "regression: start of `a` (prestate=idle) fails more often: in 10 of 30 rounds, before in 0 of 30",
        ),
        ("old", "two", 1, "cannot decide `--fail-on`: start of `a` (prestate=idle) fails: in 2 of 30 rounds"),
        (
            "third",
            "third",
            1,
            "cannot decide `--fail-on`: start of `a` (prestate=idle) fails: in 10 of 30 rounds",
        ),
        ("old", "one", 0, "no regression found"),
    ] {
        let ran = dunnage.run(&format!("compare DIR-{old} DIR-{new} --fail-on slower"));
        assert!(ran.code == code && ran.stderr.contains(words), "{old} {new}: {ran}");
    }
}

#[test]
fn silence_is_no_answer_where_nothing_can_be_judged() {
    let few = ("few", "-s a=fake:time=20ms --rounds 2 --seed 9");
    let dunnage = measured(&[BEFORE, AFTER, few]);
    let ran = dunnage.run("compare DIR-before DIR-few --fail-on slower");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(
        ran.stderr
            .contains("cannot decide `--fail-on`: returned of `a` has no verdict: 2 rounds on each side"),
        "{ran}"
    );
    let samples = dunnage.directory().with_file_name("run-after").join("samples.jsonl");
    let text = fs::read_to_string(&samples).expect("samples");
    let without: Vec<&str> = text.lines().filter(|line| !line.starts_with("{\"cell\"")).collect();
    fs::write(&samples, without.join("\n") + "\n").expect("ours");
    let ran = dunnage.run("compare DIR-before DIR-after");
    assert_eq!(ran.code, 4, "nothing has values on both sides: {ran}");
    assert!(ran.stdout.contains("new has no value"), "{ran}");
}

#[test]
fn several_runs_and_directories_of_runs_are_sides() {
    let runs: Vec<(String, String)> = (1..=4)
        .flat_map(|index| {
            [("old", 20), ("new", 30)].map(|(side, time)| {
                let seed = index * 10 + time;
                (
                    format!("{side}/{index}"),
                    format!("-s a=fake:time={time}ms,noise=1 --rounds 12 --seed {seed}"),
                )
            })
        })
        .collect();
    let runs: Vec<(&str, &str)> = runs.iter().map(|(place, text)| (place.as_str(), text.as_str())).collect();
    let dunnage = Dunnage::new();
    for side in ["old", "new"] {
        fs::create_dir_all(format!("{}-{side}", dunnage.directory().display())).expect("a directory");
    }
    for (place, arguments) in runs {
        let ran = dunnage.run(&format!("run start --set prestate=idle -o DIR-{place} {arguments}"));
        assert_eq!(ran.code, 0, "{ran}");
    }
    let listed = dunnage.run("compare DIR-old/1 DIR-old/2 DIR-old/3 DIR-old/4 -- DIR-new/1 DIR-new/2 DIR-new/3 DIR-new/4 --format json");
    refused(&listed, 1, "--format");
    let listed = dunnage
        .run("compare --format json DIR-old/1 DIR-old/2 DIR-old/3 DIR-old/4 -- DIR-new/1 DIR-new/2 DIR-new/3 DIR-new/4");
    assert_eq!(listed.code, 0, "{listed}");
    let directories = dunnage.run("compare DIR-old DIR-new --format json");
    assert_eq!(directories.stdout, listed.stdout);
    // An unreadable file in a directory is reported; a named one must exist.
    let damaged = format!("{}-new/5.dunnage", dunnage.directory().display());
    fs::write(&damaged, "no pack").expect("ours");
    let beside = dunnage.run("compare DIR-old DIR-new --format json");
    assert_eq!((beside.code, &beside.stdout), (0, &listed.stdout), "{beside}");
    assert!(beside.stderr.starts_with("left out: ") && beside.stderr.contains("5.dunnage"), "{beside}");
    refused(&dunnage.run("compare DIR-old DIR-new/5.dunnage"), 1, "neither a run directory nor a pack");
    let json: serde_json::Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!(json["schema"], "dunnage-compare/3");
    assert_eq!(json["sides"][0].as_array().map(Vec::len), Some(4));
    assert_eq!(json["experiments"][0]["lines"][0]["verdict"], "slower", "{listed}");
}

#[test]
fn what_cannot_be_compared_is_one_clear_error() {
    let other = ("other", "-s b=fake --rounds 12 --seed 9");
    let dunnage = measured(&[BEFORE, other]);
    refused(
        &dunnage.run("compare DIR-before DIR-other"),
        1,
        "the old and the new side have no cell in common",
    );
    refused(&dunnage.run("compare DIR-before DIR-nowhere"), 1, "is not a run directory");
    let samples = dunnage.directory().with_file_name("run-other").join("samples.jsonl");
    let text = fs::read_to_string(&samples).expect("samples");
    fs::write(&samples, text.replacen("\"version\":2", "\"version\":999", 1)).expect("ours");
    refused(&dunnage.run("compare DIR-before DIR-other"), 1, "has format version 999");
}

#[test]
fn a_run_cut_short_or_damaged_is_compared_as_far_as_it_goes_and_said_to_be_so() {
    let dunnage = measured(&[BEFORE, AFTER]);
    let samples = dunnage.directory().with_file_name("run-after").join("samples.jsonl");
    let text = fs::read_to_string(&samples).expect("samples");
    let lines: Vec<&str> = text.lines().collect();
    let mut cut = lines[..lines.len() * 3 / 4].join("\n").replacen("{\"cell\":0,\"round\":4", "{\"ce\0", 1);
    cut.push_str("\n{\"cell\":0,\"rou");
    fs::write(&samples, cut).expect("ours");
    let ran = dunnage.run("compare DIR-before DIR-after");
    assert_eq!(ran.code, 0, "{ran}");
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("the run ended after 1")
            && words.contains("1 line of the samples could not be read, and the last is truncated"),
        "{ran}"
    );
    assert!(words.contains("slower"), "{ran}");
}

#[test]
fn nonsense_is_a_usage_error() {
    let dunnage = Dunnage::new();
    for (arguments, words) in [
        ("compare DIR", "needs an old and a new side"),
        ("compare", "needs an old and a new side"),
        ("compare DIR -- ", "needs an old and a new side"),
        ("compare a b c", "cannot tell which of the 3 runs are the new ones"),
        ("compare a b --format pdf", "unknown format `pdf`"),
        ("compare a b --fail-on faster", "invalid value `--fail-on faster`"),
        ("compare a b --fail-on slower=5", "invalid value `--fail-on slower=5`"),
        ("compare a b --fail-on slower=-5%", "invalid value `--fail-on slower=-5%`"),
    ] {
        refused(&dunnage.run(arguments), 2, words);
    }
}

#[test]
fn a_comparison_is_not_written_over_a_run() {
    let dunnage = measured(&[BEFORE, AFTER]);
    refused(&dunnage.run("compare DIR-before DIR-after -o DIR-after/env.json"), 2, "is part of a run");
    let ran = dunnage.run("compare DIR-before DIR-after --format html -o DIR.html");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran}");
    let page = fs::read_to_string(dunnage.directory().with_extension("html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("slower"));
}
