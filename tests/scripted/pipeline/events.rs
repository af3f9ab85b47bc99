//! The event stream is complete, and standard output has nothing else.

use serde_json::Value;

use crate::dunnage::Dunnage;

#[test]
fn every_round_and_cell_has_its_beginning_and_end() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start -s a=fake -s b=fake:fail=4 --rounds 5 --seed 7 --events json -o DIR");
    assert_eq!(ran.code, 6, "{ran}");
    let events: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    // Two subjects and a twin in two settings; one round to warm up.
    assert_eq!([count("round begins"), count("round ends")], [6, 6], "{ran}");
    assert_eq!([count("cell begins"), count("cell ends")], [36, 36], "{ran}");
    let ends = || events.iter().filter(|event| event["event"] == "cell ends");
    assert!(ends().any(|event| event["outcome"] == "failed" && event["class"] == "crash"), "{ran}");
    let measured = ends().filter(|event| event["outcome"] == "measured");
    assert!(measured.into_iter().all(|event| event["values"]["returned"].is_f64()), "{ran}");
    assert_eq!(ends().filter(|event| event["phase"] == "warmup").count(), 6, "{ran}");
}

#[test]
fn a_reader_that_goes_away_ends_the_run_and_keeps_the_samples() {
    let dunnage = Dunnage::new();
    let mut command = dunnage.command("run start -s a=fake --rounds 5000 --events json -o DIR");
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("the program starts");
    drop(child.stdout.take());
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(5));
    assert!(dunnage.directory().join("samples.jsonl").exists());
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new());
}
