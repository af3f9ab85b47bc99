//! An interrupted run can be resumed to its end.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use dunnage::record;
use dunnage::verdict::analyse;

use crate::dunnage::Dunnage;

const RUN: &str = "run start -s a=fake -s b=fake:time=1.2ms --rounds 20 --seed 7 -o DIR";

/// Every round is there once, and every cell of it has a value.
fn assert_complete(dunnage: &Dunnage, rounds: usize) {
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    assert_eq!(recorded.complete_rounds(), rounds);
    let values = recorded.series.iter().map(|series| &series.values[0]);
    assert!(values.flatten().all(|value| value.is_finite()));
    let warnings = analyse(&recorded).warnings;
    assert!(warnings.iter().any(|one| one.kind == "resumed"), "{warnings:?}");
}

#[test]
fn a_killed_run_goes_on() {
    let dunnage = Dunnage::new();
    let arguments = "run start -s a=fake -s b=fake --rounds 3000 --events json -o DIR";
    let mut child = dunnage.command(arguments).stdout(Stdio::piped()).spawn().expect("the program starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(lines.take(400).count() == 400, "it ended early");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let before = record::load(&dunnage.directory()).expect("a run directory").complete_rounds();
    assert!((10..3000).contains(&before), "{before} rounds");
    let ran = dunnage.run("resume DIR");
    assert_eq!(ran.code, 0, "{ran}");
    assert_complete(&dunnage, 3000);
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_run_that_was_cut_within_a_line_goes_on() {
    let dunnage = Dunnage::new();
    assert_eq!(dunnage.run(RUN).code, 0);
    let path = dunnage.directory().join("samples.jsonl");
    let text = std::fs::read(&path).expect("samples");
    // Within a line, wherever the lines of this run begin.
    let line = text[..text.len() * 3 / 5].iter().rposition(|byte| *byte == b'\n').expect("lines");
    std::fs::write(&path, &text[..line + 1 + 11]).expect("the file is ours");
    let cut = record::load(&dunnage.directory()).expect("a run directory");
    assert!(cut.cut && (10..13).contains(&cut.complete_rounds()), "{}", cut.complete_rounds());
    let ran = dunnage.run("resume DIR");
    assert_eq!(ran.code, 0, "{ran}");
    assert_complete(&dunnage, 20);
    let shown = dunnage.run("report DIR --full");
    let words = shown.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("1 line of the samples could not be read"), "{shown}");
    assert!(words.contains("no round is missing") && !words.contains("dunnage resume"), "{shown}");
}

#[test]
fn a_run_that_was_cut_between_two_rounds_says_that_it_was_resumed() {
    let dunnage = Dunnage::new();
    assert_eq!(dunnage.run(RUN).code, 0);
    let path = dunnage.directory().join("samples.jsonl");
    let text = std::fs::read_to_string(&path).expect("samples");
    let ended = text.match_indices("{\"end\"").nth(9).expect("rounds").0;
    let line = text[ended..].find('\n').expect("a line");
    std::fs::write(&path, &text[..ended + line + 1]).expect("the file is ours");
    let ran = dunnage.run("resume DIR");
    assert_eq!(ran.code, 0, "{ran}");
    assert_complete(&dunnage, 20);
}

#[test]
fn a_complete_run_is_only_shown() {
    let dunnage = Dunnage::new();
    assert_eq!(dunnage.run(RUN).code, 0);
    let path = dunnage.directory().join("samples.jsonl");
    let before = std::fs::read(&path).expect("samples");
    let ran = dunnage.run("resume DIR");
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("is complete"), "{ran}");
    assert_eq!(std::fs::read(&path).expect("samples"), before);
}

#[test]
fn another_build_does_not_go_on() {
    let dunnage = Dunnage::new();
    assert_eq!(dunnage.run(RUN).code, 0);
    let path = dunnage.directory().join("samples.jsonl");
    let text = std::fs::read(&path).expect("samples");
    std::fs::write(&path, &text[..text.len() / 2]).expect("the file is ours");
    let path = dunnage.directory().join("env.json");
    let mut environment: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).expect("env.json")).expect("JSON");
    environment["probe"] = "another".into();
    std::fs::write(&path, environment.to_string()).expect("the file is ours");
    std::fs::remove_dir_all(dunnage.state()).expect("it is ours");
    let ran = dunnage.run("resume DIR");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(!dunnage.state().exists(), "it unpacked itself");
    assert!(ran.stderr.contains("another build of dunnage") && ran.stderr.contains("hint: "), "{ran}");
}
